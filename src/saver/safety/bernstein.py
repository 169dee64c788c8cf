"""Empirical Bernstein: how far a sum of variables in [0, 1] may be above the sum of their means.

Let X be in [0, 1] with mean V given the past, g in [0, 1] a guess of it that is fixed before, 0 < lambda < 1
and psi(lambda) = -log(1 - lambda) - lambda. Then (step 15 of docs/proof/unknown.md)

    E exp(lambda (X - V) - ((1 - g) lambda^2 / 2 + g psi(lambda)) (X - g)^2) <= 1,

so the sum of X - V is at most excess(Q, R), Q = sum (X - g)^2 and R = sum g (X - g)^2, and that of V - X
at most excess(Q, Q - R).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief, jit
from saver._types import Floats
from saver.problem.history import BEFORE
from saver.safety.noise import FASTEST, RATES, ROUNDS, SLOWEST

CLOSE = 1e-12  # the log of the mixture at the root
LIKELY = np.array(
    [1.0, 2.0, 3.0, 3.0, 2.0, 1.0]
)  # weights of the rates: the ends are for worlds that are odd
DOUBTED = 10.0  # trials after which what is believed of a trial counts half


class Bernstein(NamedTuple):
    """The numbers of `excess`, fixed before the first episode."""

    rates: Floats  # lambda
    costs: Floats  # psi
    weights: Floats  # logs, the level included

    @classmethod
    def of(cls, level: float, episodes: float) -> Bernstein:
        """Tightest after about so many episodes.

        (log(1 / level) + psi Q) / lambda is least near lambda = x / (1 + x), x = sqrt(2 log(1 / level) / Q).
        """
        x = math.sqrt(2.0 * math.log(1.0 / level) / episodes) * np.geomspace(SLOWEST, FASTEST, RATES)
        rates = x / (1.0 + x)
        return cls(rates, np.log1p(x) - rates, np.log(level * LIKELY / np.sum(LIKELY)))


@brief
def guessed(n: float, total: float, believed: float) -> float:
    """What the next trial will earn, after n that earned so much, all in [0, 1].

    The average; or what is believed of this trial alone, which counts the more the more was seen. NaN where
    nothing is.
    """
    average = (BEFORE + total) / (1.0 + n)
    if math.isnan(believed):
        return average
    return min(max((n * believed + DOUBTED * average) / (n + DOUBTED), 0.0), 1.0)


@jit
def cost(Q: float, R: float, rule: Any, i: int) -> Any:
    """sum ((1 - g) lambda^2 / 2 + g psi) (X - g)^2 at the i-th rate."""
    return rule.rates[i] * rule.rates[i] / 2.0 * (Q - R) + rule.costs[i] * R


@brief
def excess(Q: float, R: float, rule: Any) -> float:
    """The root in u of "average over lambda of exp(lambda u - cost) = 1 / level", from above.

    The log of the average is convex and grows in u: from the right Newton's steps never pass the root.
    """
    u = np.inf
    for i in range(len(rule.rates)):
        u = min(u, (cost(Q, R, rule, i) - rule.weights[i]) / rule.rates[i])
    for _ in range(ROUNDS):
        top, total, slope = -np.inf, 0.0, 0.0
        for i in range(len(rule.rates)):
            top = max(top, rule.weights[i] + rule.rates[i] * u - cost(Q, R, rule, i))
        for i in range(len(rule.rates)):
            part = math.exp(rule.weights[i] + rule.rates[i] * u - cost(Q, R, rule, i) - top)
            total += part
            slope += part * rule.rates[i]
        height = top + math.log(total)
        if height <= CLOSE:
            break
        u -= height * total / slope
    return u
