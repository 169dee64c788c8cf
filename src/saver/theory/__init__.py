"""Before a campaign is run: tractability, hardness, bounds, predictions; and how fast regret falls."""

from saver.theory.bounds import RegretRate, regret_rate
from saver.theory.diagnosis import Diagnosis, diagnose
from saver.theory.hardness import Undefined
from saver.theory.rehearsal import Rehearsal, forecast, rehearse, world_of

__all__ = [
    "Diagnosis",
    "RegretRate",
    "Rehearsal",
    "Undefined",
    "diagnose",
    "forecast",
    "regret_rate",
    "rehearse",
    "world_of",
]  # fmt: skip
