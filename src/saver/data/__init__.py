"""From logs to a problem, and back: reading, fitting, writing out."""

from saver.data.campaigns import from_campaign
from saver.data.episodes import Episodes
from saver.data.fitted import Fitted
from saver.data.fitting import fit
from saver.data.offpolicy import Evaluation, OffPolicy, evaluate, off_policy
from saver.data.onecall import problem
from saver.data.reading import read_log
from saver.data.scales import Scale

__all__ = [
    "Episodes",
    "Evaluation",
    "Fitted",
    "OffPolicy",
    "Scale",
    "evaluate",
    "fit",
    "from_campaign",
    "off_policy",
    "problem",
    "read_log",
]
