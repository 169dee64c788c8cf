"""The mixture of columns whose least entry is largest, compiled: a matrix game by the simplex method.

worst = max over distributions x of min_i (P x)_i = min over distributions y of max_k (y P)_k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner, jit

ROUNDED = 1e-13  # a number that is rounding, where those around it are about 1
PIVOTS = 50  # after so many for each row and column the rule of Bland takes over, which cannot cycle


@jit
def game(P: Any) -> Any:
    """The worst entry, x [n] and y [m] of P [m, n].

    With B = P moved into [1, 2] it is the program max 1.u subject to B'u <= 1, u >= 0, whose slack basis is
    feasible; y is u normalised and x its multipliers normalised. The tableau holds B and takes in its place,
    pivot by pivot, what the rows in the basis are of those outside.
    """
    m, n = P.shape
    low, high = np.min(P), np.max(P)
    span = high - low if high > low else 1.0
    T = np.ones((n + 1, m + 1))
    for k in range(n):
        for i in range(m):
            T[k, i] = 1.0 + (P[i, k] - low) / span
    for i in range(m):
        T[n, i] = -1.0
    T[n, m] = 0.0
    outside, inside = np.arange(m), m + np.arange(n)  # u_i is i, the slack of column k is m + k
    for turn in range(2 * PIVOTS * (m + n)):
        i = entering(T, outside, turn > PIVOTS * (m + n))
        if i < 0:
            break
        k = leaving(T, inside, i)
        pivot(T, k, i)
        outside[i], inside[k] = inside[k], outside[i]
    x, y = np.zeros(n), np.zeros(m)
    for i in range(m):
        if outside[i] >= m:
            x[outside[i] - m] = max(T[n, i], 0.0)
    for k in range(n):
        if inside[k] < m:
            y[inside[k]] = max(T[k, m], 0.0)
    x /= np.sum(x)
    y /= np.sum(y)
    worst = np.inf
    for i in range(m):
        worst = min(worst, np.sum(P[i] * x))
    return worst, x, y


@inner
def entering(T: Any, outside: Any, cautious: bool) -> int:
    """The column to bring into the basis, or -1 at the optimum."""
    n, m = T.shape[0] - 1, T.shape[1] - 1
    chosen = -1
    for i in range(m):
        if T[n, i] < -ROUNDED:
            better = chosen < 0 or (outside[i] < outside[chosen] if cautious else T[n, i] < T[n, chosen])
            chosen = i if better else chosen
    return chosen


@inner
def leaving(T: Any, inside: Any, i: int) -> int:
    """The row that limits column i first; of equal ones the first in number."""
    n, m = T.shape[0] - 1, T.shape[1] - 1
    chosen, least = -1, np.inf
    for k in range(n):
        if T[k, i] > ROUNDED:
            ratio = T[k, m] / T[k, i]
            if ratio < least or (ratio == least and inside[k] < inside[chosen]):
                chosen, least = k, ratio
    return chosen


@inner
def pivot(T: Any, k: int, i: int) -> None:
    """Exchange row k and column i."""
    by = 1.0 / T[k, i]
    for j in range(T.shape[1]):
        if j != i:
            T[k, j] *= by
    for h in range(T.shape[0]):
        if h != k:
            for j in range(T.shape[1]):
                if j != i:
                    T[h, j] -= T[h, i] * T[k, j]
            T[h, i] *= -by
    T[k, i] = by
