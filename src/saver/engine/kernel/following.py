"""The tracker: which action comes next in each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, jit
from saver.engine.kernel.keeping import COUNT


@inlined
def row_of(scene: Any, first_row: int, by_node: bool, t: int, s: int) -> Any:
    """The row of a state at a step, in a table that begins at `first_row`."""
    return first_row + (scene.slot[t, s] if by_node else s)


@inlined
def row_at(first_row: int, by_node: bool, node: int, s: int) -> Any:
    """The row of a node, which is in state s."""
    return first_row + (node if by_node else s)


@inlined
def comes_first(needed: Any, seen: Any, p: int, enough: int) -> Any:
    """Whether a pair goes before all others: it is needed by now, and has fewer than `enough` samples."""
    return needed[p] <= enough and seen[p, COUNT] < enough


@inlined
def pick(score: Any, row: int) -> Any:
    """argmax of a row; ties go to the lowest index. No branches: they would be guessed wrong."""
    at, best = 0, score[row, 0]
    for a in range(1, score.shape[1]):
        better = score[row, a] > best
        at = a if better else at
        best = score[row, a] if better else best
    return at


@inlined
def rate(b: float, T: float, first: bool) -> Any:
    """The tracker's score b / T; infinite for a pair that comes first."""
    if first:
        return np.inf
    return b / T if b > 0.0 else 0.0


@inlined
def rescore(tracker: Any, row: int, a: int, first: bool) -> None:
    """Score one action anew, and choose again."""
    b, T, score, choice = tracker
    score[row, a] = rate(b[row, a], T[row, a], first)
    choice[row] = pick(score, row)


@jit
def rate_all(tracker: Any, begin: Any, states: Any, enough: Any, needed: Any, seen: Any) -> None:
    """Score all rows from `begin` on anew; `states` gives the state of each."""
    A = tracker.b.shape[1]
    for i in range(len(states)):
        for a in range(A):
            p = states[i] * A + a
            first = comes_first(needed, seen, p, enough)
            tracker.score[begin + i, a] = rate(tracker.b[begin + i, a], tracker.T[begin + i, a], first)
        tracker.choice[begin + i] = pick(tracker.score, begin + i)
