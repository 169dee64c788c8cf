"""Compiled passes over the flows of a model: what the solver is built from.

Behaviours are flat arrays of rows times A. For a behaviour b, prices g and a constraint c the passes compute

    N(s,a) = sum_t x_t(s,a),              x the flow of b                        forward
    Q_t(s,a) = g(s,a) + sum P V_{t+1},    V_t(s) = sum_a b Q_t                   backward
    C_t(s,a) = discount^t c(s,a) + sum P W_{t+1},    W_t(s) = sum_a b C_t        backward
    max over all flows of g . N + m sum_t discount^t x_t . c                     best

If N and g have two halves, what leads on is priced apart: see `onward`.
Values are carried side by side as columns (V, W): another constraint is another column and another `pull`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner, jit
from saver.design.onward import early_prices, keep_early
from saver.design.phases import backward_phases, forward_phases
from saver.design.rows import advantages, extrapolated

ZERO, ONE = np.uint64(0), np.uint64(1)
SMALLEST_VISIT = 1e-120  # keeps prices finite


@jit
def forward(model: Any, b: Any, ratio: Any, beta: float, y: Any, mass: Any, weight: Any, N: Any) -> None:
    """Extrapolate b into y and follow y: fill the mass of nodes, the weight of rows and the visits N."""
    if len(model.phase) > 1:
        forward_phases(model, b, ratio, beta, y, mass, weight, N)
    else:
        forward_nodes(model, b, ratio, beta, y, mass, N)
        weight[:] = mass


@jit
def backward(
    model: Any, y: Any, mass: Any, weight: Any, g: Any, c: Any, scale: float, push: Any, pull: Any
) -> Any:
    """Fill the advantages of g and c under y, in each row's unit (see `advantages`).

    Return V_c and how it moves, to first order, in the step of `tilt`: by the gains, and per unit of
    multiplier.
    """
    if len(model.phase) > 1:
        return backward_phases(model, y, mass, weight, g, c, scale, push, pull)
    return backward_nodes(model, y, mass, g, c, scale, push, pull)


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


@jit
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
