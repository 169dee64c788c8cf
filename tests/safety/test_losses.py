"""Trials that are out and trials that were abandoned, by hand."""

import math

import numpy as np
import pytest
from kept import DELTA, GIVEN, MDP, OTHER, SCALE, SECOND, K, Kept, observed, problem, two_starts, two_steps

import saver
from saver.safety import Stage
from saver.safety.boundaries import mixture
from saver.safety.noise import least


def test_trials_out_and_abandoned_by_hand():
    ledger, play = Kept(problem(), K), Stage(MDP).play(SECOND)

    def u(n):
        return mixture(n * SCALE**2, ledger.rule.rho, 0.75 * DELTA)

    for number in (1, 2, 3):
        ledger.ask(number, play)
    assert ledger.budget() == pytest.approx(-3 * 0.4)  # each may cost floor - required
    ledger.tell(3, play, observed([0], [1], np.array([0.9])))
    assert ledger.earned() == 0.0  # behind a gap: its floor
    assert ledger.budget() == pytest.approx(-3 * 0.4)
    ledger.tell(1, play, observed([0], [1], np.array([0.8])))
    first = max(0.8 - u(1), 0.0)
    assert ledger.earned() == pytest.approx(first)
    ledger.abandon(2, play)
    hidden = math.sqrt(2 * SCALE**2 * math.log(2 * 3 / (0.1 * DELTA)))
    second = max(0.8 - hidden - u(2), first)
    third = max(0.8 - hidden + 0.9 - u(3), second)
    assert ledger.earned() == pytest.approx(third)
    assert ledger.budget() == pytest.approx(third - 2 * 0.4 - 0.4)  # two told, one lost for ever
    ledger.ask(4, None)
    ledger.abandon(4, None)
    assert ledger.budget() == pytest.approx(ledger.earned() - 3 * 0.4)  # a baseline trial costs nothing
    ledger.ask(5, None)
    ledger.tell(5, None, observed([0], [0], np.array([0.5])))
    assert ledger.budget() == pytest.approx(ledger.earned() - 3 * 0.4 + 0.2 * 0.5)


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
    assert ledger.hidden == pytest.approx(4 * 1.5)
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
        assert ledger.hidden == longest


def test_a_trial_abandoned_where_paths_are_random():
    """x = -(noise + how far its path may lead away); v stays; the box learns no more."""
    asked = two_starts()
    ledger, play = Kept(asked, K), Stage(asked.mdp).play(OTHER)
    ledger.ask(1, play)
    v, l = SCALE**2 + 0.25, math.log(1 * 2 / (0.1 * DELTA))  # noqa: E741
    ledger.abandon(1, play)
    noise = math.sqrt(2 * SCALE**2 * l)
    assert ledger.hidden == pytest.approx(noise)
    assert ledger.sum_x == pytest.approx(-(noise + 0.5 + 0.5))  # max h and E h
    assert ledger.sum_v == pytest.approx(v)
    assert ledger.proxy == pytest.approx(SCALE**2)
    assert (ledger.length, ledger.gained) == (0.0, 0.0)
    assert not ledger.expected.any()
    assert ledger.sealed == 1
    ledger.ask(2, play)
    ledger.tell(2, play, observed([0], [1], np.array([0.4])))
    assert ledger.seen.counts.sum() == 0
    assert ledger.gained == pytest.approx(0.4)


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
    line = ledger.lines[5]
    assert line.strays == pytest.approx(h[0] + 0.5 * h[1] + h[0] + 0.5 * (0.25 * h[1] + 0.75 * h[2]))
    squares = h[0] ** 2 + 0.5 * (0.25 * h[1] ** 2 + 0.75 * h[2] ** 2)
    assert line.v == pytest.approx(SCALE**2 * 1.25 + 1.5 * squares)
    before = ledger.sum_x
    ledger.abandon(5)
    noise = math.sqrt(2 * SCALE**2 * 1.25 * math.log(5 * 6 / (0.1 * DELTA)))
    assert ledger.sum_x == pytest.approx(before - noise - line.strays)


def test_coins_abandoned_where_paths_are_random_hide_two_things():
    """For the noise alone the whole range; in X the noise of Hoeffding's scale."""
    asked = two_starts(constraint=saver.Bounded(0.0, 1.0))
    ledger = Kept(asked, K)
    ledger.ask(1, Stage(asked.mdp).play(OTHER))
    ledger.abandon(1)
    assert ledger.hidden == 1.0
    noise = math.sqrt(2 * 0.25 * math.log(2 / (0.1 * DELTA)))
    assert ledger.sum_x == pytest.approx(-(noise + 1.0))


def test_the_box_keeps_what_was_told_before_a_trial_was_abandoned():
    stage = Stage(MDP)
    ledger = Kept(problem(), K, stage)
    plays = {action: stage.play(np.eye(2)[[action]]) for action in (0, 1)}
    for number in (1, 2, 3, 4):
        ledger.ask(number, plays[number != 1])
    ledger.tell(2, plays[1], observed([0], [1], np.array([0.4])))
    ledger.tell(4, plays[1], observed([0], [1], np.array([0.9])))
    ledger.abandon(3)
    assert ledger.seen.counts.sum() == 0
    ledger.tell(1, plays[0], observed([0], [0], np.array([0.6])))
    assert ledger.seen.counts.tolist() == [[1, 1]]  # trials 1 and 2, and not 4
    assert ledger.seen.mean.tolist() == [[0.6, 0.4]]


def test_a_trial_that_is_out_earns_nothing_even_if_it_must():
    """A floor above what is required: out, it counts 0 and not its gain, because it may not run."""
    sure = problem(baseline_value=0.95, constraint=saver.SubGaussian(SCALE, 0.9, 1.0))
    ledger, play = Kept(sure, K), Stage(MDP).play(SECOND)
    ledger.ask(1, play)
    assert ledger.budget() == 0.0
    ledger.tell(1, play, observed([0], [1], np.array([0.95])))
    assert ledger.earned() == pytest.approx(0.9)  # the floor, while the boundary is larger than what was seen
    assert ledger.budget() == pytest.approx(0.9 - 0.76)


def test_a_sealed_box_stays_sealed_in_plain_data():
    for asked in (problem(), two_starts()):
        play = Stage(asked.mdp).play(np.eye(2)[[1] * asked.mdp.states])
        for abandoned in (False, True):
            ledger = Kept(asked, K)
            for number in (1, 2, 3):
                ledger.ask(number, play)
            ledger.tell(1, play, observed([0], [1], np.array([0.5])))
            if abandoned:
                ledger.abandon(2)
            again = ledger.again()
            assert again.sealed == ledger.sealed == (2 if abandoned else 0)
            for each in (ledger, again):
                each.tell(3, play, observed([0], [1], np.array([0.4])))
            assert again.budget() == ledger.budget()
            assert again.plain() == ledger.plain()
