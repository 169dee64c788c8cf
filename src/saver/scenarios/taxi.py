"""Gymnasium's Taxi: fetch a passenger and take them where they want to go; only starts are random."""

from __future__ import annotations

import math

import numpy as np

from saver._types import Floats
from saver.problem import Gaussian, Scenario
from saver.problem.checks import between
from saver.problem.mdp import GymTable, Moves, greedy
from saver.scenarios.assembly import Stakes, scenario

MAP = ("|R: | : :G|", "| : | : : |", "| : : : : |", "| | : | : |", "|Y| : |B: |")
PLACES = ((0, 0), (0, 4), (4, 0), (4, 3))
ACTIONS = ("south", "north", "east", "west", "pick up", "drop off")
SIZE, IN_TAXI = 5, 4
SHAPE = (SIZE, SIZE, IN_TAXI + 1, len(PLACES))  # row, column, where the passenger is, and wants to go
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

    Target and baseline take the best action for the .99-discounted reward with these shares, and else any.
    Rewards have Gymnasium's means and variance 1; a step is worth 1 of the constraint unless it is an illegal
    pick-up or drop-off.
    """
    for name, share in (("target_share", target_share), ("baseline_share", baseline_share)):
        between(name, share, 0.0, 1.0, closed=(True, True))
    table = GymTable.of(table_of())
    mdp = table.model(horizon, starts(), action_names=ACTIONS)
    rewards, Q = table.rows[:, 4], table.optimal(DISCOUNT)
    reward, legal = Gaussian(table.mean(rewards), 1.0), table.mean((rewards != ILLEGAL).astype(float))
    target, baseline = greedy(Q, target_share), greedy(Q, baseline_share)
    stakes = Stakes(alpha, delta, constraint_variance, episodes)
    return scenario("taxi", mdp, stakes, reward, legal, target, baseline)


def starts() -> Floats:
    """Gymnasium's `initial_state_distrib`: anywhere, the passenger waiting elsewhere than they want to go."""
    _, _, passenger, wanted = np.indices(SHAPE).reshape(4, -1)
    waiting = (passenger < IN_TAXI) & (passenger != wanted)
    return waiting / waiting.sum()


def table_of() -> Moves:
    """Gymnasium's `Taxi-v4`, by its rules."""
    return {s: {a: [_move(s, a)] for a in range(len(ACTIONS))} for s in range(math.prod(SHAPE))}


def _move(state: int, action: int) -> tuple[float, int, float, bool]:
    row, column, passenger, wanted = (int(part) for part in np.unravel_index(state, SHAPE))
    reward, done, here = STEP, False, (row, column)
    if action < 2:
        row = min(max(row + 1 - 2 * action, 0), SIZE - 1)
    elif action < 4:
        way = 5 - 2 * action
        column += way * (MAP[row][2 * column + 1 + way] == ":")
    elif action == 4 and passenger < IN_TAXI and here == PLACES[passenger]:
        passenger = IN_TAXI
    elif action == 5 and passenger == IN_TAXI and here == PLACES[wanted]:
        passenger, done, reward = wanted, True, DELIVERED
    elif action == 5 and passenger == IN_TAXI and here in PLACES:
        passenger = PLACES.index(here)
    else:
        reward = ILLEGAL
    return 1.0, int(np.ravel_multi_index((row, column, passenger, wanted), SHAPE)), reward, done
