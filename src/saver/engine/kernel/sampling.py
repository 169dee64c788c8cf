"""Draws, and what they teach."""

from __future__ import annotations

from typing import Any

from saver._jit import inlined
from saver.engine.kernel.forms import COIN, NORMAL
from saver.engine.kernel.keeping import CONSTRAINT, COUNT, MEAN, SQUARES
from saver.engine.kernel.streams import normal, uniform
from saver.problem.moments import moment_step

welford = inlined(moment_step)


@inlined
def draw(stream: Any, kind: int, where: float, scale: float, data: Any) -> Any:
    """One observation, as `Law.sample` makes it."""
    if kind == NORMAL:
        return where + scale * normal(stream)
    if kind == COIN:
        return 1.0 if uniform(stream) < where else 0.0
    return data[int(where) + int(uniform(stream) * scale)]


@inlined
def take(seen: Any, p: int, r: float, c: float) -> None:
    """A reward and a constraint of one pair enter the statistics, as in `Moments.add`."""
    T = seen[p, COUNT] + 1.0
    seen[p, COUNT] = T
    seen[p, MEAN], seen[p, SQUARES] = welford(T, seen[p, MEAN], seen[p, SQUARES], r)
    seen[p, CONSTRAINT] += (c - seen[p, CONSTRAINT]) / T


@inlined
def choose(stream: Any, chance: Any, first: int, last: int) -> Any:
    """One of the options first..last-1, drawn only where there are several."""
    if last - first == 1:
        return first
    u, reached = uniform(stream), 0.0
    for e in range(first, last):
        reached += chance[e]
        if reached > u:
            return e
    return last - 1


@inlined
def act(policy: Any, row: int, u: float) -> Any:
    """The action that the uniform number u picks from a row of probabilities."""
    reached, last = 0.0, 0
    for a in range(policy.shape[1]):
        reached += policy[row, a]
        if policy[row, a] > 0.0:
            last = a
        if reached > u:
            return a
    return last
