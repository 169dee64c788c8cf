"""The same program for an interior-point solver: a second opinion, and quicker where much precision is asked.

Variables are the flows x of the available pairs at every node and one q for each pair with w > 0:

    minimise sum q   subject to   q N >= w (a cone of dimension 3 each), flow conservation, x >= 0, safety.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from saver._types import Floats, Ints
from saver.play.nodes import Nodes


class Conic:
    """The program of one model, assembled once; only w and the safety row change between solves."""

    def __init__(self, nodes: Nodes) -> None:
        count, self.actions = len(nodes.state), nodes.available.shape[1]
        self.node, self.action = np.nonzero(nodes.available[nodes.state])
        self.pair: Ints = nodes.state[self.node] * self.actions + self.action
        self.step = nodes.step[self.node]
        self.shape = (count, self.actions)
        self._conserve = self._flows(nodes)
        first = slice(0, nodes.layer[1])
        self._inflow = np.zeros(count)
        self._inflow[first] = nodes.start[nodes.state[first]]
        self._weight = nodes.discount**self.step

    def _flows(self, nodes: Nodes) -> Any:
        """Out of a node minus into it, [nodes, flows]."""
        steps = len(nodes.layer) - 1
        flows = np.arange(len(self.node))
        out = sparse.coo_array((np.ones(len(flows)), (self.node, flows)), shape=(self.shape[0], len(flows)))
        rows, columns, values = [], [], []
        for t in range(steps - 1):
            place = np.full(len(nodes.start), -1)
            layer = np.arange(nodes.layer[t + 1], nodes.layer[t + 2])
            place[nodes.state[layer]] = layer
            here = flows[self.step == t]
            for j in here:
                edges = slice(nodes.indptr[self.pair[j]], nodes.indptr[self.pair[j] + 1])
                rows.append(place[nodes.indices[edges]])
                columns.append(np.full(edges.stop - edges.start, j))
                values.append(nodes.data[edges])
        if not rows:
            return out.tocsc()
        index = np.concatenate(rows), np.concatenate(columns)
        into = sparse.coo_array((np.concatenate(values), index), shape=out.shape)
        return (out - into).tocsc()

    def solve(self, w: Floats, mean: Floats, required: float) -> tuple[Floats, float] | None:
        """The behaviour at every node and the multiplier of safety, or None if the solver gives up."""
        import clarabel

        used = np.flatnonzero(w.ravel() > 0)
        n, m = len(self.node), len(used)
        visits = sparse.coo_array((np.ones(n), (self.pair, np.arange(n))), shape=(w.size, n)).tocsr()[used]
        safety = sparse.csr_array((self._weight * mean.ravel()[self.pair])[None, :])
        # A z + s = b with s in a product of cones; for each used pair s = (q + N, q - N, 2 sqrt(w)).
        blank = sparse.csr_array((m, n + m))
        plus = sparse.hstack([-visits, -sparse.eye_array(m)])
        minus = sparse.hstack([visits, -sparse.eye_array(m)])
        cone_rows = sparse.vstack([plus, minus, blank]).tocsr()
        order = np.arange(3 * m).reshape(3, m).T.ravel()
        A = sparse.vstack(
            [
                sparse.hstack([self._conserve, sparse.csr_array((self.shape[0], m))]),
                sparse.hstack([-sparse.eye_array(n), sparse.csr_array((n, m))]),
                sparse.hstack([-safety, sparse.csr_array((1, m))]),
                cone_rows[order],
            ]
        ).tocsc()
        cone_side = np.zeros((m, 3))
        cone_side[:, 2] = 2.0 * np.sqrt(w.ravel()[used])
        side = np.concatenate([self._inflow, np.zeros(n), [-required], cone_side.ravel()])
        cones = [clarabel.ZeroConeT(self.shape[0]), clarabel.NonnegativeConeT(n + 1)]
        cones += [clarabel.SecondOrderConeT(3)] * m
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        cost = np.concatenate([np.zeros(n), np.ones(m)])
        quadratic = sparse.csc_array((n + m, n + m))
        found = clarabel.DefaultSolver(quadratic, cost, A, side, cones, settings).solve()
        x = np.array(found.x)[:n]
        if not np.all(np.isfinite(x)):
            return None
        return self._behaviour(x), max(0.0, float(found.z[self.shape[0] + n]))

    def _behaviour(self, x: Floats) -> Floats:
        """x normalised at every node; where hardly anything flows, a little of everything."""
        flow = np.zeros(self.shape)
        flow[self.node, self.action] = np.maximum(x, 0.0) + 1e-14
        result: Floats = flow / flow.sum(axis=1, keepdims=True)
        return result
