"""Worlds built against the intervals. Every one keeps what it declares about rewards, if it declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from saver.problem import Bernoulli, Bounded, Empirical, Gaussian, Law, Scenario, SubGaussian
from saver.scenarios import find_scenario
from saver.scenarios.assembly import bandit_model
from saver.scenarios.tree import tree_model
from saver_audit.making import (
    Seen,
    asked,
    changed,
    coins_of,
    grid,
    normal_of,
    one_outcome,
    with_constraints,
    with_rewards,
)

EPISODES = 1000
LATE = 12_000  # undeclared there is no interval at all times before each pair has 1,183 samples
POINTS = 200  # samples of a law


def _powers(shapes: list[float], low: float, high: float) -> Empirical:
    """Beta laws, low + (high - low) U^(1 / shape): the smaller its shape, the more of an arm is at `low`."""
    u = (np.arange(POINTS) + 0.5) / POINTS
    return Empirical([[(low + (high - low) * u ** (1.0 / shape)).tolist() for shape in shapes]])


def _bandit(law: Law) -> Scenario:
    """Four arms, all of them wanted, with other rewards; the last two cost more than is required."""
    seen, target = normal_of([[0.5, 0.6, 0.3, 0.2]], 0.01), [[0.4, 0.3, 0.2, 0.1]]
    return with_rewards(asked(bandit_model(4), seen, alpha=0.25, episodes=EPISODES, target=target), law)


def _undeclared(law: Law) -> Scenario:
    """The same with nothing declared about rewards."""
    return changed(_bandit(law), problem={"reward": None}, episodes=LATE)


def _coins() -> Scenario:
    return changed(_bandit(Bernoulli([[0.5, 0.7, 0.4, 0.6]])), problem={"reward": SubGaussian(0.5)})


def _coins_on_paths() -> Scenario:
    made, mean = grid(0.9, 0.1, horizon=4, alpha=0.35)
    made = with_constraints(made, normal_of(mean, 0.25), EPISODES)
    return with_rewards(made, Bernoulli(np.full(mean.shape, 0.3)))


def _rarely_1() -> Scenario:
    """On a tree, 0 but for one time in a hundred."""
    made = find_scenario("tree", depth=3)
    states, actions = made.world.reward.mean.shape
    law = Empirical([[[0.0] * 99 + [1.0]] * actions for _ in range(states)])
    return replace(with_rewards(made, law), episodes=EPISODES)


def _one_outcome_heavy() -> Scenario:
    seen = Seen(_powers([2.0, 3.0, 0.5, 0.2], -2.0, 3.0), Bounded(-2.0, 3.0))
    return one_outcome(asked(bandit_model(4), seen, alpha=0.4, episodes=EPISODES))


def _one_outcome_on_a_tree() -> Scenario:
    mdp = tree_model(3)
    return one_outcome(asked(mdp, coins_of([[0.8, 0.3]] * mdp.states), alpha=0.2, episodes=EPISODES))


def _one_outcome_on_paths() -> Scenario:
    made, mean = grid(0.9, 0.1, horizon=4, alpha=0.35)
    return one_outcome(with_constraints(made, coins_of(mean), episodes=500))


REWARDS: dict[str, Callable[[], Scenario]] = {
    "rewards, coins": _coins,
    "rewards, rare coins": lambda: _bandit(Bernoulli([[0.02, 0.02, 0.01, 0.03]])),
    "rewards, coins on paths": _coins_on_paths,
    "rewards, rarely 1": _rarely_1,
    "rewards, heavy tails": lambda: _bandit(_powers([1.0, 0.3, 0.1, 0.05], -2.0, 3.0)),
    "rewards, heavy outcome": _one_outcome_heavy,
    "rewards, one outcome on a tree": _one_outcome_on_a_tree,
    "rewards, one outcome on paths": _one_outcome_on_paths,
    "rewards, normal, undeclared": lambda: _undeclared(
        Gaussian([[0.5, 0.9, 0.0, 1.0]], [[0.01, 0.04, 4.0, 1.0]])
    ),
    "rewards, heavy tails, undeclared": lambda: _undeclared(_powers([1.0, 0.5, 0.3, 0.5], 0.0, 1.0)),
}
