"""Running moments of what was observed in each (state, action)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._jit import brief, jit
from saver._types import Floats
from saver.problem.codec import portable


def moment_step(count: Any, mean: float, squares: float, value: float) -> tuple[float, float]:
    """Welford: the mean and the sum of squared deviations after the `count`-th value."""
    before = value - mean
    mean = mean + before / count
    return mean, squares + before * (value - mean)


_step = jit(moment_step)


@brief
def take_in(counts: Any, mean: Any, squares: Any, states: Any, actions: Any, values: Any) -> None:
    """`Moments.add`, one observation after the other."""
    for i in range(len(states)):
        s, a = states[i], actions[i]
        counts[s, a] += 1
        mean[s, a], squares[s, a] = _step(counts[s, a], mean[s, a], squares[s, a], values[i])


@portable("moments")
@dataclass(eq=False)
class Moments:
    """Counts, means and sums of squared deviations, [S, A] each."""

    counts: Any
    mean: Any
    squares: Any

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> Moments:
        """Nothing observed yet."""
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape))

    def add(self, state: int, action: int, value: float) -> None:
        """Take one observation in."""
        at = state, action
        self.counts[at] += 1
        self.mean[at], self.squares[at] = moment_step(self.counts[at], self.mean[at], self.squares[at], value)

    def extend(self, states: Any, actions: Any, values: Any) -> None:
        """Take the observations of one episode in."""
        take_in(self.counts, self.mean, self.squares, states, actions, values)

    def extend_all(self, states: Any, actions: Any, values: Any) -> None:
        """`extend` by the observations of many episodes: the same, to rounding."""
        size, shape = self.mean.size, self.mean.shape
        pairs = states * shape[1] + actions
        counts, some = np.bincount(pairs, minlength=size), np.zeros(size)
        some[pairs] = values  # about one of its values the mean of equal values is exact
        mean = some + np.bincount(pairs, values - some[pairs], size) / np.maximum(counts, 1)
        squares = np.bincount(pairs, (values - mean[pairs]) ** 2, size)
        self.merge(Moments(counts.reshape(shape), mean.reshape(shape), squares.reshape(shape)))

    def merge(self, other: Moments) -> None:
        """Take in what another has seen (Chan, Golub and LeVeque 1983)."""
        counts = self.counts + other.counts
        share = other.counts / np.maximum(counts, 1)
        apart = other.mean - self.mean
        self.squares = self.squares + other.squares + apart**2 * self.counts * share
        self.mean = np.where(self.counts > 0, self.mean + apart * share, other.mean)
        self.counts = counts

    def times(self, sign: float) -> Moments:
        """Of the observations times 1 or -1."""
        return Moments(self.counts, sign * self.mean, self.squares)

    @property
    def variance(self) -> Floats:
        """The sample variance: divides by T - 1, and is 0 where T < 2."""
        result: Floats = self.squares / np.maximum(self.counts - 1, 1)
        return result
