"""The certificate where transitions are unknown: numbers by hand, and which ledger is chosen."""

import math

import numpy as np
import pytest
from kept import Kept, observed

from saver import Bounded, Guardrail, Problem, SubGaussian, Unknown
from saver.errors import InvalidProblem
from saver.kernels.bounds.boundaries import best_rho, mixture
from saver.kernels.bounds.noise import Bernstein, excess
from saver.play import stage_of
from saver.safety import Terms, ledger_for
from saver.safety.modelfree import LearnedModelFree, ModelFree, PluginModelFree

# Three steps, discount .5: sum discount^t = 1.75, sum discount^2t = 1.3125.
MDP = Unknown(2, 2, 3, discount=0.5)
SAFE, OTHER = np.eye(2)[[0, 0]], np.eye(2)[[1, 1]]
DELTA, K = 0.05, 20
V, ANY = 0.04 * 1.3125 + 1.75**2 / 4, (0.2 * 1.75 + 1.75 / 2) ** 2  # proxies of one episode, scale .2
COINS = Bounded(0.0, 1.0)


def problem(promise, value=1.0, **by):
    guard = Guardrail("kept", promise, **(by or {"alpha": 0.2}), baseline_value=value)
    return Problem(MDP, MDP.uniform, SAFE, guardrails=guard, delta=DELTA)


def kept(promise, kind=ModelFree, episodes=K, value=1.0, **declared):
    return Kept(problem(promise, value), episodes, stage_of(MDP), kind, **declared)


def play_of(table):
    return stage_of(MDP).play(table)


DESIGNED = play_of(OTHER)


def worth(total):
    """An episode that earns so much, the first step as much of it as it can."""
    first = min(total, 1.0)
    second = min(2 * (total - first), 1.0)
    return observed([0, 1, 0], [1, 1, 1], [first, second, 4 * (total - first - second / 2)])


def run(ledger, *totals, first=1):
    for number, total in enumerate(totals, first):
        ledger.ask(number, DESIGNED)
        ledger.tell(number, DESIGNED, worth(total))


# -- sub-Gaussian --------------------------------------------------------------------------------------------


def test_one_episode_and_two_with_normal_noise():
    # v = .818125 an episode; u at level .9 * .05, tuned to 10 episodes: 3.17497 and 3.94186.
    ledger = kept(SubGaussian(0.2))
    run(ledger, 1.5)
    assert pytest.approx(0.818125) == V
    assert ledger.seen_worth(ledger.first) == pytest.approx(1.5 - 3.1749744680266536)
    run(ledger, 1.2, first=2)
    assert ledger.seen_worth(ledger.first) == pytest.approx(1.5 + 1.2 - 3.9418641026337795)
    assert ledger.earned() == 0.0  # the floor says more


def test_losses_at_random_leave_all_of_delta_to_the_boundary():
    ledger = kept(SubGaussian(0.2), losses="random")
    run(ledger, 1.5, 1.2)
    assert ledger.seen_worth(ledger.first) == pytest.approx(2.7 - 3.8909742502273037)


def test_any_dependence_inside_an_episode():
    # (.2 * 1.75 + 1.75 / 2)^2 = 1.500625.
    ledger = kept(SubGaussian(0.2, next_state=True))
    run(ledger, 1.5)
    assert pytest.approx(1.500625) == ANY
    assert ledger.seen_worth(ledger.first) == pytest.approx(1.5 - 4.299980577812778)


def test_the_budget_of_sixty_episodes():
    # Required .8. Floor .1: any policy is worth .1, and the range is 1.65.
    ledger = kept(SubGaussian(0.2, floor=0.1))
    run(ledger, *[1.5] * 60)
    v = 0.04 * 1.3125 + 1.65**2 / 4
    bound = 90 - mixture(60 * v, best_rho(10 * v, 0.045), 0.045)
    assert ledger.earned() == pytest.approx(bound) == pytest.approx(70.18, abs=0.01)
    assert ledger.budget() == pytest.approx(bound - 60 * 0.8)
    assert ledger.ledger.after(ledger.book, 0.1) == pytest.approx(bound - 61 * 0.8 + 0.1)
    ledger.ask(61, DESIGNED)
    assert ledger.budget() == pytest.approx(bound - 60 * 0.8 + 0.1 - 0.8)


def test_a_floor_below_zero_counts_for_the_longest_episode():
    ledger = kept(SubGaussian(0.2, floor=-1.0))
    assert ledger.lower(DESIGNED) == ledger.ledger.floor_value(DESIGNED) == -1.75
    ledger.ask(1, DESIGNED)
    ledger.ask(2, None)
    ledger.tell(2, None, worth(1.0))
    ledger.abandon(1, ran=True)
    assert ledger.budget() == pytest.approx(0.2 - 1.75 - 0.8)


def test_a_lost_trial_may_hide_noise():
    # One of the first: H at level .04 * .05 / 2 is 3.66923; both proxies stay in u.
    ledger = kept(SubGaussian(0.2))
    for number in (1, 2):
        ledger.ask(number, DESIGNED)
    ledger.tell(2, DESIGNED, worth(1.5))
    found = 1.5 - 3.9418641026337795 - 3.669232309937977
    assert ledger.seen_worth(ledger.every, ledger.away(ledger.book)) == pytest.approx(found)
    ledger.abandon(1)
    assert ledger.seen_worth(ledger.first) == pytest.approx(found)


def test_a_trial_that_was_cut_off_is_lost_and_ran():
    for promise in (SubGaussian(0.2, floor=0.1), Bounded(0.1, 1.0)):
        cut, lost = kept(promise), kept(promise)
        for ledger in (cut, lost):
            ledger.ask(1, DESIGNED)
        cut.tell(1, DESIGNED, observed([0], [1], [1.0]), False)
        lost.abandon(1, ran=True)
        assert cut.plain() == lost.plain()
        assert cut.budget() == pytest.approx(0.1 - 0.8)


def test_a_cancelled_trial_stays_in_the_proxy():
    # u_c at level .02 * .05, tuned to 8 episodes: 4.05687.
    ledger = kept(SubGaussian(0.2))
    for number in (1, 2):
        ledger.ask(number, DESIGNED)
    ledger.cancel(1)
    ledger.tell(2, DESIGNED, worth(1.5))
    found = 1.5 - 3.9418641026337795 - 4.056874285702459
    assert ledger.seen_worth(ledger.first) == pytest.approx(found)
    assert ledger.budget() == pytest.approx(-0.8)
    ledger.ask(3, DESIGNED)
    ledger.cancel(3)  # nothing was asked after it
    assert ledger.seen_worth(ledger.first) == pytest.approx(found)


# -- bounded -------------------------------------------------------------------------------------------------


def test_one_episode_and_two_of_coins():
    # Taken to [0, 1] they are .8 and .35; guesses .5, then (.5 + .8) / 2 = .65: Q = .09, then .18, and
    # R = .5 * .09, then .0585 more. The roots are by bisection.
    ledger = kept(COINS)
    run(ledger, 1.4)
    assert ledger.seen_worth(ledger.first) == pytest.approx(1.4 - 1.75 * 3.8733692707595417)
    run(ledger, 0.6125, first=2)
    assert ledger.seen_worth(ledger.first) == pytest.approx(2.0125 - 1.75 * 3.9532693552544997)


def test_the_guess_is_that_of_the_time_of_asking():
    # Both asked at once: both guesses are .5, Q = .09 + .0225.
    ledger = kept(COINS)
    for number in (1, 2):
        ledger.ask(number, DESIGNED)
    ledger.tell(1, DESIGNED, worth(1.4))
    ledger.tell(2, DESIGNED, worth(0.6125))
    assert ledger.proxy == pytest.approx(0.1125)
    ledger.ask(3, DESIGNED)
    assert ledger.lines[3].ticket.guess == pytest.approx((0.5 + 0.8 + 0.35) / 3)


def test_what_is_believed_of_a_trial_counts_the_more_the_more_was_told():
    # One told, worth .8 of [0, 1]: the average is .65. Believed 1.05, which is .6: (1 * .6 + 10 * .65) / 11.
    ledger = kept(COINS)
    run(ledger, 1.4)
    for number, believed in enumerate((1.05, 100.0, -100.0, None), 2):
        ledger.ask(number, DESIGNED, believed)
    guesses = [ledger.lines[number].ticket.guess for number in range(2, 6)]
    assert guesses == pytest.approx([7.1 / 11, 1.0, 0.0, 0.65])
    ledger.ask(6, None, 1.05)
    assert ledger.lines[6].ticket.guess == 0.0  # of the baseline nothing is asked


def test_later_trials_are_in_the_guess_while_one_is_out():
    ledger = kept(COINS)
    for number in (1, 2):
        ledger.ask(number, DESIGNED)
    ledger.tell(2, DESIGNED, worth(1.4))
    ledger.ask(3, DESIGNED)
    assert ledger.lines[3].ticket.guess == pytest.approx(0.65)


@pytest.mark.parametrize("end", ["out", "abandon", "cancel"])
def test_a_hidden_coin_takes_one_from_the_sum_and_adds_one_to_both_sums(end):
    # Q = .09 + 1, R = .045 + 1: the root is 4.97924. No share of delta is set aside for it.
    ledger = kept(COINS)
    for number in (1, 2):
        ledger.ask(number, DESIGNED)
    ledger.tell(2, DESIGNED, worth(1.4))
    if end != "out":
        getattr(ledger, end)(1)
    tally = ledger.every if end == "out" else ledger.first
    found = ledger.seen_worth(tally, ledger.away(ledger.book))
    assert found == pytest.approx(1.4 - 1.75 * (1 + 4.979237210453565))
    assert ledger.budget() == pytest.approx(-0.8 if end == "cancel" else -1.6)


def test_random_losses_hide_no_coin():
    ledger = kept(COINS, losses="random")
    for number in (1, 2):
        ledger.ask(number, DESIGNED)
    ledger.abandon(1)
    ledger.tell(2, DESIGNED, worth(1.4))
    assert ledger.seen_worth(ledger.first) == pytest.approx(1.4 - 1.75 * 3.8733692707595417)


def test_the_boundary_of_returns_that_are_nearly_always_good():
    """95 % successes, level .05, tuned to the end: against Hoeffding less than half from 500 on."""
    found = []
    for n in (200, 500, 1000, 5000):
        Q = 0.95 * 0.05 * n
        squares = excess(Q, 0.95 * Q, Bernstein.of(DELTA, n / 2))
        found.append((squares, mixture(n / 4, best_rho(n / 8, DELTA), DELTA)))
    expected = [(10.3, 19.9), (15.1, 31.5), (20.7, 44.6), (44.1, 99.7)]
    np.testing.assert_allclose(found, expected, atol=0.06)


def test_the_root_is_one_from_above():
    for episodes in (1, 40, 10_000):
        for level in (1e-6, 0.05, 0.5):
            rule = Bernstein.of(level, episodes)
            assert np.all((rule.rates > 0) & (rule.rates < 1))
            np.testing.assert_allclose(rule.costs, -np.log(1 - rule.rates) - rule.rates, atol=1e-14)
            weights = np.array([1, 2, 3, 3, 2, 1]) / 12
            for Q, R in ((0.0, 0.0), (0.3, 0.3), (25.0, 0.0), (25.0, 10.0), (4000.0, 3000.0)):
                u, costs = excess(Q, R, rule), rule.rates**2 / 2 * (Q - R) + rule.costs * R
                at = [math.log(weights @ np.exp(rule.rates * x - costs)) for x in (u, u * (1 - 1e-9))]
                assert at[0] == pytest.approx(math.log(1 / level), abs=1e-8)
                assert at[1] < at[0]


# -- the baseline's value ------------------------------------------------------------------------------------


def told_history(promise, *totals):
    ledger = kept(promise, LearnedModelFree, value=None)
    ledger.learn(worth(total) for total in totals)
    return ledger


def test_a_value_learned_from_a_log_of_normal_noise():
    # Two-sided at .1 * .9 * .05, tuned to 10 episodes by the level of both sums, .5 * .9 * .05.
    ledger = told_history(SubGaussian(0.2), *[1.4] * 200)
    v, rho, level = 200 * V, best_rho(10 * V, 0.0225), 0.0045
    slack = math.sqrt((v + rho) * math.log((v + rho) / (rho * level**2))) / 200
    assert ledger.ledger.values(ledger.book) == pytest.approx((1.4 - slack, 1.4 + slack))
    assert slack == pytest.approx(0.257, abs=1e-3)
    assert ledger.ledger.value(ledger.book) == pytest.approx(1.4)


def test_both_sums_at_once():
    # n = 60 designed, r1 = .8: kappa = -48, V0 from 200 logged episodes.
    ledger = told_history(SubGaussian(0.2), *[1.4] * 200)
    run(ledger, *[1.5] * 60)
    rho, rho0, a = best_rho(10 * V, 0.0225), best_rho(10 * V, 0.0225), -48 / 200
    beta = 2 * math.log(1 / 0.0225) + math.log((1 + 60 * V / rho) * (1 + 200 * V / rho0))
    cloud = math.sqrt(beta * (60 * V + rho + a**2 * (200 * V + rho0)))
    assert ledger.budget() == pytest.approx(90 - 48 * 1.4 - cloud)
    high = ledger.ledger.values(ledger.book)[1]
    alone = 90 - mixture(60 * V, best_rho(10 * V, 0.4 * 0.045), 0.4 * 0.045) - 48 * high
    assert alone < ledger.budget()


def test_a_value_learned_from_coins():
    # Guesses in the log: .5, (.5 + .8) / 2, (.5 + .8 + .4) / 3, ... ; each end at .1 * .05.
    ledger = told_history(COINS, *[1.4, 0.7] * 100)
    x, (Q, R), rule = [0.8, 0.4] * 100, (0.0, 0.0), Bernstein.of(0.005, 10)
    for j, each in enumerate(x):
        guess = (0.5 + sum(x[:j])) / (1 + j)
        Q, R = Q + (each - guess) ** 2, R + guess * (each - guess) ** 2
    below, above = (1.75 * excess(Q, part, rule) / 200 for part in (R, Q - R))
    assert above < below  # guesses are above 1/2
    found = np.array(ledger.ledger.means_seen(ledger.first.safe)) / 200
    assert found == pytest.approx(np.array([1.05 - below, 1.05 + above]))
    low, high = ledger.ledger.values(ledger.book)
    assert (low, high) == pytest.approx(tuple(found))  # the log is looked at once
    run(ledger, *[1.4] * 60)
    guesses = [(0.5 + 0.8 * j) / (1 + j) for j in range(60)]
    Q, R = (sum(g**power * (0.8 - g) ** 2 for g in guesses) for power in (0, 1))
    bound = 84 - 1.75 * excess(Q, R, Bernstein.of(0.04, 10))
    assert ledger.budget() == pytest.approx(bound - 48 * high)


def test_a_hidden_baseline_trial_of_coins_widens_both_ends():
    ledger = told_history(COINS, *[1.4, 0.7] * 100)
    Q, R = ledger.first.safe.proxy, ledger.first.safe.guessed
    ledger.ask(1, None)
    ledger.ask(2, None)
    assert ledger.lines[2].ticket.guess == pytest.approx((0.5 + 120) / 201)
    ledger.abandon(1, ran=True)
    below, above = ledger.ledger.means_seen(ledger.first.safe)
    slack = [1.75 * (1 + excess(Q + 1, part + 1, Bernstein.of(0.005, 10))) for part in (R, Q - R)]
    assert (below, above) == pytest.approx((210 - slack[0], 210 + slack[1]))


def test_nothing_is_designed_before_the_baseline_is_known_to_earn():
    guard = Guardrail("kept", COINS, at_least=0.5)
    asked = Problem(MDP, MDP.uniform, SAFE, guardrails=guard, delta=DELTA)
    ledger = Kept(asked, K, stage_of(MDP), LearnedModelFree)
    assert not ledger.passes("prospective", DESIGNED)
    assert ledger.ledger.after(ledger.book, 5.0) == -math.inf


# -- pace, choice, plug-in -----------------------------------------------------------------------------------


def test_the_pace_at_first_and_later():
    # Required .8. At first Q is that of coins worth .8 of 1.75; then as it was seen, with these as one more.
    ledger, share = kept(COINS), 0.8 / 1.75
    luck = 1.75 * excess(20 * share * (1 - share), 20 * share**2 * (1 - share), ledger.rule)
    assert ledger.pace(0, 0, 20) == pytest.approx(0.8 + (luck + 0.8) / 20)
    run(ledger, 1.4, 1.4)
    Q, R = (0.09 + 0.15**2 + 0.16) / 3 * 20, (0.5 * 0.09 + 0.65 * 0.15**2 + 0.8 * 0.16) / 3 * 20
    luck = 1.75 * excess(Q, R, ledger.rule)
    assert ledger.pace(2, 3, 18) == pytest.approx(0.8 + (luck + 0.8 - 3 * 0.2) / 20)
    normal = kept(SubGaussian(0.2))
    u = mixture(20 * V, best_rho(10 * V, 0.045), 0.045)
    assert normal.pace(0, 0, 20) == pytest.approx(0.8 + (u + 0.8) / 20)


def test_episodes_that_earn_the_pace_leave_the_budget_open():
    ledger = kept(COINS, episodes=400)
    pace = ledger.pace(0, 0, 400)
    run(ledger, *[pace] * 400)
    assert ledger.ledger.after(ledger.book, 0.0) >= 0.0


@pytest.mark.parametrize("promise", [SubGaussian(0.2), COINS], ids=str)
def test_which_ledger(promise):
    stage = stage_of(MDP)
    terms = Terms(problem(promise), K, stage)
    assert type(ledger_for("certified", terms)) is ModelFree
    assert type(ledger_for("plugin", terms)) is PluginModelFree
    learned = Terms(problem(promise, value=None), K, stage)
    assert type(ledger_for("certified", learned)) is LearnedModelFree
    assert type(ledger_for("plugin", learned)) is PluginModelFree
    for name in ("paper", "latest"):
        with pytest.raises(InvalidProblem, match=f"'{name}' needs .* use 'certified'"):
            ledger_for(name, terms)


def test_equal_arrays_are_the_baseline_whatever_they_are_called():
    ledger = kept(COINS)
    ledger.ask(1, play_of(np.broadcast_to(SAFE, (3, 2, 2))))
    ledger.tell(1, DESIGNED, worth(0.5))
    assert ledger.book.baseline_told == 1
    later = np.array([SAFE, SAFE, OTHER])
    assert not ledger.exact(play_of(later))


def test_the_range_of_pairs_is_the_declared_one():
    floors, ceilings = kept(Bounded(-0.5, 1.5)).ends()
    np.testing.assert_array_equal(floors, np.full((2, 2), -0.5))
    np.testing.assert_array_equal(ceilings, np.full((2, 2), 1.5))


def test_two_guardrails_have_a_ledger_each_with_their_share():
    guards = [Guardrail("a", COINS, alpha=0.2, baseline_value=1.0, share=0.8),
              Guardrail("b", SubGaussian(0.2), alpha=0.2, baseline_value=1.0, share=0.2)]  # fmt: skip
    asked = Problem(MDP, MDP.uniform, SAFE, guardrails=guards, delta=DELTA)
    first, second = (ledger_for("certified", Terms(asked, K, stage_of(MDP), own=r)) for r in asked.rails)
    assert first.levels.noise == pytest.approx(0.8 * DELTA)
    assert second.levels.noise == pytest.approx(0.9 * 0.2 * DELTA)


def test_the_plug_in_believes_what_was_earned():
    ledger = kept(SubGaussian(0.2, floor=0.1), PluginModelFree)
    run(ledger, 1.5, 1.2)
    ledger.ask(3, None)
    ledger.tell(3, None, worth(0.3))
    assert ledger.budget() == pytest.approx(2.7 - 2 * 0.8 + 0.2)
    assert ledger.lower(DESIGNED) == pytest.approx(0.1)
    ledger.ask(4, DESIGNED)
    assert ledger.budget() == pytest.approx(2.7 - 2 * 0.8 + 0.2 - 0.7)
    ledger.tell(4, DESIGNED, observed([0], [1], [1.0]), False)
    assert ledger.budget() == pytest.approx(2.7 - 2 * 0.8 + 0.2 - 0.7)
    assert ledger.again().budget() == ledger.budget()
    assert not ledger.certifies
