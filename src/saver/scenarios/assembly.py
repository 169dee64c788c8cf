"""What the factories share: a world and the problem asked in it, from a table of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.problem import (
    Bernoulli,
    Bounded,
    Empirical,
    Gaussian,
    Law,
    Mdp,
    Problem,
    Scenario,
    SubGaussian,
    Unknown,
    World,
    value,
)
from saver.problem.checks import between, flag


def bandit_model(actions: int, action_names: Sequence[str] | None = None) -> Mdp:
    """One state; the episode ends after one action."""
    return Mdp(np.zeros((1, actions, 1)), horizon=1, action_names=action_names)


def scenario(
    name: str,
    mdp: Mdp,
    *,
    reward: Law,
    constraint_mean: ArrayLike,
    target: ArrayLike,
    baseline: ArrayLike,
    alpha: float,
    delta: float,
    constraint_variance: float,
    episodes: int,
) -> Scenario:
    """Gaussian constraints, promised to have means in [0, 1] or wherever their means are beyond that.

    Of the reward is promised what is true of its law.
    """
    between("constraint_variance", constraint_variance, 0.0, math.inf, closed=(True, False))
    means = np.asarray(constraint_mean, dtype=float)
    world = World(mdp, reward, Gaussian(means, constraint_variance))
    problem = Problem(
        mdp,
        target,
        baseline,
        alpha=alpha,
        delta=delta,
        baseline_value=value(mdp, baseline, means),
        constraint=SubGaussian(math.sqrt(constraint_variance), min(0.0, means.min()), max(1.0, means.max())),
        reward=promised(reward),
    )
    return Scenario(name, world, problem, episodes)


def promised(reward: Law) -> SubGaussian | Bounded | None:
    """What is true of a law: the deviation of each pair where it is normal, else bounds.

    Ranges reach over [0, 1] at least. None for a law of the user's own.
    """
    if type(reward) is Gaussian:
        floor, ceiling = min(0.0, reward.mean.min()), max(1.0, reward.mean.max())
        return SubGaussian(np.sqrt(reward.variance), floor, ceiling)
    if type(reward) is Bernoulli:
        return Bounded(0.0, 1.0)
    if type(reward) is Empirical:
        values = np.concatenate([cell for row in reward.samples for cell in row])
        return Bounded(min(0.0, values.min()), max(1.0, values.max()))
    return None


def forget(scenario: Scenario, start: bool = False) -> Scenario:
    """The same world, asked by somebody who does not know its transitions, nor, unless `start`, its start."""
    flag("start", start)
    problem, mdp = scenario.problem, scenario.world.mdp
    unknown = Unknown(
        mdp.states, mdp.actions, mdp.horizon, discount=mdp.discount, start=mdp.start if start else None,
        available=mdp.available, state_names=mdp.state_names, action_names=mdp.action_names,
    )  # fmt: skip
    return replace(scenario, problem=replace(problem, mdp=unknown))


def always(mdp: Mdp, action: int) -> Floats:
    """The policy that takes one action everywhere."""
    policy = np.zeros((mdp.states, mdp.actions))
    policy[:, action] = 1.0
    return policy
