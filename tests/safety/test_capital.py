"""Bets on what the model does not explain of returns: bounded observations, random paths."""

import math

import numpy as np
import pytest
from kept import Kept, observed
from scipy.optimize import brentq
from scipy.stats import binom

from saver import Bounded, Guardrail, Mdp, Problem
from saver.kernels.bounds.capital import RENEWED, Capital, bet, control, fewest_gains, spent
from saver.kernels.bounds.noise import LIKELY
from saver.play import Stage
from saver.safety.argument import RETURNS, Shares, shares
from saver.safety.certified import Certified
from saver.safety.learnedbaseline import LearnedBaseline

K, DELTA = 200, 0.05
COINS = Bounded(0.0, 1.0)
TWO = Mdp(np.zeros((2, 2, 2)), 1, start=[0.5, 0.5])  # one step from one of two states
OTHER, SAFE = np.array([[0.0, 1.0]] * 2), np.array([[1.0, 0.0]] * 2)
LEVEL = 0.96 * DELTA


def problem(**options):
    given = {"alpha": 0.2, "baseline_value": 0.5, "constraint": COINS} | options
    return Problem(TWO, [[0.5, 0.5]] * 2, SAFE, delta=DELTA, **given)


def rule(level=LEVEL, episodes=K / 2):
    """The rates and weights, written down once more."""
    x = math.sqrt(2 * math.log(1 / level) / episodes) * np.geomspace(1.6, 14.0, 6)
    return x / (1 + x), level * np.array([1, 2, 3, 3, 2, 1]) / 12


def root(ys, numbers, lost=0.0):
    """The E at which the average of prod (1 + lambda y) exp(-lambda E) is 1 / level."""
    rates, weights = numbers
    product = np.prod([1 + rates * y for y in ys], axis=0) * (1 - rates) ** lost
    return brentq(lambda E: math.log(np.sum(weights * product * np.exp(-rates * E))), -400, 400, xtol=1e-13)


def test_one_bet_at_one_rate_by_hand():
    # (1 + .5 * .5) exp(-.5 E) = 20 at E = 2 log(1.25 / 20) = -5.545177
    logs = np.zeros(1)
    bet(logs, np.array([0.5]), 0.5)
    assert fewest_gains(logs, np.array([0.5]), np.log([0.05])) == pytest.approx(2 * math.log(1.25 / 20))


def test_the_root_is_that_of_the_average():
    rates, weights = Capital.of(LEVEL, K / 2)
    assert rates == pytest.approx(rule()[0])
    assert np.exp(weights) == pytest.approx(rule()[1])
    rng = np.random.default_rng(0)
    for n in (0, 1, 7, 100):
        ys, logs = rng.uniform(-1, 1, n), np.zeros(6)
        for y in ys:
            bet(logs, rates, y)
        found = fewest_gains(logs, rates, weights)
        assert found == pytest.approx(root(ys, rule()), abs=1e-9)
        assert found <= root(ys, rule()) + 1e-10  # from below


def test_where_steps_vary_apart_there_are_faster_rates():
    alone, ten = Capital.of(LEVEL, 100.0), Capital.of(LEVEL, 100.0, 10.0)
    assert len(alone.rates) == 6
    assert len(ten.rates) == 9
    speeds = ten.rates / (1 - ten.rates)
    assert speeds[0] == pytest.approx((alone.rates / (1 - alone.rates))[0])  # steps may also vary together
    assert speeds[-1] == pytest.approx((alone.rates / (1 - alone.rates))[-1] * math.sqrt(10.0))
    assert np.exp(ten.weights).sum() == pytest.approx(LEVEL)
    assert (np.exp(ten.weights) / np.exp(ten.weights)[-1])[-6:] == pytest.approx(LIKELY)


def test_what_is_left_of_coins_is_about_what_it_will_be():
    rates, weights = Capital.of(LEVEL, K / 2)
    rng, gaps = np.random.default_rng(1), []
    for _ in range(50):
        ys = (rng.random(K) < 0.5) - 0.5
        gaps.append(ys.sum() - root(ys, rule()))
    assert spent(rates, weights, K / 4) == pytest.approx(np.mean(gaps), rel=0.05)


def test_the_table_by_hand():
    """Two pairs with 4 and 6 samples, means 3/4 and 1/6 of [0, 2], one never seen."""
    counts, mean = np.array([4.0, 6.0, 0.0]), np.array([1.5, 1 / 3, 0.0])
    squares = 4 * np.array([0.75, 5 / 6, 0.0])  # in [0, 1] sums of squares .75 and 5/6
    m = np.empty(3)
    control(counts, mean, squares, 0.0, 2.0, 0.9, m)
    mu, W = (0.9 + 4) / 11, (0.75 + 5 / 6) / 8
    between = 4 * (0.75 - 0.4) ** 2 + 6 * (1 / 6 - 0.4) ** 2
    tau = (between - W - W * math.sqrt(2)) / (10 - 52 / 10)
    kappa = W / tau
    expected = [(3 + kappa * mu) / (4 + kappa), (1 + kappa * mu) / (6 + kappa), mu]
    assert m / 2 == pytest.approx(expected)
    for few in (
        np.array([1.0, 1.0, 0.0]),
        np.array([9.0, 0.0, 0.0]),
        np.zeros(3),
    ):  # nothing says they differ
        control(few, mean, np.zeros(3), 0.0, 2.0, 0.9, m)
        assert np.all(m == m[0])


def test_the_shares_add_to_one():
    for losses, hidden in (("hostile", 0.01), ("random", 0.0)):
        found = shares(False, False, losses, True)
        assert sum(found) == pytest.approx(1.0)
        assert found == pytest.approx(Shares(hidden, 0.02, 0.01, 0.97 - hidden))
        assert found == shares(False, True, losses, True)  # what the next state knows does not matter
        assert shares(True, False, losses, True) == shares(True, False, losses)


# -- in the ledgers ------------------------------------------------------------------------------------------


def test_two_trials_told_and_one_hidden_by_hand():
    """The first table is V0 everywhere: .5 for each pair; the next has one success among two."""
    ledger, play = Kept(problem(), K, Stage(TWO)), Stage(TWO).play(OTHER)
    ledger.ask(1, play)
    assert (ledger.lines[1].ticket.centre, ledger.lines[1].ticket.depth) == (0.5, 0.5)
    ledger.tell(1, play, observed([0], [1], [1.0]))
    assert ledger.together(ledger.first, ()) == pytest.approx(0.5 + root([0.5], rule()))
    ledger.ask(2, play)
    assert ledger.lines[2].ticket.centre == pytest.approx((0.5 + 1) / 2)  # of all pairs
    assert ledger.lines[2].ticket.strays == pytest.approx(0.25)
    ledger.tell(2, play, observed([1], [1], [0.0]))
    assert ledger.together(ledger.first, ()) == pytest.approx(1.25 + root([0.5, -0.75], rule()))
    ledger.ask(3, play)
    table = ledger.boxes[max(ledger.boxes)]
    assert np.all(table == pytest.approx(0.5))  # (.5 + 1) / 3
    ledger.abandon(3)
    hidden = root([0.5, -0.75, -0.5], rule())  # its depth is .5, and so is what it may be worth above .5
    assert ledger.together(ledger.first, ()) == pytest.approx(1.25 - 0.5 + hidden)
    assert RENEWED == 1.1


def test_nothing_is_asked_of_noise_and_the_next_state():
    for promise in (COINS, Bounded(0.0, 1.0, next_state=True)):
        ledger, play = Kept(problem(constraint=promise), K, Stage(TWO)), Stage(TWO).play(OTHER)
        ledger.ask(1, play)
        ledger.tell(1, play, observed([0], [1], [1.0]))
        assert ledger.together(ledger.first, ()) == pytest.approx(0.5 + root([0.5], rule()))
        assert ledger.crosses


def test_a_value_that_is_learned_by_hand():
    """Two baseline trials told, one abandoned: both sides at a tenth of what returns have, after ten."""
    rail = Guardrail("kept", COINS, alpha=0.2)
    asked = Problem(TWO, [[0.5, 0.5]] * 2, SAFE, guardrails=rail, delta=DELTA)
    ledger = Kept(asked, K, Stage(TWO), LearnedBaseline)
    for number, c in ((1, 1.0), (2, 1.0)):
        ledger.ask(number, None)
        ledger.tell(number, None, observed([0], [0], [c]))
    safe, numbers = ledger.first.safe, rule((1 - RETURNS) * LEVEL / 2, 10.0)
    tables = 0.5, 0.75  # of nothing, then (.5 + 1) / 2
    assert safe.sum_x == pytest.approx(sum(tables))
    ys = [1 - m for m in tables]
    low = sum(tables) + root(ys, numbers)
    high = sum(tables) - root([-y for y in ys], numbers)
    assert ledger.bet_on_value(safe) == (pytest.approx(low), pytest.approx(high))
    ledger.ask(3, None)
    ledger.abandon(3)
    low, high = sum(tables) + root(ys, numbers, 1) - 1, sum(tables) - root([-y for y in ys], numbers, 1) + 1
    assert ledger.bet_on_value(ledger.first.safe) == (pytest.approx(low), pytest.approx(high))


# -- how often it is wrong -----------------------------------------------------------------------------------


def crossed(draw, level, K=150):
    """Whether the bound was above the truth at any time; `draw` gives C and V, and hears the past."""
    rates, weights = Capital.of(level, K / 2)
    logs, base, truth, past = np.zeros(len(rates)), 0.0, 0.0, []
    for _ in range(K):
        m = (0.5 + sum(past)) / (1 + len(past))
        x, V = draw(past)
        bet(logs, rates, x - m)
        past.append(x)
        base, truth = base + m, truth + V
        if base + fewest_gains(logs, rates, weights) > truth + 1e-9:
            return True
    return False


@pytest.mark.parametrize("level", [0.05, 0.5])
def test_streams_that_know_the_past_cross_no_more_often_than_said(level):
    """More than the limit has a probability of 1e-3; among them are laws that answer the bets."""
    rng, runs = np.random.default_rng(3), 400

    def coin(p):
        return lambda past: (float(rng.random() < p), p)

    def sly(past):
        """Rare successes after luck, rare failures after misfortune."""
        p = 0.05 if sum(past) > len(past) / 2 else 0.95
        return float(rng.random() < p), p

    for draw in (coin(0.5), coin(0.95), coin(0.02), sly):
        wrong = sum(crossed(draw, level) for _ in range(runs))
        assert wrong <= binom.isf(1e-3, runs, level)


def test_a_bet_that_takes_half_the_range_is_found():
    rng = np.random.default_rng(4)
    wrong = sum(crossed(lambda past: (2 * float(rng.random() < 0.5), 0.5), 0.05) for _ in range(50))
    assert wrong > binom.isf(1e-3, 50, 0.05)


def test_the_right_ledger_bets_where_paths_are_random_and_observations_bounded():
    one = Mdp(np.zeros((2, 2, 2)), 1)
    assert Kept(problem(), K).bets
    assert not Kept(Problem(one, SAFE, SAFE, alpha=0.2, baseline_value=0.5, constraint=COINS), K).bets
    assert Certified.add_safe is not LearnedBaseline.add_safe
