"""The closed-form designs: hand-worked numbers, agreement on trees, and optimality there."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from models import random_graph, random_policy, random_tree

from saver import Mdp, design, scenarios
from saver.errors import InvalidPolicy, InvalidProblem
from saver.problem import visits, weights

SEEDS = st.integers(0, 10_000)


def drawn(seed, *, discount=0.9):
    mdp = random_tree(seed, discount=discount)
    rng = np.random.default_rng(seed + 1)
    shape = (mdp.states, mdp.actions)
    variance = rng.exponential(size=shape) * (rng.random(shape) < 0.8)
    return mdp, random_policy(rng, *shape), variance, rng


def test_two_levels_by_hand():
    # Root: action 0 leads to state 1, action 1 ends. At state 1 the target is even, deviations 1 and 3:
    # M(1) = .5 * 1 + .5 * 3 = 2, b = 1/4, 3/4. At the root pi = .8, .2, variances 5 and 4, discount .5:
    # terms .8 sqrt(5 + .25 * 4) = .8 sqrt 6 and .2 * 2 = .4.
    mdp = Mdp.from_edges([(0, 0, 1, 1.0)], 2, 2, 2, discount=0.5)
    target = np.array([[0.8, 0.2], [0.5, 0.5]])
    found = design.tree(mdp, target, np.array([[5.0, 4.0], [1.0, 9.0]]))
    root = 0.8 * np.sqrt(6) + 0.4
    np.testing.assert_allclose(found.spread, [root, 2.0])
    np.testing.assert_allclose(found.policy, [[1 - 0.4 / root, 0.4 / root], [0.25, 0.75]])


def test_bandit_limits():
    # On-policy: sum pi^2 variance / pi = .8 * 1e-4 + .2 * 40. Optimal: (sum pi sigma)^2.
    asked = scenarios.bandit()
    mdp, target, variance = asked.problem.mdp, asked.problem.target, asked.world.reward.variance
    assert design.limit(mdp, target, variance, target) == pytest.approx(0.8e-4 + 8.0)
    best = design.tree(mdp, target, variance)
    assert design.limit(mdp, target, variance, best.policy) == pytest.approx((0.008 + 0.2 * np.sqrt(40)) ** 2)
    assert round(design.limit(mdp, target, variance, best.policy), 3) == 1.620


def test_tree_and_gridworld_limits():
    asked = scenarios.tree()
    mdp, target, variance = asked.problem.mdp, asked.problem.target, asked.world.reward.variance
    assert round(design.limit(mdp, target, variance, target), 3) == 4.038
    best = design.tree(mdp, target, variance)
    assert round(best.spread[0] ** 2, 4) == 0.8909
    assert design.limit(mdp, target, variance, best.policy) == pytest.approx(best.spread[0] ** 2)

    asked = scenarios.gridworld()
    mdp, target, variance = asked.problem.mdp, asked.problem.target, asked.world.reward.variance
    assert round(design.limit(mdp, target, variance, target), 2) == 17.82
    for time_indexed, expected in ((False, 7.51), (True, 5.25)):
        found = design.dag(mdp, target, variance, time_indexed=time_indexed)
        assert round(design.limit(mdp, target, variance, found.policy), 2) == expected


@given(SEEDS, st.sampled_from([0.6, 1.0]))
def test_on_trees_all_three_agree_and_give_the_stated_limit(seed, discount):
    mdp, target, variance, _ = drawn(seed, discount=discount)
    assert design.is_tree(mdp)
    found = design.tree(mdp, target, variance)
    np.testing.assert_allclose(design.dag(mdp, target, variance).policy, found.policy, atol=1e-12)
    stepwise = design.dag(mdp, target, variance, time_indexed=True)
    for t, states in enumerate(mdp.layers):
        np.testing.assert_allclose(stepwise.policy[t, states], found.policy[states], atol=1e-12)
        np.testing.assert_allclose(stepwise.spread[t, states], found.spread[states], atol=1e-12)
    stated = float(mdp.start @ found.spread**2)
    assert design.limit(mdp, target, variance, found.policy) == pytest.approx(stated, abs=1e-12)


@given(SEEDS)
def test_designs_are_distributions_and_do_not_change_with_the_unit_of_reward(seed):
    mdp, target, variance, _ = drawn(seed)
    graph = random_graph(seed)
    rng = np.random.default_rng(seed)
    cases = [(mdp, target, variance), (graph, random_policy(rng, 4, 2), rng.random((4, 2)))]
    for model, pi, noise in cases:
        for make in (design.dag, lambda *x: design.dag(*x, time_indexed=True)):
            found = make(model, pi, noise)
            assert np.all(found.policy >= 0)
            np.testing.assert_allclose(found.policy.sum(axis=-1), 1.0)
            np.testing.assert_allclose(make(model, pi, noise * 1e6).policy, found.policy, atol=1e-9)


@given(SEEDS)
def test_on_trees_no_behaviour_found_by_random_search_is_better(seed):
    mdp, target, variance, rng = drawn(seed)
    found = design.tree(mdp, target, variance)
    best = design.limit(mdp, target, variance, found.policy)
    for step in (1.0, 0.1, 0.01):
        for _ in range(20):
            other = (1 - step) * found.policy + step * random_policy(rng, mdp.states, mdp.actions)
            assert design.limit(mdp, target, variance, other) >= best * (1 - 1e-12)


def test_time_indexed_targets():
    mdp = random_tree(4)
    rng = np.random.default_rng(4)
    target = random_policy(rng, mdp.horizon, mdp.states, mdp.actions)
    variance = rng.random((mdp.states, mdp.actions))
    found = design.tree(mdp, target, variance)
    stepwise = design.dag(mdp, target, variance, time_indexed=True)
    for t, states in enumerate(mdp.layers):
        np.testing.assert_allclose(stepwise.policy[t, states], found.policy[states])
    with pytest.raises(InvalidPolicy, match=r"call dag.*time_indexed=True"):
        design.dag(mdp, target, variance)


def test_start_distributions_and_terminal_states():
    # Two roots, .25 and .75, and no moves: the limit is sum start(s) M(s)^2 with M = 1 and 2.
    mdp = Mdp(np.zeros((3, 1, 3)), 4, start=[0.25, 0.75, 0.0], terminal=(2,))
    variance = np.array([[1.0], [4.0], [100.0]])
    found = design.tree(mdp, np.ones((3, 1)), variance)
    assert design.limit(mdp, np.ones((3, 1)), variance, found.policy) == pytest.approx(0.25 + 3.0)
    assert float(mdp.start @ found.spread**2) == pytest.approx(3.25)
    assert found.spread[2] == 0.0


def test_where_nothing_varies_the_design_is_the_target():
    mdp = random_tree(2)
    target = random_policy(np.random.default_rng(2), mdp.states, mdp.actions)
    quiet = np.zeros((mdp.states, mdp.actions))
    np.testing.assert_array_equal(design.tree(mdp, target, quiet).policy, target)
    np.testing.assert_array_equal(design.dag(mdp, target, quiet).policy, target)
    assert design.limit(mdp, target, quiet, target) == 0.0


def test_limit_is_infinite_for_a_behaviour_that_never_looks():
    mdp = Mdp(np.zeros((1, 2, 1)), 1)
    assert design.limit(mdp, [[0.5, 0.5]], [[1.0, 1.0]], [[1.0, 0.0]]) == np.inf
    assert design.limit(mdp, [[0.5, 0.5]], [[1.0, 0.0]], [[1.0, 0.0]]) == 0.25
    assert design.limit(mdp, [[1.0, 0.0]], [[1.0, 1.0]], [[1.0, 0.0]]) == 1.0


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (
            [(0, 0, 1, 1.0), (0, 1, 1, 1.0)],
            r"state 1 has two parents, \(state 0, action 0\) and \(state 0, ac",
        ),
        (
            [(0, 0, 1, 0.5), (0, 0, 2, 0.5), (1, 0, 2, 1.0)],
            r"state 2 has two parents, .*state 0.* and .*state 1",
        ),
        (
            [(0, 0, 1, 1.0), (1, 1, 0, 1.0)],
            r"state 0 has two parents, the start of the episode and .*state 1",
        ),
        ([(0, 0, 0, 1.0)], "state 0 has two parents, the start"),
    ],
)
def test_a_model_that_is_no_tree_is_refused_with_the_two_parents(edges, message):
    mdp = Mdp.from_edges(edges, 3, 2, 3)
    assert not design.is_tree(mdp)
    with pytest.raises(InvalidProblem, match=message):
        design.tree(mdp, np.full((3, 2), 0.5), np.ones((3, 2)))


def test_moves_after_the_last_step_do_not_make_two_parents():
    mdp = Mdp(np.ones((1, 2, 1)), 1)
    found = design.tree(mdp, [[0.5, 0.5]], [[1.0, 9.0]])
    np.testing.assert_allclose(found.policy, [[0.25, 0.75]])


def test_refuses_negative_variances_and_leaves_its_arguments_alone():
    mdp = Mdp(np.zeros((1, 2, 1)), 1)
    target, variance = np.array([[0.5, 0.5]]), np.array([[1.0, -1.0]])
    for make in (design.tree, design.dag):
        with pytest.raises(InvalidProblem, match=r"variance\[0, 1\] is -1; it must be at least 0"):
            make(mdp, target, variance)
    target.setflags(write=False)
    noise = np.array([[1.0, 4.0]])
    noise.setflags(write=False)
    design.tree(mdp, target, noise)
    np.testing.assert_array_equal(noise, [[1.0, 4.0]])


def test_limit_is_the_weights_squared_over_the_visits():
    mdp = random_graph(11)
    rng = np.random.default_rng(0)
    target, behaviour = random_policy(rng, 4, 2), random_policy(rng, 4, 2)
    variance = rng.random((4, 2))
    c, d = weights(mdp, target), visits(mdp, behaviour)
    seen = d > 0
    assert design.limit(mdp, target, variance, behaviour) == pytest.approx(
        (c**2 * variance)[seen] @ (1 / d[seen])
    )
