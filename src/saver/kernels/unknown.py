"""Plans where transitions are unknown, from counts to a policy in one call: `FrequencyDesigner` on arrays.

Of the usual case alone: the value of one target, one guardrail, nothing known beside what was told, and where
each action led is told. What is unusual, or has to be refused, is left to the `FrequencyDesigner`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import inner, jit
from saver._types import Bools, Floats
from saver.kernels.believing import (
    GAP,
    QUOTA,
    SETTLED,
    SMALLEST_VARIANCE,
    UNNEEDED,
    attainable,
    average,
    believe,
    hope,
    need,
    shrunk,
    tried,
)
from saver.kernels.keeping import COUNT, MEAN, SQUARES
from saver.kernels.ledgers import asked_of_design
from saver.kernels.rails import MEAN as GUARDED
from saver.kernels.solve.descent import descend
from saver.kernels.solve.mixing import at_stake, begun, learnable, made_safe, reaches, safest, visited
from saver.kernels.solve.passes import best
from saver.kernels.solve.pricing import priced
from saver.kernels.solve.search import (
    ENDLESS,
    LEAST,
    LONG,
    PAUSE,
    SCALE,
    STALL,
    Posed,
    Rules,
    begin_search,
    deterred,
    unrolled,
)
from saver.play.foresight import gained
from saver.play.nodes import Nodes
from saver.problem.checks import EXACT, LARGEST, lawful
from saver.problem.moving import follow, met, rated, reached


class PlanInputs(NamedTuple):
    """What plans need to know of a problem and a collector."""

    policies: Floats  # [1, 1, S, A], or [1, L, S, A]: the target
    signs: Floats  # [1, 1]
    unseen: Floats  # [L, S, A], what is played where nothing was seen
    available: Bools
    even: Floats
    start: Floats  # [S]; empty where it is learned
    discount: float
    factors: Floats  # [L], discount^t
    powers: Floats  # the same, as `Unrolled` has them
    episodes: int
    extra: float  # as in `Rules`, with the next
    caution: float
    floor: float
    ceiling: float
    paced: bool


class Seen(NamedTuple):
    """The model of what was told: `Moves`, and `Unknown.believed`."""

    indptr: Any
    indices: Any
    rates: Any
    start: Any
    counts: Any  # of moves
    paid: Any
    counted: Any  # rewards of each pair, [S, A]
    mean: Any
    variance: Any
    gains: Any  # constraint means, [S, A]


@jit
def plan_learned(study: Any, scene: Any, run: Any, free: Any, g: Any, hint: Any) -> Any:
    """The policy, [L, S, A], what comes first, and the model that is believed; hint is where to start.

    The policy is empty where the `FrequencyDesigner` is to be asked.
    """
    (S, A), left, none = study.available.shape, study.episodes - run.now.done, np.zeros((0, 0, 0))
    seen, needed = seen_so_far(study, scene, run, free, g), np.full(S * A, UNNEEDED)
    gains, nodes = gained(seen.gains.copy().reshape((1, S, A)), seen.counted), nodes_of(study, seen)
    believed = nodes.indptr, nodes.indices, seen.rates, seen.start, gains
    if seen.counted.max() == 0.0 or not 1 < len(nodes.state) <= LONG // A:
        return none, needed, believed
    size, w = appraised(study, run, seen)
    model = unrolled(nodes, study.powers[: len(nodes.layer) - 1].copy())
    asked, fine = program_of(study, nodes, model, run, g, w, seen)
    if not fine or not lawful(hint.reshape(-1, A), study.available, EXACT):
        return none, needed, believed
    b = solved(study, nodes, model, asked, hint)
    flow, policy, visits = visited(nodes, b, asked.means, False)[0], study.unseen.copy(), np.zeros((S, A))
    for i in range(len(b)):
        t, s = nodes.step[i], nodes.state[i]
        for a in range(A):
            policy[t, s, a] = b[i, a]
            visits[s, a] += flow[i, a]
    tried(policy, study.unseen, seen.counted)
    need(size.ravel(), study.episodes, needed)
    for p in range(len(needed)):
        if left * visits[p // A, p % A] >= 1.0:
            needed[p] = UNNEEDED
    return policy, needed, believed


@inner
def seen_so_far(study: Any, scene: Any, run: Any, free: Any, g: Any) -> Any:
    """What was told."""
    S, A = study.available.shape
    table = run.seen.reshape(S, A, run.seen.shape[1])
    counted, mean, squares = table[:, :, COUNT].copy(), table[:, :, MEAN].copy(), table[:, :, SQUARES].copy()
    gains, variance = g.tables[0, GUARDED].copy().reshape((S, A)), np.empty((S, A))
    believe(counted, squares, study.extra, study.caution, variance)
    top = variance.max()
    for s in range(S):
        for a in range(A):
            variance[s, a] = max(variance[s, a], SMALLEST_VARIANCE * top)
            if counted[s, a] == 0.0:
                gains[s, a] = study.floor
    indptr, indices, counts, paid = met(scene.indptr, scene.to, run.moves[0], run.moves[1])
    rates, start = rated(indptr, counts, run.ends[0]), study.start.copy()
    if len(start) == 0:
        total = free.starts.sum()
        start = free.starts / total if total > 0.0 else np.full(S, 1.0 / S)
    return Seen(indptr, indices, rates, start, counts, paid, counted, mean, variance, gains)


@inner
def appraised(study: Any, run: Any, seen: Any) -> Any:
    """The weights of what is asked, and the prices of rewards and moves: all are told where they led."""
    target, size, nowhere = study.policies[0], np.zeros(study.available.shape), np.zeros((0, 0, 0))
    follow(seen.indptr, seen.indices, seen.rates, seen.start, target, study.factors, nowhere, size)
    usual = size
    if study.discount < 1.0:
        usual, even = np.zeros(size.shape), np.ones(len(study.factors))
        follow(seen.indptr, seen.indices, seen.rates, seen.start, target, even, nowhere, usual)
    other = average(seen.mean, seen.counted, size)
    mean = np.where(seen.counted > 0.0, seen.mean, other)
    by_reward, by_move, _ = priced(
        seen.indptr, seen.indices, seen.rates, seen.start, study.discount, study.factors, study.policies,
        study.signs, mean, seen.variance, seen.counts, seen.paid, run.ends[0], run.ends[1],
    )  # fmt: skip
    prices = shrunk(by_reward, usual, seen.counted) + shrunk(by_move, usual, seen.counted)
    return size, np.maximum(prices, 0.0)


@inner
def nodes_of(study: Any, seen: Any) -> Any:
    """`Nodes.of` the model of what was seen."""
    first = np.flatnonzero(seen.start > 0.0)
    states, begins, ends = reached(seen.indptr, seen.indices, study.available, first, len(study.factors))
    layer = np.zeros(len(ends) + 1, np.int64)
    for t in range(len(ends)):
        layer[t + 1] = layer[t] + ends[t] - begins[t]
    state, step = np.empty(layer[-1], np.int64), np.empty(layer[-1], np.int64)
    for t in range(len(ends)):
        for j in range(begins[t], ends[t]):
            state[layer[t] + j - begins[t]], step[layer[t] + j - begins[t]] = states[j], t
    indptr, indices = seen.indptr.astype(np.int64), seen.indices.astype(np.int64)
    return Nodes(indptr, indices, seen.rates, seen.start, study.available, layer, state, step, study.discount)


@inner
def program_of(study: Any, nodes: Any, model: Any, run: Any, g: Any, w: Any, seen: Any) -> Any:
    """The program, as `safe_plan` and `pose` put it, and whether it is of the usual kind."""
    mean = hope(seen.gains, seen.counted, study.floor, study.ceiling)
    pace, required = np.zeros(1), np.zeros(1)
    asked_of_design(g, run.now, study.episodes - run.now.done, study.paced, True, required, pace)
    b, top = safest(model, mean)
    required[0], values = attainable(required[0], pace[0], top), np.array([top])
    anywhere, shape = np.zeros(len(w), dtype=np.bool_), (1, w.shape[0], w.shape[1])
    for s in nodes.state:
        anywhere[s] = True
    weight, means = w.reshape(shape), mean.copy().reshape(shape)
    flow, N, _ = visited(nodes, b, means, False)
    fine = w.max() > 0.0 and learnable(w, study.available, anywhere, LARGEST)
    fine = fine and reaches(top, required[0]) and not deterred(weight, mean, N[0])[1]
    return Posed(weight, means, means, np.minimum(required, values), flow, N, values), fine


@inner
def solved(study: Any, nodes: Any, model: Any, asked: Any, hint: Any) -> Any:
    """`Planner.solve`."""
    b, nowhere = begun(nodes, model.row, model.row_state, hint, study.even, asked), np.empty(0, np.uint64)
    search = begin_search(model, b, asked, 0)
    span = asked.safest_values + best(model, np.zeros(asked.w.size), -asked.steer.ravel(), 1.0, nowhere)
    search.rails[SCALE] = at_stake(nodes, model.row, b, asked, span)
    pause = max(1, int(PAUSE / model.work))
    descend(model, search, asked, Rules(GAP, SETTLED, ENDLESS, LEAST, QUOTA, STALL, pause))
    return made_safe(nodes, model.row, search.kept.reshape(b.shape), asked)[0]
