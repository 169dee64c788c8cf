"""What the worlds against the certificate share: a problem made of constraints alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from saver.problem import Bounded, Gaussian, Law, Mdp, Problem, Scenario, SubGaussian, World
from saver.scenarios.assembly import always, promised

Promise = SubGaussian | Bounded
Shown = Callable[[int, int, int], float]  # a constraint observation, from state, action and next state
NOISY, QUIET = 9.0, 0.01  # variances of rewards


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
