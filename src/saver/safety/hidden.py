"""What may be hidden by those who choose what is told, and may know the outcomes: for all choices at once.

Step 10 of docs/proof/losses.md. Of a set of m of the first n trials, at all times and for all sets at once,

    -(noise of the set) <= `unseen(v of the set, rho, log level - log_sets(n, m))`;

where episodes may also be cut off, with `log_choices`. All trials together, expected to visit a pair D times
and at most r times each, do so at most (log(12 / level) + (e^(theta r) - 1) D / r) / theta times, for each of
12 theta (`most_visits`); what is hidden is that less what was told.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import brief
from saver._types import Floats

EIGHT = 8.0  # the mixture over lambda is tuned to this part of one episode's proxy, or of one step's
THETAS = np.geomspace(0.05, 8.0, 12)


@brief
def unseen(v: float, rho: float, log_level: float) -> float:
    """`mixture` for levels that are too small for a float; 0 where nothing is hidden."""
    if v <= 0.0:
        return 0.0
    t = 0.5 * math.log((v + rho) / rho) - math.log(2.0) - log_level
    return math.sqrt(2.0 * (v + rho) * (max(t, 0.0) + math.log1p(math.exp(-abs(t)))))


@brief
def log_sets(n: float, m: float) -> float:
    """log of (n + 1) C(n, m)."""
    return math.lgamma(n + 2.0) - math.lgamma(m + 1.0) - math.lgamma(n - m + 1.0)


def log_choices(n: int, whole: int, cut: int, starts: int) -> float:
    """The same where `cut` more of the n are hidden from one of `starts` steps on, and the others whole.

    The integral is then over (p, q), uniform where p + q <= 1.
    """
    if not starts:
        return float(log_sets(float(n), float(whole)))
    kept = n - whole - cut
    ways = math.lgamma(n + 3) - math.lgamma(whole + 1) - math.lgamma(cut + 1) - math.lgamma(kept + 1)
    return ways - math.log(2.0) + cut * math.log(starts)


def most_visits(expected: Floats, most: Any, log_level: float) -> Floats:
    """At most so often pairs were visited that were to be visited `expected` times, `most` in one trial."""
    scaled = np.asarray(expected)[..., None] / np.asarray(most)[..., None]
    found = (math.log(len(THETAS)) - log_level + np.expm1(THETAS) * scaled) / THETAS
    result: Floats = np.where(np.asarray(expected) > 0.0, most * found.min(axis=-1), 0.0)
    return result
