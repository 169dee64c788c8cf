"""From elsewhere and back: logs become problems, environments models, and episodes are written out."""

from typing import TYPE_CHECKING

from saver._late import late
from saver.data.episodes import Episodes
from saver.data.fitted import Fitted
from saver.data.fitting import fit
from saver.data.gymmodels import from_gymnasium, unknown_from_gymnasium, world_from_gymnasium
from saver.data.offpolicy import Evaluation, OffPolicy, evaluate, off_policy
from saver.data.onecall import problem
from saver.data.playing import CutOff, play
from saver.data.reading import read_log
from saver.data.replaying import from_campaign
from saver.data.scales import Scale
from saver.data.vector import play_many

if TYPE_CHECKING:
    from saver.data.envs import ScenarioEnv, register
else:  # they need Gymnasium
    __getattr__, __dir__ = late(
        __name__, {"ScenarioEnv": "saver.data.envs:ScenarioEnv", "register": "saver.data.envs:register"}
    )

__all__ = [
    "CutOff",
    "Episodes",
    "Evaluation",
    "Fitted",
    "OffPolicy",
    "Scale",
    "ScenarioEnv",
    "evaluate",
    "fit",
    "from_campaign",
    "from_gymnasium",
    "off_policy",
    "play",
    "play_many",
    "problem",
    "read_log",
    "register",
    "unknown_from_gymnasium",
    "world_from_gymnasium",
]
