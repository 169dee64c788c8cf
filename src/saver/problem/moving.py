"""Compiled passes through a model: where a policy goes, and where any can."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import jit
from saver._types import Floats


def still(values: Floats) -> Floats:
    """The same numbers, in one piece and read-only: compiled code is made anew for each kind of array."""
    view = np.ascontiguousarray(values).view()
    view.setflags(write=False)
    return view


@jit
def follow(
    indptr: Any, indices: Any, data: Any, start: Any, policy: Any, factors: Any, x: Any, c: Any
) -> None:
    """Add sum_t factors[t] x_t(s,a) to c, [S, A]; write x_t to x, [L, S, A], where it has steps.

    The policy is [1, S, A], or [L, S, A]. Sums are in the order of states and actions.
    """
    S, A = c.shape
    mass, arriving = start.copy(), np.zeros(S)
    for t in range(len(factors)):
        row, alive = t if len(policy) > 1 else 0, False
        for s in range(S):
            if mass[s] != 0.0:
                alive = True
                for a in range(A):
                    flow, p = mass[s] * policy[row, s, a], s * A + a
                    c[s, a] += factors[t] * flow
                    if len(x) > 0:
                        x[t, s, a] = flow
                    if flow != 0.0:
                        for e in range(indptr[p], indptr[p + 1]):
                            arriving[indices[e]] += data[e] * flow
        if not alive:
            return
        mass, arriving = arriving, mass
        arriving[:] = 0.0


@jit
def reached(indptr: Any, indices: Any, rows: Any, seen: Any) -> None:
    """Mark the states that these rows lead to."""
    for p in rows:
        for e in range(indptr[p], indptr[p + 1]):
            seen[indices[e]] = True
