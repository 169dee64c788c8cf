"""Intervals at all times where nothing rigorous is known: right in the limit, and none before a start.

Half the length of the interval at one time is about z standard errors. At all times it is that many times
sqrt((k + rho) / k log((k + rho) / (rho miss^2))) / z after k episodes, Robbins' mixture for a mean of k
(`mixture_two_sided`), tightest about a quarter of the campaign: Waudby-Smith, Arbour, Sinha, Kennedy and
Ramdas, Time-uniform central limit theory and asymptotic confidence sequences, Annals of Statistics 52(6),
2024.

The start is where the skewness g of T rewards adds at most EXCESS times its own to the probability that the
error of their mean is below -y standard errors, y that boundary where it is tightest (Hall, The Bootstrap and
Edgeworth Expansion, 1992, section 2.6):

    T >= (g y (2 y^2 + 1) / (6 EXCESS))^2.

Every pair needs its samples, because designs visit a pair by what they were. That a boundary which is looked
at from the start on pays for EXCESS is measured, with rewards as skewed as SKEWNESS
(benchmarks/results/inthelimit.md); docs/anytime.md says more. No number is enough for every law: a pair whose
rewards all agree shows nothing of how they vary, and has not started.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._types import Floats
from saver.estimate.interval import DECLARE, Estimate
from saver.kernels.bounds.boundaries import best_rho, mixture_two_sided

QUARTER = 0.25
SKEWNESS = 7.0  # of one reward: a coin of .02 has 6.9, exp of a standard normal 6.2
EXCESS = 2.0  # of the probability of a miss to one side


def stretched(episodes: Any, planned: int, level: float) -> Floats:
    """How much wider an interval at all times is than one at one time, after so many `episodes`."""
    from scipy.special import ndtri

    k, miss = np.maximum(np.asarray(episodes, dtype=np.float64), 1.0), 1.0 - level
    rho = best_rho(QUARTER * planned, miss)
    return mixture_two_sided(k, rho, miss) / np.sqrt(k) / ndtri(0.5 + level / 2)


def start(level: float) -> int:
    """How many episodes, and samples of each pair that has weight, it takes: 1,183 at level .95."""
    miss = 1.0 - level
    y = float(mixture_two_sided(1.0, best_rho(1.0, miss), miss))
    return math.ceil((SKEWNESS * y * (2.0 * y * y + 1.0) / (6.0 * EXCESS)) ** 2)


def in_the_limit(found: Estimate, episodes: int, planned: int, level: float, promised: bool) -> Estimate:
    """An estimate with its interval at all times, which has no ends before the start.

    Where rewards are promised (and transitions are not known), a pair seen little counts as it was declared,
    and episodes alone make the start.
    """
    needed, fewest = start(level), found.fewest
    if episodes >= needed and (promised or fewest >= needed):
        return found.stretched(float(stretched(episodes, planned, level)))
    said = f"none at all times before {needed:,} episodes ({episodes:,} so far)"
    if promised:
        return found.unstarted(f"{said}, because transitions are not known")
    return found.unstarted(
        f"{said} and {needed:,} samples, not all equal, of every pair that has weight ({fewest:,} so far), "
        f"because nothing is declared about rewards: {DECLARE}"
    )


def heavy(found: Estimate) -> Estimate:
    """An estimate by importance weights: of these no skewness is known, and no number is enough."""
    return found.unstarted(f"none at all times by importance weights, which are heavy-tailed: {DECLARE}")
