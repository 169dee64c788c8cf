"""Time-uniform boundaries: with the stated probability a process never crosses them, at any time.

Howard, Ramdas, McAuliffe and Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals
of Statistics 49(2), 2021. Here v is the accumulated variance proxy, `level` the probability of a crossing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import brief, jit

ETA, S = 2.0, 1.4
ZETA = 3.105547277977581  # sum over k >= 1 of k^-S
K1 = (ETA**0.25 + ETA**-0.25) / math.sqrt(2.0)
K2 = (math.sqrt(ETA) + 1.0) / 2.0


@brief
def mixture(v: float, rho: float, level: float) -> float:
    """One-sided normal mixture, sub-Gaussian: sqrt(2 (v+rho) log(sqrt((v+rho)/rho) / (2 level) + 1))."""
    return math.sqrt(2.0 * (v + rho) * math.log(math.sqrt((v + rho) / rho) / (2.0 * level) + 1.0))


@jit
def mixture_table(unit: float, count: int, rho: float, level: float) -> Any:
    """`mixture` after 0, 1, ..., `count` additions of `unit`; 0 before the first."""
    table, v = np.zeros(count + 1), 0.0
    for j in range(1, count + 1):
        v += unit
        table[j] = mixture(v, rho, level)
    return table


@jit
def mixture_two_sided(v: Any, rho: float, level: float) -> Any:
    """Two-sided normal mixture (Robbins): sqrt((v+rho) log((v+rho) / (rho level^2)))."""
    return np.sqrt((v + rho) * np.log((v + rho) / (rho * level * level)))


@brief
def stitched(v: float, start: float, scale: float, level: float) -> float:
    """Stitched sub-gamma boundary for v >= start, flat before: Theorem 1 with h(k) = (k+1)^s zeta(s).

    sqrt(k1^2 v l + k2^2 scale^2 l^2) + k2 scale l, l = s log log_eta(eta v / start) + log(zeta(s) / level).
    """
    v = max(v, start)
    ell = S * math.log(math.log(ETA * v / start) / math.log(ETA)) + math.log(ZETA / level)
    linear = K2 * scale * ell
    return math.sqrt(K1 * K1 * v * ell + linear * linear) + linear


def best_rho(v: float, level: float) -> float:
    """The mixture parameter that makes the boundary tightest about v."""
    twice = 2.0 * math.log(1.0 / level)
    return v / (twice + math.log1p(twice))
