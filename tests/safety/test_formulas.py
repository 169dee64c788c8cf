"""The ledgers' formulas one by one: roots by bisection, paths by a linear program, the rest by hand."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import logsumexp

from saver import Bounded, SubGaussian
from saver.kernels.bounds.boundaries import best_rho, mixture, mixture_two_sided, path_bound
from saver.kernels.bounds.capital import Capital, control, fewest_gains, owe, spent
from saver.kernels.bounds.noise import (
    Bernstein,
    Numbers,
    Rule,
    cost,
    ends,
    ends_hiding,
    excess,
    guessed,
    least,
    missing,
    unseen,
)
from saver.kernels.bounds.values import (
    joint_boundary,
    joint_paths,
    means_between,
    paths_between,
    returns_between,
)

LEVEL, EPISODES = 0.05, 200.0
RETURNS = Bernstein.of(LEVEL, EPISODES)
COINS = Rule.of(Bounded(-1.0, 2.0), LEVEL, 0.0, 50.0)
NORMAL = Rule.of(SubGaussian(0.5), LEVEL, 4.0, 50.0)


def check_close(found, wanted):
    assert found == pytest.approx(wanted, rel=1e-7, abs=1e-7)


def psi(rates):
    return -np.log(1.0 - rates) - rates


def excess_by_bisection(Q, R):
    """The u at which the average over lambda of exp(lambda u - cost) is 1 / level."""
    x = math.sqrt(2.0 * math.log(1.0 / LEVEL) / EPISODES) * np.geomspace(1.6, 14.0, 6)
    rates, likely = x / (1.0 + x), np.array([1.0, 2.0, 3.0, 3.0, 2.0, 1.0])
    costs = rates**2 / 2.0 * (Q - R) + psi(rates) * R
    weights = np.log(LEVEL * likely / 12.0)
    return brentq(lambda u: logsumexp(weights + rates * u - costs), -100.0, 1e4, xtol=1e-12)


def least_by_bisection(total, length, low=-1.0, high=2.0):
    """M at which the average over lambda of exp(lambda C - G log(1 + M (e^lambda - 1) / G)) is 1 / level."""
    rates = math.sqrt(2.0 * math.log(1.0 / LEVEL) / 50.0) * np.geomspace(1.6, 14.0, 6)
    S = min((total - low * length) / (high - low), length)

    def height(M):
        parts = rates * S - length * np.log(1.0 + M / length * (np.exp(rates) - 1.0))
        return logsumexp(parts) + math.log(LEVEL / 6.0)

    root = brentq(height, 0.0, length, xtol=1e-13) if S > 0.0 and height(0.0) > 0.0 else 0.0
    return low * length + (high - low) * root


@pytest.mark.parametrize(("Q", "R"), [(0.0, 0.0), (3.0, 1.0), (20.0, 15.0), (7.0, 0.0), (100.0, 30.0)])
def test_how_far_returns_may_be_above_their_means(Q, R):
    check_close(excess(Q, R, RETURNS), excess_by_bisection(Q, R))
    for i, rate in enumerate(RETURNS.rates):
        check_close(cost(Q, R, RETURNS, i), rate**2 / 2.0 * (Q - R) + psi(rate) * R)
    check_close(returns_between(30.0, 0.0, Q, R, 4.0, RETURNS)[0], 30.0 - 4.0 * excess_by_bisection(Q, R))


@pytest.mark.parametrize("hidden", [0.0, 2.0, 5.0])
def test_what_baseline_returns_say_where_some_are_hidden(hidden):
    low, high = returns_between(30.0, hidden, 9.0, 4.0, 2.5, RETURNS)
    check_close(low, 30.0 - 2.5 * (hidden + excess_by_bisection(9.0 + hidden, 4.0 + hidden)))
    check_close(high, 30.0 + 2.5 * (hidden + excess_by_bisection(9.0 + hidden, 5.0 + hidden)))


def test_what_the_next_return_is_guessed_to_be():
    check_close(guessed(4.0, 3.0, math.nan), (0.5 + 3.0) / 5.0)
    check_close(guessed(0.0, 0.0, math.nan), 0.5)
    check_close(guessed(4.0, 3.0, 0.2), (4.0 * 0.2 + 10.0 * 0.7) / 14.0)
    assert guessed(100.0, 100.0, 2.0) == 1.0
    assert guessed(100.0, 0.0, -1.0) == 0.0


@pytest.mark.parametrize(("total", "length"), [(10.0, 20.0), (-15.0, 20.0), (39.0, 20.0), (0.5, 3.0)])
def test_the_bound_of_bounded_observations_of_any_range(total, length):
    check_close(least(total, 0.0, length, COINS), least_by_bisection(total, length))
    rate = total / length
    check_close(missing(rate, 0.0, length, COINS), total - least_by_bisection(total, length))
    low, high = means_between(total, 0.0, 0.0, length, COINS, 1.0, LEVEL)
    check_close(low, least_by_bisection(total, length))
    check_close(high, length - least_by_bisection(length - total, length))  # -1 + 2 = 1 a step, turned round
    low, high = means_between(total, 2.0, 0.0, length, COINS, 1.0, LEVEL)
    check_close(low, least_by_bisection(total - 2.0, length))
    check_close(high, length - least_by_bisection(length - total - 2.0, length))


def test_observations_at_an_end_of_their_range_and_none():
    assert least(-20.0, 0.0, 20.0, COINS) == -20.0
    check_close(least(40.0, 0.0, 20.0, COINS), least_by_bisection(40.0, 20.0))
    assert least(0.0, 0.0, 0.0, COINS) == 0.0
    assert least(3.0, 0.0, 5.0, NORMAL) == 3.0


def test_the_bound_of_noise():
    assert NORMAL.rho == best_rho(4.0, LEVEL)
    u = math.sqrt(2 * (3 + NORMAL.rho) * math.log(math.sqrt((3 + NORMAL.rho) / NORMAL.rho) / 0.1 + 1))
    check_close(mixture(3.0, NORMAL.rho, LEVEL), u)
    check_close(least(7.0, 3.0, 9.0, NORMAL), 7.0 - u)
    w = math.sqrt((3 + 2.0) * math.log((3 + 2.0) / (2.0 * LEVEL**2)))
    check_close(mixture_two_sided(3.0, 2.0, LEVEL), w)
    assert means_between(7.0, 1.5, 3.0, 9.0, NORMAL, 2.0, LEVEL) == pytest.approx((5.5 - w, 8.5 + w))
    assert means_between(7.0, 1.5, 0.0, 9.0, NORMAL, 2.0, LEVEL) == (5.5, 8.5)
    narrow = math.sqrt((0.5 + 2.0) * math.log((0.5 + 2.0) / (2.0 * LEVEL**2)))
    assert means_between(7.0, 0.0, 0.5, 9.0, NORMAL, 2.0, LEVEL) == pytest.approx(
        (7.0 - narrow, 7.0 + narrow)
    )
    check_close(unseen(3.0, 2.0, math.log(LEVEL)), mixture(3.0, 2.0, LEVEL))


@pytest.mark.parametrize("part", [0.0, 0.3, -2.0])
def test_both_sums_at_once(part):
    beta = 2 * math.log(1 / LEVEL) + math.log((1 + 3.0 / 0.7) * (1 + 5.0 / 0.4))
    check_close(joint_boundary(3.0, 5.0, part, 0.7, 0.4, LEVEL), math.sqrt(beta * (3.7 + part**2 * 5.4)))


def lowest(D, W, T, lower, upper):
    """min W.mu over mu in the box with T.mu >= D."""
    found = linprog(W, A_ub=[-T], b_ub=[-D], bounds=list(zip(lower, upper, strict=True)))
    return found.fun


def paths(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    T = rng.poisson(rng.gamma(2.0, 4.0, n)).astype(float)
    lower = rng.normal(0.0, 1.0, n)
    upper = lower + rng.exponential(1.0, n)
    inside = lower + rng.random(n) * (upper - lower)
    return rng, T, lower, upper, float(T @ inside)


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_paths_are_linear_programs(seed):
    rng, T, lower, upper, earned = paths(seed)
    W = T + rng.normal(0.0, 5.0, len(T))  # some of them below 0
    check_close(path_bound(earned, W, T, lower, upper), lowest(earned, W, T, lower, upper))
    w0, count = rng.random(len(T)), 7.0
    below, above = earned - rng.random(), earned + rng.random()
    low, high = paths_between(below, above, count, w0, T, lower, upper)
    check_close(low, lowest(below, count * w0, T, lower, upper))
    check_close(high, -lowest(-above, count * w0, T, -upper, -lower))


@pytest.mark.parametrize("seed", range(40))
def test_what_both_kinds_of_trials_are_worth_where_paths_are_random(seed):
    rng, T, lower, upper, D = paths(seed)
    n = len(T)
    W, w0, T0 = rng.gamma(2.0, 4.0, n), rng.random(n), rng.poisson(3.0, n).astype(float)
    kappa, count, below = rng.normal(0.0, 3.0), 4.0, float(T0 @ lower)
    above = float(T0 @ upper)
    wanted = []
    for phi in (kappa / count, 0.0):
        M0 = below if phi >= 0.0 else above
        wanted.append(phi * M0 + lowest(D, W + kappa * w0 - phi * T0, T, lower, upper))
    check_close(joint_paths(D, kappa, count, below, above, W, T, w0, T0, lower, upper), max(wanted))


def gains_by_bisection(logs, capital):
    return brentq(lambda E: logsumexp(capital.weights + logs - capital.rates * E), -1e4, 1e4, xtol=1e-12)


@pytest.mark.parametrize("steps", [1.0, 16.0])
def test_what_a_capital_has_won(steps):
    capital, rng = Capital.of(LEVEL, EPISODES, steps), np.random.default_rng(3)
    check_close(logsumexp(capital.weights), math.log(LEVEL))
    logs = np.log1p(np.outer(capital.rates, rng.uniform(-0.4, 0.6, 80))).sum(axis=1)
    check_close(fewest_gains(logs, *capital), gains_by_bisection(logs, capital))
    check_close(spent(*capital, 5.0), -gains_by_bisection(-(capital.rates**2) * 2.5, capital))
    owed = logs.copy()
    owe(owed, capital.rates, 6.0, 2.0)
    check_close(owed, logs - capital.rates**2 / 2.0 * 4.0 - psi(capital.rates) * 2.0)


def shrunk(counts, mean, squares, low, high, usual):
    """`control`, by its docstring."""
    span, seen = high - low, counts > 0
    n, x = counts[seen].astype(float), (mean[seen] - low) / span
    N, k, free = n.sum(), seen.sum(), (n - 1).sum()
    mu = (usual + (n * x).sum()) / (1 + N)
    found = np.full(len(counts), mu)
    if k >= 2 and free >= 1:
        W = max((squares[seen] / span**2).sum(), 0.25) / free
        rest = (n * (x - (n * x).sum() / N) ** 2).sum() - (k - 1) * W - W * math.sqrt(2 * (k - 1))
        if rest > 0:
            kappa = W * (N - (n**2).sum() / N) / rest
            found[seen] = (n * x + kappa * mu) / (n + kappa)
    return low + span * np.clip(found, 0, 1)


@pytest.mark.parametrize("seed", range(30))
def test_the_table_that_explains_returns(seed):
    rng = np.random.default_rng(seed)
    n, low, high = int(rng.integers(1, 7)), -1.0, 3.0
    counts = rng.integers(0, 30 if seed % 2 else 3, n)
    mean, squares = rng.uniform(low, high, n), counts * rng.random(n)
    m = np.empty(n)
    control(counts, mean, squares, low, high, 0.4, m)
    check_close(m, shrunk(counts, mean, squares, low, high, 0.4))


@pytest.mark.parametrize("below", [True, False])
def test_the_box_of_one_pair(below):
    coins, noise = Numbers(0.25, -1.0, 2.0, below, COINS), Numbers(0.25, -1.0, 2.0, below, NORMAL)
    low, high = ends(12.0, 0.4, coins)
    check_close(low, least_by_bisection(4.8, 12.0) / 12)
    check_close(high, 2.0 if below else 1.0 - least_by_bisection(12.0 - 4.8, 12.0) / 12)
    low, high = ends(12.0, 0.4, noise)
    w = (mixture if below else mixture_two_sided)(3.0, NORMAL.rho, LEVEL) / 12
    check_close((low, high), (max(0.4 - w, -1.0), 2.0 if below else min(0.4 + w, 2.0)))
    low, high = ends_hiding(12.0, 0.4, 3.0, coins, math.log(LEVEL))  # three more, at their worst
    check_close(low, least_by_bisection(4.8 - 3.0, 15.0) / 15)
    if not below:
        check_close(high, 1.0 - least_by_bisection(-3.0 + 12.0 - 4.8, 15.0) / 15)
    assert ends(0.0, 0.0, coins) == (-1.0, 2.0)


def test_what_was_expected_less_than_nothing_is_worth_what_it_can_be_at_most():
    # min -2 x + 4 y with x + 4 y >= 1/2 in the unit square is -2: a theta below 0 would say -1
    W, T, zero, one = np.array([-2.0, 4.0]), np.array([1.0, 4.0]), np.zeros(2), np.ones(2)
    assert path_bound(0.5, W, T, zero, one) == -2.0
    assert path_bound(0.5, np.array([-0.5, 4.0]), T, zero, one) == -0.5
