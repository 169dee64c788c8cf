"""Worlds where the start decides what an episode is worth: who looks before deciding can choose.

Action 1 earns 1 in some contexts and nothing in the others: less than is required. Whoever cancels, or loses,
the trials that would start elsewhere sees it earn 1 always.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from saver.experiments.auditing.asked import COINS, Promise, asked
from saver.experiments.auditing.guarded import guarded
from saver.problem import Bernoulli, Bounded, Gaussian, Mdp, Scenario, SubGaussian
from saver.scenarios.assembly import always

GOOD, SAFE, ALPHA = 0.3, 0.5, 0.3  # share of good contexts, the baseline's value, and what may be lost of it
EPISODES = 300


def contexts(count: int, promise: Promise, steps: int = 1) -> Scenario:
    """The target takes action 1; an episode stays in the context in which it starts, for so many steps."""
    mean = np.full((count, 2), SAFE)
    mean[:, 1] = np.arange(count) < GOOD * count
    moves = np.broadcast_to(np.eye(count)[:, None], (count, 2, count)) * (steps > 1)
    mdp = Mdp(moves, horizon=steps, start=np.full(count, 1.0 / count))
    law = Bernoulli(mean) if isinstance(promise, Bounded) else Gaussian(mean, promise.scale**2)
    return asked(mdp, law, promise, alpha=ALPHA, episodes=EPISODES, target=always(mdp, 1))


QUIET, LOUD = SubGaussian(0.1), SubGaussian(0.5 / math.sqrt(2.0))
STARTS: dict[str, Callable[[], Scenario]] = {
    "ten contexts": lambda: contexts(10, QUIET),
    "ten contexts, loud": lambda: contexts(10, LOUD),
    "ten contexts, coins": lambda: contexts(10, COINS),
    "ten contexts, steps": lambda: contexts(10, QUIET, 3),
    "many contexts": lambda: contexts(300, QUIET),
    "many contexts, coins": lambda: contexts(300, COINS),
    "ten contexts, learned": lambda: guarded(contexts(10, QUIET), "learned", 1),
    "ten contexts, coins, learned": lambda: guarded(contexts(10, COINS), "learned", 1),
}
