"""Collectors, and the ask/tell campaign that runs one."""

from saver.collect.answers import Comparison, Uncertain
from saver.collect.campaign import Campaign
from saver.collect.collectors import COLLECTORS, Collector
from saver.collect.events import Trial
from saver.collect.knowledge import Knowledge, Statistics
from saver.collect.known import Budget
from saver.collect.setup import Precise, Setup

__all__ = [
    "COLLECTORS", "Budget", "Campaign", "Collector", "Comparison", "Knowledge", "Precise", "Setup",
    "Statistics", "Trial", "Uncertain",
]  # fmt: skip
