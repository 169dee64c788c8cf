"""Time-uniform boundaries: with the stated probability a process never crosses them, at any time.

Howard, Ramdas, McAuliffe and Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals
of Statistics 49(2), 2021. Here v is the accumulated variance proxy, `level` the probability of a crossing.

And what a sum of policies is worth, by where the episodes went and the box of the means. Over told designed
trials let W be the expected discounted visits (the model is known), T the realised ones. The values sum to
W.mu, and T.mu >= D by the noise alone (`noise.least`). Every mean lies in [lower, upper], so for any
theta >= 0

    sum of V >= theta D + sum_p min over mu_p of (W_p - theta T_p) mu_p,

and the best theta is that of a fractional knapsack (step 5 of docs/proof.md).
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


ROUNDING = 1e-9  # of the sums: a smaller slope may be nothing but rounding, which theta would multiply


@brief
def path_bound(D: float, W: Any, T: Any, lower: Any, upper: Any) -> float:
    """The largest of these bounds; W, T and the ends are [pairs]."""
    theta = best_theta(D, W, T, lower, upper)
    total = theta * D
    for p in range(len(W)):
        rest = W[p] - theta * T[p]
        total += rest * (lower[p] if rest >= 0.0 else upper[p])
    return total if total < np.inf else -np.inf  # numbers too small to divide by say nothing


@jit
def best_theta(D: float, W: Any, T: Any, lower: Any, upper: Any) -> float:
    """The theta of the largest bound: where D - sum T mu(theta) turns negative, found as a weighted median.

    mu_p is `lower` up to theta = W_p / T_p and `upper` from there on, T >= 0.
    """
    ratio, drop = np.empty(len(W)), np.empty(len(W))
    slope, size, n, theta = D, abs(D), 0, 0.0
    for p in range(len(W)):
        if T[p] > 0.0 and W[p] < 0.0:
            slope -= T[p] * upper[p]
            size += T[p] * abs(upper[p])
        elif T[p] > 0.0:
            slope -= T[p] * lower[p]
            size += T[p] * max(abs(lower[p]), abs(upper[p]))
            ratio[n], drop[n] = W[p] / T[p], T[p] * (upper[p] - lower[p])
            n += 1
    while slope > ROUNDING * size and n > 0:
        one, other, third = ratio[0], ratio[n // 2], ratio[n - 1]
        pivot = max(min(one, other), min(max(one, other), third))
        left, below, through = n, 0.0, 0.0
        for i in range(left):  # no branches: they would be guessed wrong
            x = drop[i]
            below += x if ratio[i] < pivot else 0.0
            through += x if ratio[i] <= pivot else 0.0
        beyond = below < slope
        if beyond:
            theta, slope = pivot, slope - through
        n = 0
        for i in range(left):
            keep = ratio[i] > pivot if beyond else ratio[i] < pivot
            ratio[n], drop[n] = ratio[i], drop[i]
            n += 1 if keep else 0
    return theta
