"""SEPEC, the bandit design of Wan, Kveton and Song (2022), as far as it is known.

One behaviour, chosen before it is played, that minimises the variance of an importance-weighted estimate,
sum pi^2 (variance + mean^2) / b, under the safety constraint. (Safe exploration for efficient policy
evaluation and comparison, ICML 2022.)
"""

from __future__ import annotations

import numpy as np

from saver._types import Bools, Floats
from saver.design.onestate import one_decision


def without_side_information(target: Floats, baseline: Floats, alpha: float) -> Floats:
    """b = max((1 - alpha) pi_0, pi / nu), nu such that it sums to 1: safe for any constraint means >= 0.

    It minimises sum pi^2 / b over b >= (1 - alpha) pi_0, as if variance + mean^2 were the same everywhere.
    """
    least = (1.0 - alpha) * baseline
    above = target > 0  # those at pi / nu; the others stay at the least
    while True:
        share = (1.0 - least[~above].sum()) / target[above].sum()
        falling = above & (share * target < least)
        if not falling.any():
            return np.where(above, share * target, least)
        above &= ~falling


def with_side_information(
    target: Floats, second_moment: Floats, constraint_mean: Floats, required: float, allowed: Bools
) -> Floats:
    """The b that minimises sum pi^2 second_moment / b with b . constraint_mean >= required."""
    b: Floats = one_decision(target**2 * second_moment, np.array(constraint_mean), allowed, required)
    return b
