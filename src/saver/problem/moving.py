"""Compiled passes through a model: where a policy goes, and where any can."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import jit


def still(values: Any) -> Any:
    """The same numbers, in one piece and read-only: compiled code is made anew for each kind of array."""
    view = np.ascontiguousarray(values).view()
    view.setflags(write=False)
    return view


@jit
def lawful(rows: Any, available: Any, exact: float) -> bool:
    """Whether [S, A], or [steps, S, A] as [steps * S, A], holds distributions over the available actions."""
    S = len(available)
    for i in range(len(rows)):
        total = 0.0
        for a in range(rows.shape[1]):
            x = rows[i, a]
            if not x >= 0.0 or (x > 0.0 and not available[i % S, a]):
                return False
            total += x
        if not abs(total - 1.0) <= exact:
            return False
    return True


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
def reached(indptr: Any, indices: Any, available: Any, states: Any) -> Any:
    """The states that available actions in `states` lead to, in order."""
    S, A = available.shape
    seen, count = np.zeros(S, dtype=np.bool_), 0
    for s in states:
        for a in range(A):
            if available[s, a]:
                for e in range(indptr[s * A + a], indptr[s * A + a + 1]):
                    count += not seen[indices[e]]
                    seen[indices[e]] = True
    found, at = np.empty(count, dtype=np.int64), 0
    for s in range(S):
        if seen[s]:
            found[at] = s
            at += 1
    return found


@jit
def worth(indptr: Any, indices: Any, data: Any, policy: Any, gain: Any, discount: float, Y: Any) -> None:
    """Write to Y, [L + 1, S], what follows: sum_a pi_t(a|s) (gain(s,a) + discount sum_s' P(s'|s,a) Y_{t+1}).

    The policy is [1, S, A], or [L, S, A].
    """
    S, A = gain.shape
    for t in range(len(Y) - 2, -1, -1):
        row = t if len(policy) > 1 else 0
        for s in range(S):
            total = 0.0
            for a in range(A):
                ahead, p = 0.0, s * A + a
                for e in range(indptr[p], indptr[p + 1]):
                    ahead += data[e] * Y[t + 1, indices[e]]
                total += policy[row, s, a] * (gain[s, a] + discount * ahead)
            Y[t, s] = total


@jit
def earned(
    indptr: Any, indices: Any, data: Any, start: Any, choice: Any, slot: Any, by_node: bool, factors: Any,
    gains: Any, mass: Any, arriving: Any, out: Any,
) -> None:  # fmt: skip
    """Write to out, [m], what a policy of one action a row earns of gains, [m, S * A].

    Rows are the nodes slot[t, s], or the states; mass and arriving are room for [S].
    """
    A, S = gains.shape[1] // len(start), len(start)
    out[:] = 0.0
    mass[:] = start
    arriving[:] = 0.0
    last = len(factors) - 1
    for t in range(len(factors)):
        alive = False
        for s in range(S):
            m = mass[s]
            if m != 0.0:
                alive = True
                mass[s] = 0.0
                p = s * A + choice[slot[t, s] if by_node else s]
                for i in range(len(out)):
                    out[i] += factors[t] * m * gains[i, p]
                if t < last:
                    for e in range(indptr[p], indptr[p + 1]):
                        arriving[indices[e]] += data[e] * m
        if not alive:
            return
        mass, arriving = arriving, mass
