"""Worlds against the certificate: each keeps its promises, and each finds a certificate that does not hold.

A ledger that is wrong in one place stands in for the certified one. It breaks the promise beyond chance, by
the exact binomial distribution, in the worlds that are built against that place; the right one does not.
"""

import dataclasses
import math

import numpy as np
import pytest

from saver.experiments.tables import TABLES
from saver.experiments.work import silent
from saver.play import Stage
from saver.problem import Bounded, SubGaussian, bellman
from saver.safety import LEDGERS
from saver.safety.certified import Certified
from saver.safety.learnedbaseline import LearnedBaseline
from saver.theory.believed import remarks
from saver_audit import count, judged
from saver_audit.hostile import HOSTILE, NEXT_STATE
from saver_audit.judge import ERROR
from saver_audit.rewards import REWARDS
from saver_audit.worlds import Place

pytestmark = pytest.mark.slow

RUNS = 16  # at delta = .05 five broken ones have a probability below 1e-3


class Right(Certified):
    """As it is; a ledger of one's own runs in the reference engine, like those below."""


class Noiseless(Certified):
    """Takes what was observed for what it was worth."""

    def seen_worth(self, tally, away=()):
        return tally.gained - self.hides(tally, away)[0]


class Boxless(Certified):
    """Takes sample means for means."""

    def ends(self, book):
        means, promise = book.first.seen, self.problem.constraint
        return tuple(np.where(means.counts > 0, means.mean, end) for end in (promise.floor, promise.ceiling))


class Pathless(Certified):
    """Takes where episodes went for where they were expected to go."""

    def _settle(self, book, number):
        super()._settle(book, number)
        if not self.deterministic:
            book.bound = max(book.bound, self.seen_worth(book.first))


class Sure(Certified):
    """Takes what returns said, beside what the model explains, for what trials are worth."""

    def _bet_together(self, tally, tickets):
        slowest = tally.logs[0] / self.capital.rates[0]  # at a slow rate log(1 + lambda y) is about lambda y
        return tally.sum_x + self.range * slowest


class Measured(LearnedBaseline):
    """Takes the average of the baseline for what it is worth."""

    def values(self, book):
        return (self.value(book),)

    def joint(self, book, low, runs, safe):
        return -math.inf


class NoiselessLearned(Measured):
    """Takes what was observed for what it was worth, of the baseline and of the others."""

    seen_worth = Noiseless.seen_worth


class RightLearned(LearnedBaseline):
    """As it is where V0 is learned."""


class Averaging(Certified):
    """Counts on what a draw is worth on average."""

    def lower(self, book, play):
        return float(np.sum(play.weights * self.ends(book)[0]))


def rows_of(name, collector, ledger, monkeypatch, episodes=None, runs=RUNS):
    """Rows of the audit, with this ledger for the certified one."""
    monkeypatch.setitem(LEDGERS, "certified", ledger)
    if episodes is not None:
        shorter = dataclasses.replace(HOSTILE[name](), episodes=episodes)
        monkeypatch.setitem(HOSTILE, name, lambda: shorter)
    rows = count.world_rows(Place("hostile", name), {collector: runs}, 1, 1, silent)
    return [dict(zip(TABLES["audit"].columns, row, strict=True)) for row in rows]


BREAKS = [
    ("one outcome", "saver", Noiseless, 500),
    ("next state", "saver", Noiseless, None),
    ("next state, coins", "saver", Boxless, None),
    ("next state, coins, not declared", "saver", Boxless, None),
    ("next state, split", "saver", Noiseless, 300),
    ("next state, split, not declared", "saver-opt", Boxless, 300),
    ("coins near 1", "saver", Noiseless, 500),
    ("coins near 1, alpha .01", "saver", Noiseless, 2000),
    ("coins near 0", "saver", Noiseless, 1000),
    ("coins on a tree", "saver", Noiseless, 500),
    ("coins on a graph", "saver-opt", Boxless, 300),
    ("lucky arms", "saver, earner", Noiseless, 500),
    ("lucky coins", "saver-opt, baseline unseen", Noiseless, 500),
    ("lucky ways", "saver-opt, baseline unseen", Boxless, 300),
    ("rare pits", "saver", Pathless, 500),
    ("rare treasures", "safe-on-policy", Pathless, 500),
    ("long road", "saver", Pathless, 200),
    ("all or nothing", "safe-on-policy", Averaging, 300),
    ("drawn baseline", "safe-on-policy", Noiseless, 300),
    ("discounted tree", "saver", Noiseless, 300),
    ("discounted graph", "saver", Boxless, 300),
    ("from -2 to 3", "sepec", Noiseless, 300),
    ("below zero", "safe-on-policy", Boxless, 300),
    ("contexts of coins", "safe-on-policy", Sure, None),
    ("contexts of coins, steps", "safe-on-policy", Sure, None),
    ("at the edge, alpha", "safe-on-policy", Measured, None),
    ("at the edge, allowance", "saver", Measured, None),
    ("at the edge, at_least", "safe-on-policy", NoiselessLearned, None),
]


@pytest.mark.parametrize(("name", "collector", "wrong", "episodes"), BREAKS)
def test_a_wrong_ledger_is_found(name, collector, wrong, episodes, monkeypatch):
    (found,) = judged(rows_of(name, collector, wrong, monkeypatch, episodes))
    assert found.chance < ERROR
    right = RightLearned if issubclass(wrong, LearnedBaseline) else Right
    (found,) = judged(rows_of(name, collector, right, monkeypatch, episodes, 4))
    assert found.violations == 0


def test_every_new_world_has_a_wrong_ledger_that_it_finds():
    first = {
        "unsafe looks good", "rare disasters", "coins, alpha .05", "noise x 10", "tiny alpha",
        "nothing to spare",
    }  # fmt: skip
    assert {name for name, *_ in BREAKS} == set(HOSTILE) - set(REWARDS) - first


@pytest.mark.parametrize("name", HOSTILE)
def test_means_are_what_is_declared_and_observations_keep_their_promise(name):
    made = HOSTILE[name]()
    assert all(made.problem.rails[0].learned and "is learned" in text for text in remarks(made))
    assert (made.problem.reward is None) == name.endswith("undeclared")
    world, promise = made.world, made.problem.rails[0].promise
    if not callable(world.outcome):
        return
    rng, mdp = np.random.default_rng(0), world.mdp
    for (s, a), mean in np.ndenumerate(world.constraint.mean):
        to = mdp.successors(s, a)
        chances = mdp.transitions[[s * mdp.actions + a]].toarray().ravel()[to]
        seen = np.array([world.outcome(rng, 0, s, a, int(n))[1] for n in to])
        assert np.sum(chances * seen) == pytest.approx(mean)
        if isinstance(promise, SubGaussian):  # a fair coin with sides `scale` apart from its mean
            assert np.abs(seen - mean) == pytest.approx(promise.scale)
            assert chances == pytest.approx(0.5)
        else:
            assert np.all((promise.low <= seen) & (seen <= promise.high))


def test_what_the_next_state_explains_is_all_the_noise_and_goes_with_what_follows():
    for name in ("next state", "next state, coins"):
        made = NEXT_STATE[name]()
        world, rng = made.world, np.random.default_rng(0)
        assert made.problem.constraint.next_state
        down, up = (
            bellman.value(
                dataclasses.replace(world.mdp, start=s), made.problem.baseline, world.constraint.mean
            )
            for s in (0, 1)
        )
        assert up > down
        worse, better = ({world.outcome(rng, 0, 1, 0, n)[1] for _ in range(20)} for n in (0, 1))
        assert len(worse) == len(better) == 1
        assert min(better) > max(worse)


def test_the_kinds_of_worlds_are_all_there():
    made = {name: make() for name, make in HOSTILE.items()}
    promises = [s.problem.rails[0].promise for s in made.values()]
    kinds = [(type(p), p.next_state, Stage(s.problem.mdp).deterministic)
             for p, s in zip(promises, made.values(), strict=True)]  # fmt: skip
    for promise in (SubGaussian, Bounded):
        assert (promise, True, False) in kinds
        assert (promise, False, False) in kinds
        assert (promise, False, True) in kinds
    assert any(isinstance(p, Bounded) and (p.low, p.high) != (0.0, 1.0) for p in promises)
    assert any(isinstance(p, SubGaussian) and p.floor < 0 for p in promises)
    assert any(
        isinstance(s.problem.rails[0].promise, Bounded) and s.problem.mdp.discount < 1 for s in made.values()
    )
    assert {count.kind_of(s) for s in made.values()} == {"one way", "random", "outcome"}
