"""From episodes to a value with a standard error, an interval, and the share of weight they cover."""

from saver.estimate.interval import Estimate
from saver.estimate.log import ESTIMATORS, Log

__all__ = ["ESTIMATORS", "Estimate", "Log"]
