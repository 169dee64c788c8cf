"""How far a sample mean may be from the truth: the paper's width, and the certificate's box."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief, jit
from saver._types import Floats, Ints
from saver.problem.guardrail import Rail
from saver.problem.promise import Bounded, SubGaussian
from saver.problem.statement import Problem
from saver.safety.boundaries import mixture, mixture_two_sided
from saver.safety.hidden import EIGHT, log_sets, unseen
from saver.safety.noise import Rule, least

FEW, MORE = 4.0, 64.0  # samples; a few say nothing of a coin


def paper_width(problem: Problem, episodes: int, counts: Ints) -> Floats:
    """beta(s,a) = L sqrt(log(S A n (n + 1)) / T), n = K L, T at least 1; in units of the noise scale."""
    result: Floats = first_width(problem, episodes) / np.sqrt(np.maximum(counts, 1))
    return result


def first_width(problem: Problem, episodes: int) -> float:
    """The paper's width after one sample."""
    mdp = problem.mdp
    n = float(episodes * mdp.horizon)
    return float(mdp.horizon) * math.sqrt(math.log(mdp.states * mdp.actions * n * (n + 1.0)))


def paper_lower(promise: SubGaussian | Bounded, width: Floats, counts: Ints, mean: Floats) -> Floats:
    """mean - scale width, never below the floor; the floor where nothing was seen."""
    floor: float = promise.floor
    lower: Floats = np.maximum(mean - promise.scale * width, floor)
    return np.where(counts > 0, lower, floor)


class Box:
    """An interval for every constraint mean, valid for all pairs and all times at once.

    Cut at floor and ceiling, which it is where nothing was seen. Pairs that can be met share the level. Where
    only lower ends are needed (`below`), those have all of it, and are tightest after a few samples already:
    there they say what may be tried next, not what was earned.
    """

    def __init__(
        self, problem: Problem, episodes: int, level: float, below: bool = False, rail: Rail | None = None
    ) -> None:
        mdp, promise = problem.mdp, (rail or problem.rails[0]).promise
        self.pairs = pairs = int(mdp.available[mdp.reachable].sum())
        bounded = isinstance(promise, Bounded)
        samples = max(10.0, episodes / pairs)
        if below:
            samples = MORE if bounded else FEW
        self.level, proxy = level / pairs, promise.scale**2 * samples
        rule = Rule.of(promise, self.level if below or not bounded else self.level / 2, proxy, samples)
        self.numbers = Numbers(promise.scale**2, float(promise.floor), float(promise.ceiling), below, rule)

    def ends(self, counts: Ints, mean: Floats) -> tuple[Floats, Floats]:
        """Lower and upper ends, [S, A]."""
        return self.hiding(counts, mean, np.zeros(mean.shape), 0.0)

    def hiding(self, counts: Ints, mean: Floats, hidden: Floats, log_level: float) -> tuple[Floats, Floats]:
        """The same where so many more were taken and not told, perhaps because of what they were."""
        lower, upper = np.empty(mean.shape), np.empty(mean.shape)
        all_ends(counts, mean, hidden, self.numbers, log_level, lower, upper)
        return lower, upper


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
