"""The audit where transitions are unknown: its worlds keep their promises, and find ledgers that are wrong.

A ledger that is wrong in one place stands in for the right one, in a world at the edge. It breaks the promise
beyond chance, by the exact binomial distribution, and the right one does not.
"""

import dataclasses
import math

import numpy as np
import pytest

from saver.collect.knowledge import Knowledge, Statistics
from saver.engine import simulate
from saver.experiments.tables import TABLES
from saver.experiments.work import silent
from saver.problem import Bounded, SubGaussian
from saver.problem.moments import Moments
from saver.safety import LEDGERS
from saver.safety.modelfree import LearnedModelFree, ModelFree
from saver.simulator import Truth
from saver.theory.believed import remarks
from saver_audit import count, judged
from saver_audit.judge import ERROR, tail
from saver_audit.losses import counted
from saver_audit.manners import MANNERS, UNKNOWN, UNKNOWN_CASES, Case
from saver_audit.uncharted import (
    ALL,
    COLLECT,
    DELTAS,
    EDGES,
    MODEL_FREE,
    RECKLESS,
    STEPS,
    WORLDS,
    Shared,
    least,
)
from saver_audit.worlds import SHAPES, Place

pytestmark = pytest.mark.slow

FEW, MANY = 24, 60  # at delta = .05 six, and ten, broken ones have a probability below 1e-3


class Right(ModelFree):
    """As it is; a ledger of one's own runs in the reference engine, like those below."""


class RightLearned(LearnedModelFree):
    """As it is where V0 is learned."""


class Knowing(ModelFree):
    """Guesses when a trial is told, and so never wrongly."""

    def measure(self, line, episode):
        found = super().measure(line, episode)
        line.proxy = line.guessed = 0.0
        return found


class Halved(ModelFree):
    """Takes half of the range of what an episode earns for all of it."""

    def proxy_of(self, play):
        return float(self.promise.scale**2 * play.noise + (self.span / 4) ** 2)

    def excess(self, Q, R):
        return super().excess(Q, R) / 2


class Apart(ModelFree):
    """Counts the noise of independent steps alone: not where episodes go, nor what steps share."""

    def proxy_of(self, play):
        return float(self.promise.scale**2 * play.noise)


class Lavish(ModelFree):
    """Sixteen times its level."""

    def __init__(self, terms):
        rail = dataclasses.replace(terms.rail, level=16 * terms.rail.level)
        super().__init__(terms._replace(own=rail))


class Noiseless(ModelFree):
    """Takes what was observed for what it was worth."""

    def seen_worth(self, tally, away=()):
        return tally.gained - self.hides(tally, away)[0]


class Measured(LearnedModelFree):
    """Takes the average of the baseline for what it is worth."""

    def values(self, book):
        return (self.value(book),)

    def joint(self, book, low, runs, safe):
        return -math.inf


class NoiselessLearned(Measured):
    """Takes what was observed for what it was worth, of the baseline and of the others."""

    seen_worth = Noiseless.seen_worth


class Telling(ModelFree):
    """Knows of what was told, and of nothing else."""

    def __init__(self, terms):
        super().__init__(terms._replace(losses="random"))

    def budget_at(self, book, value):
        return self.settled_at(book, value)

    spendable_at = budget_at

    def abandon(self, book, number, play, ran):
        del book.out[number]
        del book.lines[number]


def group_of(name, collector, ledger, monkeypatch, runs):
    """What the audit says of a world with this ledger, at delta = .05."""
    monkeypatch.setitem(LEDGERS, "certified", ledger)
    (row,) = count.world_rows(Place("unknown", name), {collector: runs}, 1, 1, silent)
    return judged([dict(zip(TABLES["audit"].columns, row, strict=True))])[0]


BREAKS = [  # the step of the proof that is wrong, and where
    ("what was told", "coins", "reckless", Knowing, FEW),
    ("what was told", "coins", "safe-on-policy", Knowing, FEW),
    ("how far luck goes", "coins, one step", "reckless", Halved, MANY),
    ("the level", "coins, one step", "reckless", Lavish, MANY),
    ("how far luck goes", "normal", "reckless", Apart, MANY),
    ("how far luck goes", "shared noise", "reckless", Apart, MANY),
    ("noise", "one way", "safe-on-policy", Noiseless, FEW),
    ("noise", "ends early, coins", "reckless", Noiseless, FEW),
    ("noise of the baseline", "coins, learned by alpha", "reckless", NoiselessLearned, FEW),
    ("noise of the baseline", "normal, learned by alpha", "reckless", NoiselessLearned, FEW),
]


def test_so_many_are_beyond_chance():
    assert tail(FEW, 6, 0.05) < ERROR <= tail(FEW, 5, 0.05)
    assert tail(MANY, 10, 0.05) < ERROR <= tail(MANY, 9, 0.05)


@pytest.mark.parametrize(("step", "name", "collector", "wrong", "runs"), BREAKS)
def test_a_wrong_ledger_is_found(step, name, collector, wrong, runs, monkeypatch):
    assert group_of(name, collector, wrong, monkeypatch, runs).chance < ERROR
    right = RightLearned if issubclass(wrong, LearnedModelFree) else Right
    assert group_of(name, collector, right, monkeypatch, 4).violations == 0


@pytest.mark.parametrize(
    ("manner", "world"),
    [
        ("30 % lost, lowest sums", "coins"),
        ("5 % lost, lowest sums", "normal"),
        ("30 out, best first", "normal"),
        ("three stragglers", "shared noise"),
    ],
)
def test_a_ledger_that_knows_only_what_was_told_is_found(manner, world, monkeypatch):
    """Five of ten have a probability below 1e-3."""
    case = Case(manner, f"{world}, unknown", "safe-on-policy", 0.05)
    monkeypatch.setitem(LEDGERS, "certified", Telling)
    assert np.sum(counted(case, 10, 1).least < -1e-9) >= 5
    monkeypatch.undo()
    right = counted(case, 10, 1)
    assert min(right.worst.min(), right.least.min()) > -1e-9


# -- the audit itself, small ---------------------------------------------------------------------------------


def test_at_the_edge_the_promise_holds_and_something_is_at_stake():
    """45 judgements at 1e-3 over all: the error probability of this test is below 1e-3."""
    rows = []
    for name in EDGES:
        for number in range(len(DELTAS)):
            place = Place("unknown", name, number)
            if callable(place.make().world.outcome):
                continue  # these take longer: see above
            rows += [
                dict(zip(TABLES["audit"].columns, row, strict=True))
                for row in count.world_rows(place, {"reckless": 60}, 3, 1, silent)
            ]
    groups = judged(rows)
    assert not any(group.violates for group in groups)
    broken = {delta: sum(g.violations for g in groups if g.delta == delta) for delta in DELTAS}
    assert broken[0.5] > 40  # bounds that are never reached would be an audit of nothing
    assert all(0.05 < group.baseline < 0.95 for group in groups)


def test_both_engines_play_the_reckless_ones_alike():
    made = Place("unknown", "coins", 1).make()
    for recipe in RECKLESS.values():
        one, other = (
            simulate(made, recipe, runs=3, episodes=120, seed=5, engine=engine, threads=1)
            for engine in ("compiled", "reference")
        )
        np.testing.assert_array_equal(one.worst_budget, other.worst_budget)
        np.testing.assert_array_equal(one.ledger, other.ledger)


# -- worlds --------------------------------------------------------------------------------------------------


def test_what_designed_episodes_are_worth_at_the_edge():
    """By hand: half of four steps, of .85 of which is required; a quarter for who is reckless."""
    made = Place("unknown", "coins").make()
    truth, rail = Truth(made), made.problem.rails[0]
    assert (rail.value, rail.required) == pytest.approx((STEPS, 2.0 / 0.85))
    assert truth.worth(made.problem.first) == pytest.approx(2.0)
    early = Truth(Place("unknown", "ends early, coins").make())
    gamma = 1 + 0.9 + 0.81 + 0.729
    assert early.worth(early.scenario.problem.first) == pytest.approx(0.5 + 0.5 * gamma)
    for known, worst in ((truth, 1.0), (early, 0.75 + 0.25 * gamma)):
        world, nothing = known.scenario.world, Moments.empty(known.means[0].shape)
        told = Statistics.of(
            known.scenario.problem,
            Knowledge(constraint_mean=world.constraint.mean, model=world.mdp),
            1,
            nothing,
            [nothing],
        )
        assert known.worth(least(told)) == pytest.approx(worst)
        assert known.worth(least(told, -1.0)) == pytest.approx(known.baseline)


def test_a_state_decides_all_of_an_episode():
    made = EDGES["coins"]()
    assert np.array_equal(made.world.constraint.mean, ALL)
    assert set(np.unique(ALL)) == {0.0, 1.0}
    assert np.allclose(ALL.mean(axis=0), [1.0, 0.5, 0.25, 0.75])
    assert all(made.world.mdp.successors(s, a) == [s] for s in range(4) for a in range(4))


def test_steps_share_one_draw_of_noise():
    made, rng = EDGES["shared noise"](), np.random.default_rng(0)
    shown = made.world.outcome
    assert isinstance(shown, Shared)
    episodes = [[shown(rng, t, 3, 1, 3)[1] - 1.0 for t in range(STEPS)] for _ in range(2000)]
    assert np.ptp(episodes, axis=1).max() == 0.0
    assert np.std(episodes) == pytest.approx(made.problem.constraint.scale, rel=0.1)
    assert made.problem.constraint.next_state


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_keep_what_they_declare_and_know_no_transitions(name):
    assert all("is learned" in text for text in remarks(WORLDS[name]()))
    for number, delta in enumerate(DELTAS):
        made = Place("unknown", name, number).make()
        assert not made.problem.mdp.known
        assert made.problem.mdp.start is None
        assert made.problem.delta == delta
        assert all(rail.credit > 0 for rail in made.rails)


def test_the_kinds_of_worlds_are_all_there():
    made = {name: Place("unknown", name).make() for name in WORLDS}
    promises = [rail.promise for s in made.values() for rail in s.problem.rails]
    for kind in (SubGaussian, Bounded):
        assert any(isinstance(promise, kind) for promise in promises)
        for test in (
            lambda s: s.problem.mdp.discount < 1,
            lambda s: s.problem.rails[0].learned,
            lambda s: bool(s.world.mdp.terminal),
        ):
            assert any(test(s) and isinstance(s.problem.rails[0].promise, kind) for s in made.values())
    assert any(promise.next_state for promise in promises)
    assert any(len(s.problem.rails) > 1 for s in made.values())
    assert {count.kind_of(s) for s in made.values()} == {"one way", "random", "outcome"}


def test_every_world_is_a_step_of_the_audit():
    names = [step.name for step in count.plan_audit("quick").steps]
    assert len(names) == len(set(names))
    assert sum(name.startswith("unknown-") for name in names) == 2 * (
        len(WORLDS) + len(MODEL_FREE) * len(SHAPES)
    )


def test_the_full_audit_counts_enough():
    size, total = count.AUDITS["full"], 0
    for place, runs, heavy in count.unknown_places(size):
        counts = count.counts_for(place, place.make(), runs, heavy)
        assert tuple(counts) == COLLECT
        total += sum(counts.values())
    assert total >= 30_000
    assert {place.family for place, *_ in count.unknown_places(size)} == {"unknown", *MODEL_FREE}
    assert {place.name for place, *_ in count.unknown_places(size) if place.family in MODEL_FREE} == set(
        SHAPES
    )
    assert len(UNKNOWN_CASES) * size.unknown["losses"] >= 300
    assert {case.world for case in UNKNOWN_CASES} == set(UNKNOWN)
    assert {MANNERS[case.manner].losses for case in UNKNOWN_CASES} == {"hostile", "random"}
    assert {case.delta for case in UNKNOWN_CASES} == set(DELTAS)
