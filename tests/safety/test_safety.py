"""Boundaries, widths, boxes and ledgers: known values, and crossing rates by simulation."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from kept import Kept, observed

from saver import Mdp, Problem, SubGaussian, scenarios
from saver.kernels.bounds.boundaries import best_rho, mixture, mixture_two_sided, stitched
from saver.kernels.bounds.noise import unseen
from saver.play import Stage
from saver.safety.argument import Box, paper_lower, paper_width

SEEDS = st.integers(0, 10_000)


def two_actions(**changes):
    numbers = {"alpha": 0.5, "baseline_value": 1.0, "constraint": SubGaussian(0.1)} | changes
    return Problem(Mdp(np.zeros((1, 2, 1)), 1), [[0.5, 0.5]], [[1.0, 0.0]], **numbers)


def test_boundaries_by_known_values():
    # 64.48755 is the value that the authors' own package tests: v = 100, start 10, scale 3, level .05.
    assert stitched(100.0, 10.0, 3.0, 0.05) == pytest.approx(64.48755, abs=1e-5)
    assert stitched(1.0, 10.0, 3.0, 0.05) == stitched(10.0, 10.0, 3.0, 0.05)
    # v + rho = 4, rho = 1: sqrt(8 log(2 / .1 + 1)) and sqrt(4 log(4 / .0025)).
    assert mixture(3.0, 1.0, 0.05) == pytest.approx(math.sqrt(8 * math.log(21)))
    assert mixture_two_sided(3.0, 1.0, 0.05) == pytest.approx(math.sqrt(4 * math.log(1600)))


def test_the_best_rho_is_best_where_it_is_asked_for():
    v, level = 50.0, 0.05
    rho = best_rho(v, level)
    assert mixture(v, rho, level) < min(mixture(v, rho * 3, level), mixture(v, rho / 3, level))


@pytest.mark.parametrize("name", ["mixture", "two-sided", "stitched"])
def test_random_walks_cross_at_most_as_often_as_stated(name):
    # 2,000 walks of 1,000 steps at level .1: more than 245 crossings have a probability below 1e-3.
    level, rng = 0.1, np.random.default_rng(11)
    walks = np.cumsum(rng.normal(size=(2000, 1000)), axis=1)
    v = np.arange(1, 1001, dtype=float)
    if name == "mixture":
        crossed = walks >= [mixture(x, 20.0, level) for x in v]
    elif name == "two-sided":
        crossed = np.abs(walks) >= mixture_two_sided(v, 20.0, level)
    else:
        crossed = walks >= [stitched(x, 1.0, 0.0, level) for x in v]
    count = crossed.any(axis=1).sum()
    assert count <= 245
    assert count >= (60 if name != "stitched" else 5)  # valid, and not by being far too wide


def test_the_papers_width_by_hand():
    # L = 1, S A = 2, n = 10: sqrt(log(2 * 10 * 11) / T), T at least 1.
    width = paper_width(two_actions(), 10, np.array([[0, 4]]))
    np.testing.assert_allclose(width, [[math.sqrt(math.log(220)), math.sqrt(math.log(220)) / 2]])
    lower = paper_lower(two_actions().constraint, width, np.array([[0, 4]]), np.array([[0.0, 0.9]]))
    np.testing.assert_allclose(lower, [[0.0, 0.9 - 0.05 * math.sqrt(math.log(220))]])
    sunk = paper_lower(two_actions().constraint, width, np.array([[1, 4]]), np.array([[0.1, 0.1]]))
    np.testing.assert_allclose(sunk, [[0.0, 0.0]])  # never below the floor


def test_box_by_hand():
    box = Box(two_actions(), episodes=100, level=0.05)
    assert box.level == 0.025  # two pairs
    lower, upper = box.ends(np.array([[0, 9]]), np.array([[0.0, 0.5]]))
    w = mixture_two_sided(0.09, box.numbers.rule.rho, 0.025) / 9
    np.testing.assert_allclose(lower, [[0.0, 0.5 - w]])
    np.testing.assert_allclose(upper, [[1.0, 0.5 + w]])
    lower, upper = box.ends(np.array([[1, 10**6]]), np.array([[0.0, 1.0]]))
    assert upper[0, 1] == 1.0  # cut at the ceiling
    assert lower[0, 1] > 1 - 1e-3
    assert lower[0, 0] == 0.0  # and at the floor


def test_deterministic_models_are_recognised():
    assert Stage(scenarios.tree().problem.mdp).deterministic
    assert Stage(scenarios.bandit().problem.mdp).deterministic
    assert not Stage(scenarios.gridworld().problem.mdp).deterministic
    assert not Stage(Mdp(np.zeros((2, 1, 2)), 1, start=[0.5, 0.5])).deterministic


def certified(deterministic=True, **changes):
    """One step, from one state or from two by chance."""
    problem = two_actions(**changes)
    if not deterministic:
        mdp, both = Mdp(np.zeros((2, 2, 2)), 1, start=[0.5, 0.5]), np.eye(2)[[0, 0]]
        problem = dataclasses.replace(problem, mdp=mdp, target=both, baseline=both)
    stage = Stage(problem.mdp)
    return Kept(problem, 100, stage), stage.play(np.eye(2)[[1] * problem.mdp.states])


def told(ledger, number, play, c):
    ledger.tell(number, play, observed([0], [1], np.array([c])))


def test_certified_in_order_by_hand():
    ledger, play = certified()
    u = [mixture(0.01 * n, ledger.rule.rho, 0.0375) for n in range(1, 4)]
    for n, c in enumerate((0.9, 0.8), start=1):
        low = ledger.lower(play)
        ledger.ask(n, play)
        assert ledger.out[n].cost == min(0.0, low - 0.5)  # while it is out it may have cost this
        told(ledger, n, play, c)
    rho = best_rho(4 * 0.01, 0.0075 / 2)
    assert low == pytest.approx(0.9 - mixture(0.01, rho, 0.0075 / 2))
    assert ledger.budget() == pytest.approx(1.7 - u[1] - 2 * 0.5)
    ledger.ask(3, None)
    assert ledger.out[3].cost == 0.0
    ledger.tell(3, None, observed([0], [0], np.array([0.1])))
    assert ledger.budget() == pytest.approx(
        1.7 - u[1] - 1.0 + 0.5
    )  # exactly alpha V0 more, whatever it earned


def test_an_earlier_bound_plus_lower_values_is_kept_when_it_is_better():
    ledger, play = certified(constraint=SubGaussian(0.1, 0.2, 1.0))
    for n in (1, 2):
        ledger.ask(n, play)
    told(ledger, 1, play, 0.9)
    first = ledger.earned()
    assert first == pytest.approx(0.9 - mixture(0.01, ledger.rule.rho, 0.0375))
    low = 0.9 - mixture(0.01, best_rho(0.04, 0.00375), 0.00375)  # asked before anything was seen
    ledger.ask(3, play)
    told(ledger, 2, play, -5.0)
    assert ledger.earned() == pytest.approx(first + low)
    told(ledger, 3, play, -5.0)
    assert ledger.earned() == pytest.approx(first + 2 * low)


def test_a_trial_that_is_out_counts_as_lost_for_those_told_after_it():
    ledger, play = certified(constraint=SubGaussian(0.1, 0.2, 1.0))
    for n in (1, 2, 3):
        ledger.ask(n, play)
    told(ledger, 3, play, 0.9)
    told(ledger, 2, play, 0.9)
    hidden = unseen(0.01, 0.01 / 8, math.log(0.4 * 0.005) - math.log(2 * 1))  # one, the first, of n = 1
    assert ledger.earned() == pytest.approx(1.8 - hidden - mixture(0.03, ledger.rule.rho, 0.0375))
    assert ledger.earned() > 2 * 0.2
    told(ledger, 1, play, 0.1)
    assert ledger.earned() == pytest.approx(1.9 - mixture(0.03, ledger.rule.rho, 0.0375))


def test_the_control_variate_by_hand():
    # Two start states, .5 each, action 0, midpoints .5 and half-lengths .5 before anything is seen:
    # X = C - (m(s) - V(b; m)) = C, v = scale^2 + E[h^2] = .01 + .25.
    mdp, first, other = Mdp(np.zeros((2, 2, 2)), 1, start=[0.5, 0.5]), [[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2
    problem = Problem(mdp, first, other, alpha=0.5, baseline_value=0.5, constraint=SubGaussian(0.1))
    stage = Stage(mdp)
    ledger, play = Kept(problem, 100, stage), stage.play(np.array(first))
    ledger.ask(1, play)
    assert ledger.lines[1].ticket.v == pytest.approx(0.26)
    ledger.tell(1, play, observed([1], [0], np.array([0.7])))
    assert ledger.sum_x == pytest.approx(0.7)
    ledger.ask(2, play)
    ticket = ledger.lines[2].ticket
    m, h = ledger.middle()
    assert ticket.v == pytest.approx(0.01 + 0.5 * h[0, 0] ** 2 + 0.5 * h[1, 0] ** 2)
    ledger.tell(2, play, observed([0], [0], np.array([0.4])))
    assert ledger.sum_x == pytest.approx(0.7 + 0.4 - (m[0, 0] - (m[0, 0] + m[1, 0]) / 2))
    assert ledger.boundary(ledger.sum_v) == stitched(ledger.sum_v, ledger.start, 1 / 3, 0.01125)


@settings(max_examples=10)
@given(SEEDS)
def test_a_ledger_comes_back_from_plain_data(seed):
    rng = np.random.default_rng(seed)
    ledger, play = certified(deterministic=bool(seed % 2))
    for n in range(1, 9):
        ledger.ask(n, play)
    for n in rng.permutation(np.arange(1, 9))[:5]:
        told(ledger, int(n), play, rng.random())
    other = ledger.again()
    for one in (ledger, other):
        for n in sorted(one.out):
            told(one, n, play, 0.5)
    assert other.budget() == ledger.budget()
    assert other.plain() == ledger.plain()


def test_noise_that_steps_share_is_not_covered_by_the_scale_of_one_step():
    # The assumption named in `SubGaussian`: 20 steps with one common draw have 20 times the variance of
    # 20 independent ones, and the bound at the scale of one step is then false most of the time.
    steps, rng = 20, np.random.default_rng(0)
    chain = Mdp.from_edges([(s, a, s + 1, 1.0) for s in range(steps - 1) for a in range(2)], steps, 2, steps)
    problem = Problem(
        chain, np.full((steps, 2), 0.5), np.eye(2)[[0] * steps], alpha=0.5, baseline_value=10.0,
        constraint=SubGaussian(0.3),
    )  # fmt: skip
    stage = Stage(chain)
    play, wrong = stage.play(np.eye(2)[[1] * steps]), {True: 0, False: 0}
    for shared in wrong:
        for _ in range(40):
            ledger, above = Kept(problem, 200, stage), False
            for n in range(1, 101):
                ledger.ask(n, play)
                noise = 0.3 * (rng.normal() * np.ones(steps) if shared else rng.normal(size=steps))
                ledger.tell(n, play, observed(np.arange(steps), np.ones(steps, dtype=int), 0.5 + noise))
                above = above or ledger.earned() > 0.5 * steps * n
            wrong[shared] += above
    assert wrong[False] <= 7  # of 40 at level .05: more have a probability below 1e-3
    assert wrong[True] >= 20


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_trial_is_worth_at_least_its_lower_value_whatever_comes_of_it(deterministic):
    # After ten good episodes nothing but bad ones: the box says, at asking, what each is worth at least.
    ledger, play = certified(deterministic, constraint=SubGaussian(0.1, 0.0, 1.0))
    kept = set()
    for number in range(1, 31):
        low, before = ledger.lower(play), ledger.earned()
        ledger.ask(number, play)
        told(ledger, number, play, 0.8 if number <= 10 else -1.0)
        assert ledger.earned() >= before + low - 1e-12
        kept.add(number * (low > 0 and ledger.earned() == pytest.approx(before + low)))
    assert len(kept) > 5
