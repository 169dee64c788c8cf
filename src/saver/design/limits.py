"""What every design shares: its result, its inputs, and the number by which designs are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.problem import checks
from saver.problem.bellman import occupancy, visits, weights
from saver.problem.mdp import Mdp


@dataclass(frozen=True, eq=False)
class Design:
    """A behaviour to collect with.

    Attributes:
        policy: [S, A], or [L, S, A] where it depends on the step.
        spread: the normaliser, M(s) or B(s) in the paper, [S] or [L, S].
    """

    policy: Floats
    spread: Floats


def limit(
    mdp: Mdp,
    target: ArrayLike,
    variance: ArrayLike,
    behaviour: ArrayLike,
    *,
    onward: ArrayLike | None = None,
) -> float:
    """sum c^2 variance / d: K times the mean squared error after K episodes of `behaviour`, as K grows.

    Infinite if the behaviour never visits a pair that has weight and variance. `onward`, [S, A], adds
    sum onward / d^-, d^- the visits before step L - 1: see `Planner.solve`.
    """
    c, noise = weights(mdp, target), check_variance(mdp, variance)
    d = visits(mdp, behaviour)
    if np.any((c > 0) & (noise > 0) & (d <= 0)):
        return float("inf")
    total = limit_of(c**2 * noise, d)
    if onward is not None:
        moves = checks.within("onward", checks.shaped("onward", onward, d.shape), 0.0)
        total += limit_of(moves, occupancy(mdp, behaviour)[: mdp.horizon - 1].sum(axis=0))
    return total


def limit_of(cost: Floats, d: Floats) -> float:
    """sum cost / d over the pairs with a cost."""
    needed = cost > 0
    if np.any(d[needed] <= 0):
        return float("inf")
    return float(np.sum(cost[needed] / d[needed]))


def check_variance(mdp: Mdp, variance: ArrayLike) -> Floats:
    """[S, A], finite and not negative."""
    return checks.within("variance", checks.shaped("variance", variance, (mdp.states, mdp.actions)), 0.0)
