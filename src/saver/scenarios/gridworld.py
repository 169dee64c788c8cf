"""The paper's Experiment 4: a slippery square grid, from the top left cell to the bottom right one.

The paper prints a variance of 0.01 for all four actions; left and up are meant to be the noisy ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from saver.problem import Bernoulli, Bounded, Gaussian, Mdp, Scenario
from saver.problem.checks import between, whole
from saver.scenarios.assembly import Stakes, favouring, forget, scenario

ACTIONS = ("left", "right", "down", "up")
MOVES = np.array([[0, -1], [0, 1], [1, 0], [-1, 0]])
FORWARD = np.array([False, True, True, False])


def gridworld(
    *,
    size: int = 4,
    slip: float = 0.1,
    horizon: int = 10,
    quiet_variance: float = 0.01,
    noisy_variance: float = 20.0,
    quiet_target: float = 0.45,
    constraint_variance: float = 0.01,
    alpha: float = 0.25,
    delta: float = 0.05,
    discount: float = 1.0,
    episodes: int = 5000,
    reward_seed: int = 0,
) -> Scenario:
    """Right and down are quiet and safe, left and up noisy and worth no constraint.

    The target gives `quiet_target` to each of right and down and shares the rest; the baseline goes right
    until the last column, then down. Reward means are uniform draws, 0 in the terminal cell.
    """
    reward_seed = whole("reward_seed", reward_seed, 0)
    mdp = grid_model(size, slip, horizon, discount)
    mean = np.random.default_rng(reward_seed).random((mdp.states, 4))
    mean[-1] = 0.0
    column = np.arange(mdp.states) % size
    baseline = np.eye(4)[np.where(column < size - 1, 1, 2)]
    target = favouring(FORWARD, quiet_target, "quiet_target", mdp.states)
    reward = Gaussian(mean, np.tile(np.where(FORWARD, quiet_variance, noisy_variance), (mdp.states, 1)))
    safe = np.tile(FORWARD.astype(float), (mdp.states, 1))
    stakes = Stakes(alpha, delta, constraint_variance, episodes)
    return scenario("gridworld", mdp, stakes, reward, safe, target, baseline)


def unknown_gridworld(
    *,
    size: int = 4,
    slip: float = 0.1,
    horizon: int = 10,
    quiet_target: float = 0.45,
    alpha: float = 0.25,
    delta: float = 0.05,
    episodes: int = 5000,
) -> Scenario:
    """The gridworld for somebody who knows where episodes start and not where moves lead.

    A constraint is 1 for a move right or down and 0 for the others: bounded observations.
    """
    known = gridworld(
        size=size, slip=slip, horizon=horizon, quiet_target=quiet_target, alpha=alpha, delta=delta
    )
    world = replace(known.world, constraint=Bernoulli(known.world.constraint.mean))
    problem = replace(known.problem, constraint=Bounded(0.0, 1.0))
    return forget(Scenario("unknown-gridworld", world, problem, episodes), start=True)


def grid_model(size: int, slip: float, horizon: int, discount: float = 1.0) -> Mdp:
    """`size` x `size` cells; a move slips to each other direction with slip / 3; blocked moves stay."""
    size = whole("size", size, 2, 3000)
    slip = between("slip", slip, 0.0, 1.0, closed=(True, True))
    cell = np.arange(size * size)
    place = np.stack([cell // size, cell % size], axis=1)
    to = np.clip(place[:, None] + MOVES, 0, size - 1) @ np.array([size, 1])
    chance = np.full((4, 4), slip / 3)
    np.fill_diagonal(chance, 1.0 - slip)
    s, a, direction = (grid.ravel() for grid in np.meshgrid(cell[:-1], range(4), range(4), indexing="ij"))
    edges = np.column_stack([s, a, to[s, direction], chance[a, direction]])
    last = size * size - 1
    return Mdp.from_edges(
        edges, last + 1, 4, horizon, discount=discount, terminal=(last,), action_names=ACTIONS
    )
