"""The audit of campaigns that begin with a log: small, and its worlds."""

import numpy as np
import pytest

from saver.collect import showing
from saver.problem.bellman import by_step
from saver.safety.modelfree import LOG
from saver_audit import logged, loggedworlds
from saver_audit.judge import ERROR, tail
from saver_audit.logged import MANNERS, ROUND, Case, Known, counted, problem_of, too_high
from saver_audit.loggedworlds import WORLDS, alone, arms, cases, hidden, planned

pytestmark = pytest.mark.slow

WIDE = 0.99  # a delta at which floors fail often enough to be judged by few logs
ASKED = Case("", 0.9, "allowance", "given", "at once", WIDE, 600, 30)


# -- the audit itself, small ---------------------------------------------------------------------------------

SMALL = ("arms", "shared by steps", "drawn at the start")
RUNS = 3


@pytest.mark.parametrize("delta", loggedworlds.DELTAS)
def test_a_small_audit_finds_nothing(delta):
    """Of campaigns that each break with probability delta at most."""
    bad, runs, shares = np.zeros(2), 0, []
    for case in cases():
        if case.world in SMALL and case.delta == delta and case.logged <= 600:
            found = counted(case, WORLDS[case.world](), range(RUNS))
            bad += np.sum(found.worst < -ROUND), np.sum(found.least < -ROUND)
            runs, shares = runs + RUNS, [*shares, *found.share]
    assert tail(runs, int(bad.max()), delta) >= ERROR
    assert 0.3 < np.mean(shares) < 0.95  # a gate that is never open would be an audit of nothing


def test_floors_are_below_the_truth():
    """Of all policies that a log shows, of all guardrails at once."""
    wide = [case for case in alone() if case.delta == WIDE]
    above = [too_high(case, WORLDS[case.world](), (9, i)) for case in wide for i in range(4)]
    assert tail(len(above), sum(above), LOG * WIDE) >= ERROR


# -- worlds --------------------------------------------------------------------------------------------------


class Drawn:
    """A trial of a policy."""

    def __init__(self, table, seed):
        self.table, self.rng = table, np.random.default_rng(seed)

    def act(self, step, state):
        return int(self.rng.choice(self.table.shape[2], p=self.table[step, state]))


@pytest.mark.parametrize("name", WORLDS)
def test_policies_are_worth_what_is_said(name):
    """The average of many episodes, of the log and of those that are run one by one."""
    world = WORLDS[name]()
    many = world.log(np.random.default_rng(1), 4000)
    runner, trial = logged.Runner(world, 2), Drawn(by_step(world.mdp, world.target), 3)
    played = [runner.run(trial) for _ in range(300)]
    weights = world.discount ** np.arange(world.horizon)
    for i, rail in enumerate(world.seen):
        earned = [np.dot(weights[: len(one)], one.constraints[rail]) for one in played]
        for policy, returns in ((world.baseline, many.returns(many.constraints[rail], world.discount)),
                                (world.target, np.array(earned))):  # fmt: skip
            off = np.mean(returns) - world.worths(policy)[i]
            assert abs(off) <= 4.0 * np.std(returns) / np.sqrt(len(returns)) + 1e-9


@pytest.mark.parametrize("case", [case for case in cases() if case.delta == 0.5], ids=lambda case: case.group)
def test_worlds_are_asked_as_is_said(case):
    world = WORLDS[case.world]()
    problem = problem_of(world, case)
    truth, rail = Known(world, problem), problem.rails[0]
    ratio = truth.signed(problem, world.worths(world.target))[0] / truth.required[0]
    near = 1.0 / ratio if rail.sign < 0.0 else ratio
    kept = truth.baselines[0] - truth.required[0] > 1.01 * logged.LEAST * abs(truth.baselines[0])
    assert near == pytest.approx(case.near) or not kept
    assert rail.low - 1e-12 <= truth.baselines[0] <= rail.high + 1e-12
    assert (rail.learned, rail.exact) == (case.value == "learned", case.value == "given")
    assert all(rail.credit_at(base) > 0.0 for rail, base in zip(problem.rails, truth.baselines, strict=True))


def test_who_looks_at_a_start_sees_what_nobody_else_sees():
    world, case = hidden(), ASKED
    problem = problem_of(world, case)
    truth = Known(world, problem)
    follows = showing.begun(problem, "safe-on-policy", 10)[0].stage.grid.policy(problem.first)
    seen = []
    for trait in (0, 1):
        start = logged.Start(0)
        start.trait = trait
        seen.append(truth.ahead(follows, start, 0))
    assert seen == pytest.approx([1.0 + 0.8 + 1.0, 1.0])
    assert world.chances @ seen == pytest.approx(world.worths(world.target)[0])


def test_some_actions_were_hardly_ever_logged():
    for name, share in (("never logged", 0.0), ("seldom logged", 0.01)):
        world = WORLDS[name]()
        many = world.log(np.random.default_rng(0), 4000)
        assert np.mean(many.actions == 2) == pytest.approx(share, abs=0.004)
        assert np.all(world.target[:, 2] > 0.0)


def test_the_baseline_of_a_log_by_hand():
    problem = problem_of(hidden(), ASKED)
    many = hidden().log(np.random.default_rng(0), 50)
    table = logged.observed(problem, many)
    for s in range(3):
        taken = many.actions[many.states == s]
        assert table[s, 1] == (np.mean(taken) if len(taken) else 0.5)
    assert np.allclose(table.sum(axis=1), 1.0)


def test_without_designs_there_are_targets_and_blends():
    world, case = arms(), ASKED
    many = world.log(np.random.default_rng(0), 600)
    few, all_of_them = (
        showing.recall(problem_of(world, case), many, designs=so).shown for so in (False, True)
    )
    assert set(few.names) <= {
        "the target",
        *(f"{part}% of the target, else baseline" for part in (50, 20, 10)),
    }
    assert set(few.names) < set(all_of_them.names) or len(all_of_them.names) == len(few.names)


def test_the_full_audit_counts_enough():
    chosen = cases()
    assert len(set(chosen)) == len(chosen)
    assert {case.world for case in chosen} == set(WORLDS)
    for field, options in (
        ("way", loggedworlds.WAYS), ("value", loggedworlds.VALUES), ("manner", MANNERS),
        ("delta", loggedworlds.DELTAS), ("near", loggedworlds.NEARS),
    ):  # fmt: skip
        assert {getattr(case, field) for case in chosen} == set(options)
    laws = {law for make in WORLDS.values() for law, _ in make().seen.values()}
    assert laws == set(logged.LAWS)
    assert {case.collector for case in planned()} == {"saver-opt"}
