"""The exact safe design where there is one decision: a closed form up to one root.

minimise sum w_a^2 / b_a over distributions b with b . mean >= required. With multipliers nu and lambda the
solution is b_a = w_a / sqrt(nu - lambda mean_a) where w_a > 0. If those actions cannot reach the bound,
nu = lambda max(mean) and the rest of the mass goes to actions of weight 0 that attain the maximum.
"""

from __future__ import annotations

import numpy as np

from saver.problem.checks import Floats


def one_state(w: Floats, mean: Floats | None, required: float) -> tuple[Floats, float]:
    """B and lambda for weights w >= 0, not all 0, and a bound that some action exceeds."""
    free = w / w.sum()
    if mean is None or free @ mean >= required:
        return free, 0.0
    top = mean.max()
    used = w > 0
    if mean[used].max() < top:
        k = w[used] / np.sqrt(top - mean[used])
        scale = (top - required) / (k @ (top - mean[used]))
        if scale * k.sum() <= 1.0:
            b = np.zeros_like(w)
            b[used] = scale * k
            rest = ~used & (mean == top)
            b[rest] = (1.0 - b.sum()) / rest.sum()
            return b, 1.0 / scale**2
    return _root(w, mean, required, top)


def _root(w: Floats, mean: Floats, required: float, top: float) -> tuple[Floats, float]:
    """Find u = nu / lambda > top with b_u . mean = required, b_u = w / sqrt(u - mean) normalised.

    b_u . mean falls in u, so bisection on log(u - top) settles it to the last digit.
    """
    below = top - mean

    def at(exponent: float) -> Floats:
        b = np.where(w > 0, w / np.sqrt(np.exp(exponent) + below), 0.0)
        return np.asarray(b / b.sum())

    span = max(below.max(), abs(top), np.finfo(float).tiny)
    low, high = np.log(span) - 600.0, np.log(span) + 80.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if at(middle) @ mean >= required else (low, middle)
    b = at(low)
    used = w > 0
    # At the optimum w_a^2 / b_a^2 = nu - lambda mean_a = lambda (u - mean_a) for every action in use.
    prices = w[used] ** 2 / b[used] ** 2
    return b, float(np.mean(prices / (np.exp(low) + below[used])))
