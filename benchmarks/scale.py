"""Size against time: a full binary tree through `from_edges`, `design.tree` and `weights`.

Time per edge should stay level as the tree grows.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from tables import Table, median_seconds

from saver import design
from saver.problem import weights
from saver.scenarios.tree import tree_model

DEPTHS = (8, 10, 12, 14, 16, 18, 20)


def table() -> Table:
    rows = []
    for depth in DEPTHS:
        began = time.perf_counter()
        mdp = tree_model(depth)
        build = time.perf_counter() - began
        edges = mdp.transitions.nnz
        shape = (mdp.states, mdp.actions)
        target, variance = np.full(shape, 0.5), np.ones(shape)
        mdp.layers, mdp.flow  # noqa: B018  (derived once for a model)
        seconds = (
            build,
            median_seconds(partial(design.tree, mdp, target, variance)),
            median_seconds(partial(weights, mdp, target)),
        )
        rows.append((depth, mdp.states, edges, *seconds, *(1e6 * s / edges for s in seconds)))
    return Table(
        "scale",
        __doc__ or "",
        ("depth", "states", "edges", "build s", "tree s", "weights s", "build us/edge", "tree us/edge",
         "weights us/edge"),
        rows,
    )  # fmt: skip
