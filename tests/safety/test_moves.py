"""The least over the transitions that counted moves allow: by hand, a log, cvxpy, digits, random models."""

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from math import e, exp, inf, log, sqrt
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import brentq

from saver.kernels.bounds.moves import Moves, lowest, radius, rate_ends, worst

LOG = json.loads((Path(__file__).parents[1] / "data" / "helpdesk.json").read_text(encoding="utf-8"))
ANSWERS = LOG["answers"]
MANY = 10_000


# -- by hand --


def test_one_move_of_two_that_are_possible():
    """d = .05, n = 1, m = 2: KL <= log 20 + log 2e. p^ = (1, 0), KL = -log p: p >= 1 / 40e."""
    most = radius(1.0, 2.0, log(0.05))
    assert most == pytest.approx(log(40 * e)) == pytest.approx(4.688879, abs=1e-6)
    assert worst(np.array([1.0, 0.0]), 1.0, np.array([1.0, 0.0]), most) == pytest.approx(0.0091970, abs=1e-7)
    assert worst(np.array([1.0, 0.0]), 1.0, np.array([0.0, 1.0]), most) == 0.0
    assert rate_ends(1.0, 1.0, most) == (pytest.approx(1 / (40 * e), rel=1e-9), 1.0)
    assert rate_ends(0.0, 1.0, most) == (0.0, pytest.approx(1 - 1 / (40 * e), rel=1e-9))


def test_a_coin_that_fell_on_either_side_once():
    """2 KL(1/2, p) = -log 4p(1 - p) <= log 20 + log 3e: p, 1 - p are at least (1 - sqrt(1 - 1 / 60e)) / 2."""
    low = (1 - sqrt(1 - 1 / (60 * e))) / 2
    assert low == pytest.approx(0.0015352, abs=1e-7)
    assert rate_ends(1.0, 2.0, radius(2.0, 2.0, log(0.05))) == pytest.approx((low, 1 - low), abs=1e-9)


def test_radius_grows_with_what_is_possible_and_knows_its_ends():
    assert radius(8.0, 3.0, log(0.1)) == pytest.approx(log(10) + 2 * (1 + log(5)))
    assert radius(100.0, 1.0, log(0.1)) == radius(0.0, 1.0, log(0.1)) == 0.0
    assert radius(0.0, 2.0, log(0.1)) == inf
    level = log(ANSWERS["level_of_a_pair"])
    assert radius(ANSWERS["median_count"], 5.0, level) == pytest.approx(ANSWERS["radius_moves"], rel=1e-12)
    assert radius(ANSWERS["median_count"], 2.0, level) == pytest.approx(
        ANSWERS["radius_complaints"], rel=1e-12
    )


def test_an_outcome_never_seen_takes_what_the_radius_lets_it():
    """All n moves to one outcome worth w more than the lowest: mass e^(-radius / n) stays."""
    for values, least in (
        ((3.0, 1.0, 2.0), 1 + 2 * exp(-0.3)),
        ((3.0, 3.0, 3.0), 3.0),
        ((-1.0, 2.0, 9.0), -1.0),
    ):
        assert worst(np.array([5.0, 0.0, 0.0]), 5.0, np.array(values), 1.5) == pytest.approx(least, rel=1e-12)


def test_nothing_seen_nothing_known_and_everything_known():
    values, counts = np.array([0.5, -2.0, 4.0]), np.array([2.0, 1.0, 1.0])
    assert worst(np.zeros(3), 0.0, values, inf) == worst(np.zeros(3), 0.0, values, 1.0) == -2.0
    assert worst(counts, 4.0, values, inf) == worst(counts, 4.0, values, 1e9) == -2.0
    for nearly in (0.0, 1e-300, 1e-12):
        assert worst(counts, 4.0, values, nearly) == pytest.approx(0.75, abs=1e-5)
        assert worst(counts, 4.0, values, nearly) <= 0.75
    assert worst(counts, 4.0, np.array([-inf, 0.0, 1.0]), 1.0) == -inf


# -- a log of 20,000 episodes --


def helpdesk(policy, *, moves, complaints):
    """The most that a policy is complained of an episode, with the same radius for all pairs."""
    counts = np.array(LOG["moves"], dtype=float).reshape(16, 5)
    totals, seen = counts.sum(axis=1), np.ravel(LOG["complaints"])
    most = [rate_ends(float(k), n, complaints)[1] for k, n in zip(seen, totals, strict=True)]
    lower, values = -np.array(most).reshape(4, 4), np.empty((7, 4))
    behaviour, starts = np.tile(np.array(LOG[policy]), (6, 1, 1)), np.array([1.0, 0.0, 0.0, 0.0])
    least = lowest(behaviour, lower, Moves.of(counts), np.full(16, moves), 1.0, starts, 0.0, values)
    assert least == pytest.approx(values[0, 0], rel=1e-12)
    return -least


def test_a_log_with_known_answers():
    one = ANSWERS["radius_one_direction"]
    found = {
        "baseline_plugin": helpdesk("baseline", moves=0.0, complaints=0.0),
        "target_plugin": helpdesk("target", moves=0.0, complaints=0.0),
        "target_upper": helpdesk(
            "target", moves=ANSWERS["radius_moves"], complaints=ANSWERS["radius_complaints"]
        ),
        "target_upper_one_direction": helpdesk("target", moves=one, complaints=one),
    }
    assert found == {name: pytest.approx(ANSWERS[name], abs=1e-8) for name in found}


def test_starts_that_were_counted_are_a_set_too():
    """One step: nothing but the start and what pairs give."""
    lower, values, nowhere = np.array([[1.0], [3.0]]), np.empty((2, 2)), Moves.of(np.zeros((2, 3)))
    known = lowest(np.ones((1, 2, 1)), lower, nowhere, np.zeros(2), 1.0, np.array([0.25, 0.75]), 0.0, values)
    assert known == pytest.approx(2.5)
    seen = lowest(np.ones((1, 2, 1)), lower, nowhere, np.zeros(2), 1.0, np.array([0.0, 4.0]), 2.0, values)
    assert seen == pytest.approx(1 + 2 * exp(-0.5))
    assert values == pytest.approx(np.array([[1.0, 3.0], [0.0, 0.0]]))


def test_pairs_that_are_not_taken_are_not_looked_at():
    lower, values = np.array([[1.0, -inf]]), np.empty((3, 1))
    moves, policy = Moves.of(np.array([[3.0, 1.0], [0.0, 0.0]])), np.tile([1.0, 0.0], (2, 1, 1))
    least = lowest(policy, lower, moves, np.array([0.0, inf]), 0.5, np.ones(1), 0.0, values)
    assert least == pytest.approx(1.375)
    policy[1] = 0.5
    assert lowest(policy, lower, moves, np.zeros(2), 0.5, np.ones(1), 0.0, values) == -inf


# -- other solvers --


def small_set(rng):
    """Counts, many of them 0, and values, many of them equal; the radius of all sizes."""
    m = int(rng.integers(2, 9))
    counts = rng.multinomial(int(10 ** rng.uniform(0, 4)), rng.dirichlet(np.full(m, 0.5))).astype(float)
    return counts, np.round(rng.random(m), int(rng.integers(1, 5))), 10 ** rng.uniform(-3, 1.3)


def test_least_by_cvxpy():
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts, values, most = small_set(rng)
        n, seen, p = counts.sum(), counts > 0, cp.Variable(len(counts), nonneg=True)
        rules = [cp.sum(p) == 1, n * cp.sum(cp.rel_entr(counts[seen] / n, p[seen])) <= most]
        program = cp.Problem(cp.Minimize(p @ values), rules)
        program.solve(solver=cp.CLARABEL)
        assert worst(counts, n, values, most) == pytest.approx(program.value, abs=1e-6)


def digits(counts, n, values, most):
    """The dual with 40 digits, by halving: the least, to 30 of them."""
    exact = [Decimal(float(v)) for v in values]
    n, low = Decimal(float(n)), min(exact)
    parts = [(Decimal(float(c)) / n, v - low) for c, v in zip(counts, exact, strict=True) if c > 0]
    mean, rate = sum(p * w for p, w in parts), Decimal(float(most)) / n
    left, right = mean * Decimal("1e-30"), mean * Decimal("1e20")
    while right > left * (1 + Decimal("1e-16")):
        x = (left * right).sqrt()
        logs = sum(p * (w + x).ln() for p, w in parts)
        steep = logs + sum(p / (w + x) for p, w in parts).ln() > rate
        left, right = (x, right) if steep else (left, x)
    return low + (max(Decimal(0), (logs - rate).exp() - x) if mean else 0)


def test_least_with_forty_digits_is_never_passed():
    rng = np.random.default_rng(2)
    with localcontext(prec=40):
        for unit, offset in ((1.0, 0.0), (1.0, 1e3), (1e-9, 0.0), (1e9, -1e9)):
            for _ in range(15):
                counts, values, most = small_set(rng)
                values, most = offset + unit * values, most * 10 ** rng.uniform(-6, 2)
                n, most = counts.sum(), most if rng.random() < 0.8 else 0.0
                found, least = worst(counts, n, values, most), digits(counts, n, values, most)
                assert Decimal(float(found)) <= least + Decimal(unit) * Decimal("1e-28")
                assert float(least - Decimal(float(found))) <= 2e-9 * unit + 1e-15 * abs(offset)


def test_what_is_rounded_is_taken_off():
    """No radius: fractions are exact, and are never passed."""
    rng, S, A, L = np.random.default_rng(7), 7, 3, 4
    counts, lower, values = (
        counted(rng, S, A).astype(float) + 1.0,
        rng.normal(size=(S, A)),
        np.empty((L + 1, S)),
    )
    policy, exactly = rng.dirichlet(np.ones(A), size=(L, S)), np.vectorize(Fraction, otypes=[object])
    lowest(policy, lower, Moves.of(counts), np.zeros(S * A), 0.9, np.ones(S), 0.0, values)
    n, v = exactly(counts), exactly(np.zeros(S + 1))
    for t in reversed(range(L)):
        onward = (n @ v / n.sum(axis=1)).reshape(S, A) * (t < L - 1)
        v[:S] = np.sum(exactly(policy[t]) * (exactly(lower) + Fraction(0.9) * onward), axis=1)
        assert np.all(exactly(values[t]) <= v[:S])
        assert values[t] == pytest.approx(v[:S].astype(float), abs=1e-13)
    for _ in range(100):
        counts, sums = rng.integers(1, 9, 40).astype(float), rng.random(40)
        average = exactly(counts) @ exactly(sums) / int(counts.sum())
        assert worst(counts, counts.sum(), sums, 0.0) <= average


# -- random models --


def inside(rng, counts, most, number):
    """Models of one pair with n KL(p^, p) <= most: from p^ towards others, to the boundary or less far."""
    n, m = counts.sum(), len(counts)
    if n == 0.0:
        return rng.dirichlet(np.full(m, 0.3), size=number)
    other = rng.dirichlet(np.full(m, 0.3), size=number)
    vertices = rng.random(number) < 0.4
    other[vertices] = np.eye(m)[rng.integers(0, m, vertices.sum())]
    share, seen, low, high = counts / n, counts > 0, np.zeros(number), np.ones(number)
    for _ in range(40):
        middle = (low + high) / 2
        p = share + middle[:, None] * (other - share)
        fits = counts[seen] @ np.log(share[seen] / p[:, seen]).T <= most
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    low *= np.where(rng.random(number) < 0.3, rng.random(number), 1.0)
    return share + low[:, None] * (other - share)


def valued(policy, mean, models, discount):
    """The values [models, S] of the first step; mean [models, S, A], models [models, S, A, S + 1]."""
    v = np.zeros((len(mean), models.shape[3]))
    for b in policy[::-1]:
        v[:, :-1] = np.sum(b * (mean + discount * (models @ v[:, None, :, None])[..., 0]), axis=2)
    return v[:, :-1]


def counted(rng, states, actions):
    """Counts of moves: some pairs never, some outcomes never."""
    chances = rng.dirichlet(np.full(states + 1, 0.4), size=states * actions)
    return np.array(
        [rng.multinomial(n, p) for n, p in zip(rng.integers(0, 60, len(chances)), chances, strict=True)]
    )


def test_no_model_of_the_set_is_worth_less():
    """10,000 models, six policies, bounds never above; some model is near."""
    rng, S, A, L, discount = np.random.default_rng(3), 4, 2, 5, 0.95
    counts = counted(rng, S, A).astype(float)
    counts[3] = 0.0
    radii = np.array([radius(n, S + 1.0, log(0.01)) for n in counts.sum(axis=1)])
    models = np.stack([inside(rng, *pair, MANY) for pair in zip(counts, radii, strict=True)], axis=1)
    models = models.reshape(MANY, S, A, S + 1)
    lower = rng.normal(size=(S, A))
    more = np.where(rng.random((MANY, 1, 1)) < 0.5, 0.0, rng.random((MANY, S, A)))
    starts, near = np.array([3.0, 0.0, 1.0, 0.0]), []
    start_radius = radius(4.0, float(S), log(0.01))
    first = inside(rng, starts, start_radius, MANY)
    for i in range(6):
        policy = rng.dirichlet(np.ones(A), size=(L, S)) if i < 3 else np.eye(A)[rng.integers(0, A, (L, S))]
        values, gives = np.empty((L + 1, S)), lower + (2.0 if i % 2 else 0.0)  # END is the worst, or is not
        least = lowest(policy, gives, Moves.of(counts), radii, discount, starts, start_radius, values)
        true = valued(policy, gives + more, models, discount)
        assert np.all(values[0] <= true)
        assert np.all(least <= np.sum(first * true, axis=1))
        near.append(np.min(true - values[0]) / np.ptp(true))
    assert min(near) < 0.1


def worst_model(counts, values, most):
    """The p with p . values least, by its own equation, solved by scipy."""
    n, seen, least = counts.sum(), counts > 0, values.min()
    if n == 0.0:
        return np.eye(len(counts))[values.argmin()]
    share, gap = counts[seen] / n, values[seen] - least

    def over(x):
        return share @ np.log(gap + x) + log(share @ (1 / (gap + x))) - most / n

    p, x = np.zeros(len(counts)), 1e-13
    if over(x) > 0:
        x = brentq(over, x, 1e6, xtol=1e-15, rtol=1e-14)
    p[seen] = exp(share @ np.log(gap + x) - most / n) * share / (gap + x)
    p[values.argmin()] += 1 - p.sum()
    return p


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_the_worst_model_attains_it(offset):
    """One move, then a last step: the worst model is one of the set, and is worth what `lowest` says."""
    rng, S, A = np.random.default_rng(4), 6, 3
    counts, lower, values = (
        counted(rng, S, A).astype(float),
        offset + rng.normal(size=(S, A)),
        np.empty((3, S)),
    )
    radii = np.array([radius(n, S + 1.0, log(0.05)) for n in counts.sum(axis=1)])
    policy = rng.dirichlet(np.ones(A), size=(2, S))
    lowest(policy, lower, Moves.of(counts), radii, 0.9, np.ones(S), 0.0, values)
    last = np.append(np.sum(policy[1] * lower, axis=1), 0.0)
    p = np.array([worst_model(c, last, most) for c, most in zip(counts, radii, strict=True)])
    assert np.all(p >= 0.0)
    for c, q, most in zip(counts, p, radii, strict=True):
        seen = c > 0
        assert c[seen] @ np.log(c[seen] / c.sum() / q[seen]) <= most + 1e-6
    true = valued(policy, lower[None], p.reshape(1, S, A, S + 1), 0.9)[0]
    assert values[0] == pytest.approx(true, abs=1e-8)
    assert np.all(values[0] <= true)


def test_streams_stay_within_the_radius_at_all_times():
    """d = .2: at most 400 of 2,000 streams of 300 moves leave. More do with P < 1e-8 where d is .15."""
    rng, d = np.random.default_rng(5), 0.2
    for p in ((0.5, 0.5), (0.9, 0.07, 0.03), (0.3, 0.25, 0.2, 0.15, 0.1)):
        counts = np.cumsum(np.eye(len(p))[rng.choice(len(p), p=p, size=(2000, 300))], axis=1)
        divergence = 0.0
        for k, chance in zip(np.moveaxis(counts, 2, 0), p, strict=True):
            shares = np.where(k > 0, k, 1.0) / (np.arange(1, 301) * chance)
            divergence = divergence + k * np.log(shares)
        most = [radius(n, float(len(p)), log(d)) for n in np.arange(1.0, 301.0)]
        assert np.sum(np.any(divergence > most, axis=1)) <= 2000 * d


# -- without a compiler --


def test_plain_python_finds_the_same():
    rng, S, A, L = np.random.default_rng(6), 5, 2, 4
    counts, lower = counted(rng, S, A).astype(float), rng.normal(size=(S, A))
    radii = np.array([radius(n, S + 1.0, log(0.05)) for n in counts.sum(axis=1)])
    policy, found = rng.dirichlet(np.ones(A), size=(L, S)), []
    for function in (lowest, getattr(lowest, "plain", lowest)):
        values = np.empty((L + 1, S))
        least = function(policy, lower, Moves.of(counts), radii, 0.9, np.ones(S), 3.0, values)
        found.append([float(least), *values.ravel()])
    assert found[0] == found[1]
