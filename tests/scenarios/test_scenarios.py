"""Scenarios: the numbers of the paper, other sizes, and the catalogue."""

import numpy as np
import pytest
from worlds import UNKNOWN

import saver
from saver import SCENARIOS, design, scenarios
from saver.errors import InvalidProblem
from saver.problem import value, visits

WORTH = {"bandit": 0.5, "movielens": 1.0, "tree": 4.0, "intractable": 0.5, "lake": 49.6724, "taxi": 13.6235,
         "contexts": 0.8847}  # fmt: skip
ONE = [name for name in SCENARIOS if name != "shop"]  # guardrail


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_asks_what_its_world_answers(name):
    asked = SCENARIOS[name]()
    assert asked.name == name
    mdp = asked.problem.mdp
    assert mdp is asked.world.mdp or (name in UNKNOWN and not mdp.known)
    for rail, mean in zip(asked.problem.rails, asked.means, strict=True):
        assert rail.value == pytest.approx(value(asked.world.mdp, asked.problem.baseline, mean))
        assert rail.promise.floor <= mean.min()
        assert mean.max() <= rail.promise.ceiling


@pytest.mark.parametrize("name", ONE)
def test_a_scenario_with_one_guardrail_states_a_whole_problem(name):
    asked = SCENARIOS[name]()
    assert asked.world.constraint_value(asked.problem.baseline) == pytest.approx(asked.problem.baseline_value)
    assert asked.problem.baseline_value == pytest.approx(WORTH.get(name, 6.8048), abs=1e-4)
    alpha = {"lake": 0.1, "taxi": 0.1, "contexts": 0.15}.get(name, 0.25)
    assert (asked.problem.alpha, asked.problem.delta, asked.problem.reward_scale) == (alpha, 0.05, 1.0)
    assert asked.episodes == {"movielens": 8000, "lake": 1000, "taxi": 1000}.get(name, 5000)
    law, promise = asked.world.constraint, asked.problem.constraint
    if name in UNKNOWN:
        assert isinstance(law, saver.Bernoulli)
        assert promise == saver.Bounded(0.0, 1.0)
    else:
        assert promise == saver.SubGaussian(0.1, 0.0, 1.0)
        assert np.all(law.variance == 0.01)


OTHERS = {
    "bandit below 0 and above 1": lambda: scenarios.bandit(noisy_means=(-2.0, 3.0)),
    "grid of 5": lambda: scenarios.gridworld(size=5, noisy_variance=2.0),
    "rank 4": lambda: scenarios.movielens(rank4=True),
}


@pytest.mark.parametrize("name", [*ONE, *OTHERS])
def test_what_is_promised_about_rewards_is_true(name):
    asked = (SCENARIOS | OTHERS)[name]()
    law, promise = asked.world.reward, asked.problem.reward
    np.testing.assert_array_equal(promise.scale, np.sqrt(law.variance))
    assert promise.scale.shape == law.mean.shape
    assert promise.floor == min(0.0, law.mean.min())
    assert promise.ceiling == max(1.0, law.mean.max())


def test_rewards_that_are_coins_are_promised_as_bounded():
    for asked in (*scenarios.lower_bound_pair(), scenarios.shop()):
        assert asked.problem.reward == saver.Bounded(0.0, 1.0)


def test_bandit_numbers():
    asked = scenarios.bandit()
    mean = asked.world.reward.mean[0]
    np.testing.assert_allclose(mean[:3], [0.5, 0.9, 0.02])
    assert mean[-1] == pytest.approx(0.03)
    assert len(mean) == 12
    np.testing.assert_allclose(asked.problem.target[0], [0.4, 0.4] + [0.02] * 10)
    np.testing.assert_array_equal(asked.world.constraint.mean, asked.world.reward.mean)
    np.testing.assert_array_equal(asked.world.reward.variance[0], [1e-4] * 2 + [40.0] * 10)


def test_tree_numbers():
    asked = scenarios.tree()
    mdp = asked.problem.mdp
    assert (mdp.states, mdp.actions, mdp.horizon) == (15, 2, 4)
    dense = mdp.transitions.toarray().reshape(15, 2, 15)
    assert all(dense[s, a, 2 * s + 1 + a] == 1 for s in range(7) for a in range(2))
    assert dense[7:].sum() == 0
    np.testing.assert_array_equal(asked.world.reward.mean, np.random.default_rng(0).random((15, 2)))
    np.testing.assert_array_equal(asked.world.reward.variance[3], [0.01, 20.0])
    np.testing.assert_allclose(asked.problem.target[9], [0.95, 0.05])


def test_gridworld_numbers():
    asked = scenarios.gridworld()
    mdp = asked.problem.mdp
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.terminal) == (16, 4, 10, (15,))
    dense = mdp.transitions.toarray().reshape(16, 4, 16)
    # From cell 5 right goes to 6 with .9 and to 4, 9, 1 with .1/3 each. In the corner left and up stay.
    np.testing.assert_allclose(dense[5, 1, [6, 4, 9, 1]], [0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3])
    np.testing.assert_allclose(dense[0, 0, [0, 1, 4]], [0.9 + 0.1 / 3, 0.1 / 3, 0.1 / 3])
    np.testing.assert_array_equal(np.argmax(asked.problem.baseline[:4], axis=1), [1, 1, 1, 2])
    np.testing.assert_array_equal(asked.world.reward.mean[15], np.zeros(4))
    np.testing.assert_array_equal(asked.world.constraint.mean[2], [0, 1, 1, 0])
    assert visits(mdp, asked.problem.target)[15].sum() == 0


def test_intractable_numbers_follow_alpha():
    asked = scenarios.intractable(alpha=0.75)
    np.testing.assert_allclose(asked.world.constraint.mean, [[0.5, 1.25, 0.0]])
    assert asked.problem.constraint.ceiling == 1.25


def test_lower_bound_pair_differs_in_one_pair_only():
    first, second = scenarios.lower_bound_pair()
    assert (first.problem.mdp.states, first.problem.mdp.horizon) == (3, 2)
    change = first.world.reward.mean - second.world.reward.mean
    expected = np.zeros((3, 2))
    expected[2, 1] = 0.2
    np.testing.assert_allclose(change, expected)
    np.testing.assert_allclose(first.world.reward.mean, 0.5)
    assert first.problem.baseline_value == first.world.constraint_value(first.problem.baseline)


@pytest.mark.parametrize(
    ("asked", "states", "actions"),
    [
        (scenarios.bandit(actions=50), 1, 50),
        (scenarios.tree(depth=3, actions=3), 13, 3),
        (scenarios.tree(depth=1), 1, 2),
        (scenarios.gridworld(size=7, slip=0.0, horizon=20), 49, 4),
    ],
)
def test_other_sizes(asked, states, actions):
    assert (asked.problem.mdp.states, asked.problem.mdp.actions) == (states, actions)
    assert np.isfinite(
        design.limit(
            asked.problem.mdp, asked.problem.target, asked.world.reward.variance, asked.problem.target
        )
    )


def test_a_deep_tree_goes_through_in_one_piece():
    mdp = scenarios.tree(depth=16).problem.mdp
    assert mdp.states == 65_535
    asked = scenarios.tree(depth=16)
    found = design.tree(mdp, asked.problem.target, asked.world.reward.variance)
    # Depth does not change the recursion: M_d = .95 sqrt(.01 + M^2) + .05 sqrt(20 + M^2).
    M = 0.0
    for _ in range(16):
        M = 0.95 * np.sqrt(0.01 + M**2) + 0.05 * np.sqrt(20 + M**2)
    assert found.spread[0] == pytest.approx(M)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scenarios.tree(depth=0), "depth is 0; it must be at least 1"),
        (lambda: scenarios.tree(actions=1), "actions is 1; it must be at least 2"),
        (lambda: scenarios.tree(quiet_target=1.5), r"quiet_target is 1\.5"),
        (lambda: scenarios.gridworld(size=1), "size is 1; it must be at least 2"),
        (lambda: scenarios.gridworld(slip=1.5), r"slip is 1\.5; it must be in \[0, 1\]"),
        (lambda: scenarios.gridworld(quiet_target=0.7), r"quiet_target is 0\.7"),
        (lambda: scenarios.bandit(actions=2), "actions is 2; it must be at least 3"),
        (lambda: scenarios.bandit(good_target=0.6), r"good_target is 0\.6"),
        (lambda: scenarios.bandit(noisy_variance=-1.0), r"variance\[0, 2\] is -1"),
        (lambda: scenarios.bandit(constraint_variance=-1.0), "constraint_variance is -1"),
        (lambda: scenarios.intractable(alpha=0.0), "alpha is 0"),
        (lambda: scenarios.bandit(good_target="x"), "good_target is 'x'; it must be a number"),
        (lambda: scenarios.bandit(good_means=0.5), r"good_means is 0\.5; it must hold 2 numbers"),
        (lambda: scenarios.bandit(noisy_means=(0.1,)), r"noisy_means is \(0\.1,\); it must hold 2 numbers"),
        (lambda: scenarios.intractable(alpha="x"), "alpha is 'x'; it must be a number"),
        (lambda: scenarios.intractable(means=(0.5, 0.5)), "it must hold 3 numbers"),
        (lambda: scenarios.tree(reward_seed=-1), "reward_seed is -1; it must be at least 0"),
        (lambda: scenarios.tree(depth=45), "makes 35184372088831 states; choose less depth"),
        (lambda: scenarios.gridworld(size=10**6), "size is 1000000; it must be at most"),
        (lambda: scenarios.lower_bound_pair(gap=None), "gap is None; it must be a number"),
        (lambda: scenarios.movielens(most_users=2.5), r"most_users is 2\.5; it must be a whole number"),
        (lambda: scenarios.movielens(actions=20), "the embedded table has 30 movies"),
    ],
)
def test_bad_numbers_are_refused(make, message):
    with pytest.raises(InvalidProblem, match=message):
        make()
