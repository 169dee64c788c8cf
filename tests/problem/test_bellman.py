"""Value, occupancy and weights against enumeration and Monte Carlo."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from models import paths, random_graph, random_policy, roll

from saver import Gaussian, Mdp, World
from saver.errors import InvalidPolicy, InvalidProblem
from saver.problem import (
    minimising,
    occupancy,
    return_variance,
    value,
    values,
    visits,
    weights,
)

SEEDS = st.integers(0, 10_000)


def returns_by_path(mdp, policy, mean):
    return [
        (p, sum(mdp.discount**t * mean[pair] for t, pair in enumerate(path)), path)
        for p, path in paths(mdp, policy)
    ]


@given(SEEDS, st.sampled_from([0.7, 1.0]), st.booleans(), st.booleans())
def test_everything_agrees_with_an_enumeration_of_trajectories(seed, discount, by_step, terminal):
    mdp = random_graph(seed, discount=discount, terminal=terminal)
    rng = np.random.default_rng(seed + 1)
    shape = (mdp.states, mdp.actions)
    policy = random_policy(rng, *((mdp.horizon, *shape) if by_step else shape))
    mean, variance = rng.normal(size=shape), rng.random(shape)

    x = np.zeros((mdp.horizon, *shape))
    for p, path in paths(mdp, policy):
        for t, pair in enumerate(path):
            x[(t, *pair)] += p
    gamma = discount ** np.arange(mdp.horizon)[:, None, None]
    np.testing.assert_allclose(occupancy(mdp, policy), x, atol=1e-12)
    np.testing.assert_allclose(visits(mdp, policy), x.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(weights(mdp, policy), (gamma * x).sum(axis=0), atol=1e-12)

    listed = returns_by_path(mdp, policy, mean)
    expected = sum(p * g for p, g, _ in listed)
    assert sum(p for p, _, _ in listed) == pytest.approx(1.0)
    assert value(mdp, policy, mean) == pytest.approx(expected, abs=1e-12)
    assert mdp.start @ values(mdp, policy, mean)[0] == pytest.approx(expected, abs=1e-12)

    noise = sum(
        p * sum(discount ** (2 * t) * variance[pair] for t, pair in enumerate(path)) for p, _, path in listed
    )
    spread = sum(p * (g - expected) ** 2 for p, g, _ in listed)
    assert return_variance(mdp, policy, mean, variance) == pytest.approx(noise + spread, abs=1e-12)


@settings(max_examples=10)
@given(SEEDS)
def test_minimising_is_below_every_deterministic_policy(seed):
    mdp = random_graph(seed, states=4, horizon=2)
    mean = np.random.default_rng(seed).normal(size=(4, 2))
    policy, lowest = minimising(mdp, mean)
    assert value(mdp, policy, mean) == pytest.approx(lowest, abs=1e-12)
    everywhere = itertools.product(range(2), repeat=8)
    table = (value(mdp, np.eye(2)[np.reshape(c, (2, 4))], mean) for c in everywhere)
    assert min(table) == pytest.approx(lowest, abs=1e-12)


def test_minimising_breaks_ties_by_the_lowest_index_and_leaves_out_missing_actions():
    mdp = Mdp(np.zeros((1, 3, 1)), 1, available=np.array([[False, True, True]]))
    policy, lowest = minimising(mdp, np.array([[-5.0, 2.0, 2.0]]))
    np.testing.assert_array_equal(policy, [[[0.0, 1.0, 0.0]]])
    assert lowest == 2.0


def test_two_steps_by_hand():
    # From state 0, action 1 reaches state 1 with .5 and ends with .5 (state 2 is terminal);
    # action 0 ends at once. In state 1 the policy takes action 1 with .25.
    P = np.zeros((3, 2, 3))
    P[0, 1, 1:] = 0.5
    mdp = Mdp(P, 2, discount=0.5, terminal=(2,))
    pi = np.array([[0.2, 0.8], [0.75, 0.25], [1.0, 0.0]])
    mean = np.array([[1.0, 2.0], [0.0, 8.0], [99.0, 99.0]])
    np.testing.assert_allclose(weights(mdp, pi), [[0.2, 0.8], [0.5 * 0.3, 0.5 * 0.1], [0, 0]])
    np.testing.assert_allclose(visits(mdp, pi), [[0.2, 0.8], [0.3, 0.1], [0, 0]])
    assert value(mdp, pi, mean) == pytest.approx(0.2 + 1.6 + 0.4)
    # Returns 1 w.p. .2; 2 w.p. .4 (ends); 2 w.p. .3; 2 + .5 * 8 = 6 w.p. .1. Mean 2.2, mean square 6.6.
    assert return_variance(mdp, pi, mean, np.zeros((3, 2))) == pytest.approx(6.6 - 2.2**2)


def test_monte_carlo_agrees_on_a_larger_model():
    # Five standard errors each: false alarms have a probability below 1e-5.
    mdp = random_graph(3, states=12, actions=3, horizon=6, density=0.3)
    rng = np.random.default_rng(7)
    policy = random_policy(rng, 12, 3)
    world = World(mdp, Gaussian(rng.normal(size=(12, 3)), 0.5), Gaussian(np.zeros((12, 3)), 1.0))
    n, count, returns = 4000, np.zeros((12, 3)), []
    for _ in range(n):
        states, actions, rewards, _ = roll(mdp, policy, world, rng)
        np.add.at(count, (states, actions), 1)
        returns.append(np.dot(mdp.discount ** np.arange(len(rewards)), rewards))
    spread = np.sqrt(return_variance(mdp, policy, world.reward.mean, world.reward.variance))
    assert abs(np.mean(returns) - world.value(policy)) < 5 * spread / np.sqrt(n)
    assert abs(np.std(returns) / spread - 1) < 5 / np.sqrt(n)
    assert np.all(np.abs(count / n - visits(mdp, policy)) < 5 * np.sqrt(mdp.horizon / n))


def test_refuses_policies_and_means_of_another_model():
    mdp = random_graph(0)
    for function in (occupancy, visits, weights, lambda m, p: value(m, p, p)):
        with pytest.raises(InvalidProblem, match=r"mdp is NoneType; it must be a saver\.Mdp"):
            function(None, np.full((4, 2), 0.5))
    with pytest.raises(InvalidPolicy, match=r"policy\[0\] sums to 2"):
        value(mdp, np.ones((4, 2)), np.zeros((4, 2)))
    with pytest.raises(InvalidPolicy, match=r"policy has shape \(3, 2\); it must be \(4, 2\)"):
        occupancy(mdp, np.full((3, 2), 0.5))
    with pytest.raises(InvalidProblem, match=r"mean has shape \(2,\); it must be \(4, 2\)"):
        value(mdp, np.full((4, 2), 0.5), [1.0, 2.0])
    with pytest.raises(InvalidProblem, match=r"variance\[1, 0\] is -1"):
        return_variance(mdp, np.full((4, 2), 0.5), np.zeros((4, 2)), [[0, 0], [-1, 0], [0, 0], [0, 0]])
