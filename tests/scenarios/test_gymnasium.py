"""The lake and the taxi are Gymnasium's: our tables against its own."""

import gymnasium
import numpy as np
import pytest

from saver import scenarios
from saver.problem.mdp import GymTable, greedy
from saver.scenarios.lake import table_of as lake_table
from saver.scenarios.taxi import starts, table_of as taxi_table


def rows(table):
    found = GymTable.of(table)
    order = np.lexsort(found.rows.T[[5, 2, 1, 0]])
    return found.states, found.actions, found.rows[order]


@pytest.mark.parametrize("size", [4, 8])
def test_the_lake_is_gymnasiums(size):
    env = gymnasium.make("FrozenLake-v1", map_name=f"{size}x{size}", is_slippery=True).unwrapped
    ours, theirs = rows(lake_table(size)), rows(env.P)
    assert ours[:2] == theirs[:2] == (size * size, 4)
    np.testing.assert_allclose(ours[2], theirs[2], atol=1e-12)
    made = scenarios.lake(size=size)
    np.testing.assert_array_equal(made.problem.mdp.start[:-1], env.initial_state_distrib)


def test_the_taxi_is_gymnasiums():
    env = gymnasium.make("Taxi-v4").unwrapped
    ours, theirs = rows(taxi_table()), rows(env.P)
    assert ours[:2] == theirs[:2] == (500, 6)
    np.testing.assert_array_equal(ours[2], theirs[2])
    np.testing.assert_allclose(starts(), env.initial_state_distrib, atol=1e-15)


def test_the_lake_in_numbers():
    made = scenarios.lake(size=4)
    world, mdp = made.world, made.problem.mdp
    assert (mdp.states, mdp.actions, mdp.horizon) == (17, 4, 50)
    assert world.reward.mean[14, 2] == pytest.approx(1 / 3)  # right of 14 is the goal
    assert world.reward.variance[14, 2] == pytest.approx(0.01 + 2 / 9)
    assert world.constraint.mean[6, 0] == pytest.approx(2 / 3)  # from 6 left: a hole at 5, else 2 or 10
    assert world.constraint.mean[16].tolist() == [1.0] * 4  # over: nothing happens any more
    assert world.reward.mean[16].tolist() == [0.0] * 4
    np.testing.assert_array_equal(mdp.transitions.toarray()[16 * 4], np.eye(17)[16])


def test_the_taxi_in_numbers():
    made = scenarios.taxi()
    mdp = made.problem.mdp
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.terminal) == (501, 6, 200, (500,))
    illegal = made.world.constraint.mean[:500] == 0.0
    assert illegal.sum(axis=0)[:4].tolist() == [0, 0, 0, 0]
    assert illegal[:, 4].sum() == 500 - 4 * 4  # a pick-up is legal where the passenger waits
    assert made.world.reward.mean.max() == 20.0
    assert made.problem.baseline.max() == pytest.approx(0.95 + 0.05 / 6)


def test_optimal_q_and_greedy_by_hand():
    # One state: action 0 earns 1 and goes on, action 1 earns 5 and is done. With discount .9, Q(0) = 10.
    table = GymTable.of({0: {0: [(1.0, 0, 1.0, False)], 1: [(1.0, 0, 5.0, True)]}})
    np.testing.assert_allclose(table.optimal(0.9)[0], [10.0, 5.0], atol=1e-9)
    np.testing.assert_allclose(greedy(np.array([[1.0, 2.0]]), 0.8), [[0.1, 0.9]])
