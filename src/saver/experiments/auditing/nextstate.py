"""Worlds whose constraint noise is explained by the next state, with more to come where it looks good."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from saver._types import Floats
from saver.experiments.auditing.asked import asked
from saver.problem import Bernoulli, Bounded, Gaussian, Mdp, Scenario, SubGaussian

UP = 1  # the better of two states
EVEN = np.full((2, 3), 0.5)  # P(next is UP), [S, A]
STICKY = np.array([[0.6, 0.2, 0.3], [0.9, 0.4, 0.7]])
STEPS = 6


def ladder(upward: Floats, discount: float = 1.0) -> Mdp:
    """Two states; every action leads up or down."""
    return Mdp(np.stack([1.0 - upward, upward], axis=-1), horizon=STEPS, discount=discount)


def pushed() -> Scenario:
    """An observation is above its mean by half if the next state is the better one, else below by half."""
    mean = np.array([[0.4, 0.0, 0.1], [1.0, 0.5, 0.6]])

    def shown(state: int, action: int, next_state: int) -> float:
        return float(mean[state, action]) + (0.5 if next_state == UP else -0.5)

    promise = SubGaussian(0.5, next_state=True)
    return asked(ladder(EVEN), Gaussian(mean, 0.25), promise, alpha=0.2, episodes=200, shown=shown)


def coins(next_state: bool) -> Scenario:
    """The coin that is observed is the next state, and who is up stays up."""

    def shown(state: int, action: int, next_state: int) -> float:
        return float(next_state == UP)

    promise = Bounded(0.0, 1.0, next_state=next_state)
    return asked(ladder(STICKY, 0.95), Bernoulli(STICKY), promise, alpha=0.1, episodes=200, shown=shown)


def split(next_state: bool) -> Scenario:
    """The same by laws: what the next state explains is its own mean, and is observed a step later."""
    mean, promise = np.array([[0.0] * 3, [1.0] * 3]), SubGaussian(0.5, next_state=next_state)
    return asked(ladder(STICKY), Gaussian(mean, 0.25), promise, alpha=0.1, episodes=500)


NEXT_STATE: dict[str, Callable[[], Scenario]] = {
    "next state": pushed,
    "next state, coins": partial(coins, True),
    "next state, coins, not declared": partial(coins, False),  # nor needed: see `safety.capital`
    "next state, split": partial(split, True),
    "next state, split, not declared": partial(split, False),
}
