"""Lost and late feedback in the audit: every manner is counted, and finds a ledger that does not see it.

A ledger that counts on something which a manner does not keep stands in for the certified one. It then
believes more than is true of some set that can have run, beyond chance: `few` says how many of RUNS campaigns
have a probability below 1e-3 at delta = .05. The right ledger does so in none.
"""

from collections import Counter

import numpy as np
import pytest

from saver.experiments.tables import TABLES
from saver.experiments.work import silent
from saver.play import Stage
from saver.problem import Bounded, SubGaussian
from saver.safety import LEDGERS
from saver.safety.certified import Certified
from saver_audit import count, judge, judged
from saver_audit.losses import counted
from saver_audit.manners import CASES, EPISODES, MANNERS, ONE_OUTCOME, WORLDS, Case

pytestmark = pytest.mark.slow

RUNS, few = 10, 5


class Trusting(Certified):
    """Sums in the order of telling, as if chance had chosen what is told."""

    def __init__(self, terms):
        super().__init__(terms._replace(losses="random"))


class Hopeful(Certified):
    """Takes what is out for what has not run."""

    def budget_at(self, book, value):
        return self.settled_at(book, value)

    spendable_at = budget_at


class Telling(Trusting):
    """Knows of what was told, and of nothing else."""

    budget_at = spendable_at = Hopeful.budget_at

    def abandon(self, book, number, play, ran):
        del book.out[number]
        del book.lines[number]


class Whole(Certified):
    """Takes what was seen of an episode for all of it."""

    def tell(self, book, number, play, episode, complete=True):
        super().tell(book, number, play, episode)


def test_every_manner_and_every_world_is_counted_at_both_deltas():
    assert {case.manner for case in CASES} == set(MANNERS)
    assert {case.world for case in CASES} == set(WORLDS)
    assert len(CASES) == len(set(CASES)) == 4 * len(MANNERS) + 8 <= 64
    for manner in MANNERS:
        own = [case for case in CASES if case.manner == manner and not case.world.endswith("learned")]
        assert {case.delta for case in own} == {0.05, 0.5}
        assert len({case.world for case in own} - set(ONE_OUTCOME)) == 2
        assert len({case.world for case in own} & set(ONE_OUTCOME)) == 1
    assert {case.collector for case in CASES} == {"saver", "saver-opt", "safe-on-policy"}
    assert count.AUDITS["full"].losses == 500
    assert EPISODES == 300


def test_the_worlds_are_of_all_kinds():
    made = {name: make() for name, make in WORLDS.items()}
    kinds = Counter((type(s.problem.constraint), Stage(s.problem.mdp).deterministic) for s in made.values())
    for promise in (SubGaussian, Bounded):
        assert kinds[promise, True] >= 1
        assert kinds[promise, False] >= 1
    assert np.any(
        (made["drawn baseline"].problem.baseline > 0) & (made["drawn baseline"].problem.baseline < 1)
    )
    for case in CASES:
        problem, same = case.make().problem, made[case.world].problem
        assert (case.make().world.outcome == "shared") == (case.world in ONE_OUTCOME)
        assert (problem.delta, problem.alpha) == (case.delta, same.alpha)
        assert (problem.baseline_value, problem.constraint) == (same.baseline_value, same.constraint)


WRONG = [
    ("30 % lost at random", "noisy bandit", "saver-opt", Telling),
    ("5 % lost, lowest outcomes", "rare disasters", "saver", Telling),
    ("30 % lost, lowest outcomes", "drawn baseline", "saver", Telling),
    ("5 % lost, lowest sums", "noisy bandit", "saver", Trusting),
    ("30 % lost, lowest sums", "noisy bandit", "safe-on-policy", Trusting),
    ("held back, then 10 % lost", "noisy bandit", "saver-opt", Telling),
    ("30 out, best first", "noisy bandit", "saver", Hopeful),
    ("30 out, best first", "coins on paths", "saver", Telling),
    ("100 out, best first", "all or nothing", "safe-on-policy", Hopeful),
    ("100 out, in order", "drawn baseline", "safe-on-policy", Hopeful),
    ("three stragglers", "noisy bandit", "saver", Telling),
    ("half cut off at their best", "debts", "saver-opt", Whole),
    ("30 % lost, declared random", "noisy bandit", "saver", Telling),
]


def test_so_many_are_beyond_chance():
    assert judge.tail(RUNS, few, 0.05) < 1e-3 <= judge.tail(RUNS, few - 1, 0.05)


@pytest.mark.parametrize(("manner", "world", "collector", "wrong"), WRONG)
def test_a_ledger_that_does_not_see_a_manner_is_found(manner, world, collector, wrong, monkeypatch):
    case = Case(manner, world, collector, 0.05)
    monkeypatch.setitem(LEDGERS, "certified", wrong)
    assert np.sum(counted(case, RUNS, 1).least < -1e-9) >= few
    monkeypatch.undo()
    right = counted(case, RUNS, 1)
    assert np.all(right.worst > -1e-9)
    assert np.all(right.least > -1e-9)


def test_a_broken_promise_is_counted_and_judged(monkeypatch):
    case = Case("5 % lost, lowest sums", "noisy bandit", "saver", 0.05)

    def group(ledger):
        monkeypatch.setitem(LEDGERS, "certified", ledger)
        (row,) = count.loss_rows(case, RUNS, 1, 1, silent)
        return judged([dict(zip(TABLES["audit"].columns, row, strict=True))])[0]

    wrong, right = group(Telling), group(Certified)
    assert (wrong.violations, wrong.violates, wrong.collector) == (RUNS, True, "saver")
    assert (right.violations, right.broken, right.tellable) == (0, False, True)
    assert right.baseline > wrong.baseline


def test_campaigns_are_the_same_in_any_number_of_processes(monkeypatch):
    monkeypatch.setattr("saver_audit.losses.FEW", 1)
    case = Case("5 % lost at random", "drawn baseline", "safe-on-policy", 0.05)
    np.testing.assert_array_equal(counted(case, 3, 2, jobs=2), counted(case, 3, 2))
