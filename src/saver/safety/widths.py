"""How far a sample mean may be from the truth: the paper's width, and the certificate's box."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import jit
from saver._types import Floats, Ints
from saver.problem.statement import Problem
from saver.safety.boundaries import best_rho, mixture_two_sided


def paper_width(problem: Problem, episodes: int, counts: Ints) -> Floats:
    """beta(s,a) = L sqrt(log(S A n (n + 1)) / T), n = K L, T at least 1; in units of the noise scale."""
    result: Floats = first_width(problem, episodes) / np.sqrt(np.maximum(counts, 1))
    return result


def first_width(problem: Problem, episodes: int) -> float:
    """The paper's width after one sample."""
    mdp = problem.mdp
    n = float(episodes * mdp.horizon)
    return mdp.horizon * math.sqrt(math.log(mdp.states * mdp.actions * n * (n + 1.0)))


def paper_lower(problem: Problem, width: Floats, counts: Ints, mean: Floats) -> Floats:
    """mean - scale width, never below the floor; the floor where nothing was seen."""
    floor = problem.constraint.floor
    lower = np.maximum(mean - problem.constraint.scale * width, floor)
    return np.where(counts > 0, lower, floor)


class Box:
    """An interval for every constraint mean, valid for all pairs and all times at once.

    [max(floor, mean - w), min(ceiling, mean + w)] with w from the two-sided normal mixture at level / pairs,
    pairs counting those that can be met; [floor, ceiling] where nothing was seen.
    """

    def __init__(self, problem: Problem, episodes: int, level: float) -> None:
        self.promise = problem.constraint
        mdp = problem.mdp
        pairs = int(mdp.available[mdp.reachable].sum())
        self.level = level / pairs
        expected = max(10.0, episodes / pairs)
        self.rho = best_rho(self.promise.scale**2 * expected, self.level) if self.promise.scale else 1.0

    def around(self, counts: Ints, mean: Floats) -> tuple[Floats, Floats]:
        """Midpoints m and half-lengths h, [S, A]."""
        m, h = np.empty(mean.shape), np.empty(mean.shape)
        sides(counts, mean, self.numbers, m, h)
        return m, h

    @property
    def numbers(self) -> tuple[float, float, float, float, float]:
        """What `side` needs: scale^2, rho, level, floor, ceiling."""
        promise = self.promise
        return promise.scale**2, self.rho, self.level, float(promise.floor), float(promise.ceiling)


@jit
def side(T: float, mean: float, numbers: Any) -> Any:
    """One side of the box: midpoint and half-length for a pair with T samples."""
    proxy, rho, level, low, high = numbers
    bottom, top = low, high
    if T > 0:
        w = mixture_two_sided(proxy * T, rho, level) / T if proxy > 0.0 else 0.0
        bottom, top = min(max(mean - w, low), high), min(max(mean + w, low), high)
    return (bottom + top) / 2, (top - bottom) / 2


@jit
def sides(counts: Any, mean: Any, numbers: Any, m: Any, h: Any) -> None:
    """The whole box."""
    for s in range(m.shape[0]):
        for a in range(m.shape[1]):
            m[s, a], h[s, a] = side(counts[s, a], mean[s, a], numbers)
