"""Where the baseline's value V0 is measured: what baseline trials say of it, and what both sums say at once.

Of n0 baseline trials Y0 is the sum of what they earned, T0 where they went, w0 where the baseline is expected
to go, M0 the sum of the means where they went. Steps 13 to 15 of docs/proof/baseline.md and unknown.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import brief
from saver.kernels.bounds.boundaries import mixture_two_sided, path_bound
from saver.kernels.bounds.noise import excess, least


@brief
def means_between(
    gained: float, hides: float, v: float, length: float, rule: Any, rho: float, level: float
) -> Any:
    """Between these is M0: Y0 less and more what is hidden of it, and what noise may have added."""
    if rule.bounded:
        twice = (rule.low + rule.high) * length
        below = least(gained - hides, 0.0, length, rule)
        return below, twice - least(twice - gained - hides, 0.0, length, rule)
    u = mixture_two_sided(v, rho, level) if v > 0.0 else 0.0
    return gained - hides - u, gained + hides + u


@brief
def returns_between(gained: float, hidden: float, Q: float, R: float, span: float, rule: Any) -> Any:
    """The same of bounded returns; of a hidden one nothing is known but its range."""
    above = hidden + excess(Q + hidden, R + hidden, rule)
    below = hidden + excess(Q + hidden, Q - R + hidden, rule)
    return gained - span * above, gained + span * below


@brief
def paths_between(below: float, above: float, count: float, w0: Any, T0: Any, lower: Any, upper: Any) -> Any:
    """Between these is n0 V0, by where the trials went and the box of the means (`path_bound`)."""
    W = count * w0
    return path_bound(below, W, T0, lower, upper), -path_bound(-above, W, T0, -upper, -lower)


@brief
def joint_boundary(v: float, safe_v: float, part: float, rho: float, safe_rho: float, level: float) -> float:
    """beta sqrt(v + rho + part^2 (v0 + rho0)): how far sum C + part Y0 may be from its mean.

    beta^2 = 2 log(1 / level) + log((1 + v / rho) (1 + v0 / rho0)).
    """
    beta = 2.0 * math.log(1.0 / level) + math.log((1.0 + v / rho) * (1.0 + safe_v / safe_rho))
    return math.sqrt(beta * (v + rho + part * part * (safe_v + safe_rho)))


@brief
def joint_paths(
    D: float, kappa: float, count: float, below: float, above: float, W: Any, T: Any, w0: Any, T0: Any,
    lower: Any, upper: Any,
) -> float:  # fmt: skip
    """What designed trials and kappa V0 are worth at least where paths are random; M0 is in [below, above].

    The larger of phi = kappa / n0 and phi = 0 in

        phi M0 + max over theta of theta D + sum_p min over mu_p of (W + kappa w0 - phi T0 - theta T)_p mu_p.
    """
    best = -np.inf
    for phi in (kappa / count, 0.0):
        found = path_bound(D, W + kappa * w0 - phi * T0, T, lower, upper)
        best = max(best, found + phi * (below if phi >= 0.0 else above))
    return best
