"""Collectors, and the ask/tell campaign that runs one."""

from saver.collect.answers import Comparison, Uncertain
from saver.collect.campaign import Budget, Campaign
from saver.collect.collectors import COLLECTORS, Collector
from saver.collect.knowledge import Knowledge, Statistics
from saver.collect.setup import Setup
from saver.collect.stopping import Precise
from saver.collect.trial import Trial

__all__ = [
    "COLLECTORS",
    "Budget",
    "Campaign",
    "Collector",
    "Comparison",
    "Knowledge",
    "Precise",
    "Setup",
    "Statistics",
    "Trial",
    "Uncertain",
]
