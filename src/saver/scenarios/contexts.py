"""A contextual bandit whose contexts come as they come: nobody knows how often."""

from __future__ import annotations

import numpy as np

from saver.problem import Bernoulli, Bounded, Gaussian, Mdp, Problem, Scenario, SubGaussian, Unknown, World
from saver.problem.checks import between, whole
from saver.scenarios.assembly import always

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
    """Four actions; context i comes in proportion to 1 / (i + 1)^`evenness`.

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
    problem = Problem(
        Unknown(*shape, horizon=1),
        np.broadcast_to(np.array(TARGET), shape),
        baseline,
        alpha=alpha,
        baseline_value=world.constraint_value(baseline),
        constraint=Bounded(0.0, 1.0),
        delta=delta,
        reward=SubGaussian(deviation),
    )
    return Scenario("contexts", world, problem, episodes)
