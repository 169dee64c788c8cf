"""From what was observed to what it was worth, and what may be hidden by those who choose what is told.

Let C = sum discount^t C_t over all steps seen, M = sum discount^t mu(s_t, a_t), G = sum discount^t. With the
stated probability M >= `least` after every episode (step 3 of docs/proof.md, docs/proof/bounded.md):

- sub-Gaussian noise: M >= C - u(v), u the one-sided normal mixture, v = scale^2 sum discount^2t;
- observations in [low, high], taken to [0, 1]: M is at least the root of "average over a fixed grid of lambda
  of exp(lambda C - G log(1 + (M / G) (e^lambda - 1))) = 1 / level".

Let returns X in [0, 1] have the mean V given the past, and g in [0, 1] be guesses made before. The sum of
X - V is at most excess(Q, R), Q = sum (X - g)^2 and R = sum g (X - g)^2, and that of V - X at most
excess(Q, Q - R) (empirical Bernstein, docs/proof/unknown.md).

What is hidden of trials, `unseen` and `most_visits`, is step 10 of docs/proof/losses.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief, jit
from saver._types import Floats
from saver.kernels.bounds.boundaries import best_rho, mixture, mixture_two_sided
from saver.problem.history import BEFORE
from saver.problem.promise import Bounded, SubGaussian

RATES, SLOWEST, FASTEST = 6, 1.6, 14.0  # the grid: how many, from and to, times sqrt(2 log(1/level) / n)
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


CLOSEST = 1e-12  # the log of the mixture at the root
LIKELY = np.array([1.0, 2.0, 3.0, 3.0, 2.0, 1.0])  # of the rates: the ends are for worlds that are odd
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
        if height <= CLOSEST:
            break
        u -= height * total / slope
    return u


EIGHT = 8.0  # the mixture over lambda is tuned to this part of one episode's proxy, or of one step's
THETAS = np.geomspace(0.05, 8.0, 12)


@brief
def unseen(v: float, rho: float, log_level: float) -> float:
    """`mixture` for levels that are too small for a float; 0 where nothing is hidden."""
    if v <= 0.0:
        return 0.0
    t = 0.5 * math.log((v + rho) / rho) - math.log(2.0) - log_level
    return math.sqrt(2.0 * (v + rho) * (max(t, 0.0) + math.log1p(math.exp(-abs(t)))))


@brief
def log_sets(n: float, m: float) -> float:
    """log of (n + 1) C(n, m)."""
    return math.lgamma(n + 2.0) - math.lgamma(m + 1.0) - math.lgamma(n - m + 1.0)


def log_choices(n: int, whole: int, cut: int, starts: int) -> float:
    """The same where `cut` more of the n are hidden from one of `starts` steps on, and the others whole.

    The integral is then over (p, q), uniform where p + q <= 1.
    """
    if not starts:
        return float(log_sets(float(n), float(whole)))
    kept = n - whole - cut
    ways = math.lgamma(n + 3) - math.lgamma(whole + 1) - math.lgamma(cut + 1) - math.lgamma(kept + 1)
    return ways - math.log(2.0) + cut * math.log(starts)


def most_visits(expected: Floats, most: Any, log_level: float) -> Floats:
    """At most so often pairs were visited that were to be visited `expected` times, `most` in one trial.

    The least over theta of (log(12 / level) + (e^theta - 1) expected / most) most / theta.
    """
    scaled = np.asarray(expected)[..., None] / np.asarray(most)[..., None]
    found = (math.log(len(THETAS)) - log_level + np.expm1(THETAS) * scaled) / THETAS
    return np.where(np.asarray(expected) > 0.0, most * found.min(axis=-1), 0.0)


class Numbers(NamedTuple):
    """What `ends` needs."""

    proxy: float  # scale^2
    floor: float
    ceiling: float
    below: bool
    rule: Rule


@jit
def ends(T: float, mean: float, numbers: Any) -> Any:
    """The interval of a pair with T samples."""
    low, high, rule = numbers.floor, numbers.ceiling, numbers.rule
    if T <= 0.0:
        return low, high
    total, v = mean * T, numbers.proxy * T
    if rule.bounded:
        bottom = least(total, 0.0, T, rule) / T
        top = high if numbers.below else low + high - least((low + high) * T - total, 0.0, T, rule) / T
    elif numbers.below:
        bottom, top = least(total, v, T, rule) / T, high
    else:
        w = mixture_two_sided(v, rule.rho, rule.level) / T if v > 0.0 else 0.0
        bottom, top = mean - w, mean + w
    return max(bottom, low) if numbers.below else min(max(bottom, low), high), min(max(top, low), high)


@jit
def ends_hiding(T: float, mean: float, hidden: float, numbers: Any, log_level: float) -> Any:
    """The interval of a pair with T samples told and some more hidden: bounded ones at their worst."""
    low, high, rule = numbers.floor, numbers.ceiling, numbers.rule
    if T <= 0.0 or hidden <= 0.0:
        return ends(T, mean, numbers)
    total, n = mean * T, T + hidden
    if rule.bounded:
        bottom = least(total + low * hidden, 0.0, n, rule) / n
        top = low + high - least(low * hidden + (low + high) * T - total, 0.0, n, rule) / n
    else:
        lost = unseen(numbers.proxy * hidden, numbers.proxy / EIGHT, log_level - log_sets(n, hidden))
        v, w = numbers.proxy * n, 0.0
        if v > 0.0 and numbers.below:
            w = mixture(v, rule.rho, rule.level)
        elif v > 0.0:
            w = mixture_two_sided(v, rule.rho, rule.level)
        bottom, top = (total - w - lost) / T, (total + w + lost) / T
    if numbers.below:
        return max(bottom, low), high
    return min(max(bottom, low), high), min(max(top, low), high)


@brief
def all_ends(
    counts: Any, mean: Any, hidden: Any, numbers: Any, log_level: float, lower: Any, upper: Any
) -> None:
    """The whole box."""
    for s in range(lower.shape[0]):
        for a in range(lower.shape[1]):
            lower[s, a], upper[s, a] = ends_hiding(counts[s, a], mean[s, a], hidden[s, a], numbers, log_level)
