"""The bandit of Proposition 1: nearly all of the variance is in an action that is worth nothing in safety."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saver.problem import Gaussian, Scenario
from saver.problem.checks import number, numbers
from saver.scenarios.assembly import always, bandit_model, scenario


def intractable(
    *,
    means: Sequence[float] = (0.5, 0.5, 0.5),
    variances: Sequence[float] = (0.001, 0.001, 0.25),
    constraint_variance: float = 0.01,
    alpha: float = 0.25,
    delta: float = 0.05,
    episodes: int = 5000,
) -> Scenario:
    """Three actions with constraint means 0.5 (the baseline), 0.5 + alpha and 0; the target is even."""
    alpha = number("alpha", alpha)
    means, variances = numbers("means", means, 3), numbers("variances", variances, 3)
    mdp = bandit_model(3)
    constraint_mean = np.array([[0.5, 0.5 + alpha, 0.0]])
    return scenario(
        "intractable",
        mdp,
        reward=Gaussian([means], [variances]),
        constraint_mean=constraint_mean,
        target=np.full((1, 3), 1 / 3),
        baseline=always(mdp, 0),
        alpha=alpha,
        delta=delta,
        constraint_variance=constraint_variance,
        episodes=episodes,
    )
