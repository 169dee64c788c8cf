"""Worlds built against the intervals. Every one keeps what it declares about rewards, if it declares."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from saver.experiments.auditing.asked import (
    COINS,
    Promise,
    asked,
    grid,
    one_outcome,
    with_constraints,
    with_rewards,
)
from saver.problem import Bernoulli, Bounded, Empirical, Gaussian, Law, Scenario, SubGaussian
from saver.scenarios import find_scenario
from saver.scenarios.assembly import bandit_model
from saver.scenarios.tree import tree_model

EPISODES = 1000
LATE = (
    12_000  # where nothing is declared there is no interval at all times before each pair has 1,183 samples
)
POINTS = 200  # samples of a law


def declaring(scenario: Scenario, promise: Promise | None) -> Scenario:
    """The same with something else declared about rewards, or nothing."""
    return dataclasses.replace(scenario, problem=dataclasses.replace(scenario.problem, reward=promise))


def powers(shapes: list[list[float]], low: float, high: float) -> Empirical:
    """Beta laws, low + (high - low) U^(1 / shape): the smaller its shape, the more of a pair is at `low`."""
    u = (np.arange(POINTS) + 0.5) / POINTS
    return Empirical([[(low + (high - low) * u ** (1.0 / s)).tolist() for s in row] for row in shapes])


def _bandit(law: Law, episodes: int = EPISODES) -> Scenario:
    """Four arms, all of them wanted, with other rewards; the last two cost more than is required."""
    constraint, target = Gaussian([[0.5, 0.6, 0.3, 0.2]], 0.01), [[0.4, 0.3, 0.2, 0.1]]
    made = asked(bandit_model(4), constraint, SubGaussian(0.1), alpha=0.25, episodes=episodes, target=target)
    return with_rewards(made, law)


def _coins_on_paths() -> Scenario:
    made, mean = grid(0.9, 0.1, horizon=4, alpha=0.35)
    made = with_constraints(made, Gaussian(mean, 0.25), SubGaussian(0.5), EPISODES)
    return with_rewards(made, Bernoulli(np.full(mean.shape, 0.3)))


def _rarely_1() -> Scenario:
    """On a tree, 0 but for one time in a hundred."""
    made = find_scenario("tree", depth=3)
    shape = made.world.reward.mean.shape
    law = Empirical([[[0.0] * 99 + [1.0]] * shape[1] for _ in range(shape[0])])
    return dataclasses.replace(with_rewards(made, law), episodes=EPISODES)


def _one_outcome_heavy() -> Scenario:
    law = powers([[2.0, 3.0, 0.5, 0.2]], -2.0, 3.0)
    return one_outcome(asked(bandit_model(4), law, Bounded(-2.0, 3.0), alpha=0.4, episodes=EPISODES))


def _one_outcome_on_a_tree() -> Scenario:
    mdp = tree_model(3)
    law = Bernoulli([[0.8, 0.3]] * mdp.states)
    return one_outcome(asked(mdp, law, COINS, alpha=0.2, episodes=EPISODES))


def _one_outcome_on_paths() -> Scenario:
    made, mean = grid(0.9, 0.1, horizon=4, alpha=0.35)
    return one_outcome(with_constraints(made, Bernoulli(mean), episodes=500))


def _coins() -> Scenario:
    return declaring(_bandit(Bernoulli([[0.5, 0.7, 0.4, 0.6]])), SubGaussian(0.5))


def _heavy_tails() -> Scenario:
    return _bandit(powers([[1.0, 0.3, 0.1, 0.05]], -2.0, 3.0))


def _normal_undeclared() -> Scenario:
    law = Gaussian([[0.5, 0.9, 0.0, 1.0]], [[0.01, 0.04, 4.0, 1.0]])
    return declaring(_bandit(law, LATE), None)


def _heavy_tails_undeclared() -> Scenario:
    return declaring(_bandit(powers([[1.0, 0.5, 0.3, 0.5]], 0.0, 1.0), LATE), None)


REWARDS: dict[str, Callable[[], Scenario]] = {
    "rewards, coins": _coins,
    "rewards, rare coins": lambda: _bandit(Bernoulli([[0.02, 0.02, 0.01, 0.03]])),
    "rewards, coins on paths": _coins_on_paths,
    "rewards, rarely 1": _rarely_1,
    "rewards, heavy tails": _heavy_tails,
    "rewards, heavy outcome": _one_outcome_heavy,
    "rewards, one outcome on a tree": _one_outcome_on_a_tree,
    "rewards, one outcome on paths": _one_outcome_on_paths,
    "rewards, normal, undeclared": _normal_undeclared,
    "rewards, heavy tails, undeclared": _heavy_tails_undeclared,
}
