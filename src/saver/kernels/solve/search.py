"""What the solver is asked, what it works on, and when it stops: plain arrays and numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import jit
from saver._types import Bools, Floats, Ints
from saver.play.nodes import Nodes


class Program(NamedTuple):
    """`Posed` as the passes read it, in units in which the largest w is 1."""

    w: Floats  # [S * A], or [2 * S * A] where moves are learned apart; so are visits and prices
    c: Floats  # [m, S * A]
    required: Floats  # [m]
    aim: Floats  # [m], required, less what is mere rounding: what steps steer for
    safest: Floats  # like w
    safest_values: Floats  # [m]


class Search(NamedTuple):
    """What one call of `descend` hands to the next."""

    b: Floats  # [rows * A], the last plain step
    y: Floats  # the extrapolated point
    push: Floats  # its advantages in the prices; between steps the growth of b
    pull: Floats  # its advantages in the constraint; in all, times their multipliers, if there are several
    kept: Floats  # the y of the smallest limit
    mass: Floats  # [nodes]
    weight: Floats  # [rows]
    N: Floats  # like w
    g: Floats  # prices of y
    average: Floats  # prices, averaged over iterations
    certificate: Floats  # prices of the largest bound
    numbers: Any  # one record, NUMBERS
    rails: Floats  # [rows below, m]
    earn: Floats  # [like w, columns], prices and constraints as a table, if there are several guardrails
    table: Floats  # [rows * A, columns], the advantages in each of them
    stake: Floats  # [rows, 2], their units


NAMES = (
    "iteration",  # how many there were; the next two are of the step to come
    "momentum",
    "beta",
    "step",
    "last",  # the limit at the last look
    "limit",  # the smallest limit
    "bound",  # the largest bound, and with its certificate
    "slack",  # its D
    "best",  # gap that counted as progress, and
    "best_at",  # when
    "work",  # flow updates
)
NUMBERS = np.dtype((np.record, [(name, "f8") for name in NAMES]))
(
    SCALE,  # the multipliers by which safety at stake is measured
    MULTIPLIER,  # of y
    MEAN_MULTIPLIER,  # averaged like the prices
    EARNED,  # V_i of y
    HELD,  # the multipliers of the largest bound
    GUARDS,
) = range(6)


@jit
def begin_search(model: Any, b: Any, asked: Any, columns: int) -> Any:
    """A search that starts at b, [rows, A].

    Several guardrails need `columns` of a table, one may have them: see `descend`.
    """
    m, size, rows, start = len(asked.steer), asked.w.size, len(b), b.ravel()
    c = asked.steer.reshape((m, -1))
    numbers, earn = np.zeros(1, dtype=NUMBERS), np.zeros((size if columns > 0 else 0, columns))
    n = numbers[0]
    n.momentum = n.step = 1.0
    n.last = n.limit = n.best = np.inf
    for p in range(len(earn)):
        for i in range(m):
            earn[p, 1 + i] = c[i, p % c.shape[1]]
    return Search(
        start.copy(), start.copy(), np.ones(b.size), np.zeros(b.size), start.copy(),
        np.zeros(len(model.state)), np.zeros(rows), np.zeros(size), np.zeros(size), np.zeros(size),
        np.zeros(size), numbers, np.zeros((GUARDS, m)), earn,
        np.zeros((b.size if columns > 0 else 0, columns)), np.zeros((rows if columns > 0 else 0, 2)),
    )  # fmt: skip


GOING, DONE = 0, 1


class Rules(NamedTuple):
    """When to stop."""

    tolerance: float  # a relative gap
    settle: float  # an improvement of the limit from look to look
    iterations: int
    least: int  # iterations before anything else ends it
    work: float  # flow updates
    stall: int  # iterations in which the gap does not shrink by a hundredth
    pause: int  # iterations after which to hand back, to be called again

    def left(self, iterations: int, work: float, stall: int) -> Rules:
        """What is left of the effort after so much of it."""
        return self._replace(iterations=self.iterations - iterations, work=self.work - work, stall=stall)

    def pausing(self, pause: int) -> Rules:
        """The same with another pause."""
        return self._replace(pause=pause)


HUGE, DETERS = 1e5, 10.0  # penalties, over the range of all means that matter


class Posed(NamedTuple):
    """One program: the objective, m guardrails, and a safe behaviour's flow, visits and values."""

    w: Floats  # [1, S, A], or, where moves are learned apart, [2, S, A]: see `onward`
    means: Floats  # [m, S, A]
    steer: Floats  # [m, S, A], the means to steer by
    required: Floats  # [m]
    safest: Floats  # [nodes, A], its flow: the safest there is, or one that is safe by all guardrails
    safest_visits: Floats  # like w
    safest_values: Floats  # [m]

    def by_true_means(self) -> Posed:
        """The same, steered by the means themselves."""
        return self._replace(steer=self.means)

    @property
    def apart(self) -> bool:
        """Whether visits before the last step have weights of their own."""
        return len(self.w) > 1


@jit
def deterred(w: Any, mean: Any, visits: Any) -> Any:
    """Constraint means [S, A] with huge penalties of what nobody needs cut to what deters as well.

    And whether any was. With higher means more is feasible, so a bound for them is a bound. `visits` are
    those of the safest; w is [1, S, A] or [2, S, A].
    """
    low, high, cut, found = np.inf, -np.inf, False, mean.copy()
    needed = visits > 0.0
    for k in range(len(w)):
        needed |= w[k] > 0.0
    for s in range(mean.shape[0]):
        for a in range(mean.shape[1]):
            if needed[s, a]:
                low, high = min(low, mean[s, a]), max(high, mean[s, a])
    for s in range(mean.shape[0]):
        for a in range(mean.shape[1]):
            if low < high and not needed[s, a] and mean[s, a] < low - HUGE * (high - low):
                found[s, a], cut = low - DETERS * (high - low), True
    return found, cut


ENDLESS = 10**9  # iterations: until nothing improves
LEAST = 10  # iterations of a replan
STALL, STALL_IN_PHASES = 20_000, 200  # iterations without progress after which no more is expected
PAUSE, SHORT_PAUSE = 10**7, 10**6  # flow updates between two chances to interrupt, or to see the clock


# -- a model as the passes read it, step by step or, where the horizon is long, in phases ----------------

LONG = 100_000  # flows above which a horizon is cut into phases
PHASES = 18
SHORTEST = 3  # steps of a phase, on average
MERGED = 0.35  # the work of one merged move of one step, in flow updates
BOUND_WORK = 0.25  # the work of a bound, in flow updates for each flow


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
        return unrolled(nodes, np.power(nodes.discount, np.arange(len(nodes.layer) - 1, dtype=float)))

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
            row=row.astype(np.uint64), row_state=(keys % states).astype(np.uint64),
            block=np.searchsorted(keys, np.arange(len(phase)) * states).astype(np.uint64),
            phase=phase.astype(np.uint64), merged_ptr=merged_ptr.astype(np.uint64),
            merged=merged.astype(np.uint64), slot=slot.astype(np.uint64),
            work=MERGED * walked + len(keys) * nodes.available.shape[1],
        )  # fmt: skip


@jit
def unrolled(nodes: Any, powers: Any) -> Unrolled:
    """`Unrolled.of`; `powers` are discount^t."""
    unsigned, A = np.uint64, nodes.available.shape[1]
    flows, none = float(len(nodes.state) * A), np.zeros(1, dtype=unsigned)
    return Unrolled(
        nodes.indptr.astype(unsigned), nodes.indices.astype(unsigned), nodes.data, nodes.start,
        nodes.available.ravel(), nodes.layer.astype(unsigned), nodes.state.astype(unsigned), powers,
        unsigned(A), np.arange(len(nodes.state)).astype(unsigned), nodes.state.astype(unsigned), none, none,
        none, none, none, flows, BOUND_WORK * flows,
    )  # fmt: skip


def phase_ends(steps: int) -> Ints:
    """Where phases begin and end: short at both ends of the horizon, their lengths growing geometrically."""
    half = PHASES // 2
    low, high = 1.0, float(steps)
    for _ in range(60):  # 1 + r + ... + r^(half - 1) = steps / 2
        ratio = 0.5 * (low + high)
        low, high = (ratio, high) if np.sum(ratio ** np.arange(half)) < steps / 2 else (low, ratio)
    left = np.cumsum(low ** np.arange(half))
    return np.unique(np.rint([0.0, *left, *(steps - left[-2::-1]), steps]).astype(np.int64))


def merge_moves(nodes: Nodes) -> tuple[Ints, Ints, Ints]:
    """The moves (s, s') of any action: where those of s begin, where each leads; and each move's own."""
    states, actions = nodes.available.shape
    source = np.repeat(np.arange(states * actions) // actions, np.diff(nodes.indptr))
    keys, slot = np.unique(source * states + nodes.indices, return_inverse=True)
    return np.searchsorted(keys, np.arange(states + 1) * states), keys % states, slot
