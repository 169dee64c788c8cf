"""The exact safe design where there is one decision and one guardrail: a closed form up to one root.

minimise sum w_a^2 / b_a over distributions b with b . mean >= required. With multipliers nu and lambda the
solution is b_a = w_a / sqrt(nu - lambda mean_a) where w_a > 0. If those actions cannot reach the bound,
nu = lambda max(mean) and the rest of the mass goes to actions of weight 0 that attain the maximum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import jit

HALVINGS = 90  # of an interval of 680 in the logarithm: beyond the last digit
ROUNDING = 4 * float(np.finfo(float).eps)  # of the numbers whose difference the constraint is


@jit
def one_state(w: Any, mean: Any, required: float) -> Any:
    """b and lambda for weights w >= 0, not all 0, and a bound that is attainable."""
    b = w / np.sum(w)
    if np.sum(b * mean) >= required - ROUNDING * (np.sum(b * np.abs(mean)) + abs(required)):
        return b, 0.0
    top = np.max(mean)
    size, lost, room = 0.0, 0.0, np.inf  # sums of k and of k (top - mean), k = w / sqrt(top - mean)
    for a in range(len(w)):
        if w[a] > 0.0:
            below = top - mean[a]
            room = min(room, below)
            if below > 0.0:
                size += w[a] / np.sqrt(below)
                lost += w[a] * np.sqrt(below)
    if room > 0.0 and (top - required) * size <= lost:
        scale = (top - required) / lost
        idle = 0
        for a in range(len(w)):
            b[a] = scale * w[a] / np.sqrt(top - mean[a]) if w[a] > 0.0 else 0.0
            idle += w[a] == 0.0 and mean[a] == top
        rest = max(0.0, 1.0 - np.sum(b)) / idle
        for a in range(len(w)):
            if w[a] == 0.0 and mean[a] == top:
                b[a] = rest
        return b, 1.0 / (scale * scale)
    return root(w, mean, required, top)


@jit
def root(w: Any, mean: Any, required: float, top: float) -> Any:
    """Find u = nu / lambda > top with b_u . mean = required, b_u = w / sqrt(u - mean) normalised.

    b_u . mean falls in u, so bisection on log(u - top) settles it.
    """
    below = top - mean
    span = np.log(max(np.max(below), abs(top), 1e-300))
    low, high = span - 600.0, span + 80.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        b = w / np.sqrt(np.exp(middle) + below)
        if np.sum(b * mean) >= required * np.sum(b):
            low = middle
        else:
            high = middle
    b = w / np.sqrt(np.exp(low) + below)
    total = np.sum(b)
    # For actions in use w^2 / b^2 = lambda (u - mean); before normalising w^2 / b^2 = u - mean.
    return b / total, total * total


@jit
def under_one(w: Any, mean: Any, allowed: Any, required: float) -> Any:
    """The design [A] for costs w = c^2 variance at the only decision, rounded to the safe side.

    Even over the allowed actions if nothing costs; as close to `required` as can be if it is out of reach.
    """
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
