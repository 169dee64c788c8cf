"""Before a campaign is run: tractability, hardness, bounds, predictions; and how fast regret falls."""

from saver.theory.bounds import RegretRate, regret_rate
from saver.theory.diagnosis import Diagnosis, diagnose
from saver.theory.hardness import Undefined

__all__ = ["Diagnosis", "RegretRate", "Undefined", "diagnose", "regret_rate"]
