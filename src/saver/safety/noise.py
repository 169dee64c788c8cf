"""From what was observed to what it was worth: a lower bound of the discounted means along the way.

Let C = sum discount^t C_t over all steps seen, M = sum discount^t mu(s_t, a_t), G = sum discount^t. With the
stated probability M >= `least` after every episode:

- sub-Gaussian noise: M >= C - u(v), u the one-sided normal mixture, v = scale^2 sum discount^2t;
- observations in [low, high], taken to [0, 1]: for any lambda > 0

      exp(lambda C - G log(1 + (M / G) (e^lambda - 1)))

  is below a supermartingale that starts at 1, and so is a mixture over a fixed grid of lambda: the root in M
  of "mixture = 1 / level" is the bound.

Step 3 of docs/proof.md and docs/proof/bounded.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief, jit
from saver._types import Floats
from saver.problem.promise import Bounded, SubGaussian
from saver.safety.boundaries import best_rho, mixture

RATES, SLOWEST, FASTEST = (
    6,
    1.6,
    14.0,
)  # the grid: how many, from and to, in units of sqrt(2 log(1/level) / n)
CLOSE, ROUNDS = 1e-9, 60  # the log of the mixture at the root is from 0 to twice this; 7 steps are usual


class Rule(NamedTuple):
    """The numbers of `least`, fixed before the first episode."""

    bounded: bool
    rho: float
    level: float
    low: float
    high: float
    rates: Floats  # lambda; none where noise is sub-Gaussian
    growth: Floats  # e^lambda - 1
    weights: Floats  # logs, the level included: the mixture is below 1 / level where their sum is below 1

    @classmethod
    def of(cls, promise: SubGaussian | Bounded, level: float, proxy: float, length: float) -> Rule:
        """Tightest when about `proxy` of variance, or `length` of steps, was collected."""
        if not isinstance(promise, Bounded):
            nothing = np.zeros(0)
            rho = best_rho(proxy, level) if proxy > 0.0 else 1.0
            return cls(False, rho, level, 0.0, 0.0, nothing, nothing, nothing)
        unit = math.sqrt(2.0 * math.log(1.0 / level) / length)
        rates = unit * np.geomspace(SLOWEST, FASTEST, RATES)
        weights = np.full(RATES, math.log(level / RATES))
        return cls(True, 1.0, level, promise.low, promise.high, rates, np.expm1(rates), weights)


@brief
def least(total: float, v: float, length: float, rule: Any) -> Any:
    """The bound of M, from C, v and G; 0 before the first step."""
    if not rule.bounded:
        return total - mixture(v, rule.rho, rule.level) if v > 0.0 else total
    if length <= 0.0:
        return 0.0
    span: float = rule.high - rule.low
    floor: float = rule.low * length
    return floor + span * fewest((total - floor) / span, length, rule)


@brief
def missing(rate: float, v: float, length: float, rule: Any) -> Any:
    """How far `least` is below what was seen, after so much, if `rate` is seen in every step."""
    return rate * length - least(rate * length, v, length, rule)


@jit
def fewest(S: float, G: float, rule: Any) -> float:
    """The root in M for observations in [0, 1] with sum S and weight G, from below.

    The log of the mixture is convex and falls in M: from the left Newton's steps never pass the root.
    """
    if S <= 0.0:
        return 0.0
    S = min(S, G)
    l = 1.0 - math.log(rule.level)  # noqa: E741
    M = S - math.sqrt(2.0 * l * S * (1.0 - S / G) + l * l) - l
    for _ in range(ROUNDS):
        M = max(M, 0.0)
        top, total, slope = -np.inf, 0.0, 0.0
        for i in range(len(rule.rates)):
            top = max(top, rule.weights[i] + rule.rates[i] * S - G * math.log1p(M / G * rule.growth[i]))
        for i in range(len(rule.rates)):
            grown = 1.0 + M / G * rule.growth[i]
            part = math.exp(rule.weights[i] + rule.rates[i] * S - G * math.log(grown) - top)
            total += part
            slope += part * rule.growth[i] / grown
        height = top + math.log(total) - CLOSE
        if abs(height) <= CLOSE or (height < 0.0 and M == 0.0):
            return M
        M += height * total / slope
    return 0.0
