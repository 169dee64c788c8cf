"""The exact safe design at the only decision of a model, for the compiled engine and the reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import jit
from saver.design.game import game
from saver.design.interior import several
from saver.design.single import ROUNDING, one_state

ROOM = 1e-7  # below the best balance, of the spans, that makes room to search in


@jit
def one_decision(w: Any, mean: Any, allowed: Any, required: Any) -> Any:
    """The design [A] for costs w = c^2 variance at the only decision, rounded to the safe side.

    One guardrail is a mean [A] and a number, m of them are means [m, A] and `required` [m]. Even over the
    allowed actions if nothing costs; as close to `required` as can be if it is out of reach.
    """
    if mean.ndim == 1:
        return under_one(w, mean, allowed, required)
    else:  # noqa: RET505 - only one of the two is compiled
        if mean.shape[0] == 1:
            return under_one(w, mean[0], allowed, required[0])
        return under_several(w, mean, allowed, required)


@jit
def under_one(w: Any, mean: Any, allowed: Any, required: float) -> Any:
    """`one_decision` for one guardrail, mean [A]."""
    n, top, safest, costly = 0, -np.inf, 0, False
    costs, means, at = np.empty(len(w)), np.empty(len(w)), np.empty(len(w), dtype=np.int64)
    for a in range(len(w)):
        if allowed[a]:
            costs[n], means[n], at[n] = np.sqrt(w[a]), mean[a], a
            costly = costly or w[a] > 0.0
            if mean[a] > top:
                top, safest = mean[a], a
            n += 1
    required = min(required, top)
    b = np.zeros(len(w))
    part = one_state(costs[:n], means[:n], required)[0] if costly else np.full(n, 1.0 / n)
    earned, size = 0.0, 0.0
    for i in range(n):
        b[at[i]] = part[i]
        earned += part[i] * means[i]
        size += part[i] * abs(means[i])
    if earned < required - ROUNDING * (size + abs(required)):
        share = min(1.0, (required - earned) / (top - earned))
        for a in range(len(w)):
            b[a] *= 1.0 - share
        b[safest] += share
    return b


@jit
def under_several(w: Any, means: Any, allowed: Any, required: Any) -> Any:
    """`one_decision` for several guardrails, means [m, A].

    Out of reach alone, a guardrail asks for the most it can have; out of reach together, all are lowered by
    the same share of their spans. What is found is mixed with the most balanced point until it is safe.
    """
    at = np.flatnonzero(allowed)
    M, r, scale = means[:, at], required.copy(), np.empty(len(required))
    for i in range(len(r)):
        top = np.max(M[i])
        r[i], scale[i] = min(r[i], top), top - np.min(M[i])
    root = np.sqrt(w[at])
    part, total = np.full(len(at), 1.0 / len(at)), np.sum(root)
    if total > 0.0:
        part = root / total
    if missing_share(part, part, M, r) > 0.0:
        worst, safest = balance_of(M, r, scale)
        for i in range(len(r)):
            r[i] += min(worst, 0.0) * scale[i]
        if total > 0.0:
            part = several(root, M, r - max(0.0, ROOM - max(worst, 0.0)) * scale)[0]
        share = missing_share(part, safest, M, r)
        part = (1.0 - share) * part + share * safest
    b = np.zeros(len(w))
    for k in range(len(at)):
        b[at[k]] = part[k]
    return b


@jit
def balance_of(M: Any, r: Any, scale: Any) -> Any:
    """The largest least (M b - r) / scale and its b; guardrails that no action moves are left out."""
    count = 0
    payoff = np.empty(M.shape)
    for i in range(len(r)):
        if scale[i] > ROUNDING * (np.max(np.abs(M[i])) + abs(r[i])):
            for a in range(M.shape[1]):
                payoff[count, a] = (M[i, a] - r[i]) / scale[i]
            count += 1
    if count == 0:
        return 0.0, np.full(M.shape[1], 1.0 / M.shape[1])
    worst, x, _ = game(payoff[:count])
    return worst, x


@jit
def missing_share(b: Any, safest: Any, M: Any, r: Any) -> float:
    """The share of `safest` that makes b feasible; 1 if b is `safest` and is not."""
    share = 0.0
    for i in range(len(r)):
        earned, most, size = 0.0, 0.0, abs(r[i])
        for a in range(len(b)):
            earned += b[a] * M[i, a]
            most += safest[a] * M[i, a]
            size += b[a] * abs(M[i, a])
        missing = r[i] - earned
        if missing > ROUNDING * size:
            share = max(share, min(1.0, missing / max(most - earned, missing)))
    return share
