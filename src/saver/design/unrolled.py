"""A model as the compiled passes read it, step by step or, where the horizon is long, in phases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.play.nodes import Nodes

LONG = 100_000  # flows above which a horizon is cut into phases
PHASES = 18
SHORTEST = 3  # steps of a phase, on average
MERGED = 0.35  # the work of one merged move of one step, in flow updates
BOUND = 0.25  # the work of a bound, in flow updates for each flow


class Unrolled(NamedTuple):
    """Nodes and the rows that decide at them, as plain arrays; unsigned, so that no index is checked.

    A row is what decides at one node or, in phases, at all nodes of one state in a phase. In phases each step
    walks the merged moves (s, s') of all actions instead of the moves of each.
    """

    indptr: Any  # moves, rows are pairs s * A + a
    indices: Any
    data: Floats
    start: Floats  # [S]
    allowed: Bools  # [S * A]
    layer: Any  # [steps + 1], where each step's nodes begin
    state: Any  # [nodes]
    powers: Floats  # [steps], discount^t
    actions: Any  # A
    row: Any  # [nodes]
    row_state: Any  # [rows]
    block: Any  # [phases + 1], where each phase's rows begin
    phase: Any  # [phases + 1], where each phase's steps begin; [1] without phases
    merged_ptr: Any  # [S + 1], merged moves of each state
    merged: Any  # where each leads
    slot: Any  # [moves], the merged move of each
    work: float  # of one iteration, in flow updates
    bound_work: float

    @classmethod
    def of(cls, nodes: Nodes) -> Unrolled:
        """One row for each node."""
        flows, none = float(len(nodes.state) * nodes.available.shape[1]), np.zeros(1, dtype=np.uint64)
        return cls(
            nodes.indptr.astype(np.uint64),
            nodes.indices.astype(np.uint64),
            nodes.data,
            nodes.start,
            nodes.available.ravel(),
            nodes.layer.astype(np.uint64),
            nodes.state.astype(np.uint64),
            np.power(nodes.discount, np.arange(len(nodes.layer) - 1, dtype=float)),
            np.uint64(nodes.available.shape[1]),
            row=np.arange(len(nodes.state), dtype=np.uint64),
            row_state=nodes.state.astype(np.uint64),
            block=none,
            phase=none,
            merged_ptr=none,
            merged=none,
            slot=none,
            work=flows,
            bound_work=BOUND * flows,
        )

    def changed(self, **parts: Any) -> Unrolled:
        """The same with other parts."""
        return self._replace(**parts)

    @classmethod
    def in_phases(cls, nodes: Nodes) -> Unrolled | None:
        """One row for each state in a phase; None for a model that is better walked step by step."""
        steps, flows = len(nodes.layer) - 1, len(nodes.state) * nodes.available.shape[1]
        if flows <= LONG or steps < SHORTEST * PHASES:
            return None
        phase, states = phase_ends(steps), len(nodes.start)
        when = np.searchsorted(phase, nodes.step, side="right") - 1
        keys, row = np.unique(when * states + nodes.state, return_inverse=True)
        merged_ptr, merged, slot = merge_moves(nodes)
        walked = float(np.diff(merged_ptr)[nodes.state].sum())
        return cls.of(nodes).changed(
            row=row.astype(np.uint64),
            row_state=(keys % states).astype(np.uint64),
            block=np.searchsorted(keys, np.arange(len(phase)) * states).astype(np.uint64),
            phase=phase.astype(np.uint64),
            merged_ptr=merged_ptr.astype(np.uint64),
            merged=merged.astype(np.uint64),
            slot=slot.astype(np.uint64),
            work=MERGED * walked + len(keys) * nodes.available.shape[1],
        )


def phase_ends(steps: int) -> Ints:
    """Where phases begin and end: short at both ends of the horizon, their lengths growing geometrically."""
    half = PHASES // 2
    low, high = 1.0, float(steps)
    for _ in range(60):  # 1 + r + ... + r^(half - 1) = steps / 2
        ratio = 0.5 * (low + high)
        low, high = (ratio, high) if np.sum(ratio ** np.arange(half)) < steps / 2 else (low, ratio)
    left = np.cumsum(low ** np.arange(half))
    ends: Ints = np.unique(np.rint([0.0, *left, *(steps - left[-2::-1]), steps]).astype(np.int64))
    return ends


def merge_moves(nodes: Nodes) -> tuple[Ints, Ints, Ints]:
    """The moves (s, s') of any action: where those of s begin, where each leads; and each move's own."""
    states, actions = nodes.available.shape
    source = np.repeat(np.arange(states * actions) // actions, np.diff(nodes.indptr))
    keys, slot = np.unique(source * states + nodes.indices, return_inverse=True)
    return np.searchsorted(keys, np.arange(states + 1) * states), keys % states, slot
