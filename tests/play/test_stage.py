"""What a policy would do, what its draws make of it, and what is promised about that."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from kept import GIVEN, SCALE, K, Kept, observed, two_steps
from models import paths, random_graph, random_maze, random_policy

import saver
from saver.collect import Trial
from saver.play import Stage
from saver.play.nodes import richest
from saver.problem import visits, weights

SEEDS = st.integers(0, 10_000)


def sparse(rng, mdp, *shape):
    """A policy whose rows have zeros."""
    rows = random_policy(rng, *shape) * (rng.random(shape) < 0.7) * mdp.available
    first = np.eye(mdp.actions)[np.argmax(mdp.available, axis=1)]
    rows = np.where(rows.sum(axis=-1, keepdims=True) > 0, rows, first)
    return rows / rows.sum(axis=-1, keepdims=True)


def along(mdp, path, values):
    return sum(mdp.discount**t * values[pair] for t, pair in enumerate(path))


@given(SEEDS, st.booleans())
def test_plays_agree_with_the_bellman_functions_and_with_enumeration(seed, by_step):
    mdp = random_graph(seed, states=4, horizon=3)
    rng = np.random.default_rng(seed)
    policy = random_policy(rng, *((3, 4, 2) if by_step else (4, 2)))
    stage, h = Stage(mdp), rng.random((4, 2))
    play = stage.play(policy)
    np.testing.assert_allclose(play.weights, weights(mdp, policy), atol=1e-14)
    total = np.zeros((4, 2))
    np.add.at(total, stage.nodes.state, play.flow)
    np.testing.assert_allclose(total, visits(mdp, policy), atol=1e-14)
    listed = paths(mdp, policy)
    longest = max(len(path) for _, path in listed)
    assert play.noise == pytest.approx(sum(mdp.discount ** (2 * t) for t in range(longest)))
    assert play.longest == pytest.approx(sum(mdp.discount**t for t in range(longest)))
    square = sum(p * along(mdp, path, h) ** 2 for p, path in listed)
    assert square <= play.longest * np.sum(play.weights * h**2) + 1e-12  # what the proxy of X rests on


@pytest.mark.parametrize("make", [random_graph, random_maze])
@given(seed=SEEDS)
def test_the_widest_and_the_least_of_all_ways(make, seed):
    """Episodes may end early, so a sum may also stop where it is best, or worst."""
    mdp, rng = make(seed, discount=0.8), np.random.default_rng(seed)
    stage, h = Stage(mdp), rng.normal(size=(mdp.states, mdp.actions))
    play = stage.play(sparse(rng, mdp, mdp.horizon, mdp.states, mdp.actions))
    table = np.zeros((mdp.horizon, mdp.states, mdp.actions))
    table[stage.nodes.step, stage.nodes.state] = play.behaviour
    sums = [along(mdp, path, h) for _, path in paths(mdp, table)]
    assert stage.widest(play, h) == pytest.approx(max(sums))
    assert stage.least(play, h) == pytest.approx(min(sums))
    assert play.sure is (len(sums) == 1)


@settings(max_examples=20)
@pytest.mark.parametrize("make", [random_graph, random_maze])
@given(seed=SEEDS)
def test_the_richest_of_all_policies(make, seed):
    mdp, rng = make(seed, states=4, actions=2, horizon=3, discount=0.7), np.random.default_rng(seed)
    stage = Stage(mdp)
    lower, mean = rng.normal(size=(2, 4, 2))
    rows = np.full(len(stage.nodes.state), -1)
    surely, likely = richest(stage.nodes, lower, mean, rows)
    assert np.all(mdp.available[stage.nodes.state, rows])
    chosen = stage.evaluate(stage.grid.choices(True, rows)).weights
    assert (surely, likely) == pytest.approx((np.sum(chosen * lower), np.sum(chosen * mean)))
    options = [np.flatnonzero(mdp.available[s]) for s in stage.nodes.state]
    values = [
        np.sum(stage.evaluate(stage.grid.choices(True, each)).weights * lower)
        for each in itertools.product(*options)
    ]
    assert surely == pytest.approx(max(values))


def test_ties_go_to_the_lowest_action():
    stage = Stage(saver.Mdp(np.zeros((1, 3, 1)), 1))
    rows = np.full(1, -1)
    assert richest(stage.nodes, np.array([[0.2, 0.5, 0.5]]), np.array([[1.0, 0.7, 0.9]]), rows) == (0.5, 0.7)
    assert rows.tolist() == [1]


# -- draws ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [random_graph, random_maze])
@given(seed=SEEDS, by_step=st.booleans())
def test_what_draws_make_of_a_policy_is_what_the_trial_does(make, seed, by_step):
    mdp, rng = make(seed), np.random.default_rng(seed)
    shape = (mdp.horizon,) * by_step + (mdp.states, mdp.actions)
    stage = Stage(mdp)
    policy = stage.grid.policy(sparse(rng, mdp, *shape))
    sums = np.unique(np.cumsum(policy.by_node(), axis=1))
    edges = np.clip(np.concatenate([[0.0], sums, np.nextafter(sums, 0.0)]), 0.0, np.nextafter(1.0, 0.0))
    for draws in (rng.random(mdp.horizon), rng.choice(edges, mdp.horizon), rng.choice(edges, mdp.horizon)):
        drawn, trial = policy.drawn(draws), Trial(1, "design", policy, draws)
        assert drawn.sure
        for t, s in zip(stage.nodes.step, stage.nodes.state, strict=True):
            action = trial.act(int(t), int(s))
            assert drawn.row(t, s)[action] == 1.0
            assert policy.row(t, s)[action] > 0.0


def test_draws_at_the_edges_by_hand():
    """Rows .2, .3, 0, .5: a draw equal to a sum belongs to the next action that can be taken."""
    stage = Stage(saver.Mdp(np.zeros((1, 4, 1)), 1))
    for rows, draws in (
        ([0.25, 0.25, 0.0, 0.5], {0.0: 0, 0.2499: 0, 0.25: 1, 0.4999: 1, 0.5: 3, 0.9999: 3}),
        ([0.0, 0.5, 0.5, 0.0], {0.0: 1, 0.5: 2, 0.9999999999999999: 2}),
        ([0.1] * 3 + [0.7], {0.30000000000000004: 3, 0.3: 2}),  # the sum of three tenths, and less
        (
            [1 / 3, 1 / 3, 1 / 3 - 1e-12, 0.0],
            {0.9999999999999999: 2},
        ),  # beyond the last sum: the last possible
    ):
        policy = stage.grid.policy(np.array([rows]))
        for draw, action in draws.items():
            assert policy.drawn(np.array([draw])).rows.tolist() == [action], (rows, draw)
            assert Trial(1, "design", policy, np.array([draw])).act(0, 0) == action


def test_a_policy_of_actions_is_drawn_already():
    stage = Stage(two_steps().mdp)
    policy = stage.grid.choices(True, [1, 0])
    assert policy.drawn(np.array([0.3, 0.3])) is policy


# -- what is promised ----------------------------------------------------------------------------------------


@given(SEEDS)
def test_where_draws_decide_all_the_promise_is_about_one_path(seed):
    mdp, rng = random_maze(seed), np.random.default_rng(seed)
    stage = Stage(mdp)
    policy, draws = stage.grid.policy(sparse(rng, mdp, mdp.states, mdp.actions)), rng.random(mdp.horizon)
    play = stage.promised(policy, draws, stage.play(sparse(rng, mdp, mdp.states, mdp.actions)))
    trial, s, path = Trial(1, "design", policy, draws), 0, []
    moves = mdp.transitions.toarray().reshape(mdp.states, mdp.actions, mdp.states)
    for t in range(mdp.horizon):
        path.append((s, trial.act(t, s)))
        onward = np.flatnonzero(moves[path[-1]])
        if not len(onward) or onward[0] in mdp.terminal:
            break
        s = int(onward[0])
    expected = np.zeros((mdp.states, mdp.actions))
    for t, pair in enumerate(path):
        expected[pair] += mdp.discount**t
    if not np.array_equal(play.flow, stage.play(policy).flow):
        assert play.sure
        np.testing.assert_allclose(play.weights, expected)
        assert play.longest == pytest.approx(expected.sum())


def test_where_paths_are_random_the_promise_is_about_the_policy():
    mdp, rng = random_graph(3), np.random.default_rng(3)
    stage = Stage(mdp)
    policy = stage.grid.policy(random_policy(rng, 4, 2))
    safe = stage.play(random_policy(rng, 4, 2))
    assert stage.promised(policy, rng.random(3), safe) is stage.play(policy)


def chain(baseline):
    """Two steps in a row, with a baseline of one's own."""
    return dataclasses.replace(two_steps(discount=1.0), baseline=np.array(baseline), baseline_value=1.0)


def test_a_draw_that_equals_the_baseline_is_baseline():
    asked = chain([[1.0, 0.0], [1.0, 0.0]])
    stage = Stage(asked.mdp)
    ledger, policy = Kept(asked, K, stage), stage.grid.policy(np.full((2, 2), 0.5))
    for number, draws in enumerate(([0.2, 0.2], [0.2, 0.7], [0.7, 0.2]), 1):
        play = stage.promised(policy, np.array(draws), ledger.safe)
        ledger.ask(number, play)
        assert ledger.out[number].baseline is (number == 1)
        episode = observed([0, 1], [int(draw > 0.5) for draw in draws], [0.4, 0.4])
        ledger.tell(number, stage.play(policy), episode)
    assert (ledger.baseline_told, ledger.designed_told) == (1, 2)
    assert ledger.gained == pytest.approx(1.6)


def test_a_policy_that_goes_where_a_random_baseline_goes_is_the_baseline_whatever_is_drawn():
    asked = chain([[0.5, 0.5], [1.0, 0.0]])
    stage = Stage(asked.mdp)
    ledger, same = Kept(asked, K, stage), stage.grid.policy(np.array([[0.5, 0.5], [1.0, 0.0]]))
    other = stage.grid.policy(np.array([[0.25, 0.75], [1.0, 0.0]]))
    for draw in (0.1, 0.9):
        draws = np.array([draw, 0.5])
        assert ledger.freeze(ledger.book, stage.promised(same, draws, ledger.safe), False).baseline
        frozen = ledger.freeze(ledger.book, stage.promised(other, draws, ledger.safe), False)
        assert not frozen.baseline  # one path is not what a random baseline does
        assert frozen.proxy == pytest.approx(2 * SCALE**2)


def test_what_is_random_only_where_nothing_goes_is_one_path():
    """State 2 is never entered: a coin there makes no difference."""
    mdp = saver.Mdp.from_edges([(0, 0, 1, 1.0), (0, 1, 1, 1.0)], 3, 2, 2)
    asked = saver.Problem(mdp, np.full((3, 2), 0.5), np.eye(2)[[0, 0, 0]], **GIVEN)
    stage = Stage(mdp)
    policy = stage.grid.policy(np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]))
    ledger = Kept(asked, K, stage)
    assert not policy.sure
    assert stage.play(policy).sure
    assert ledger.freeze(
        ledger.book, stage.promised(policy, np.array([0.9, 0.9]), ledger.safe), False
    ).baseline


# -- by hand -------------------------------------------------------------------------------------------------


def test_discounting_enters_value_noise_and_visits():
    edges = [(0, a, 1 + i, 0.5) for a in (0, 1) for i in (0, 1)]
    mdp = saver.Mdp.from_edges(edges, 3, 2, 2, discount=0.5)
    asked = saver.Problem(mdp, np.full((3, 2), 0.5), np.eye(2)[[0, 0, 0]], **GIVEN)
    stage = Stage(mdp)
    play = stage.play(np.full((3, 2), 0.5))
    assert (play.noise, play.longest) == (1 + 0.25, 1 + 0.5)
    np.testing.assert_allclose(play.weights, [[0.5, 0.5], [0.125, 0.125], [0.125, 0.125]])
    h = np.array([[0.1, 0.3], [0.2, 0.4], [0.5, 0.6]])
    assert stage.widest(play, h) == pytest.approx(0.3 + 0.5 * 0.6)
    assert stage.least(play, h) == pytest.approx(0.1 + 0.5 * 0.2)
    ledger = Kept(asked, K, stage)
    ledger.ask(1, play)
    ledger.tell(1, play, observed([0, 1], [0, 1], np.array([0.6, 0.8])))
    assert ledger.sum_x == pytest.approx(0.6 + 0.5 * 0.8)  # midpoints are all alike at first
    assert ledger.sum_v == pytest.approx(SCALE**2 * 1.25 + (0.5 * 1.5) ** 2)
    assert (ledger.gained, ledger.proxy, ledger.length) == pytest.approx((1.0, SCALE**2 * 1.25, 1.5))
    np.testing.assert_allclose(ledger.realised, [[1, 0], [0, 0.5], [0, 0]])
    assert ledger.floor_value(play) == 0.0
    raised = Kept(two_steps(constraint=saver.SubGaussian(SCALE, 0.2, 1.0)), K)
    two = Stage(two_steps().mdp).play(np.full((2, 2), 0.5))
    assert raised.floor_value(two) == pytest.approx(0.2 * 1.5)


def test_steps_that_cannot_happen_bring_no_noise():
    """Action 1 ends the episode at once."""
    mdp = saver.Mdp.from_edges([(0, 0, 1, 1.0)], 2, 2, 2, discount=0.5)
    stage = Stage(mdp)
    for table, noise, longest, sure in (
        ([[0.0, 1.0], [0.5, 0.5]], 1.0, 1.0, True),
        ([[0.5, 0.5], [0.5, 0.5]], 1.25, 1.5, False),
        ([[1.0, 0.0], [0.0, 1.0]], 1.25, 1.5, True),
    ):
        play = stage.play(np.array(table))
        assert (play.noise, play.longest, play.sure) == (noise, longest, sure)


def test_two_ways_out_of_a_pair_are_chance():
    for chances, sure in (([1.0], True), ([0.5, 0.5], False), ([0.2, 0.3, 0.5], False)):
        edges = [(0, 0, 1 + i, p) for i, p in enumerate(chances)]
        assert Stage(saver.Mdp.from_edges(edges, 4, 1, 2)).deterministic is sure
    assert Stage(saver.Mdp(np.zeros((2, 1, 2)), 1, start=[0.5, 0.5])).deterministic is False


def test_how_often_an_episode_can_be_in_a_state():
    # Three states, each leads to the other two: after five steps from the first it was there in steps 0, 2
    # and 4 at most, in another in steps 1 and 3, or 2 and 4. A state that leads to itself is there always.
    P = (np.ones((3, 3)) - np.eye(3))[:, None] / 2
    np.testing.assert_array_equal(Stage(saver.Mdp(P, 5)).most.ravel(), [3, 2, 2])
    np.testing.assert_array_equal(Stage(saver.Mdp(np.full((2, 1, 2), 0.5), 5)).most.ravel(), [5, 4])
