"""Intervals in the audit: every world about rewards is counted, and finds intervals that are too narrow.

Each judgement has an error probability of .001 over the number of judgements, by the exact binomial
distribution; seeds are fixed.
"""

import dataclasses

import numpy as np
import pytest

import saver
from saver.cli.main import _run
from saver.engine import simulate
from saver.estimate.anytime import Anytime
from saver.experiments.auditing import count, judged
from saver.experiments.auditing.hostile import HOSTILE
from saver.experiments.auditing.losses import Case, counted
from saver.experiments.auditing.rewards import REWARDS
from saver.experiments.auditing.worlds import Place
from saver.experiments.tables import TABLES
from saver.experiments.work import silent
from saver.problem import Bounded, SubGaussian

pytestmark = pytest.mark.slow


def narrowed(share):
    """`simulate` with intervals of this share of their length."""

    def simulated(*given, **options):
        found = simulate(*given, **options)
        low, high = (found.estimates + share * (end - found.estimates)
                     for end in (found.anytime_low, found.anytime_high))  # fmt: skip
        parts = {name: share * getattr(found, name) for name in ("stderr", "below", "above")}
        return dataclasses.replace(found, anytime_low=low, anytime_high=high, **parts)

    return simulated


def group_of(name, collector, runs):
    rows = count.world_rows(Place("hostile", name), {collector: runs}, 0, 1, silent)
    (group,) = judged([dict(zip(TABLES["audit"].columns, row, strict=True)) for row in rows])
    return group


@pytest.mark.parametrize("name", REWARDS)
def test_narrow_intervals_are_found(name, monkeypatch):
    right = group_of(name, "saver", 60)
    assert (right.runs, right.watched, right.broken) == (60, 60, False)
    monkeypatch.setattr(count, "simulate", narrowed(0.3))
    wrong = group_of(name, "saver", 60)
    assert (wrong.bounded, wrong.misses, wrong.ever_misses) == (right.bounded, True, True)
    assert not wrong.violates
