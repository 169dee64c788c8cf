"""Policies as trials keep them: where no behaviour can be, rows stand for the same always."""

import numpy as np
import pytest

from saver import Mdp
from saver.play import Stage
from saver.play.policy import REMEMBERED

# State 0 leads to 1 or 2 by action 0 or 1 and only in the first of three steps; 3 is never met. State 2 has
# action 1 only.
AVAILABLE = np.array([[1, 1], [1, 1], [0, 1], [1, 1]], dtype=bool)
MDP = Mdp.from_edges([(0, 0, 1, 1.0), (0, 1, 2, 1.0), (1, 0, 1, 1.0)], 4, 2, 3, available=AVAILABLE)
GRID = Stage(MDP).grid
FIRST = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])


def test_a_table_comes_back_where_something_can_be():
    by_step = np.tile([[0.3, 0.7], [0.6, 0.4], [0.0, 1.0], [0.2, 0.8]], (3, 1, 1))
    found = GRID.policy(by_step).table()
    assert found.shape == (3, 4, 2)
    met = {(0, 0), (1, 1), (1, 2), (2, 1)}
    for t in range(3):
        for s in range(4):
            wanted = by_step[t, s] if (t, s) in met else MDP.uniform[s]
            np.testing.assert_array_equal(found[t, s], wanted)
            np.testing.assert_array_equal(GRID.policy(by_step).row(t, s), wanted)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 0.0
    np.testing.assert_array_equal(GRID.policy(by_step[0]).table(), by_step[0])


def test_a_policy_of_actions_comes_back_as_a_table():
    actions = GRID.choices(True, [1, 0, 1, 0])
    found = actions.table()
    assert found.shape == (3, 4, 2)
    np.testing.assert_array_equal(found[0, 0], [0.0, 1.0])
    np.testing.assert_array_equal(found[1, 0], [1.0, 0.0])  # no behaviour can be there: the first available
    np.testing.assert_array_equal(found[2, 2], [0.0, 1.0])
    np.testing.assert_array_equal(actions.row(1, 0), [1.0, 0.0])
    np.testing.assert_array_equal(GRID.choices(False, [0, 0, 1, 0]).table(), FIRST)
    with pytest.raises(ValueError, match="read-only"):
        actions.rows[0] = 0


def test_nothing_is_left_to_chance():
    assert GRID.choices(False, [0, 0, 1, 0]).sure
    assert GRID.policy(FIRST).sure
    assert not GRID.policy(np.where(AVAILABLE, 0.5, 1.0) * AVAILABLE).sure


@pytest.mark.parametrize(("actions", "kind"), [(256, np.uint8), (257, np.uint16)])
def test_an_action_is_a_small_integer(actions, kind):
    grid = Stage(Mdp(np.zeros((1, actions, 1)), 1)).grid
    found = grid.choices(False, [actions - 1])
    assert found.rows.dtype == kind
    assert found.row(0, 0)[-1] == 1.0


def test_equal_actions_are_one_policy_and_only_the_last_are_kept():
    first = GRID.choices(True, [1, 0, 1, 0])
    assert GRID.choices(True, np.array([1, 0, 1, 0])) is first
    assert GRID.choices(False, [1, 0, 1, 0]) is not first  # of states, not of nodes
    for k in range(REMEMBERED):
        GRID.choices(False, [k % 2, k // 2 % 2, k // 4 % 2, k // 8 % 2 + 2 * (k // 16)])
    assert GRID.choices(True, [1, 0, 1, 0]) is not first
    assert GRID.choices(True, [1, 0, 1, 0]).key == first.key


@pytest.mark.parametrize(
    ("by_step", "rows", "states", "actions", "chosen"),
    [
        (True, [1, 0, 1, 0], [0, 2], [1, 1], True),  # nodes (0, 0), (1, 1), (1, 2), (2, 1)
        (True, [1, 0, 1, 0], [0, 2], [1, 0], False),
        (True, [1, 0, 1, 0], [0, 0], [1, 0], False),  # no behaviour can be in state 0 at step 1
        (False, [0, 1, 1, 0], [0, 1, 1], [0, 1, 1], True),
        (False, [0, 1, 1, 0], [0, 1, 1], [0, 1, 0], False),
    ],
)
def test_whether_actions_are_those_of_a_policy(by_step, rows, states, actions, chosen):
    policy = GRID.choices(by_step, rows)
    assert policy.chooses(np.array(states), np.array(actions)) is chosen
    likely = [policy.chance(t, s, a) for t, (s, a) in enumerate(zip(states, actions, strict=True))]
    assert chosen in (all(likely), False)  # where it says no, each is looked at
