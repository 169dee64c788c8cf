"""What happens at one row of a behaviour: compiled parts of the passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner

FLOOR = 1e-16  # no available action falls below this in an iterate, so that it can come back
ROUNDED = 1e-13  # a spread that is rounding, relative to what it is the spread of
LOW, HIGH = 0.01, 100.0  # of 1 + u in one step
LARGEST = 3.0  # growth that momentum looks at


@inlined
def extrapolated(b: Any, ratio: Any, beta: float, y: Any, at: Any, A: Any) -> None:
    """y = b (1 + beta (ratio - 1)), normalised, in the row that begins at `at`."""
    total = 0.0
    for a in range(A):
        value = b[at + a]
        if value > 0.0:
            value = max(value * (1.0 + beta * (ratio[at + a] - 1.0)), FLOOR)
        y[at + a] = value
        total += value
    total = 1.0 / total
    for a in range(A):
        y[at + a] *= total


@inlined
def advantages(y: Any, push: Any, pull: Any, at: Any, A: Any, scale: float) -> Any:
    """Turn Q in `push` and C in `pull` into advantages (Q - V) / unit, (C - W) / unit.

    unit = max(V, scale * spread of C): V is the curvature of the objective here; where little is left to
    learn, the safety at stake keeps steps small; where that is mere rounding too, the row stays as it is.
    Return V, W and how V_c moves, to first order, for each unit of mass in half a step: by the gains, and per
    unit of multiplier.
    """
    V, W, low, high = 0.0, 0.0, np.inf, -np.inf
    for a in range(A):
        if y[at + a] > 0.0:
            V += y[at + a] * push[at + a]
            W += y[at + a] * pull[at + a]
            low, high = min(low, pull[at + a]), max(high, pull[at + a])
    spread = high - low if high - low > ROUNDED * (abs(high) + abs(low)) else 0.0
    unit = max(V, scale * spread)
    unit = 1.0 / unit if unit > 0.0 else 0.0
    drift, slope = 0.0, 0.0
    for a in range(A):
        if y[at + a] > 0.0:
            q, c = push[at + a] - V, pull[at + a] - W
            push[at + a], pull[at + a] = q * unit, c * unit
            drift += y[at + a] * pull[at + a] * q
            slope += y[at + a] * pull[at + a] * c
    return V, W, drift, slope


@inner
def tilt(y: Any, b: Any, push: Any, pull: Any, weight: Any, multiplier: float, step: float, A: Any) -> Any:
    """One multiplicative step from y into b: y (1 + step (sqrt(1 + u) - 1)), normalised,

    u = push + multiplier pull. Without the constraint this is y sqrt(Q / V). `push` takes the growth of b.
    Return whether the step points against the way from b to it: then momentum has overshot.
    """
    for j in range(len(y)):
        inside = min(max(1.0 + push[j] + multiplier * pull[j], LOW), HIGH)
        value = y[j] * (1.0 + step * (np.sqrt(inside) - 1.0))
        push[j] = max(value, FLOOR) if y[j] > 0.0 else 0.0
    turned = 0.0
    for i in range(np.uint64(len(weight))):
        at, total, part = i * A, 0.0, 0.0
        for a in range(A):
            total += push[at + a]
        total = 1.0 / total
        for a in range(A):
            if y[at + a] > 0.0:
                value = push[at + a] * total
                growth = min(value / b[at + a], LARGEST)
                part += (y[at + a] - value) * (growth - 1.0)
                b[at + a], push[at + a] = value, growth
        turned += weight[i] * part
    return turned > 0.0
