"""Rows -> episodes: which rows belong together, in which order; nothing missing, nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saver._types import Ints
from saver.errors import InvalidData

Wrong = Callable[[int, str, str], InvalidData]  # (row, column, what is wrong) -> the error


def ordered(ids: Any, steps: Ints) -> tuple[Any, Ints]:
    """The order of rows by episode, in order of first appearance, and step; and where episodes begin.

    The order is None where rows are in order already.
    """
    heads = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    if _differ(ids[heads]):
        offsets = np.concatenate([heads, [len(ids)]])
        late = np.flatnonzero(steps[1:] <= steps[:-1]) + 1
        if np.isin(late, heads, assume_unique=True).all():
            return None, offsets
        codes = np.repeat(np.arange(len(heads)), np.diff(offsets))
    else:
        _, first, place = np.unique(ids, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        codes = rank[place]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    return np.lexsort((steps, codes)), offsets


def _differ(ids: Any) -> bool:
    """Whether no two are equal; most logs have them in order, which is seen sooner."""
    return bool(np.all(ids[1:] > ids[:-1])) or len(np.unique(ids)) == len(ids)


def check_steps(steps: Ints, offsets: Ints, order: Any, column: str, wrong: Wrong) -> None:
    """Refuse an episode that does not begin at the first step, has a gap, or two rows for one step."""
    begin = steps[offsets[:-1]]
    base = int(begin.min())
    if base not in (0, 1):
        row = _row(order, int(offsets[int(np.argmin(begin))]))
        raise wrong(row, column, f"an episode begins at step {base}; steps must count from 0, or from 1")
    if len(late := np.flatnonzero(begin != base)):
        at = int(offsets[late[0]])
        raise wrong(
            _row(order, at), column, f"the episode begins at step {steps[at]}; step {base} is missing"
        )
    apart = np.diff(steps)
    apart[offsets[1:-1] - 1] = 1
    if len(bad := np.flatnonzero(apart != 1)):
        at = int(bad[0]) + 1
        what = f"step {steps[at - 1] + 1} of the episode is missing: after {steps[at - 1]} comes {steps[at]}"
        if apart[bad[0]] == 0:
            what = f"step {steps[at]} of the episode has two rows"
        raise wrong(_row(order, at), column, what)


def _row(order: Any, place: int) -> int:
    return place if order is None else int(order[place])
