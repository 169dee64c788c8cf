"""Trials that are out, lost, cut off or cancelled, by hand."""

import math

import numpy as np
import pytest
from kept import DELTA, GIVEN, MDP, OTHER, SCALE, SECOND, K, Kept, observed, problem, two_starts, two_steps

import saver
from saver.kernels.bounds.boundaries import best_rho, mixture, mixture_two_sided
from saver.kernels.bounds.capital import fewest_gains
from saver.kernels.bounds.noise import least, unseen
from saver.play import Stage

V, RHO = SCALE**2, SCALE**2 / 8
NOISE, PAIRS, NEVER = 0.04 * DELTA, 0.02 * DELTA / 2, 0.02 * DELTA  # two pairs share the second


def level(share, choices):
    return math.log(share) - math.log(choices)


def test_how_delta_is_split():
    """A tenth for what is hidden: .04 trials, .04 pairs (half of it visits), .02 cancelled ones."""
    ledger = Kept(problem(), K)
    assert ledger.log_noise == pytest.approx(math.log(NOISE))
    assert ledger.log_pairs == pytest.approx(math.log(PAIRS))
    assert ledger.log_visits == pytest.approx(math.log(PAIRS))
    several = Kept(two_starts(), K)  # four pairs, and both tails
    assert several.log_pairs == pytest.approx(math.log(0.02 * DELTA / 4 / 2))
    assert tuple(several.levels) == pytest.approx((0.1 * DELTA, 0.45 * DELTA, 0.225 * DELTA, 0.225 * DELTA))
    chance = Kept(two_starts(), K, losses="random")
    assert tuple(chance.levels) == pytest.approx((0.0, 0.5 * DELTA, 0.25 * DELTA, 0.25 * DELTA))
    assert tuple(Kept(problem(), K, losses="random").levels) == pytest.approx(
        (0.0, 0.15 * DELTA, 0.85 * DELTA, 0.0)
    )


def test_trials_out_told_and_abandoned_by_hand():
    ledger, play = Kept(problem(), K), Stage(MDP).play(SECOND)

    def u(n):
        return mixture(n * V, ledger.rule.rho, 0.75 * DELTA)

    def low(told, hidden):
        """The lower end of the pair: all samples are its own."""
        n, m = len(told), hidden
        H = unseen(m * V, RHO, level(PAIRS, (n + m + 1) * math.comb(n + m, m)))
        share = 0.15 * DELTA / 2
        return (sum(told) - mixture((n + m) * V, best_rho(4 * V, share), share) - H) / n

    for number in (1, 2, 3):
        ledger.ask(number, play)
    assert ledger.budget() == pytest.approx(-3 * 0.4)  # each may cost floor - required
    ledger.tell(3, play, observed([0], [1], [0.9]))
    hides = [unseen(m * V, RHO, level(NOISE, (n + 1) * math.comb(n, m))) for n, m in ((2, 2), (2, 1))]
    third = max(0.0, 0.9 - hides[0] - u(3))  # the first two count as lost, 2 of 2
    assert third == 0.0
    assert low([0.9], 2) < 0.0
    assert ledger.earned() == 0.0
    ledger.tell(1, play, observed([0], [1], [0.8]))
    lows = max(low([0.8], 0), low([0.8, 0.9], 1))  # before the gap, and with the second trial hidden
    assert ledger.ends()[0][0, 1] == pytest.approx(lows)
    both = max(0.8 - u(1) + 0.0, 1.7 - hides[1] - u(3))
    assert ledger.earned() == pytest.approx(both)
    assert ledger.budget() == pytest.approx(both - 2 * 0.4 + min(0.0, lows - 0.4))
    ledger.abandon(2)
    assert ledger.ends()[0][0, 1] == pytest.approx(low([0.8, 0.9], 1))
    assert ledger.earned() == pytest.approx(both)  # what was a bound remains one
    assert ledger.budget() == pytest.approx(both - 2 * 0.4 + min(0.0, lows - 0.4))
    ledger.ask(4, None)
    ledger.abandon(4)
    ledger.ask(5, None)
    ledger.abandon(5, ran=True)
    assert ledger.budget() == pytest.approx(both - 2 * 0.4 + min(0.0, lows - 0.4) + 0.1)  # only one has run


def test_a_lost_trial_counts_as_what_it_is_worth_at_least_now():
    """Lost before anything was known, at its floor; with what is learned later it costs less, or earns."""
    ledgers = {ran: Kept(problem(), 400) for ran in (False, True)}
    play = Stage(MDP).play(SECOND)
    for ran, ledger in ledgers.items():
        ledger.ask(1, play)
        ledger.abandon(1, ran=ran)
        assert ledger.budget() == pytest.approx(-0.4)
        for number in range(2, 200):
            ledger.ask(number, play)
            ledger.tell(number, play, observed([0], [1], [0.9]))
    low = ledgers[True].ends()[0][0, 1]
    assert 0.8 < low < 0.9
    assert ledgers[False].gone[0].low == pytest.approx(low)
    assert ledgers[True].budget() == pytest.approx(ledgers[False].budget() + low - 0.4)
    assert (ledgers[True].gone[0].ran, ledgers[True].gone[0].may) == (1, 0)


def test_the_box_keeps_learning_where_trials_are_lost():
    """Nine told, one hidden: mean - (w(10) + H(1 of 10)) / 9; both ends where paths are random."""
    stage = Stage(MDP)
    ledger, play = Kept(problem(), K, stage), stage.play(SECOND)
    for number in range(1, 11):
        ledger.ask(number, play)
        ledger.abandon(number) if number == 4 else ledger.tell(number, play, observed([0], [1], [0.9]))
    share = 0.15 * DELTA / 2
    w = mixture(10 * V, best_rho(4 * V, share), share)
    H = unseen(V, RHO, level(PAIRS, 11 * 10))
    assert ledger.ends()[0][0, 1] == pytest.approx(0.9 - (w + H) / 9)
    two = two_starts()
    ledger, play = Kept(two, K), Stage(two.mdp).play(OTHER)
    for number in range(1, 11):
        ledger.ask(number, play)
        ledger.abandon(number) if number == 4 else ledger.tell(number, play, observed([1], [1], [0.5]))
    share = 0.45 * DELTA / 4
    w = mixture_two_sided(10 * V, best_rho(10 * V, share), share)
    H = unseen(V, RHO, level(0.02 * DELTA / 4 / 2, 11 * 10))  # it may have begun in state 1
    lower, upper = ledger.ends()
    assert (lower[1, 1], upper[1, 1]) == (pytest.approx(0.5 - (w + H) / 9), pytest.approx(0.5 + (w + H) / 9))
    assert (lower[0, 1], upper[0, 1]) == (0.0, 1.0)


def test_a_box_of_coins_takes_hidden_ones_for_failures():
    ledger, play = Kept(problem(constraint=saver.Bounded(0.0, 1.0)), 400), Stage(MDP).play(SECOND)
    for number in range(1, 101):
        ledger.ask(number, play)
        ledger.abandon(number) if number <= 10 else ledger.tell(number, play, observed([0], [1], [1.0]))
    rule = ledger.ledger.box.numbers.rule
    assert ledger.ends()[0][0, 1] == pytest.approx(least(90.0, 0.0, 100.0, rule) / 100)
    assert ledger.earned() == pytest.approx(least(90.0 - 10.0, 0.0, 90.0, ledger.rule))


def test_where_a_lost_trial_can_have_been_where_paths_are_random():
    """At most once in each pair of a one-step model; less where all trials together were there less often."""
    mdp, v = saver.Mdp(np.zeros((2, 2, 2)), 1, start=[0.001, 0.999]), 1e-6
    given = {**GIVEN, "constraint": saver.SubGaussian(1e-3)}
    asked = saver.Problem(mdp, np.full((2, 2), 0.5), np.eye(2)[[0, 0]], **given)
    ledger, play = Kept(asked, 4000), Stage(mdp).play(OTHER)
    for number in range(1, 62):
        ledger.ask(number, play)
    for number in (60, 61):
        ledger.tell(number, play, observed([0], [1], [0.4]))
    for number in range(1, 60):
        ledger.abandon(number)
    tally = ledger.first
    assert tally.most[:, 1].tolist() == [59, 59]
    assert tally.awaited[0, 1] == pytest.approx(0.061)
    thetas = [0.05 * 160 ** (i / 11) for i in range(12)]
    most = min((math.log(12) - ledger.log_visits + math.expm1(x) * 0.061) / x for x in thetas)
    hidden = math.floor(most - 2)  # two of them were told
    assert 0 < hidden < 10
    w = mixture_two_sided((2 + hidden) * v, ledger.box.numbers.rule.rho, 0.45 * DELTA / 4)
    choices = (2 + hidden + 1) * math.comb(2 + hidden, hidden)
    H = unseen(hidden * v, v / 8, ledger.log_pairs - math.log(choices))
    assert ledger.ends()[0][0, 1] == pytest.approx(0.4 - (w + H) / 2)
    assert ledger.ends()[1][0, 1] == pytest.approx(0.4 + (w + H) / 2)


def test_lost_baseline_trials_hide_visits_too():
    """They might have taught: the box supposes that they would have."""
    ledger = Kept(problem(), K)
    ledger.ask(1, None)
    ledger.abandon(1, ran=True)
    assert ledger.first.missed.tolist() == [[1.0, 0.0]]
    drawn = Kept(saver.Problem(MDP, [[0.5, 0.5]], [[0.5, 0.5]], **GIVEN), K)
    drawn.ask(1, None)  # who runs it need not follow our draws
    drawn.abandon(1)
    assert drawn.first.missed is None
    assert drawn.first.most.tolist() == [[1.0, 1.0]]


def test_coins_that_are_out_hide_all_of_their_range_from_those_told_after():
    ledger, play = Kept(problem(constraint=saver.Bounded(0.0, 1.0)), 400), Stage(MDP).play(SECOND)
    for number in range(1, 61):
        ledger.ask(number, play)
    for number in range(4, 61):
        ledger.tell(number, play, observed([0], [1], [1.0]))
    away = ledger.away(ledger.book)
    assert len(away) == 3
    assert ledger.ledger.hides(ledger.every, away) == (3.0, 0.0)
    assert ledger.earned() == pytest.approx(least(57.0 - 3.0, 0.0, 57.0, ledger.rule))


def test_noise_and_paths_together_with_trials_out_cut_and_lost():
    """Two steps, a fork. Told: 2 and 5; lost: 3; cut: 4; out: 1. Only the told ones have an X."""
    edges = [(0, a, 1 + i, p) for a in (0, 1) for i, p in enumerate((0.25, 0.75))]
    mdp = saver.Mdp.from_edges(edges, 3, 2, 2, discount=0.5)
    asked = saver.Problem(mdp, np.full((3, 2), 0.5), np.eye(2)[[0, 0, 0]], **GIVEN)
    ledger, play = Kept(asked, K), Stage(mdp).play(np.eye(2)[[1, 1, 1]])
    for number in range(1, 6):
        ledger.ask(number, play)
    tickets = [ledger.lines[number].ticket for number in range(1, 6)]
    ledger.tell(2, play, observed([0, 1], [1, 1], [0.5, 0.4]))
    ledger.abandon(3)
    ledger.tell(4, play, observed([0], [1], [0.5]), False)
    ledger.tell(5, play, observed([0, 2], [1, 1], [0.6, 0.4]))
    tally, away = ledger.every, ledger.away(ledger.book)
    proxy = V * 1.25
    assert (tally.whole, tally.cut, tally.last) == (1, 1, 4)
    assert tally.sum_x == pytest.approx(0.7 + 0.8)  # midpoints were alike when they were asked
    H = unseen(3 * proxy, proxy / 8, level(NOISE, 5 * 6 / 2 * math.comb(4, 3)))  # 1, 3 and 4 of the first 4
    strays = sum(tickets[at].strays for at in (0, 2, 3))
    u = ledger.boundary(sum(ticket.v for ticket in tickets))
    assert ledger.together(tally, away) == pytest.approx(1.5 - strays - H - u)
    H = unseen(2 * proxy + V * 0.25, proxy / 8, level(NOISE, 5 * 6 / 2 * math.comb(4, 2) * math.comb(2, 1)))
    noise = mixture(5 * proxy, ledger.rule.rho, 0.225 * DELTA)
    assert ledger.seen_worth(tally, away) == pytest.approx(0.7 + 0.5 + 0.8 - H - noise)


@pytest.mark.parametrize(
    ("edges", "most"),
    [
        ([(0, 0, 1, 1.0), (1, 0, 0, 1.0)], [3, 2]),  # to and fro, five steps
        ([(0, 0, 0, 0.5), (0, 0, 1, 0.5)], [5, 1]),  # it may stay
        ([(0, 0, 1, 1.0)], [1, 1]),
        ([(1, 0, 0, 1.0)], [1, 1]),  # nobody is ever in the second
    ],
)
def test_how_often_an_episode_can_be_in_a_state(edges, most):
    found = Stage(saver.Mdp.from_edges(edges, 2, 1, 5)).most
    assert np.all(found[:, 0] >= most)
    assert found[0, 0] == most[0]


def test_what_an_abandoned_trial_of_bounded_observations_hides():
    """Its whole range, over the longest that it can be: here 4 (1 + .5); no step of it is seen."""
    asked = two_steps(constraint=saver.Bounded(-1.0, 3.0))
    ledger, play = Kept(asked, K), Stage(asked.mdp).play(np.array([[0.0, 1.0], [0.0, 1.0]]))
    for number in range(1, 31):
        ledger.ask(number, play)
    total = 0.0
    for number in range(1, 31):
        if number == 7:
            ledger.abandon(7)
            continue
        ledger.tell(number, play, observed([0, 1], [1, 1], [2.5, 3.0]))
        total += 2.5 + 0.5 * 3.0
    assert ledger.first.hides == pytest.approx(4 * 1.5)
    assert ledger.gained == pytest.approx(total)
    assert ledger.length == pytest.approx(29 * 1.5)
    expected = least(total - 4 * 1.5, 0.0, 29 * 1.5, ledger.rule)
    assert ledger.earned() == pytest.approx(expected)
    assert expected > 0


def test_an_abandoned_trial_that_may_end_early_hides_its_longest_way():
    """Action 1 ends at once; a policy that may not do so hides two steps, the drawn one only its own."""
    mdp = saver.Mdp.from_edges([(0, 0, 1, 1.0)], 2, 2, 2, discount=0.5)
    asked = saver.Problem(
        mdp, np.full((2, 2), 0.5), np.eye(2)[[0, 0]], **{**GIVEN, "constraint": saver.Bounded(0.0, 1.0)}
    )
    for actions, longest in (([1, 0], 1.0), ([0, 1], 1.5)):
        ledger = Kept(asked, K)
        ledger.ask(1, Stage(mdp).play(np.eye(2)[actions]))
        ledger.abandon(1)
        assert ledger.first.hides == longest


def test_a_trial_abandoned_where_paths_are_random():
    """Noise and how far its path may lead away are hidden; v stays."""
    asked = two_starts()
    ledger, play = Kept(asked, K), Stage(asked.mdp).play(OTHER)
    ledger.ask(1, play)
    ledger.abandon(1)
    tally = ledger.first
    assert (tally.whole, tally.last, tally.whole_proxy) == (1, 1, pytest.approx(V))
    assert tally.strays == pytest.approx(0.5 + 0.5)  # max h and E h
    assert tally.sum_v == pytest.approx(V + 0.25)
    H = unseen(V, RHO, level(NOISE, 2))
    assert ledger.together(tally, ()) == pytest.approx(-1.0 - H - ledger.boundary(V + 0.25))
    assert ledger.seen_worth(tally) == pytest.approx(-H - mixture(V, ledger.rule.rho, 0.225 * DELTA))
    assert (tally.length, tally.gained) == (0.0, 0.0)
    assert not tally.expected.any()
    ledger.ask(2, play)
    ledger.tell(2, play, observed([0], [1], [0.4]))
    assert tally.seen.counts.sum() == 1
    assert tally.gained == pytest.approx(0.4)


def test_strays_by_hand():
    """Two steps, a fork: the largest sum of half-lengths along a way, and the mean one."""
    edges = [(0, a, 1 + i, p) for a in (0, 1) for i, p in enumerate((0.25, 0.75))]
    mdp = saver.Mdp.from_edges(edges, 3, 2, 2, discount=0.5)
    asked = saver.Problem(mdp, np.full((3, 2), 0.5), np.eye(2)[[0, 0, 0]], **GIVEN)
    ledger, play = Kept(asked, K), Stage(mdp).play(np.eye(2)[[1, 1, 1]])
    for number, second in enumerate((1, 2, 2, 2), 1):
        ledger.ask(number, play)
        ledger.tell(number, play, observed([0, second], [1, 1], [0.5, 0.4]))
    h = ledger.middle()[1][:, 1]
    assert h[0] < h[2] < h[1] < 0.5
    ledger.ask(5, play)
    ticket = ledger.lines[5].ticket
    assert ticket.strays == pytest.approx(h[0] + 0.5 * h[1] + h[0] + 0.5 * (0.25 * h[1] + 0.75 * h[2]))
    squares = h[0] ** 2 + 0.5 * (0.25 * h[1] ** 2 + 0.75 * h[2] ** 2)
    assert ticket.v == pytest.approx(V * 1.25 + 1.5 * squares)
    ledger.abandon(5)
    assert ledger.first.strays == pytest.approx(ticket.strays)
    # Episodes of two steps may also be cut: (n + 1)(n + 2) / 2 n! / (m! (n - m)!), n = 5, m = 1.
    H = unseen(V * 1.25, V * 1.25 / 8, level(NOISE, 6 * 7 / 2 * 5))
    assert ledger.ledger.hides(ledger.first, ())[0] == pytest.approx(H)


def test_coins_abandoned_where_paths_are_random_hide_two_things():
    """For the noise alone the whole range; of bets, all that can be lost below m = V0, and above it."""
    asked = two_starts(constraint=saver.Bounded(0.0, 1.0))
    ledger = Kept(asked, K)
    ledger.ask(1, Stage(asked.mdp).play(OTHER))
    ledger.abandon(1)
    assert ledger.ledger.hides(ledger.first, ()) == (1.0, 0.0)
    rates, weights = ledger.capital
    lost = fewest_gains(np.log1p(-0.5 * rates), rates, weights)
    assert ledger.together(ledger.first, ()) == pytest.approx(-0.5 + lost)


# -- cut off -------------------------------------------------------------------------------------------------


def test_a_trial_that_was_cut_off_counts_until_then():
    """Two steps of weight 1 and 1/2; of the third trial only the first step is told."""
    asked = two_steps()
    ledger, play = Kept(asked, K), Stage(asked.mdp).play(np.array([[0.0, 1.0], [0.0, 1.0]]))
    for number in (1, 2, 3):
        ledger.ask(number, play)
        told = observed([0, 1], [1, 1], [0.9, 0.8]) if number < 3 else observed([0], [1], [0.9])
        ledger.tell(number, play, told, number < 3)
    tally = ledger.first
    assert tally.gained == pytest.approx(2 * 1.3 + 0.9)
    assert (tally.cut, tally.whole, tally.last) == (1, 0, 3)
    assert tally.rest_proxy == pytest.approx(V * 0.25)
    assert tally.seen.counts[:, 1].tolist() == [3, 2]
    assert tally.missed[:, 1].tolist() == [0, 1]
    H = unseen(V * 0.25, V * 1.25 / 8, level(NOISE, 4 * 5 / 2 * 3 * 1))  # one place to cut
    u = mixture(3 * V * 1.25, ledger.rule.rho, 0.75 * DELTA)
    rest = 0.5 * ledger.ends()[0][1, 1]
    assert ledger.worth(tally, (), ledger.ends()) == pytest.approx(3.5 - H - u + rest)
    assert ledger.designed_told == 3


def test_a_cut_of_coins_hides_the_rest_of_the_way():
    asked = two_steps(constraint=saver.Bounded(0.0, 1.0))
    ledger, play = Kept(asked, K), Stage(asked.mdp).play(np.array([[0.0, 1.0], [0.0, 1.0]]))
    ledger.ask(1, play)
    ledger.tell(1, play, observed([0], [1], [1.0]), False)
    assert ledger.first.hides == pytest.approx(0.5)
    assert ledger.seen_worth(ledger.first) == pytest.approx(least(0.5, 0.0, 1.0, ledger.rule))


# -- cancelled -----------------------------------------------------------------------------------------------


def test_the_last_trial_asked_is_cancelled_without_a_trace():
    ledger, play = Kept(problem(), K), Stage(MDP).play(SECOND)
    ledger.ask(1, play)
    ledger.tell(1, play, observed([0], [1], [0.9]))
    before = ledger.plain()["first"]
    ledger.ask(2, play)
    ledger.ask(3, None)
    ledger.cancel(3)
    ledger.cancel(2)
    assert ledger.plain()["first"] == before
    assert ledger.ordered == 1
    assert ledger.budget() == pytest.approx(ledger.earned() - 0.4)
    assert not ledger.lines
    assert ledger.first.cancelled == 0.0


def test_a_trial_cancelled_after_others_were_asked_stays_in_the_boundary():
    """Whether it counts was chosen when outcomes may have been known: its noise is bounded once more."""
    ledger, play = Kept(problem(), K), Stage(MDP).play(SECOND)
    for number in (1, 2):
        ledger.ask(number, play)
    ledger.cancel(1)
    ledger.tell(2, play, observed([0], [1], [0.9]))
    never = mixture(V, best_rho(8 * V, NEVER), NEVER)
    assert ledger.seen_worth(ledger.first) == pytest.approx(
        0.9 - never - mixture(2 * V, ledger.rule.rho, 0.75 * DELTA)
    )
    assert ledger.budget() == pytest.approx(ledger.earned() - 0.4)  # it never ran: no value, no requirement
    assert ledger.first.missed[0, 1] == 1  # for the box it is lost
    assert not ledger.gone


# -- declared ------------------------------------------------------------------------------------------------


def test_losses_at_random_hide_nothing_and_wait_for_nobody():
    ledger, play = Kept(problem(), K, losses="random"), Stage(MDP).play(SECOND)
    for number in (1, 2, 3, 4):
        ledger.ask(number, play)
    ledger.tell(4, play, observed([0], [1], [0.9]))
    ledger.abandon(2)
    ledger.cancel(1)
    share = 0.15 * DELTA / 2
    low = 0.9 - mixture(V, best_rho(4 * V, share), share)
    assert ledger.ends()[0][0, 1] == pytest.approx(low)
    worth = max(0.0, 0.9 - mixture(V, best_rho(V * K / 2, 0.85 * DELTA), 0.85 * DELTA))
    assert ledger.earned() == pytest.approx(worth)
    assert ledger.budget() == pytest.approx(worth - 0.4 + 2 * min(0.0, low - 0.4))  # told; lost and out


def test_trials_that_start_in_order_count_as_the_least_of_their_beginnings():
    """Out: a baseline trial (+.1), then designed ones (-.4 each) and a baseline trial again."""
    given = {"order": "asked"}
    ledger, play = Kept(problem(), K, **given), Stage(MDP).play(SECOND)
    for number in (1, 2):
        ledger.ask(number, None)
    assert ledger.budget() == 0.0
    assert ledger.spendable_at(ledger.book, 0.5) == pytest.approx(0.2)
    ledger.ask(3, play)
    ledger.ask(4, None)
    assert ledger.budget() == pytest.approx(0.2 - 0.4)
    assert ledger.spendable_at(ledger.book, 0.5) == pytest.approx(0.3 - 0.4)
    ledger.abandon(2)  # it may have run; if the third did, it has
    assert ledger.budget() == pytest.approx(0.2 - 0.4)
    ledger.tell(4, None, observed([0], [0], [0.5]))
    assert ledger.budget() == pytest.approx(0.3 - 0.4)  # all before it have run
    assert ledger.spendable_at(ledger.book, 0.5) == ledger.budget()
    assert Kept(problem(), K).order == "any"


def test_a_trial_that_is_out_earns_nothing_even_if_it_must():
    """A floor above what is required: out, it counts 0 and not its gain, because it may not run."""
    sure = problem(baseline_value=0.95, constraint=saver.SubGaussian(SCALE, 0.9, 1.0))
    ledger, play = Kept(sure, K), Stage(MDP).play(SECOND)
    ledger.ask(1, play)
    assert ledger.budget() == 0.0
    ledger.tell(1, play, observed([0], [1], [0.95]))
    assert ledger.earned() == pytest.approx(0.9)  # the floor, while the boundary is larger than what was seen
    assert ledger.budget() == pytest.approx(0.9 - 0.76)


def test_what_is_hidden_comes_back_from_plain_data():
    for asked in (problem(), two_starts()):
        play = Stage(asked.mdp).play(np.eye(2)[[1] * asked.mdp.states])
        for happens in ("told", "abandoned", "ran", "cancelled"):
            ledger = Kept(asked, K)
            for number in (1, 2, 3, 4):
                ledger.ask(number, play)
            ledger.tell(3, play, observed([0], [1], [0.5]))
            if happens == "told":
                ledger.tell(2, play, observed([0], [1], [0.5]))
            elif happens == "cancelled":
                ledger.cancel(2)
            else:
                ledger.abandon(2, ran=happens == "ran")
            again = ledger.again()
            for each in (ledger, again):
                each.tell(1, play, observed([0], [1], [0.4]))
                each.tell(4, play, observed([0], [1], [0.4]))
            assert again.budget() == ledger.budget()
            assert again.plain() == ledger.plain()
