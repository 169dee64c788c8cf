"""Before a campaign is run: tractability, hardness, bounds, predictions; and how fast regret falls."""

from saver.theory.diagnosis import Diagnosis, diagnose
from saver.theory.nodewise import Undefined
from saver.theory.rate import RegretRate, regret_rate

__all__ = ["Diagnosis", "RegretRate", "Undefined", "diagnose", "regret_rate"]
