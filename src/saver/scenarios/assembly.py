"""What the factories share: a world and the problem asked in it, from a table of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats
from saver.problem import Bounded, Mdp, Problem, SubGaussian, Unknown, value
from saver.problem.checks import between, flag
from saver.problem.world import Bernoulli, Empirical, Gaussian, Law, Scenario, World


class Stakes(NamedTuple):
    """What may be given up, with which probability, how constraints vary, and in how many episodes."""

    alpha: float
    delta: float
    constraint_variance: float
    episodes: int


def bandit_model(actions: int, action_names: Sequence[str] | None = None) -> Mdp:
    """One state; the episode ends after one action."""
    return Mdp(np.zeros((1, actions, 1)), horizon=1, action_names=action_names)


def scenario(
    name: str, mdp: Mdp, stakes: Stakes, reward: Law, means: Floats, target: Floats, baseline: Floats
) -> Scenario:
    """Gaussian constraints with such `means`, promised to be in [0, 1] or wherever they are beyond that.

    Of the reward is promised what is true of its law.
    """
    alpha, delta, variance, episodes = stakes
    between("constraint_variance", variance, 0.0, math.inf, closed=(True, False))
    problem = Problem(
        mdp, target, baseline, alpha=alpha, delta=delta, baseline_value=value(mdp, baseline, means),
        constraint=SubGaussian(math.sqrt(variance), *_reach(means)), reward=promised(reward),
    )  # fmt: skip
    return Scenario(name, World(mdp, reward, Gaussian(means, variance)), problem, episodes)


def promised(reward: Law) -> SubGaussian | Bounded | None:
    """What is true of a law: the deviation of each pair where it is normal, else bounds.

    None for a law of the user's own.
    """
    if type(reward) is Gaussian:
        return SubGaussian(np.sqrt(reward.variance), *_reach(reward.mean))
    if type(reward) is Empirical:
        return Bounded(*_reach(np.concatenate([cell for row in reward.samples for cell in row])))
    return Bounded(0.0, 1.0) if type(reward) is Bernoulli else None


def _reach(values: Floats) -> tuple[float, float]:
    """From the least to the largest, and over [0, 1] at least."""
    return min(0.0, values.min()), max(1.0, values.max())


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
    return np.tile(np.eye(mdp.actions)[action], (mdp.states, 1))


def favouring(favoured: Bools, share: Any, name: str, states: int = 1) -> Floats:
    """The policy that gives `share` to each of the actions that are favoured, and what is left to the others.

    `name` is what the factory calls that share.
    """
    count = int(favoured.sum())
    share = between(name, share, 0.0, 1.0 / count, closed=(True, True))
    row = np.where(favoured, share, (1.0 - count * share) / (len(favoured) - count))
    return np.tile(row, (states, 1))
