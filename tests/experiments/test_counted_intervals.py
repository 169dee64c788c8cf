"""Intervals in the audit: every world about rewards is counted, and finds intervals that are too narrow.

Each judgement has an error probability of .001 over the number of judgements, by the exact binomial
distribution; seeds are fixed.
"""

import dataclasses

import numpy as np
import pytest

from saver.cli.main import _run
from saver.engine import simulate
from saver.estimate.anytime import Anytime
from saver.experiments.tables import TABLES
from saver.experiments.work import silent
from saver.problem import Bounded, SubGaussian
from saver_audit import count, judged
from saver_audit.hostile import HOSTILE
from saver_audit.manners import CASES, MANNERS
from saver_audit.rewards import REWARDS
from saver_audit.worlds import SHAPES, Place

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


def test_a_promised_scale_of_a_third_of_the_truth_is_found(monkeypatch):
    made = REWARDS["rewards, normal, undeclared"]()
    scale = np.sqrt(made.world.reward.variance)
    for share, found in ((1.0, False), (1 / 3, True)):
        problem = dataclasses.replace(made.problem, reward=SubGaussian(share * scale))
        monkeypatch.setitem(HOSTILE, "mine", lambda asked=problem: dataclasses.replace(made, problem=asked))
        group = group_of("mine", "saver", 60)
        assert (group.ever_misses, group.broken) == (found, found)


def test_the_command_ends_with_1_if_intervals_miss(tmp_path, monkeypatch, capsys):
    none = dict.fromkeys(SHAPES, 0)
    monkeypatch.setitem(count.AUDITS, "quick", count.Size(none, none, none, {"intractable": 30}, {}, 0))
    for name, value in {"HOSTILE": (), "CASES": (), "PROMISING": ("saver", "sepec")}.items():
        monkeypatch.setattr(count, name, value)
    assert _run(["audit", "--out", str(tmp_path / "right")]) == 0
    assert "No group misses with its intervals" in capsys.readouterr().out
    monkeypatch.setattr(count, "simulate", narrowed(0.2))
    assert _run(["audit", "--out", str(tmp_path / "wrong")]) == 1
    assert "2 groups miss with their intervals beyond chance" in capsys.readouterr().out
    lines = (tmp_path / "wrong" / "audit.md").read_text(encoding="utf-8").splitlines()
    (saver_row,) = (line for line in lines if line.startswith("| scenarios | saver |"))
    (sepec_row,) = (line for line in lines if line.startswith("| scenarios | sepec |"))
    assert saver_row.endswith("MISSES at one time, MISSES at all times |")
    assert sepec_row.endswith("| MISSES at all times |")  # importance weights are not judged at one time


def test_with_nothing_declared_only_late_looks_at_long_campaigns_are_counted(monkeypatch):
    """And none at importance weights, whose interval at one time is not judged either."""
    made = REWARDS["rewards, normal, undeclared"]()
    monkeypatch.setitem(HOSTILE, "mine", lambda: dataclasses.replace(made, episodes=499))
    assert group_of("mine", "saver", 2).watched == 0
    monkeypatch.setitem(HOSTILE, "mine", lambda: dataclasses.replace(made, episodes=500))
    assert group_of("mine", "saver", 2).watched == 2
    assert group_of("mine", "sepec", 2).watched == 0


def test_the_worlds_about_rewards_are_of_all_kinds():
    made = {name: make() for name, make in REWARDS.items()}
    assert set(made) <= set(HOSTILE)
    declared = {type(s.problem.reward) for s in made.values()}
    assert declared == {Bounded, SubGaussian, type(None)}
    assert {count.kind_of(s) for s in made.values()} == {"one way", "random"}
    shared = [s for s in made.values() if s.world.outcome == "shared"]
    assert len(shared) == 3
    assert all(s.world.reward is s.world.constraint for s in shared)
    assert all(s.episodes >= 1000 for s in made.values() if s.problem.reward is None)
    rare = made["rewards, rare coins"].world.reward
    assert np.average(rare.mean, weights=made["rewards, rare coins"].problem.target) == pytest.approx(0.019)


class Trusting(Anytime):
    """Takes what was told for all that happened."""

    def __init__(self, terms, name):
        super().__init__(terms._replace(losses="random"), name)


class Narrow(Anytime):
    """A share of the interval, about its middle."""

    share = 0.2

    def interval(self, book, level, c=None):
        found = super().interval(book, level, c)
        middle, half = (found.low + found.high) / 2, self.share * (found.high - found.low) / 2
        return found._replace(low=middle - half, high=middle + half)


class Narrower(Narrow):
    """Cancelled trials are hidden ones, and many: the interval is wide."""

    share = 0.05


WRONG = [
    ("5 % lost, lowest outcomes", "arms", Trusting),
    ("30 % lost, lowest outcomes", "coins", Trusting),
    ("5 % lost, lowest sums", "arms", Trusting),
    ("30 % lost, lowest sums", "arms", Trusting),
    ("30 out, best first", "arms", Trusting),
    ("100 out, best first", "coins", Trusting),
    ("three stragglers", "arms", Narrow),
    ("half cut off at their best", "steps", Trusting),
    ("held back, then 10 % lost", "arms", Narrow),
    ("cancelled against the sum", "arms", Narrower),
    ("5 % lost at random", "coins", Narrow),
    ("30 % lost at random", "steps", Narrow),
    ("100 out, in order", "steps", Narrow),
    ("30 % lost, declared random", "steps", Narrow),
]


@pytest.mark.parametrize(("manner", "world", "wrong"), WRONG)
def test_an_interval_that_does_not_see_a_manner_is_found(manner, world, wrong, monkeypatch):
    (case,) = (case for case in CASES if (case.manner, case.world) == (manner, f"one outcome, {world}"))

    def group(keeper):
        monkeypatch.setattr("saver.collect.setup.Anytime", keeper)
        (row,) = count.loss_rows(case, 10, 1, 1, silent)
        return judged([dict(zip(TABLES["audit"].columns, row, strict=True))])[0]

    found = group(wrong)
    assert (found.watched, found.ever_misses, found.violates) == (10, True, False)
    found = group(Anytime)
    assert (found.watched, found.ever) == (10, 0)
    assert found.bounded == (10 if MANNERS[manner].losses == "random" else 0)
