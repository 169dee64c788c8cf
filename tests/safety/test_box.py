"""The certificate's box by hand: both ends, lower ends alone, and what they say of a trial that is out."""

import math

import numpy as np
import pytest
from kept import DELTA, MDP, SCALE, SECOND, K, Kept, observed, problem, two_starts

import saver
from saver.kernels.bounds.boundaries import best_rho, mixture, mixture_two_sided
from saver.kernels.bounds.noise import least
from saver.play import Stage
from saver.safety.argument import Box


def test_the_box_by_hand():
    box = Box(problem(), K, 0.0225)
    rho = best_rho(10 * SCALE**2, 0.0225 / 2)
    for T, mean in ((0, 0.3), (1, 0.55), (9, 0.97), (9, 0.02)):
        lower, upper = box.ends(np.array([[T, 0]]), np.array([[mean, 0.0]]))
        w = mixture_two_sided(SCALE**2 * T, rho, 0.0225 / 2) / T if T else math.inf
        low, high = (0.0, 1.0) if not T else (max(0.0, mean - w), min(1.0, mean + w))
        assert (lower[0, 0], upper[0, 0]) == (pytest.approx(low), pytest.approx(high))
        assert (lower[0, 1], upper[0, 1]) == (0.0, 1.0)
    sure = Box(problem(constraint=saver.SubGaussian(0.0)), K, 0.0225)
    assert [end[0, 0] for end in sure.ends(np.array([[3, 0]]), np.array([[0.4, 0.0]]))] == [0.4, 0.4]


def test_the_box_is_cut_at_the_ceiling():
    # A million samples of 2 where means are at most 1: both ends are 1.
    counts, mean = np.full((1, 2), 10**6), np.full((1, 2), 2.0)
    lower, upper = Box(problem(), K, 0.05).ends(counts, mean)
    np.testing.assert_array_equal(lower, np.ones((1, 2)))
    np.testing.assert_array_equal(upper, np.ones((1, 2)))


def test_lower_ends_where_nothing_is_random_by_hand():
    """All of the level on one side, tightest after four samples: mean - u(s^2 T) / T."""
    ledger, play = Kept(problem(), K), Stage(MDP).play(SECOND)
    level = 0.15 * DELTA / 2
    rho = best_rho(4 * SCALE**2, level)
    seen = []
    for number, c in enumerate((0.9, 0.8, 0.95, 0.7, 0.85), 1):
        ledger.ask(number, play)
        ledger.tell(number, play, observed([0], [1], [c]))
        seen.append(c)
        low = np.mean(seen) - mixture(number * SCALE**2, rho, level) / number
        assert ledger.ends()[0][0, 1] == pytest.approx(max(0.0, low))
        assert ledger.ends()[1][0, 1] == 1.0
        assert ledger.lower(play) == pytest.approx(max(0.0, low))
    assert low > 0.6
    ledger.ask(6, play)
    assert ledger.out[6].cost == 0.0  # worth more than required, and it may not run


def test_a_trial_that_is_out_costs_what_the_box_leaves_open():
    ledger, play = Kept(problem(constraint=saver.SubGaussian(0.3)), K), Stage(MDP).play(SECOND)
    ledger.ask(1, play)
    assert ledger.out[1].cost == pytest.approx(-0.4)
    ledger.tell(1, play, observed([0], [1], [1.5]))
    low = ledger.ends()[0][0, 1]
    assert 0.0 < low < 0.4
    before = ledger.budget()
    ledger.ask(2, play)
    assert ledger.out[2].cost == pytest.approx(low - 0.4)
    assert ledger.budget() == pytest.approx(before + low - 0.4)
    ledger.ask(3, play)
    ledger.tell(3, play, observed([0], [1], [0.1]))  # behind a gap: the box at asking, and nothing learned
    assert ledger.ends()[0][0, 1] == low
    assert ledger.budget() == pytest.approx(before + 2 * (low - 0.4))


def test_both_ends_of_a_box_of_coins():
    """Each end has half of the level; the upper one is the lower one of what is missing to the top."""
    box = Box(two_starts(constraint=saver.Bounded(-1.0, 3.0)), K, 0.0225)
    rule = box.numbers.rule
    for T, mean in ((1, 3.0), (7, 0.5), (40, -0.9), (40, 2.9)):
        lower, upper = box.ends(np.full((2, 2), T), np.full((2, 2), mean))
        assert lower[0, 0] == pytest.approx(max(-1.0, least(T * mean, 0.0, float(T), rule) / T))
        mirrored = least(T * (2.0 - mean), 0.0, float(T), rule) / T
        assert upper[0, 0] == pytest.approx(min(3.0, 2.0 - mirrored))
        assert -1.0 <= lower[0, 0] < mean
        assert mean < upper[0, 0] or mean == upper[0, 0] == 3.0
    assert rule.level == pytest.approx(0.0225 / 4 / 2)


def test_the_box_expects_at_least_ten_samples():
    for episodes, samples in ((4, 10), (400, 200)):
        rho = Box(problem(), episodes, 0.0225).numbers.rule.rho
        assert rho == pytest.approx(best_rho(SCALE**2 * samples, 0.0225 / 2))
        below = Box(problem(), episodes, 0.0225, below=True).numbers.rule.rho
        assert below == pytest.approx(best_rho(SCALE**2 * 4, 0.0225 / 2))


@pytest.mark.parametrize(("promise", "below"), [
    (saver.Bounded(0.0, 1.0), False),
    (saver.Bounded(0.0, 1.0), True),
    (saver.SubGaussian(0.4), True),
])  # fmt: skip
def test_means_leave_their_box_at_most_as_often_as_stated(promise, below):
    # 1,500 walks at level .1 for each pair: more than 187 have a probability below 1e-3.
    box, rng = Box(problem(constraint=promise), 400, 0.2, below), np.random.default_rng(4)
    total, left = np.zeros((1500, 1)), np.zeros((1500, 1), dtype=bool)
    for n in range(1, 201):
        coin = rng.random((1500, 1)) < 0.2
        total += coin if isinstance(promise, saver.Bounded) else 0.2 + 0.4 * rng.normal(size=(1500, 1))
        lower, upper = box.ends(np.full((1500, 1), n), total / n)
        left |= (lower > 0.2) | (upper < 0.2)
    assert box.level == 0.1
    assert 10 <= left.sum() <= 187
