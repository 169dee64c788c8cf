"""Gymnasium's Taxi: fetch a passenger and take them where they want to go.

500 states and 200 steps; moves are deterministic, starts are not. Target and baseline are nearly greedy for
the .99-discounted reward. What is guarded is not to pick up or drop where that is not allowed.
"""

from __future__ import annotations

import numpy as np

from saver._types import Floats
from saver.problem import Gaussian, Scenario
from saver.problem.checks import between
from saver.problem.gymtable import GymTable, Moves, greedy
from saver.scenarios.assembly import scenario

MAP = ("|R: | : :G|", "| : | : : |", "| : : : : |", "| | : | : |", "|Y| : |B: |")
PLACES = ((0, 0), (0, 4), (4, 0), (4, 3))
ACTIONS = ("south", "north", "east", "west", "pick up", "drop off")
SIZE, IN_TAXI = 5, 4
STEP, DELIVERED, ILLEGAL = -1.0, 20.0, -10.0  # rewards
DISCOUNT = 0.99  # of the reward for which both policies are greedy


def taxi(
    *,
    target_share: float = 0.8,
    baseline_share: float = 0.95,
    horizon: int = 200,
    constraint_variance: float = 0.01,
    alpha: float = 0.1,
    delta: float = 0.05,
    episodes: int = 1000,
) -> Scenario:
    """Gymnasium's Taxi, 500 states: deliver the passenger, and guard against illegal stops.

    Target and baseline take the best action with these shares, and else any. Rewards have Gymnasium's means
    and variance 1; a step is worth 1 of the constraint unless it is an illegal pick-up or drop-off.
    """
    for name, share in (("target_share", target_share), ("baseline_share", baseline_share)):
        between(name, share, 0.0, 1.0, closed=(True, True))
    table = GymTable.of(table_of())
    mdp = table.model(horizon, starts(), action_names=ACTIONS)
    reward, Q = table.rows[:, 4], table.optimal(DISCOUNT)
    return scenario(
        "taxi",
        mdp,
        reward=Gaussian(table.mean(reward), 1.0),
        constraint_mean=table.mean((reward != ILLEGAL).astype(float)),
        target=greedy(Q, target_share),
        baseline=greedy(Q, baseline_share),
        alpha=alpha,
        delta=delta,
        constraint_variance=constraint_variance,
        episodes=episodes,
    )


def starts() -> Floats:
    """Gymnasium's `initial_state_distrib`: anywhere, the passenger waiting elsewhere than they want to go."""
    chance = np.zeros(SIZE * SIZE * (IN_TAXI + 1) * len(PLACES))
    for state in range(len(chance)):
        _, _, passenger, wanted = decode(state)
        chance[state] = passenger < IN_TAXI and passenger != wanted
    result: Floats = chance / chance.sum()
    return result


def table_of() -> Moves:
    """Gymnasium's `Taxi-v4`, by its rules."""
    states = SIZE * SIZE * (IN_TAXI + 1) * len(PLACES)
    return {s: {a: [_move(s, a)] for a in range(len(ACTIONS))} for s in range(states)}


def decode(state: int) -> tuple[int, int, int, int]:
    """Row, column, where the passenger is (a place, or in the taxi), where they want to go."""
    rest, wanted = divmod(state, len(PLACES))
    rest, passenger = divmod(rest, IN_TAXI + 1)
    row, column = divmod(rest, SIZE)
    return row, column, passenger, wanted


def _move(state: int, action: int) -> tuple[float, int, float, bool]:
    row, column, passenger, wanted = decode(state)
    reward, done, here = STEP, False, (row, column)
    if action == 0:
        row = min(row + 1, SIZE - 1)
    elif action == 1:
        row = max(row - 1, 0)
    elif action == 2 and MAP[row][2 * column + 2] == ":":
        column = min(column + 1, SIZE - 1)
    elif action == 3 and MAP[row][2 * column] == ":":
        column = max(column - 1, 0)
    elif action == 4:
        if passenger < IN_TAXI and here == PLACES[passenger]:
            passenger = IN_TAXI
        else:
            reward = ILLEGAL
    elif action == 5:
        if passenger == IN_TAXI and here == PLACES[wanted]:
            passenger, done, reward = wanted, True, DELIVERED
        elif passenger == IN_TAXI and here in PLACES:
            passenger = PLACES.index(here)
        else:
            reward = ILLEGAL
    place = ((row * SIZE + column) * (IN_TAXI + 1) + passenger) * len(PLACES) + wanted
    return 1.0, place, reward, done
