"""What was seen is worth at least this much: known numbers, a second solver, properties, crossing rates."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from kept import MDP, SECOND, Kept, observed, problem
from scipy.stats import binom
from slowly import root

from saver import Bounded, SubGaussian
from saver.kernels.bounds.boundaries import best_rho, mixture
from saver.kernels.bounds.noise import Rule, least, missing
from saver.play import Stage

COIN = Bounded(0.0, 1.0)
LEVELS = st.floats(1e-6, 0.3)
SHARES = st.floats(0.0, 1.0)
WEIGHTS = st.floats(0.5, 5e3)


def test_the_boundary_of_bernoulli_observations():
    """Bernoulli(.95), level .045, by Hoeffding, with a grid of many rates, and with ours of six."""
    for K, hoeffding, many, ours in (
        (200, 20.23, 11.0, 11.234),
        (500, 31.98, 16.1, 16.394),
        (1000, 45.23, 21.8, 22.199),
        (5000, 101.14, 46.1, 46.690),
    ):
        coins = Rule.of(COIN, 0.045, 0.0, K / 2)
        assert missing(0.95, 0.0, float(K), coins) == pytest.approx(ours, abs=1e-3)
        assert many < ours < 1.03 * many
        normal = Rule.of(SubGaussian(0.5), 0.045, 0.25 * K / 2, 0.0)
        assert missing(0.95, 0.25 * K, float(K), normal) == pytest.approx(hoeffding, abs=0.01)


def one_rate(rate, level):
    """A grid of one: the root is closed."""
    rates = np.array([rate])
    return Rule(True, 1.0, level, 0.0, 1.0, rates, np.expm1(rates), np.array([math.log(level)]))


def test_one_observation_by_hand():
    """e^lambda / (1 + M (e^lambda - 1)) = 1 / level: a single 1 at level .05, lambda = 5."""
    assert least(1.0, 0.0, 1.0, one_rate(5.0, 0.05)) == pytest.approx(
        (0.05 * math.exp(5) - 1) / (math.exp(5) - 1), abs=1e-8
    )
    assert least(1.0, 0.0, 1.0, one_rate(2.0, 0.05)) == 0.0  # e^2 < 20: nothing is known
    rates = math.sqrt(2 * math.log(20)) * np.geomspace(1.6, 14.0, 6)
    M = least(1.0, 0.0, 1.0, Rule.of(COIN, 0.05, 0.0, 1.0))
    assert np.mean(np.exp(rates) / (1 + M * np.expm1(rates))) == pytest.approx(20, rel=1e-6)
    assert 0.03 < M < 0.05  # a coin of mean M shows 1 with probability M: no bound may exceed the level


@pytest.mark.parametrize(("S", "G"), [(9.0, 10.0), (4.5, 5.5), (180.0, 200.0)])
def test_one_rate_by_hand(S, G):
    """(level e^(lambda S))^(1/G) = 1 + M / G (e^lambda - 1)."""
    expected = G * ((0.05 * math.exp(1.5 * S)) ** (1 / G) - 1) / math.expm1(1.5)
    assert least(S, 0.0, G, one_rate(1.5, 0.05)) == pytest.approx(max(expected, 0.0), abs=1e-7)


def test_the_first_trial_of_a_ledger_by_hand():
    """One step, one observation: the smallest campaign."""
    play, ledger = Stage(MDP).play(SECOND), Kept(problem(constraint=COIN), 2)
    ledger.ask(1, play)
    ledger.tell(1, play, observed([0], [1], [1.0]))
    level = 0.75 * 0.05
    rates = math.sqrt(2 * math.log(1 / level)) * np.geomspace(1.6, 14.0, 6)
    assert np.mean(np.exp(rates) / (1 + ledger.earned() * np.expm1(rates))) == pytest.approx(
        1 / level, rel=1e-6
    )
    assert 0.0 < ledger.earned() <= level
    normal = Kept(problem(), 2)
    normal.ask(1, play)
    normal.tell(1, play, observed([0], [1], [1.0]))
    assert normal.earned() == pytest.approx(1.0 - mixture(0.01, best_rho(0.01, level), level))


@given(SHARES, WEIGHTS, LEVELS, st.floats(0.5, 1e4))
def test_a_second_solver(share, G, level, length):
    rule = Rule.of(COIN, level, 0.0, length)
    assert least(share * G, 0.0, G, rule) == pytest.approx(root(share * G, G, level, length), abs=1e-6)


@given(SHARES, WEIGHTS, LEVELS, st.floats(-3.0, 3.0), st.floats(0.1, 5.0))
def test_other_ranges_are_taken_to_the_unit_interval(share, G, level, low, span):
    unit = least(share * G, 0.0, G, Rule.of(COIN, level, 0.0, 50.0))
    other = Rule.of(Bounded(low, low + span), level, 0.0, 50.0)
    found = least((low + span * share) * G, 0.0, G, other)
    assert found == pytest.approx(low * G + span * unit, rel=1e-6, abs=1e-5 * span * G)


@given(st.lists(SHARES, min_size=2, max_size=6), WEIGHTS, LEVELS)
def test_more_seen_is_worth_more_and_never_more_than_seen(shares, G, level):
    rule = Rule.of(COIN, level, 0.0, 100.0)
    found = [least(share * G, 0.0, G, rule) for share in sorted(shares)]
    assert np.all(np.diff(found) >= -1e-6)
    for share, bound in zip(sorted(shares), found, strict=True):
        assert 0.0 <= bound <= share * G
    assert least(-1.0, 0.0, G, rule) == 0.0  # more may be hidden than was seen
    assert least(G + 5.0, 0.0, G, rule) == least(G, 0.0, G, rule)


@given(SHARES, WEIGHTS, LEVELS)
def test_it_is_found_from_below(share, G, level):
    """Rounding stays on the safe side: the mixture at the bound is at least 1 / level, or the bound is 0."""
    rule = Rule.of(COIN, level, 0.0, 100.0)
    M = least(share * G, 0.0, G, rule)
    exponents = rule.rates * share * G - G * np.log1p(M / G * rule.growth)
    top = exponents.max()
    height = top + math.log(np.mean(np.exp(exponents - top))) + math.log(level)
    assert M == 0.0 or -1e-10 * max(1.0, abs(top)) <= height <= 1e-8


def test_before_the_first_step_and_without_noise():
    assert least(0.0, 0.0, 0.0, Rule.of(COIN, 0.05, 0.0, 10.0)) == 0.0
    assert least(-2.0, 0.0, 0.0, Rule.of(Bounded(-1.0, 1.0), 0.05, 0.0, 10.0)) == 0.0
    exact = Rule.of(SubGaussian(0.0), 0.05, 0.0, 10.0)
    assert least(3.5, 0.0, 7.0, exact) == 3.5
    assert least(3.5, 0.0, 7.0, Rule.of(SubGaussian(0.1), 0.05, 0.1, 10.0)) == 3.5


def test_less_weight_knows_less():
    """Steps of weight 1/2 are worth less than half of what they are in full: noise does not halve."""
    rule = Rule.of(COIN, 0.05, 0.0, 100.0)
    full = [missing(0.9, 0.0, 200.0, rule), missing(0.9, 0.0, 100.0, rule)]
    assert full[1] > full[0] / 2


# -- crossing rates ------------------------------------------------------------------------------------------

WALKS, EPISODES, LEVEL = 1500, 120, 0.1


def crossings(rule, scale, seed, discount, steps=3):
    """How many walks are ever below their bound: means are chosen by what was seen, and weights fall."""
    rng, crossed = np.random.default_rng(seed), np.zeros(WALKS, dtype=bool)
    C, M = np.zeros(WALKS), np.zeros(WALKS)
    v = G = 0.0
    for k in range(EPISODES):
        for t in range(steps):
            ahead = C > M  # whoever is ahead goes where little varies, to stay there
            mean = np.where(ahead, 0.97, 0.6 + 0.3 * ((k + t) % 2))
            weight = discount**t
            if scale is None:
                seen = (rng.random(WALKS) < mean).astype(float)
                v += 0.25 * weight**2
            else:
                seen = mean + scale * rng.normal(size=WALKS)
                v += scale**2 * weight**2
            C, M, G = C + weight * seen, M + weight * mean, G + weight
        crossed |= np.array([least(c, v, G, rule) for c in C]) > M
    return int(crossed.sum())


@pytest.mark.parametrize("discount", [1.0, 0.6])
def test_coins_cross_at_most_as_often_as_stated(discount):
    # 1,500 walks at level .1: more than 187 crossings have a probability below 1e-3.
    allowed = binom.isf(1e-3, WALKS, LEVEL)
    assert allowed == 187
    length = EPISODES * sum(discount**t for t in range(3)) / 2
    count = crossings(Rule.of(COIN, LEVEL, 0.0, length), None, 1, discount)
    assert 20 <= count <= allowed  # valid, and not by being far too wide
    weak = Rule.of(COIN, 0.6, 0.0, length)
    assert crossings(weak, None, 1, discount) > allowed  # and the count would see a level that is too large


@pytest.mark.parametrize("discount", [1.0, 0.6])
def test_normal_noise_crosses_at_most_as_often_as_stated(discount):
    half = EPISODES * 0.04 * sum(discount ** (2 * t) for t in range(3)) / 2
    count = crossings(Rule.of(SubGaussian(0.2), LEVEL, half, 0.0), 0.2, 2, discount)
    assert 20 <= count <= binom.isf(1e-3, WALKS, LEVEL)
