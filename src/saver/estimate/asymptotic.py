"""Intervals at all times where nothing is promised about rewards: right in the limit of many episodes.

Half the length of the interval at one time is about z standard errors. At all times it is that many times
sqrt((k + rho) / k log((k + rho) / (rho miss^2))) / z after k episodes, Robbins' mixture for a mean of k
(`mixture_two_sided`), tightest about a quarter of the campaign: Waudby-Smith, Arbour, Sinha, Kennedy and
Ramdas, Time-uniform central limit theory and asymptotic confidence sequences, Annals of Statistics 52(6),
2024.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._types import Floats
from saver.safety.boundaries import best_rho, mixture_two_sided

QUARTER = 0.25


def stretched(episodes: Any, planned: int, level: float) -> Floats:
    """How much wider an interval at all times is than one at one time, after so many `episodes`."""
    from scipy.special import ndtri

    k, miss = np.maximum(np.asarray(episodes, dtype=np.float64), 1.0), 1.0 - level
    rho = best_rho(QUARTER * planned, miss)
    found: Floats = mixture_two_sided(k, rho, miss) / np.sqrt(k) / ndtri(0.5 + level / 2)
    return found
