"""Gymnasium's FrozenLake: a slippery lake with holes, crossed on foot.

A move goes where it should or to either side, a third each. Reaching the goal or a hole ends the walk; what
is left of the episode is spent in one added state, so that all episodes are equally long.
"""

from __future__ import annotations

import numpy as np

from saver.errors import InvalidProblem
from saver.problem import Gaussian, Scenario
from saver.problem.checks import between
from saver.problem.mdp import GymTable, Moves, greedy
from saver.scenarios.assembly import Stakes, scenario

ACTIONS = ("left", "down", "right", "up")
STEPS = np.array([[0, -1], [1, 0], [0, 1], [-1, 0]])
MAPS = {
    4: ("SFFF", "FHFH", "FFFH", "HFFG"),
    8: ("SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"),
}
HORIZON = {4: 50, 8: 100}
DISCOUNT = 0.99  # of the reward for which Q is optimal


def lake(
    *,
    size: int = 4,
    softness: float = 0.05,
    baseline_share: float = 0.95,
    constraint_variance: float = 0.01,
    alpha: float = 0.1,
    delta: float = 0.05,
    episodes: int = 1000,
) -> Scenario:
    """Gymnasium's FrozenLake, 4x4 or 8x8: reach the goal, and guard against falling into a hole.

    The target is softmax(Q / softness), Q being optimal for the .99-discounted reward; the baseline is greedy
    in it with `baseline_share` and else uniform. A reward is 1 for the goal, with variance .01 more than that
    of the coin that decides it.
    """
    from scipy.special import softmax

    if size not in MAPS:
        raise InvalidProblem(f"size is {size!r}; it must be 4 or 8")
    between("softness", softness, 0.0, np.inf, closed=(False, False))
    between("baseline_share", baseline_share, 0.0, 1.0, closed=(True, True))
    table = GymTable.of(table_of(size))
    letters = "".join(MAPS[size])
    start = np.array([letter == "S" for letter in letters], dtype=float)
    mdp = table.model(HORIZON[size], start, lasts=True, action_names=ACTIONS)
    done, reward, to = table.rows[:, 5], table.rows[:, 4], table.rows[:, 2].astype(int)
    mean = table.mean(reward)
    fell = done * np.array([letter == "H" for letter in letters])[to] * (table.rows[:, 0] != to)
    Q, goal = table.optimal(DISCOUNT), Gaussian(mean, 0.01 + mean * (1.0 - mean))
    target, baseline = softmax(Q / softness, axis=1), greedy(Q, baseline_share)
    stakes = Stakes(alpha, delta, constraint_variance, episodes)
    return scenario("lake", mdp, stakes, goal, 1.0 - table.mean(fell), target, baseline)


def table_of(size: int) -> Moves:
    """Gymnasium's `FrozenLake-v1` with `is_slippery=True`, by its rules."""
    letters = MAPS[size]
    return {s: {a: _moves(letters, size, s, a) for a in range(len(ACTIONS))} for s in range(size * size)}


def _moves(letters: tuple[str, ...], size: int, s: int, a: int) -> list[tuple[float, int, float, bool]]:
    row, column = divmod(s, size)
    if letters[row][column] in "GH":
        return [(1.0, s, 0.0, True)]
    found = []
    for way in (a - 1, a, a + 1):
        r, c = np.clip((row, column) + STEPS[way % 4], 0, size - 1).tolist()
        found.append((1.0 / 3.0, r * size + c, float(letters[r][c] == "G"), letters[r][c] in "GH"))
    return found
