"""Whether the laws of a world are what is promised about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._types import Floats
from saver.problem.laws import Bernoulli, Empirical, Gaussian, Law
from saver.problem.mdp import Mdp
from saver.problem.promise import Bounded, SubGaussian

CLOSE = 1e-6  # relative


def unkept(what: str, law: Law, promise: SubGaussian | Bounded, mdp: Mdp) -> list[str]:
    """Where a law breaks a promise: each rule that is broken, at the pair that breaks it most."""
    scale, floor, ceiling, low, high = promise.tables(mdp)
    mean, deviation, found = np.asarray(law.mean), np.sqrt(law.variance), []
    slack = CLOSE * np.maximum(1.0, np.maximum(np.abs(floor), np.abs(ceiling)))

    def most(excess: Any) -> tuple[Any, str]:
        """The pair with the largest excess, if any is positive, and its name."""
        excess = np.where(mdp.available & mdp.reachable[:, None], excess, 0.0)
        s, a = divmod(int(np.argmax(excess)), mdp.actions)
        return ((s, a) if excess[s, a] > 0.0 else None), f"{mdp.action_label(a)} in {mdp.state_label(s)}"

    p, name = most(np.maximum(floor - mean, mean - ceiling) - slack)
    if p is not None:
        found.append(
            f"{name} has a {what} mean of {mean[p]:.4g}, outside the promised range "
            f"[{floor[p]:g}, {ceiling[p]:g}]"
        )
    p, name = most(deviation - scale * (1 + CLOSE))
    if p is not None:
        found.append(
            f"a {what} of {name} has standard deviation {deviation[p]:.4g}, more than the promised noise "
            f"scale {scale[p]:g}"
        )
    elif isinstance(law, Bernoulli):
        needed = _coin_scale(mean)
        p, name = most(needed - scale * (1 + CLOSE))
        if p is not None:
            found.append(
                f"a {what} of {name} is 0 or 1 and needs a noise scale of {needed[p]:.4g}, more than the "
                f"promised {scale[p]:g}"
            )
    least, largest = _reach(law)
    p, name = most(np.maximum(low - least, largest - high) - slack)
    if isinstance(promise, Bounded) and p is not None:
        found.append(
            f"a {what} of {name} may be anything from {least[p]:.4g} to {largest[p]:.4g}, not only in the "
            f"promised [{low[p]:g}, {high[p]:g}]"
        )
    return found


def _reach(law: Law) -> tuple[Floats, Floats]:
    """The smallest and the largest observation of each pair."""
    mean = np.asarray(law.mean)
    if isinstance(law, Gaussian):
        far = np.where(law.variance > 0, np.inf, 0.0)
        return mean - far, mean + far
    if isinstance(law, Bernoulli):
        return np.floor(mean), np.ceil(mean)
    if isinstance(law, Empirical):
        least, largest = (np.array([[of(x) for x in row] for row in law.samples]) for of in (np.min, np.max))
        return least, largest
    return mean, mean


def _coin_scale(p: Floats) -> Floats:
    """The least sub-Gaussian scale of coins, sqrt((1 - 2p) / (2 log((1 - p) / p))): Kearns and Saul, 1998."""
    x = np.abs(1.0 - 2.0 * p)
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = np.sqrt(x / (4.0 * np.arctanh(x)))  # log((1 + x) / (1 - x)) = 2 artanh x
    return np.where(x > 0.0, scales, 0.5)
