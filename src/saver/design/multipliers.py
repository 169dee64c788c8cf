"""The multipliers of a step under several guardrails, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner, jit

LARGEST_MULTIPLIER = 1e30  # where only the safest behaviour will do
RIDGE = 1e-3  # of the diagonal, around the multipliers of the last step
SWEEPS = 300  # most steps settle in a few
SETTLED = 1e-6  # a change that is too small to matter, of the largest


@inner
def multiplier_for(missing: float, slope: float) -> float:
    """The smallest m >= 0 with slope m >= missing."""
    if missing <= 0.0 or slope <= 0.0:
        return 0.0
    return min(missing / slope, LARGEST_MULTIPLIER)


@jit
def multipliers_for(missing: Any, slope: Any, found: Any) -> None:
    """Nonnegative least squares: found >= 0, slope found >= missing, equal where found > 0.

    Coordinate by coordinate from the last step's multipliers, and with a ridge around them: nearly parallel
    guardrails share what is missing as they did before, instead of pulling against each other without end;
    where the multipliers rest the ridge changes nothing.
    """
    m = len(found)
    last = found.copy()
    for _ in range(SWEEPS):
        change, size = 0.0, 0.0
        for i in range(m):
            if slope[i, i] <= 0.0:
                found[i] = 0.0
                continue
            rest = missing[i] + RIDGE * slope[i, i] * last[i]
            for k in range(m):
                if k != i:
                    rest -= slope[i, k] * found[k]
            new = min(max(rest / ((1.0 + RIDGE) * slope[i, i]), 0.0), LARGEST_MULTIPLIER)
            root = np.sqrt(slope[i, i])
            change, size = max(change, root * abs(new - found[i])), max(size, root * new)
            found[i] = new
        if change <= SETTLED * size:
            break
