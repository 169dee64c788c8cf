"""Size against time: a full binary tree through `from_edges`, `design.tree` and `weights`.

Time per edge should stay level as the tree grows.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from tables import Table, median_seconds

from saver import SCENARIOS, design, simulate
from saver.problem import weights
from saver.scenarios.tree import tree_model

DEPTHS = (8, 10, 12, 14, 16, 18, 20)
SIMULATED, EPISODES, REPEATS = (4, 8, 10, 12, 14), 72_000, 7
KEPT: dict[str, list[int] | None] = {"30 checkpoints": None, "one checkpoint": []}


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
        [simulated()],
    )  # fmt: skip


def simulated() -> Table:
    """A step of the compiled engine."""
    trees = {depth: SCENARIOS["tree"](depth=depth) for depth in SIMULATED}
    cells = [(depth, name) for depth in trees for name in KEPT]
    took: dict[tuple[int, str], list[float]] = {cell: [] for cell in cells}
    for turn in range(1 + REPEATS):
        for depth, name in cells:
            began = time.process_time()
            simulate(trees[depth], "saver", episodes=EPISODES, runs=1, checkpoints=KEPT[name], threads=1)
            took[depth, name] += [time.process_time() - began] if turn else []
    step = {cell: 1e9 * min(seconds) / EPISODES / cell[0] for cell, seconds in took.items()}
    rows = []
    for depth, tree in trees.items():
        here = [step[depth, name] for name in KEPT]
        more = [step[depth, name] / step[SIMULATED[0], name] for name in KEPT]
        rows.append((depth, tree.problem.mdp.states, *here, *more))
    return Table(
        "a simulated step",
        f"One run of `saver` with {EPISODES:,} episodes, preparations included: nanoseconds of the processor "
        f"for a step, the shortest of {REPEATS} in turn, and that over the same for the shallowest tree.",
        ("depth", "states", *(f"{name}, ns" for name in KEPT), *(f"{name}, times" for name in KEPT)),
        rows,
    )
