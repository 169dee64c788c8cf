"""A model unrolled over its steps, and one pass through it.

A node is a (step, state) that some behaviour can be in. Behaviours are [nodes, A]; nodes are numbered step
by step, so one sweep over them is one pass through time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import jit
from saver._types import Bools, Floats, Ints


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
    def of(cls, mdp: Any) -> Nodes:
        """Unroll `mdp` over its layers."""
        flow, sizes = mdp.flow, [len(states) for states in mdp.layers]
        return cls(  # writable copies: numba compiles anew for each kind of array
            flow.indptr.astype(np.int64),
            flow.indices.astype(np.int64),
            flow.data.copy(),
            np.zeros(mdp.states) if mdp.start is None else mdp.start.copy(),
            mdp.available.copy(),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate(mdp.layers).astype(np.int64),
            np.repeat(np.arange(len(sizes)), sizes),
            float(mdp.discount),
        )

    def changed(self, **parts: Any) -> Nodes:
        """The same but for these."""
        return self._replace(**parts)


@jit
def followed(nodes: Any, b: Any, mean: Any) -> Any:
    """Follow b: the flow by nodes, the probability of each, the visits N(s,a) and V_c."""
    A = b.shape[1]
    steps = len(nodes.layer) - 1
    mass, N, flow = np.zeros(len(b)), np.zeros(mean.shape), np.empty(b.shape)
    arriving = np.zeros(len(nodes.start))
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
                flow[i, a] = x
                if x > 0.0:
                    N[s, a] += x
                    earned += factor * x * mean[s, a]
                    if t + 1 < steps:
                        for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                            arriving[nodes.indices[e]] += x * nodes.data[e]
        factor *= nodes.discount
    return flow, mass, N, earned


@jit
def raised(x: float, k: int) -> float:
    """x^k for whole k >= 0, by squaring: the same bits with a compiler and without."""
    found = 1.0
    while k > 0:
        if k & 1:
            found *= x
        k >>= 1
        x *= x
    return found


@jit
def richest(nodes: Any, lower: Any, mean: Any, choice: Any) -> Any:
    """Choose at each node so that `lower` sums to most; return that sum, and the same policy's by `mean`."""
    A = lower.shape[1]
    steps = len(nodes.layer) - 1
    ahead, here = np.zeros((2, len(nodes.start))), np.zeros((2, len(nodes.start)))
    for t in range(steps - 1, -1, -1):
        factor = raised(nodes.discount, t)
        for i in range(nodes.layer[t], nodes.layer[t + 1]):
            s = nodes.state[i]
            best, beside = -np.inf, 0.0
            for a in range(A):
                if nodes.available[s, a]:
                    surely, likely = factor * lower[s, a], factor * mean[s, a]
                    if t + 1 < steps:
                        for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                            surely += nodes.data[e] * ahead[0, nodes.indices[e]]
                            likely += nodes.data[e] * ahead[1, nodes.indices[e]]
                    if surely > best:
                        best, beside, choice[i] = surely, likely, a
            here[0, s], here[1, s] = best, beside
        ahead, here = here, ahead
    surely, likely = 0.0, 0.0
    for i in range(nodes.layer[1]):
        s = nodes.state[i]
        surely += nodes.start[s] * ahead[0, s]
        likely += nodes.start[s] * ahead[1, s]
    return surely, likely
