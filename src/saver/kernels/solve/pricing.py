"""What a visit is worth where transitions are learned, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import jit
from saver.problem.moving import worth


@jit
def carry(
    indptr: Any, indices: Any, data: Any, start: Any, pi: Any, Y: Any, discount: float, factors: Any,
    c: Any, u: Any, reach: Any,
) -> None:  # fmt: skip
    """The sums of `forward`, step by step; the policy is [1, S, A], or [L, S, A]."""
    S, A = c.shape
    mass, arriving = start.copy(), np.zeros(S)
    for t in range(len(factors)):
        span, row = max(Y[t + 1].max(), 0.0) - min(Y[t + 1].min(), 0.0), t if len(pi) > 1 else 0
        for s in range(S):
            for a in range(A if mass[s] != 0.0 else 0):
                p, flow, step = s * A + a, factors[t] * mass[s] * pi[row, s, a], mass[s] * pi[row, s, a]
                c[s, a] += flow
                reach[p] += discount * flow * span
                for e in range(indptr[p], indptr[p + 1]):
                    u[e] += discount * flow * Y[t + 1, indices[e]]
                    arriving[indices[e]] += data[e] * step
        mass, arriving = arriving, mass
        arriving[:] = 0.0


@jit
def covary(
    indptr: Any, counts: Any, paid: Any, ends: Any, ends_paid: Any, chance: Any, u: Any, out: Any
) -> None:
    """`covariance`, pair by pair."""
    for p in range(len(out)):
        n, total, centre, apart = 0.0, 0.0, 0.0, 0.0
        for e in range(indptr[p], indptr[p + 1]):
            n += counts[e]
            total += paid[e]
            centre += chance[e] * u[e]
        n = max(n + ends[p], 1.0)
        mean = (total + ends_paid[p]) / n
        for e in range(indptr[p], indptr[p + 1]):
            apart += (paid[e] - counts[e] * mean) * (u[e] - centre)
        out[p] = (apart - (ends_paid[p] - ends[p] * mean) * centre) / max(n - 1.0, 1.0)


@jit
def disperse(indptr: Any, chance: Any, u: Any, out: Any) -> None:
    """Var_{s' ~ P}[u] of each pair; what a row lacks to 1 is an end, which has u = 0."""
    for p in range(len(out)):
        total, centre, found = 0.0, 0.0, 0.0
        for e in range(indptr[p], indptr[p + 1]):
            total += chance[e]
            centre += chance[e] * u[e]
        for e in range(indptr[p], indptr[p + 1]):
            found += chance[e] * ((u[e] - centre) * (u[e] - centre))
        out[p] = found + max(1.0 - total, 0.0) * (centre * centre)


@jit
def priced(
    indptr: Any, indices: Any, chance: Any, start: Any, discount: float, factors: Any, policies: Any,
    signs: Any, mean: Any, variance: Any, counts: Any, paid: Any, ends: Any, ends_paid: Any,
) -> Any:  # fmt: skip
    """The sums of `prices`; `counts` and what was paid are empty where nothing was told."""
    S, A = mean.shape
    n = len(policies)
    own, ahead, first = np.zeros((n, S, A)), np.zeros((n, len(chance))), np.zeros((n, S))
    by_reward, by_move, by_start, each = np.zeros((S, A)), np.zeros((S, A)), 0.0, np.zeros(S * A)
    for k in range(n):
        Y = np.zeros((len(factors) + 1, S))
        worth(indptr, indices, chance, policies[k], mean, discount, Y)
        carry(indptr, indices, chance, start, policies[k], Y, discount, factors, own[k], ahead[k], each)
        first[k] = Y[0]
    for i in range(len(signs)):
        c, u, v = np.zeros((S, A)), np.zeros(len(chance)), np.zeros(S)
        for k in range(n):
            c += signs[i, k] * own[k]
            u += signs[i, k] * ahead[k]
            v += signs[i, k] * first[k]
        by_reward += c * c * variance
        if len(ends) > 0:
            covary(indptr, counts, paid, ends, ends_paid, chance, u, each)
            by_reward += 2.0 * c * each.reshape((S, A))
        disperse(indptr, chance, u, each)
        by_move += each.reshape((S, A))
        centre = np.sum(start * v)
        by_start += np.sum(start * v * v) - centre * centre
    return by_reward, by_move, by_start
