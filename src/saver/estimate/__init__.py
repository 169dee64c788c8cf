"""From episodes to a value with a standard error, an interval, and the share of weight they cover."""

from saver.estimate.interval import Estimate
from saver.estimate.log import ESTIMATORS, Log, Sums

__all__ = ["ESTIMATORS", "Estimate", "Log", "Sums"]
