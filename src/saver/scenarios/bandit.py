"""Worlds of one decision: the paper's Experiment 1, its intractable bandit, and a bandit with contexts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saver.problem import Bernoulli, Bounded, Gaussian, Mdp, Problem, Scenario, SubGaussian, Unknown, World
from saver.problem.checks import between, number, numbers, whole
from saver.scenarios.assembly import Stakes, always, bandit_model, favouring, scenario


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
    """The paper's Experiment 1: one good action, one better action, and many that are noisy and unsafe.

    Actions 0 and 1 are good; the means of the others are even from one end of `noisy_means` to the other.

    The target gives `good_target` to each good action and shares the rest; constraints have the reward means.
    The paper's A = 11 counts the actions after action 0: it lists 0, 1, ..., 11.
    """
    noisy = whole("actions", actions, 3, 10**7) - 2
    mdp = bandit_model(actions)
    target = favouring(np.arange(actions) < 2, good_target, "good_target")
    good_means, noisy_means = numbers("good_means", good_means, 2), numbers("noisy_means", noisy_means, 2)
    mean = np.array([[*good_means, *np.linspace(noisy_means[0], noisy_means[1], noisy)]])
    variance = np.array([[good_variance] * 2 + [noisy_variance] * noisy])
    stakes = Stakes(alpha, delta, constraint_variance, episodes)
    return scenario("bandit", mdp, stakes, Gaussian(mean, variance), mean, target, baseline=always(mdp, 0))


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
    mdp, reward = bandit_model(3), Gaussian([means], [variances])
    constraint_mean, even = np.array([[0.5, 0.5 + alpha, 0.0]]), np.full((1, 3), 1 / 3)
    stakes = Stakes(alpha, delta, constraint_variance, episodes)
    return scenario("intractable", mdp, stakes, reward, constraint_mean, even, baseline=always(mdp, 0))


TARGET = (0.1, 0.2, 0.3, 0.4)
DEVIATION = (0.2, 0.5, 1.0, 2.0)  # of rewards, by action
KEPT = (0.9, 0.85, 0.8, 0.7)  # how often nobody complains, by action


def contexts(
    *,
    contexts: int = 8,
    evenness: float = 1.0,
    spread: float = 0.05,
    alpha: float = 0.15,
    delta: float = 0.05,
    episodes: int = 5000,
    seed: int = 0,
) -> Scenario:
    """A contextual bandit whose contexts come as they come: nobody knows how often.

    There are four actions; context i comes in proportion to 1 / (i + 1)^`evenness`.

    The later an action, the more its rewards vary and the more complaints it brings; the target prefers the
    last, the baseline takes the first. How often an action is kept without a complaint differs by up to
    `spread` from context to context; reward means are uniform draws.
    """
    count = whole("contexts", contexts, 1, 10_000)
    evenness = between("evenness", evenness, 0.0, 10.0, closed=(True, True))
    spread = between("spread", spread, 0.0, 0.1, closed=(True, True))
    rng = np.random.default_rng(whole("seed", seed, 0))
    shape = (count, len(TARGET))
    often = 1.0 / np.arange(1.0, count + 1.0) ** evenness
    mdp = Mdp(np.zeros((*shape, count)), horizon=1, start=often / often.sum())
    mean, kept = rng.random(shape), np.array(KEPT) + spread * rng.uniform(-1.0, 1.0, shape)
    deviation = np.broadcast_to(np.array(DEVIATION), shape)
    world = World(mdp, Gaussian(mean, deviation**2), Bernoulli(kept))
    baseline = always(mdp, 0)
    target, earned = np.broadcast_to(np.array(TARGET), shape), world.constraint_value(baseline)
    problem = Problem(
        Unknown(*shape, horizon=1), target, baseline, alpha=alpha, baseline_value=earned,
        constraint=Bounded(0.0, 1.0), delta=delta, reward=SubGaussian(deviation),
    )  # fmt: skip
    return Scenario("contexts", world, problem, episodes)
