"""The model: what it accepts, what it refuses and how it says so."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from models import random_graph, random_maze
from scipy import sparse

from saver import END, Episode, Mdp
from saver.errors import InvalidData, InvalidProblem
from saver.problem import weights
from saver.problem.moving import earned

P = np.zeros((2, 2, 2))
P[0, 0, 1] = 1.0


def broken(index, number):
    copy = P.copy()
    copy[index] = number
    return copy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mdp(broken((0, 1, 1), 0.3), 2), r"action 1 in state 0 sum to 0\.3; they must sum to 1, or"),
        (lambda: Mdp(broken((0, 1, 1), -1.0), 2), r"transitions\[0, 1, 1\] is -1; it must be at least 0"),
        (lambda: Mdp(broken((1, 1, 0), np.nan), 2), r"transitions\[1, 1, 0\] is nan"),
        (lambda: Mdp(P[0], 2), r"transitions has shape \(2, 2\); it must be \(states, actions, states\)"),
        (lambda: Mdp(np.zeros((0, 2, 0)), 2), "none of them 0"),
        (lambda: Mdp("model", 2), "transitions must be an array of numbers"),
        (lambda: Mdp(sparse.csr_array((3, 2)), 2), r"it must be \(states \* actions, states\)"),
        (
            lambda: Mdp(sparse.csr_array(-P.reshape(4, 2)), 2),
            "action 0 in state 0 to state 1 is -1; it must be",
        ),
        (lambda: Mdp(P, 0), "horizon is 0; it must be at least 1"),
        (lambda: Mdp(P, 1.5), r"horizon is 1\.5; it must be a whole number"),
        (lambda: Mdp(P, True), "horizon is True; it must be a whole number"),
        (lambda: Mdp(P, 2, discount=0.0), r"discount is 0; it must be in \(0, 1\]"),
        (lambda: Mdp(P, 2, discount=np.inf), "discount is inf; it must be finite"),
        (lambda: Mdp(P, 2, discount="most"), "discount is 'most'; it must be a number"),
        (lambda: Mdp(P, 2, start=2), "start is 2; it must be a state from 0 to 1"),
        (lambda: Mdp(P, 2, start=[0.5, 0.6]), r"start sums to 1\.1; probabilities must sum to 1"),
        (lambda: Mdp(P, 2, start=[1.0]), r"start has shape \(1,\); it must be \(2,\)"),
        (lambda: Mdp(P, 2, terminal=(5,)), "terminal holds 5; states are from 0 to 1"),
        (lambda: Mdp(P, 2, terminal=[True]), r"as booleans it must be \(2,\)"),
        (lambda: Mdp(P, 2, terminal=(0,)), "state 0 is terminal but episodes start in it"),
        (lambda: Mdp(P, 2, available=[[1, 1], [1, 1]]), "it must be booleans"),
        (lambda: Mdp(P, 2, available=P[0] < 0), r"action 0 in state 0 is marked as missing but has trans"),
        (lambda: Mdp(P, 2, available=np.array([[1, 1], [0, 0]]) > 0), "state 1 has no available action"),
        (lambda: Mdp(P, 2, state_names=["only"]), "state_names has 1 entries; it must have 2"),
        (lambda: Mdp.from_edges([(0, 0, 2, 1.0)], 2, 2, 2), r"edge 0 .* has next_state 2; .* from 0 to 1"),
        (lambda: Mdp.from_edges([(0, 3, 1, 1.0)], 2, 2, 2), "has action 3"),
        (lambda: Mdp.from_edges([(0.5, 0, 1, 1.0)], 2, 2, 2), r"has state 0\.5; it must be a whole number"),
        (lambda: Mdp.from_edges([(0, 0, 1, -1.0)], 2, 2, 2), "has probability -1; it must be at least 0"),
        (lambda: Mdp.from_edges([(0, 0, 1)], 2, 2, 2), "each edge must be .state, action, next_state, prob"),
        (lambda: Mdp.from_edges([(0, 0, 1, 0.5)], 2, 2, 2), r"action 0 in state 0 sum to 0\.5"),
        (lambda: Mdp.from_edges([], 0, 2, 2), "states is 0; it must be at least 1"),
        (lambda: Mdp.from_edges(None, 2, 2, 2), "edges is None; it must hold"),
        (lambda: Mdp.from_edges([], 10**8, 100, 2), r"more than 10\^9 pairs"),
        (lambda: Mdp(P, 10**30), "horizon is 1000000000000000000000000000000; it must be at most"),
        (lambda: Mdp(P * 1j, 2), "transitions must be an array of numbers: its entries are complex"),
        (lambda: Mdp(sparse.coo_array(P), 2), r"shape \(2, 2, 2\); sparse it must be"),
        (lambda: Mdp(P, 2, start=[[1], [1, 2]]), "start must be an array of numbers"),
        (lambda: Mdp(P, 2, terminal=[[1], [1, 2]]), "terminal is .*; it must be a sequence of states"),
        (lambda: Mdp(P, 2, available=[[True], [True, True]]), "available is ragged"),
        (lambda: Mdp(P, 2, state_names={"a", "b"}), "it must be a sequence of 2 strings"),
        (lambda: Mdp(P, 2, discount=True), "discount is True; it must be a number"),
        (lambda: Mdp(P, 2, discount=1 + 1e-9), r"discount is 1\.000000001; it must be in"),
        (
            lambda: Mdp(sparse.csr_array((10**6, 10**6)), 1, start=np.full(10**6, 0.991e-6)),
            "start sums to 0.991",
        ),
    ],
)
def test_bad_input_is_named_with_its_place_and_remedy(make, message):
    with pytest.raises(InvalidProblem, match=message):
        make()


def test_dense_sparse_and_edges_are_the_same_model_and_callers_arrays_stay_theirs():
    dense = P.copy()
    dense.setflags(write=False)
    rows = sparse.csr_array(P.reshape(4, 2))
    edges = [(0, 0, 1, 0.25), (0, 0, 1, 0.75)]
    models = [
        Mdp(dense, 2),
        Mdp(rows, 2),
        Mdp.from_edges(edges, 2, 2, 2),
        Mdp.from_edges(np.array(edges), 2, 2, 2),
    ]
    for mdp in models:
        np.testing.assert_array_equal(mdp.transitions.toarray(), P.reshape(4, 2))
        assert (mdp.states, mdp.actions, mdp.horizon) == (2, 2, 2)
    rows.data[0] = 0.5
    assert models[1].transitions.data[0] == 1.0
    start = np.array([0.5, 0.5])
    mdp = Mdp(P, 2, start=start)
    start[0] = 9.0
    np.testing.assert_array_equal(mdp.start, [0.5, 0.5])
    with pytest.raises(ValueError, match="read-only"):
        mdp.start[0] = 1.0


def test_row_sums_may_be_off_by_rounding():
    third = np.full((1, 1, 1), 1 - 5e-9)
    assert Mdp(third, 2).transitions.data[0] == 1.0  # normalised: over many steps it would add up
    assert third[0, 0, 0] == 1 - 5e-9
    with pytest.raises(InvalidProblem, match="sum to"):
        Mdp(np.full((1, 1, 1), 1 - 5e-8), 2)


def test_replace_keeps_what_it_does_not_change():
    mdp = random_graph(1)
    longer = dataclasses.replace(mdp, horizon=7)
    assert (longer.horizon, longer.discount, longer.terminal) == (7, mdp.discount, mdp.terminal)
    np.testing.assert_array_equal(longer.transitions.toarray(), mdp.transitions.toarray())
    np.testing.assert_array_equal(longer.start, mdp.start)
    assert len(longer.layers) >= len(mdp.layers)


def test_layers_are_the_states_that_can_be_met():
    # 0 -> 1 or 2, 1 -> 3 (terminal), 2 ends; 4 is not reachable; the missing action would reach it.
    edges = [(0, 0, 1, 1.0), (0, 1, 2, 1.0), (1, 0, 3, 1.0), (1, 1, 3, 1.0), (4, 0, 0, 1.0)]
    mdp = Mdp.from_edges(edges, 5, 2, 9, terminal=(3,))
    assert [layer.tolist() for layer in mdp.layers] == [[0], [1, 2]]
    assert mdp.reachable.tolist() == [True, True, True, False, False]
    assert mdp.flow.nnz == 3


def test_large_models_keep_memory_proportional_to_their_edges():
    n = 200_000
    chain = np.column_stack([np.arange(n - 1), np.zeros(n - 1), np.arange(1, n), np.ones(n - 1)])
    mdp = Mdp.from_edges(chain, n, 1, 3)
    assert mdp.transitions.nnz == n - 1
    assert weights(mdp, np.ones((n, 1))).sum() == 3.0


@pytest.mark.parametrize(
    ("states", "actions", "message"),
    [
        ([1], [0], "starts in state 1, which has probability 0"),
        ([0, 0], [0, 0], "action 0 in state 0 at step 0 cannot lead to state 0"),
        ([0], [0], "stops after step 0, but action 0 in state 0 at step 0 always goes on"),
        ([0, 1], [1, 0], "action 1 in state 0 at step 0 cannot lead to state 1"),
        ([0, 1], [0, 1], "action 1 in state 1 at step 1 is missing"),
        ([0, 1], [0, 3], r"actions\[1\] is 3; it must be from 0 to 1"),
        ([0, 1, 1], [0, 0, 0], "has 3 steps; it must have 1 to 2"),
        ([], [], "has 0 steps"),
        ([0.5], [0], "states must be a sequence of whole numbers"),
        ([0, 1], [0], r"actions has shape \(1,\) but states has \(2,\)"),
    ],
)
def test_impossible_trajectories_are_refused(states, actions, message):
    mdp = Mdp(P, 2, available=np.array([[True, True], [True, False]]))
    with pytest.raises(InvalidData, match=message):
        Episode(states, actions, np.zeros(len(states))).check(mdp)


@pytest.mark.parametrize(
    ("horizon", "final_state", "message"),
    [
        (2, 0, "final_state is 0, but action 0 in state 1 at step 1 cannot lead there"),
        (2, END, "final_state says that the episode ended, but action 0 in state 1 at step 1 alw"),
        (3, 1, "stops after step 1, but action 0 in state 1 at step 1 always goes on"),
        (2, 1, None),
        (2, None, None),
    ],
)
def test_final_states_fit_the_model(horizon, final_state, message):
    told = Episode([0, 1], [0, 0], [0.0, 0.0], final_state=final_state)
    circle = Mdp.from_edges([(0, 0, 1, 1.0), (1, 0, 1, 1.0)], 2, 1, horizon)
    if message is None:
        assert told.check(circle) is told
        return
    with pytest.raises(InvalidData, match=message):
        told.check(circle)


def test_an_episode_is_a_frozen_copy_that_unpacks():
    rewards = np.array([1.0, 2.0])
    told = Episode([0, 1], [0, 0], rewards, [0.5, 0.5])
    rewards[:] = 9.0
    states, actions, kept, constraints = told
    assert (states.tolist(), actions.tolist(), kept.tolist()) == ([0, 1], [0, 0], [1.0, 2.0])
    assert constraints.tolist() == [0.5, 0.5]
    assert len(told) == 2
    for column in told:
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
    with pytest.raises(InvalidData, match=r"rewards\[1\] is nan"):
        Episode([0, 1], [0, 0], [0.0, np.nan])
    with pytest.raises(InvalidData, match=r"propensities has shape \(1,\) but states has \(2,\)"):
        Episode([0, 1], [0, 0], [0.0, 0.0], propensities=[1.0])


def test_names_appear_in_messages():
    with pytest.raises(InvalidProblem, match=r"action 1 \(go\) in state 0 \(home\) sum to 0\.3"):
        Mdp(broken((0, 1, 1), 0.3), 2, state_names=["home", "away"], action_names=["stay", "go"])


def test_a_terminal_state_in_a_trajectory_is_called_that():
    with pytest.raises(InvalidData, match=r"state 1 at step 1 is terminal: .* leave it out"):
        Episode([0, 1], [0, 0], [0.0, 0.0]).check(Mdp(P, 3, terminal=(1,)))


def test_copies_and_pickles_stay_read_only():
    mdp = random_graph(1)
    for twin in (copy.deepcopy(mdp), pickle.loads(pickle.dumps(mdp))):
        np.testing.assert_array_equal(twin.start, mdp.start)
        assert not twin.start.flags.writeable
        assert twin.horizon == mdp.horizon


def can_happen(mdp, states, actions):
    """Whether a whole episode can have happened, by what the attributes of a model mean."""
    P = np.asarray(mdp.transitions.todense()).reshape(mdp.states, mdp.actions, mdp.states)
    if len(states) > mdp.horizon or min(states) < 0 or max(states) >= mdp.states or not mdp.start[states[0]]:
        return False
    rows = P[states, actions]
    moves = [row[to] > 0 and to not in mdp.terminal for row, to in zip(rows, states[1:], strict=False)]
    may_end = len(states) == mdp.horizon or not rows[-1].any() or rows[-1][list(mdp.terminal)].any()
    return bool(mdp.available[states, actions].all() and all(moves) and may_end)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_surely_possible_is_what_passes_step_by_step(seed):
    mdp = random_graph(seed) if seed % 2 else random_maze(seed)
    rng, verdicts = np.random.default_rng(seed), []
    for _ in range(300):
        steps = int(rng.integers(1, mdp.horizon + 2))
        states = rng.integers(-1 if steps == 1 else 0, mdp.states + (steps == 1), steps)
        actions = rng.integers(0, mdp.actions, steps)
        if rng.random() < 0.7:  # one that follows the moves, as far as it can
            states[0] = int(np.argmax(mdp.start))
            for t in range(1, steps):
                onward = mdp.successors(int(states[t - 1]), int(actions[t - 1]))
                states[t] = rng.choice(onward) if len(onward) else states[t]
        try:
            Episode(states, actions, np.zeros(steps), final_state=None)
            inside = np.all((states >= 0) & (states < mdp.states)) and steps <= mdp.horizon
            if not inside:
                raise InvalidData("outside")
            mdp.check_path(states, actions)
            passes = True
        except InvalidData:
            passes = False
        assert can_happen(mdp, states, actions) == passes, (states, actions)
        verdicts.append(passes)
    assert 10 < sum(verdicts) < 290  # both happen


@pytest.mark.parametrize("seed", range(6))
def test_layers_by_following_all_moves(seed):
    mdp = random_graph(seed, horizon=7, density=0.3)
    P = np.asarray(mdp.flow.todense()).reshape(mdp.states, mdp.actions, mdp.states)
    here, found = mdp.start > 0, []
    while here.any() and len(found) < mdp.horizon:
        found.append(np.flatnonzero(here).tolist())
        here = np.any(P[here] * mdp.available[here][:, :, None] > 0, axis=(0, 1))
    assert [layer.tolist() for layer in mdp.layers] == found


@pytest.mark.parametrize("seed", range(6))
def test_a_policy_followed_from_the_step_that_changed_earns_the_same_to_the_bit(seed):
    mdp, rng = random_graph(seed, states=6, actions=3, horizon=8, terminal=False), np.random.default_rng(seed)
    S, A, L = mdp.states, mdp.actions, mdp.horizon
    parts = mdp.flow.indptr.astype(np.int64), mdp.flow.indices.astype(np.int64), mdp.flow.data.copy()
    gains, factors, start = rng.random((2, S * A)), mdp.discount ** np.arange(L), np.array(mdp.start)
    slot, choice = np.arange(L * S).reshape(L, S), rng.integers(0, A, L * S)
    table = np.asarray(mdp.flow.todense())

    def follow(since, mass, sums):
        earned(*parts, start, choice, slot, True, factors, gains, since, mass, sums)
        return sums[-1].copy()

    room = np.zeros((L + 1, S)), np.zeros((L + 1, 2))
    follow(0, *room)
    for since in (0, 3, L - 1, 5, 1):
        choice[since * S :] = rng.integers(0, A, (L - since) * S)
        fresh = np.zeros((L + 1, S)), np.zeros((L + 1, 2))
        whole = follow(0, *fresh)
        assert np.array_equal(follow(since, *room), whole)
        assert np.array_equal(room[0], fresh[0])
    by_hand = np.zeros(2)
    here = start
    for t in range(L):
        pairs = np.arange(S) * A + choice[slot[t]]
        by_hand += factors[t] * gains[:, pairs] @ here
        here = table[pairs].T @ here
    assert np.allclose(whole, by_hand, rtol=1e-12)


def test_long_horizons_share_their_layers():
    mdp = Mdp(np.ones((1, 2, 1)), 1_000_000)
    assert len(mdp.layers) == 1_000_000
    assert mdp.layers[0] is mdp.layers[-1]
