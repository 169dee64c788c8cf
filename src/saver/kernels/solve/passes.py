"""Compiled passes over the flows of a model: what the solver is built from.

Behaviours are flat arrays of rows times A. For a behaviour b, prices g and a constraint c the passes compute

    N(s,a) = sum_t x_t(s,a),              x the flow of b                        forward
    Q_t(s,a) = g(s,a) + sum P V_{t+1},    V_t(s) = sum_a b Q_t                   backward
    C_t(s,a) = discount^t c(s,a) + sum P W_{t+1},    W_t(s) = sum_a b C_t        backward
    max over all flows of g . N + m sum_t discount^t x_t . c                     best

Values are carried side by side as columns (V, W); by these passes for one guardrail a simulation that plans
takes .92 of the time that `columns` takes (benchmarks/results/loops.md). Moves that are learned apart from
rewards, where what follows the last action is not told, make the objective

    f = sum w / N + sum v / N^-,   N^- = visits before the last step:

arrays of weights, prices and visits then have two halves, of N and of N^-; a visit before the last step earns
both prices, one at the last step the first alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner, jit

ZERO, ONE = np.uint64(0), np.uint64(1)
SMALLEST_VISIT = 1e-120  # keeps prices finite


@inner
def forward_nodes(model: Any, b: Any, ratio: Any, beta: float, y: Any, mass: Any, N: Any) -> None:
    """`forward` with one row for each node."""
    A, steps = model.actions, np.uint64(len(model.layer)) - ONE
    here, onward = model.start.copy(), np.zeros(len(model.start))
    N[:] = 0.0
    for t in range(steps):
        last = t + ONE == steps
        if last:
            keep_early(N, len(model.allowed))
        for i in range(model.layer[t], model.layer[t + ONE]):
            s = model.state[i]
            at, pair, arrived = i * A, s * A, here[s]
            here[s], mass[i] = 0.0, arrived
            extrapolated(b, ratio, beta, y, at, A)
            for a in range(A):
                x = arrived * y[at + a]
                N[pair + a] += x
                if not last:
                    for e in range(model.indptr[pair + a], model.indptr[pair + a + ONE]):
                        onward[model.indices[e]] += x * model.data[e]
        here, onward = onward, here


@inner
def backward_nodes(model: Any, y: Any, mass: Any, g: Any, c: Any, scale: float, push: Any, pull: Any) -> Any:
    """`backward` with one row for each node."""
    A, steps = model.actions, np.uint64(len(model.layer)) - ONE
    ahead, here = np.zeros((len(model.start), 2)), np.zeros((len(model.start), 2))
    drift, slope, early = 0.0, 0.0, early_prices(g, len(model.allowed))
    for back in range(steps):
        t = steps - ONE - back
        price = early if back > ZERO else g
        for i in range(model.layer[t], model.layer[t + ONE]):
            s = model.state[i]
            at, pair = i * A, s * A
            for a in range(A):
                Q, C = price[pair + a], model.powers[t] * c[pair + a]
                if back > ZERO:
                    for e in range(model.indptr[pair + a], model.indptr[pair + a + ONE]):
                        Q += model.data[e] * ahead[model.indices[e], 0]
                        C += model.data[e] * ahead[model.indices[e], 1]
                push[at + a], pull[at + a] = Q, C
            here[s, 0], here[s, 1], by_gain, by_unit = advantages(y, push, pull, at, A, scale)
            drift += 0.5 * mass[i] * by_gain
            slope += 0.5 * mass[i] * by_unit
        ahead, here = here, ahead
    return at_start(model, ahead[:, 1]), drift, slope


@jit
def best(model: Any, g: Any, c: Any, multiplier: float, choice: Any) -> Any:
    """The largest g . N + multiplier V_c over all flows; `choice` takes the actions, if it has room."""
    A, steps = model.actions, np.uint64(len(model.layer)) - ONE
    ahead, here = np.zeros(len(model.start)), np.zeros(len(model.start))
    early = early_prices(g, len(model.allowed))
    for back in range(steps):
        t = steps - ONE - back
        price = early if back > ZERO else g
        factor = multiplier * model.powers[t]
        for i in range(model.layer[t], model.layer[t + ONE]):
            pair, top = model.state[i] * A, -np.inf
            for a in range(A):
                if model.allowed[pair + a]:
                    Q = price[pair + a] + factor * c[pair + a]
                    if back > ZERO:
                        for e in range(model.indptr[pair + a], model.indptr[pair + a + ONE]):
                            Q += model.data[e] * ahead[model.indices[e]]
                    if len(choice) > 0 and top < Q:
                        choice[i] = a
                    top = max(top, Q)
            here[model.state[i]] = top
        ahead, here = here, ahead
    return at_start(model, ahead)


@inner
def at_start(model: Any, values: Any) -> Any:
    """The mean of `values` over the start."""
    total = 0.0
    for s in range(len(model.start)):
        if model.start[s] > 0.0:
            total += model.start[s] * values[s]
    return total


@jit
def discounted(model: Any, y: Any, mass: Any, D: Any) -> None:
    """Fill the discounted visits of y, sum_t discount^t x_t."""
    A = model.actions
    D[:] = 0.0
    for t in range(np.uint64(len(model.layer)) - ONE):
        for i in range(model.layer[t], model.layer[t + ONE]):
            for a in range(A):
                D[model.state[i] * A + a] += model.powers[t] * mass[i] * y[model.row[i] * A + a]


@inner
def objective(w: Any, N: Any, extra: Any, share: float) -> Any:
    """sum w / N with N mixed with `share` of the visits `extra`."""
    total = 0.0
    for p in range(len(w)):
        if w[p] > 0.0:
            total += w[p] / max((1.0 - share) * N[p] + share * extra[p], SMALLEST_VISIT)
    return total


@jit
def prices(w: Any, N: Any, g: Any) -> None:
    """g = w / N^2, minus the gradient of the objective."""
    for p in range(len(w)):
        visit = max(N[p], SMALLEST_VISIT)
        g[p] = w[p] / visit / visit


@inner
def magnitudes(required: Any, c: Any, N: Any) -> Any:
    """The size of the numbers whose difference each constraint is, [m]; c is [m, S * A]."""
    sizes = np.empty(len(required))
    for i in range(len(sizes)):
        total = abs(required[i])
        for p in range(c.shape[1]):
            total += N[p] * abs(c[i, p])
        sizes[i] = total
    return sizes


@inner
def roots(w: Any, g: Any) -> Any:
    """sum sqrt(w g)."""
    total = 0.0
    for p in range(len(w)):
        total += np.sqrt(w[p] * g[p])
    return total


@inner
def keep_early(N: Any, pairs: Any) -> None:
    """Before the last step is counted: fill the second half of N, if it has one, with the first."""
    for p in range(len(N) - pairs):
        N[pairs + p] = N[p]


@inner
def early_prices(g: Any, pairs: Any) -> Any:
    """What a visit before the last step earns, [pairs]."""
    if len(g) == pairs:
        return g
    both = np.empty(pairs)
    for p in range(pairs):
        both[p] = g[p] + g[pairs + p]
    return both


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
def mirror_step(
    y: Any, b: Any, push: Any, pull: Any, weight: Any, multiplier: float, step: float, A: Any
) -> Any:
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
