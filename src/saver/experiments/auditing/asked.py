"""What the worlds of the audit share: a problem made of constraints alone, and the same with others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.problem import Bounded, Gaussian, Law, Mdp, Problem, Scenario, SubGaussian, World
from saver.problem.world import SHARED
from saver.scenarios import find_scenario
from saver.scenarios.assembly import always, promised

Promise = SubGaussian | Bounded
Shown = Callable[[int, int, int], float]  # a constraint observation, from state, action and next state
NOISY, QUIET = 9.0, 0.01  # variances of rewards
COINS = Bounded(0.0, 1.0)


def asked(
    mdp: Mdp,
    constraint: Law,
    promise: Promise,
    *,
    alpha: float,
    episodes: int,
    baseline: ArrayLike | None = None,
    target: ArrayLike | None = None,
    shown: Shown | None = None,
) -> Scenario:
    """The baseline takes action 0, the target any. Rewards vary most where the constraint is poor, so that
    designs want what is unsafe. Where `shown` is given, noise is what the next state explains.
    """
    mean = np.array(constraint.mean)
    reward = Gaussian(mean, np.where(mean < np.median(mean[:, 0]), NOISY, QUIET))

    def outcome(
        rng: np.random.Generator, step: int, state: int, action: int, next_state: int
    ) -> tuple[float, float]:
        assert shown is not None
        return reward.sample(rng, state, action), shown(state, action, next_state)

    world = World(mdp, reward, constraint, outcome=None if shown is None else outcome)
    safe = always(mdp, 0) if baseline is None else np.asarray(baseline)
    problem = Problem(
        mdp,
        mdp.uniform if target is None else target,
        safe,
        alpha=alpha,
        baseline_value=world.constraint_value(safe),
        constraint=promise,
        reward=promised(reward),
    )
    kind = "bandit" if mdp.states == 1 else "model"
    return Scenario(kind, world, problem, episodes)


def with_constraints(
    scenario: Scenario, law: Law, promise: Promise = COINS, episodes: int | None = None
) -> Scenario:
    """The same with other constraints."""
    world = dataclasses.replace(scenario.world, constraint=law)
    value = world.constraint_value(scenario.problem.baseline)
    problem = dataclasses.replace(scenario.problem, constraint=promise, baseline_value=value)
    return Scenario(scenario.name, world, problem, episodes or scenario.episodes)


def with_rewards(scenario: Scenario, law: Law, outcome: str | None = None) -> Scenario:
    """The same with other rewards, and what is true of them declared."""
    world = dataclasses.replace(scenario.world, reward=law, outcome=outcome)
    problem = dataclasses.replace(scenario.problem, reward=promised(law))
    return dataclasses.replace(scenario, world=world, problem=problem)


def one_outcome(scenario: Scenario) -> Scenario:
    """The same where what is observed is both the reward and the constraint."""
    return with_rewards(scenario, scenario.world.constraint, SHARED)


def grid(good: float, bad: float, **options: float) -> tuple[Scenario, Floats]:
    """A small gridworld, and these means for its actions forth and back."""
    made = find_scenario("gridworld", size=3, slip=0.2, **options)
    mean: Floats = np.where(np.array(made.world.constraint.mean) > 0.5, good, bad)
    return made, mean
