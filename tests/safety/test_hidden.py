"""What may be hidden: weights that add to one, known numbers, crossing rates against the worst choice."""

import math
from itertools import product

import numpy as np
import pytest
from kept import DELTA, FIRST, MDP, SCALE, SECOND, K, Kept, observed, problem, two_starts
from scipy.stats import binom

import saver
from saver import Bounded, Guardrail, Problem, SubGaussian
from saver.kernels.bounds.boundaries import mixture, mixture_two_sided
from saver.kernels.bounds.noise import least, log_choices, log_sets, missing, most_visits, unseen
from saver.play import Stage
from saver.safety import registry
from saver.safety.argument import Box
from saver.safety.certified import Certified
from saver.safety.entries import SafeTally

WALKS, LEVEL = 1500, 0.1
ALLOWED = binom.isf(1e-3, WALKS, LEVEL)  # 187: more have a probability below 1e-3


def test_the_weights_of_all_choices_add_to_one():
    """Every trial is told, hidden, or cut in one of its places."""
    for n in (1, 4):
        assert sum(math.comb(n, m) * math.exp(-log_sets(n, m)) for m in range(n + 1)) == pytest.approx(1.0)
        for starts in (1, 3):
            total = 0.0
            for choice in product(["told", "hidden", *range(starts)], repeat=n):
                hidden = choice.count("hidden")
                cut = n - hidden - choice.count("told")
                total += math.exp(-log_choices(n, hidden, cut, starts))
            assert total == pytest.approx(1.0)
    assert log_choices(7, 2, 0, 0) == pytest.approx(math.log(8 * 21))  # one step: there is nothing to cut
    assert log_choices(7, 2, 3, 4) == pytest.approx(math.log(9 * 8 / 2 * 21 * 10 * 4**3))


def test_it_is_the_mixture_at_levels_that_no_float_holds():
    for v, rho, level in ((0.3, 0.02, 0.05), (40.0, 1.0, 1e-9), (1e-6, 0.5, 0.9)):
        assert unseen(v, rho, math.log(level)) == pytest.approx(mixture(v, rho, level))
    assert unseen(0.0, 0.1, -5.0) == 0.0
    far = unseen(2.0, 0.25, -5000.0)
    assert far == pytest.approx(math.sqrt(2 * 2.25 * (5000 + 0.5 * math.log(9) - math.log(2))))


def test_what_is_hidden_for_each_of_many():
    """2.9 standard deviations where 5 % are lost, 2.0 where 30 % are; alone it is 4.1."""
    for n, m, each in ((1000, 50, 2.909), (1000, 300, 2.039), (1, 1, 4.057)):
        H = unseen(m * 1.0, 1 / 8, math.log(0.04 * 0.05) - log_sets(n, m))
        assert H / m == pytest.approx(each, abs=1e-3)


def test_whoever_hides_the_worst_crosses_at_most_as_often_as_stated():
    """Of the first n the m lowest are hidden, whatever n and m are best for that."""
    noise, n = np.random.default_rng(3).normal(size=(WALKS, 60)), 60
    crossed = {shift: np.zeros(WALKS, dtype=bool) for shift in (0.0, 4.0)}
    for k in range(1, n + 1):
        worst = -np.cumsum(np.sort(noise[:, :k], axis=1), axis=1)  # the m lowest, m = 1..k
        for shift in crossed:
            H = [unseen(m * 1.0, 1 / 8, math.log(LEVEL) + shift - log_sets(k, m)) for m in range(1, k + 1)]
            crossed[shift] |= (worst > H).any(axis=1)
    assert 1 <= crossed[0.0].sum() <= ALLOWED
    assert crossed[4.0].sum() > ALLOWED  # and the count would see levels that are too large


def test_how_often_pairs_were_visited():
    """Poisson's bound: log(12 / level) / theta + D (e^theta - 1) / theta, the least of twelve."""
    thetas = np.geomspace(0.05, 8.0, 12)
    for expected, most in ((0.02, 1.0), (3.0, 1.0), (50.0, 4.0), (2000.0, 1.0)):
        found = most_visits(np.array([expected, 0.0]), np.array([most, most]), math.log(0.001))
        by_hand = min(most * (math.log(12_000) + math.expm1(x) * expected / most) / x for x in thetas)
        assert found[0] == pytest.approx(by_hand)
        assert found[1] == 0.0
    assert most_visits(np.array([2000.0]), 1.0, math.log(0.001))[0] == pytest.approx(2199.9, abs=0.1)
    assert most_visits(np.array([0.02]), 1.0, math.log(0.001))[0] == pytest.approx(2.5, abs=0.1)


@pytest.mark.parametrize(("chance", "together"), [(0.3, 1), (0.01, 1), (0.2, 5)])
def test_visits_exceed_it_at_most_as_often_as_stated(chance, together):
    """Either `together` visits in a trial or none: nothing varies more."""
    rng, total = np.random.default_rng(2), np.zeros(WALKS)
    crossed = np.zeros(WALKS, dtype=bool)
    for n in range(1, 301):
        total += together * (rng.random(WALKS) < chance)
        crossed |= total > most_visits(np.array(n * chance * together), together, math.log(LEVEL))
    assert crossed.sum() <= ALLOWED


def test_both_ends_of_a_box_of_coins_with_some_hidden():
    """The hidden ones lowest for the lower end, highest for the upper one."""
    box = Box(two_starts(constraint=saver.Bounded(-1.0, 3.0)), 400, 0.0225)
    rule = box.numbers.rule
    shape = (2, 2)
    for T, mean, hidden in ((30, 2.0, 5), (40, 0.5, 12)):
        lower, upper = box.hiding(
            np.full(shape, T), np.full(shape, mean), np.full(shape, float(hidden)), -9.0
        )
        n, total = T + hidden, T * mean
        assert lower[0, 1] == pytest.approx(max(-1.0, least(total - hidden, 0.0, float(n), rule) / n))
        high = 2.0 - least(2.0 * n - (total + 3.0 * hidden), 0.0, float(n), rule) / n
        assert upper[0, 1] == pytest.approx(min(3.0, high))
        plain = box.ends(np.full(shape, T), np.full(shape, mean))
        assert lower[0, 1] < plain[0][0, 1] < mean < plain[1][0, 1] < upper[0, 1]


def test_the_pace_reckons_with_what_will_be_lost():
    """One of three lost so far: so will be a third of the rest, with what they hide and may have cost."""
    ledger, play = Kept(problem(), 30), Stage(MDP).play(SECOND)
    for number in (1, 2, 3, 4):
        ledger.ask(number, play)
    for number, c in ((1, 0.6), (3, 0.7)):
        ledger.tell(number, play, observed([0], [1], [c]))
    ledger.abandon(2)
    ledger.tell(4, play, observed([0], [1], [0.5]))
    ledger.ask(5, play)
    done, baseline, remaining = 4, 2, 25  # three told, one out
    kept, grows = 3 / 4, (4 + 1 + 25) / (3 + 1)
    H = unseen(SCALE**2, SCALE**2 / 8, ledger.log_noise - math.log(3 * 2))
    more, rate = kept * 26, 1.8 / 3
    v, length = 3 * SCALE**2 + more * SCALE**2, 3 + more
    hidden = grows * H + missing(rate, v, length, ledger.rule)
    cost = grows * min(0.0, ledger.gone[0].low - 0.4)
    debt = 0.4 - ledger.lines[5].ticket.low - baseline * 0.1 - cost
    assert ledger.pace(done, baseline, remaining) == pytest.approx(0.4 + (hidden + debt) / (3 + more))


def test_the_pace_of_coins_reckons_with_steps_to_come():
    ledger, play = Kept(problem(constraint=saver.Bounded(0.0, 1.0)), 30), Stage(MDP).play(SECOND)
    first = missing(0.4, 0.0, 20.0, ledger.rule)
    assert ledger.pace(0, 0, 20) == pytest.approx(0.4 + (first + 0.4 - 0.0) / 20)
    for number in (1, 2):
        ledger.ask(number, play)
        ledger.tell(number, play, observed([0], [1], [1.0]))
    hidden = missing(1.0, 0.0, 2.0 + 18.0, ledger.rule)
    debt = 0.4 - ledger.last_low
    assert ledger.pace(2, 0, 18) == pytest.approx(0.4 + (hidden + debt) / 20)


def test_what_has_no_noise_hides_nothing():
    # Scale 0: three samples of .5 are the mean, whatever two hidden ones were.
    box = Box(problem(constraint=saver.SubGaussian(0.0)), 100, 0.05)
    counts, mean = np.full((1, 2), 3), np.full((1, 2), 0.5)
    lower, upper = box.hiding(counts, mean, np.full((1, 2), 2.0), math.log(1e-4))
    np.testing.assert_array_equal(lower, mean)
    np.testing.assert_array_equal(upper, mean)


def test_the_box_with_two_hidden_by_hand():
    # Three samples told and two hidden: noise of five, and of any two of five that were left out.
    box = Box(problem(constraint=saver.SubGaussian(0.02)), 100, 0.05)
    counts, mean, log_level = np.full((1, 2), 3), np.full((1, 2), 0.5), math.log(1e-4)
    lower, upper = box.hiding(counts, mean, np.full((1, 2), 2.0), log_level)
    v, rule = 0.02**2, box.numbers.rule
    noise = mixture_two_sided(5 * v, rule.rho, rule.level)
    lost = unseen(2 * v, v / 8, log_level - math.log(6 * 10))
    np.testing.assert_allclose(lower, max(0.5 - (noise + lost) / 3, 0.0))
    np.testing.assert_allclose(upper, min(0.5 + (noise + lost) / 3, 1.0))
    assert lower[0, 0] > 0.0


def test_what_hidden_baseline_trials_may_have_been_takes_off_its_range_for_each():
    """One step, observations in [0, 1], V0 learned: two that ran and one of which nothing is known."""
    rail = Guardrail("kept", Bounded(0.0, 1.0), alpha=0.2)
    asked = Problem(MDP, [[0.5, 0.5]], FIRST, guardrails=rail, delta=DELTA)
    ledger = Kept(asked, K, kind=registry.LEARNED_BASELINE[Certified]).ledger
    assert ledger.safe_hides(SafeTally(whole=2, never=1)) == (3.0, 0.0)


def test_what_was_cut_off_counts_at_the_lower_end_of_its_box_beside_a_learned_value():
    rail = Guardrail("kept", SubGaussian(SCALE), alpha=0.2)
    asked = Problem(MDP, [[0.5, 0.5]], FIRST, guardrails=rail, delta=DELTA)
    kept = Kept(asked, K, kind=registry.LEARNED_BASELINE[Certified])
    for number in (1, 2):
        kept.ask(number, None)
        kept.tell(number, None, observed([0], [0], [0.6]))
    before = kept.ledger.joint(kept.book, 0.0, 0, 0)
    kept.book.first.unseen = np.array([[2.0, 0.0]])
    low, high = (float(end[0, 0]) for end in kept.ends()[:2])
    assert low < high
    assert kept.ledger.joint(kept.book, 0.0, 0, 0) - before == pytest.approx(2.0 * low)
