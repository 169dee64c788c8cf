"""How far a sample mean may be from the truth: the paper's width, and the certificate's box."""

from __future__ import annotations

import math

import numpy as np

from saver.problem.checks import Floats, Ints
from saver.problem.statement import Problem
from saver.safety.boundaries import best_rho, mixture_two_sided


def paper_width(problem: Problem, episodes: int, counts: Ints) -> Floats:
    """beta(s,a) = L sqrt(log(S A n (n + 1)) / T), n = K L, T at least 1; in units of the noise scale."""
    mdp = problem.mdp
    n = float(episodes * mdp.horizon)
    constant = mdp.horizon * math.sqrt(math.log(mdp.states * mdp.actions * n * (n + 1.0)))
    result: Floats = constant / np.sqrt(np.maximum(counts, 1))
    return result


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
        T = np.maximum(counts, 1)
        if self.promise.scale > 0:
            w = mixture_two_sided(self.promise.scale**2 * T, self.rho, self.level) / T
        else:
            w = np.zeros(mean.shape)
        low, high = self.promise.floor, self.promise.ceiling
        bottom = np.where(counts > 0, np.clip(mean - w, low, high), low)
        top = np.where(counts > 0, np.clip(mean + w, low, high), high)
        return (bottom + top) / 2, (top - bottom) / 2
