"""Compiled passes over the flows of a model, and the first-order solver built from them.

A node is a (step, state) that some behaviour can be in. Behaviours are [nodes, A]; nodes are numbered step
by step, so one sweep over them is one pass through time. The solver minimises, over behaviours b,

    f(b) = sum w(s,a) / N(s,a)   subject to   V_c(b) = sum_t discount^t x_t . mean >= required

with x the flow of b and N = sum_t x_t. With prices g = w / N^2 and a multiplier m >= 0 every feasible flow
has f >= f(b)^2 / D, D = max over flows of (g . N + m V_c) - m required: the bound behind `gap`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import jit
from saver.problem.checks import Bools, Floats, Ints
from saver.problem.mdp import Mdp

FLOOR = 1e-16  # no available action falls below this in an iterate, so that it can come back
SMALLEST_VISIT = 1e-120  # keeps prices finite
LARGEST_STEP = 1e3  # of one extrapolation, as a ratio
SMALLEST_RATIO, LARGEST_RATIO = 0.01, 100.0  # of one plain step, squared
LOOK = 10  # iterations between two bounds


class Nodes(NamedTuple):
    """The unrolled model as plain arrays."""

    indptr: Any  # transitions, rows are pairs s * A + a
    indices: Any
    data: Any
    start: Floats  # [S]
    available: Bools  # [S, A]
    layer: Ints  # [steps + 1], where each step's nodes begin
    state: Ints  # [nodes]
    step: Ints  # [nodes]
    discount: float

    @classmethod
    def of(cls, mdp: Mdp) -> Nodes:
        """Unroll `mdp` over its layers."""
        flow, sizes = mdp.flow, [len(states) for states in mdp.layers]
        return cls(  # writable copies: numba compiles anew for each kind of array
            flow.indptr.astype(np.int64),
            flow.indices.astype(np.int64),
            flow.data.copy(),
            mdp.start.copy(),
            mdp.available.copy(),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate(mdp.layers).astype(np.int64),
            np.repeat(np.arange(len(sizes)), sizes),
            float(mdp.discount),
        )


@jit
def forward(nodes: Any, b: Any, mean: Any, mass: Any, N: Any) -> Any:
    """Follow b: fill the probability of each node and the visits N(s,a); return V_c."""
    A = b.shape[1]
    steps = len(nodes.layer) - 1
    arriving = np.zeros(len(nodes.start))
    N[:] = 0.0
    earned, factor = 0.0, 1.0
    for t in range(steps):
        for i in range(nodes.layer[t], nodes.layer[t + 1]):
            s = nodes.state[i]
            mass[i] = nodes.start[s] if t == 0 else arriving[s]
            arriving[s] = 0.0
        for i in range(nodes.layer[t], nodes.layer[t + 1]):
            s = nodes.state[i]
            for a in range(A):
                x = mass[i] * b[i, a]
                if x > 0.0:
                    N[s, a] += x
                    earned += factor * x * mean[s, a]
                    if t + 1 < steps:
                        for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                            arriving[nodes.indices[e]] += x * nodes.data[e]
        factor *= nodes.discount
    return earned


@jit
def best(nodes: Any, gain: Any, mean: Any, multiplier: float, choice: Any) -> Any:
    """The largest expected sum of gain + multiplier discount^t mean; `choice` takes the actions."""
    A = gain.shape[1]
    steps = len(nodes.layer) - 1
    ahead = np.zeros(len(nodes.start))
    here = np.zeros(len(nodes.start))
    for t in range(steps - 1, -1, -1):
        factor = multiplier * nodes.discount**t
        for i in range(nodes.layer[t], nodes.layer[t + 1]):
            s = nodes.state[i]
            top = -np.inf
            for a in range(A):
                if not nodes.available[s, a]:
                    continue
                q = gain[s, a] + factor * mean[s, a]
                if t + 1 < steps:
                    for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                        q += nodes.data[e] * ahead[nodes.indices[e]]
                if q > top:
                    top = q
                    choice[i] = a
            here[s] = top
        ahead, here = here, ahead
    return np.sum(nodes.start * np.where(nodes.start > 0, ahead, 0.0))


@jit
def backward(nodes: Any, b: Any, mass: Any, gain: Any, mean: Any, multiplier: float, Q: Any, C: Any) -> Any:
    """Fill Q(i,a) of `gain` and C(i,a) of discount^t mean under b at every node i.

    Return how V_c moves, to first order, in the step of `tilt`: by the gains, and per unit of multiplier.
    """
    A = b.shape[1]
    steps = len(nodes.layer) - 1
    Q_ahead, C_ahead = np.zeros(len(nodes.start)), np.zeros(len(nodes.start))
    Q_here, C_here = np.zeros(len(nodes.start)), np.zeros(len(nodes.start))
    drift, slope = 0.0, 0.0
    for t in range(steps - 1, -1, -1):
        factor = nodes.discount**t
        for i in range(nodes.layer[t], nodes.layer[t + 1]):
            s = nodes.state[i]
            V, W = 0.0, 0.0
            for a in range(A):
                q, c = gain[s, a], factor * mean[s, a]
                if t + 1 < steps:
                    for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                        q += nodes.data[e] * Q_ahead[nodes.indices[e]]
                        c += nodes.data[e] * C_ahead[nodes.indices[e]]
                Q[i, a], C[i, a] = q, c
                V += b[i, a] * q
                W += b[i, a] * c
            Q_here[s], C_here[s] = V, W
            unit = metric(nodes, i, V, C, multiplier)
            for a in range(A):
                share = 0.5 * mass[i] * b[i, a] * (C[i, a] - W) / unit
                drift += share * (Q[i, a] - V)
                slope += share * (C[i, a] - W)
        Q_ahead, Q_here = Q_here, Q_ahead
        C_ahead, C_here = C_here, C_ahead
    return drift, slope


@jit
def metric(nodes: Any, i: int, V: float, C: Any, multiplier: float) -> Any:
    """The unit in which a node's advantages are measured: V, the curvature of the objective there.

    Where little is left to learn it is the spread of the safety at stake, so that no step exceeds it; where
    that is mere rounding too, it is infinite and the node stays as it is.
    """
    low, high = np.inf, -np.inf
    for a in range(C.shape[1]):
        if nodes.available[nodes.state[i], a]:
            low, high = min(low, C[i, a]), max(high, C[i, a])
    spread = high - low if high - low > 1e-13 * (abs(high) + abs(low)) else 0.0
    unit = max(V, multiplier * spread)
    return unit if unit > 0.0 else np.inf


@jit
def tilt(nodes: Any, b: Any, Q: Any, C: Any, multipliers: Any, step: float, out: Any) -> None:
    """One multiplicative step into `out`: b (1 + u)^(step / 2), normalised,

    u = (advantage of Q + multiplier C) / unit. Without the constraint this is b sqrt(Q / V).
    """
    scale, multiplier = multipliers
    for i in range(b.shape[0]):
        V, W = 0.0, 0.0
        for a in range(b.shape[1]):
            V += b[i, a] * Q[i, a]
            W += b[i, a] * C[i, a]
        unit = metric(nodes, i, V, C, scale)
        total = 0.0
        for a in range(b.shape[1]):
            out[i, a] = 0.0
            if nodes.available[nodes.state[i], a]:
                u = (Q[i, a] - V + multiplier * (C[i, a] - W)) / unit
                ratio = np.sqrt(min(max(1.0 + u, SMALLEST_RATIO), LARGEST_RATIO))
                out[i, a] = max(b[i, a] * (ratio if step == 1.0 else ratio**step), FLOOR)
                total += out[i, a]
        for a in range(b.shape[1]):
            out[i, a] /= total


@jit
def extrapolate(b: Any, before: Any, momentum: float, out: Any) -> None:
    """b (b / before)^momentum, normalised: a Nesterov step in the logarithms."""
    for i in range(b.shape[0]):
        total = 0.0
        for a in range(b.shape[1]):
            out[i, a] = b[i, a]
            if b[i, a] > 0.0 and before[i, a] > 0.0:
                ratio = min(max(b[i, a] / before[i, a], 1.0 / LARGEST_STEP), LARGEST_STEP)
                out[i, a] = max(b[i, a] * ratio**momentum, FLOOR)
            total += out[i, a]
        for a in range(b.shape[1]):
            out[i, a] /= total


@jit
def objective(w: Any, N: Any, extra: Any, share: float) -> Any:
    """sum w / N with N mixed with `share` of the visits `extra`."""
    total = 0.0
    for s in range(w.shape[0]):
        for a in range(w.shape[1]):
            if w[s, a] > 0.0:
                total += w[s, a] / max((1.0 - share) * N[s, a] + share * extra[s, a], SMALLEST_VISIT)
    return total


@jit
def prices(w: Any, N: Any, gain: Any) -> None:
    """g = w / N^2, minus the gradient of the objective."""
    for s in range(w.shape[0]):
        for a in range(w.shape[1]):
            visit = max(N[s, a], SMALLEST_VISIT)
            gain[s, a] = w[s, a] / visit / visit


class Search(NamedTuple):
    """What one call of `descend` hands to the next; `numbers` holds the scalars below."""

    b: Floats  # [nodes, A], the last plain step
    before: Floats  # the one before it
    y: Floats  # the extrapolated point
    numbers: Floats


MULTIPLIER, SCALE, MOMENTUM, STEP, BOUND, LIMIT = range(6)

NUMBERS = 6


@jit
def descend(nodes: Any, search: Any, asked: Any, tolerance: float, iterations: int) -> Any:
    """Improve `search` until limit / bound - 1 <= tolerance; return whether it is.

    Accelerated multiplicative steps whose multiplier is chosen so that, to first order, the constraint holds
    after the step. The share of the safest behaviour that makes y feasible gives a limit at any time.
    The last look is always at y as it stands.
    """
    w, mean, required, _, safest, safest_value = asked
    b, before, y, n = search
    mass, N, gain = np.zeros(b.shape[0]), np.zeros(w.shape), np.zeros(w.shape)
    out, Q, C = np.empty_like(b), np.empty_like(b), np.empty_like(b)
    choice = np.zeros(b.shape[0], dtype=np.int64)
    for k in range(iterations + 1):
        earned = forward(nodes, y, mean, mass, N)
        prices(w, N, gain)
        drift, slope = backward(nodes, y, mass, gain, mean, n[SCALE], Q, C)
        missing = required - earned
        multiplier = 0.0
        if missing - n[STEP] * drift > 0.0 and slope > 0.0:
            multiplier = (missing - n[STEP] * drift) / (n[STEP] * slope)
        if k % LOOK == 0 or k == iterations:
            f = objective(w, N, safest, 0.0)
            slack = best(nodes, gain, mean, multiplier, choice) - multiplier * required
            if slack > 0.0:
                n[BOUND] = max(n[BOUND], f * f / slack)
            share = missing / (safest_value - earned) if missing > 0.0 else 0.0
            last, n[LIMIT] = n[LIMIT], objective(w, N, safest, share)
            if n[LIMIT] <= n[BOUND] * (1.0 + tolerance):
                n[MULTIPLIER] = multiplier
                return True
            if k > 0 and multiplier > 0.0:
                n[STEP] = min(1.0, 1.1 * n[STEP]) if n[LIMIT] <= last else max(0.7 * n[STEP], 0.01)
            if k == iterations:
                return False
        tilt(nodes, y, Q, C, (n[SCALE], multiplier), n[STEP], out)
        n[MULTIPLIER] = multiplier
        n[SCALE] = max(multiplier, 0.9 * n[SCALE])
        if turned_back(y, out, b, mass):
            n[MOMENTUM] = 1.0
        before[:] = b
        b[:] = out
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * n[MOMENTUM] ** 2))
        extrapolate(b, before, (n[MOMENTUM] - 1.0) / following, y)
        n[MOMENTUM] = following
    return False


@jit
def turned_back(y: Any, following: Any, b: Any, mass: Any) -> Any:
    """Whether the step from y points against the way from b: then momentum has overshot."""
    total = 0.0
    for i in range(b.shape[0]):
        for a in range(b.shape[1]):
            if following[i, a] > 0.0:
                total += mass[i] * (y[i, a] - following[i, a]) * (following[i, a] - b[i, a]) / following[i, a]
    return total > 0.0
