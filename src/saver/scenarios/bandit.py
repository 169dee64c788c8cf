"""The paper's Experiment 1: one good action, one better action, and many that are noisy and unsafe.

The paper's A = 11 counts the actions after action 0: it lists 0, 1, ..., 11.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saver.problem import Gaussian, Scenario
from saver.problem.checks import between, numbers, whole
from saver.scenarios.assembly import always, bandit_model, scenario


def bandit(
    *,
    actions: int = 12,
    good_means: Sequence[float] = (0.5, 0.9),
    noisy_means: Sequence[float] = (0.02, 0.03),
    good_variance: float = 1e-4,
    noisy_variance: float = 40.0,
    good_target: float = 0.4,
    constraint_variance: float = 0.01,
    alpha: float = 0.25,
    delta: float = 0.05,
    episodes: int = 5000,
) -> Scenario:
    """Actions 0 and 1 are good; the means of the others are even from one end of `noisy_means` to the other.

    The target gives `good_target` to each good action and shares the rest; constraints have the reward means.
    """
    noisy = whole("actions", actions, 3, 10**7) - 2
    good_target = between("good_target", good_target, 0.0, 0.5, closed=(True, True))
    good_means, noisy_means = numbers("good_means", good_means, 2), numbers("noisy_means", noisy_means, 2)
    mdp = bandit_model(actions)
    mean = np.array([[*good_means, *np.linspace(noisy_means[0], noisy_means[1], noisy)]])
    variance = np.array([[good_variance] * 2 + [noisy_variance] * noisy])
    target = np.array([[good_target] * 2 + [(1 - 2 * good_target) / noisy] * noisy])
    return scenario(
        "bandit",
        mdp,
        reward=Gaussian(mean, variance),
        constraint_mean=mean,
        target=target,
        baseline=always(mdp, 0),
        alpha=alpha,
        delta=delta,
        constraint_variance=constraint_variance,
        episodes=episodes,
    )
