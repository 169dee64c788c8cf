"""Plans made inside the compiled loop: tree, dag, and the only decision of a bandit."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.kernels.believing import SMALLEST_VARIANCE, believe, one_row, spread_believed, spread_over
from saver.kernels.forms import DAG, TREE
from saver.kernels.keeping import COUNT, SQUARES
from saver.kernels.ledgers import asked_of_design, likely_mean
from saver.kernels.tracking import comes_first, pick, rate, rate_all


@inlined
def plan(scene: Any, rules: Any, run: Any, g: Any, several: Any, general: Any) -> None:
    """The design for what is believed now, and the tracker's choices for it."""
    now, b, M = run.now, run.tracker.b[rules.first_row :], run.spread[0]
    if rules.plan == TREE and now.planned and not now.whole:
        replan_tree(scene, rules, run)
        if not now.whole:
            return
    believe_all(rules.known_variance, rules.extra, rules.caution, run.seen, run.variance, now)
    if rules.plan == TREE:
        for s in range(len(M)):
            M[s] = 0.0
        spread_over(scene.nodes, scene.order, scene.target, run.variance, scene.rate, M, M, b)
        for s in range(len(run.mark)):
            run.mark[s] = False
        for t in range(len(run.dirty_count)):
            run.dirty_count[t] = 0
    elif rules.plan == DAG:
        plan_dag(scene, rules, run, b)
    else:
        plan_one(scene, rules, run, g, several, general, b)
    now.planned = 1
    states = scene.nodes.state if rules.design_by_node else scene.every
    rate_all(run.tracker, rules.first_row, states, now.enough, run.needed, run.seen)


@inner
def believe_all(known: Any, extra: float, caution: float, seen: Any, variance: Any, now: Any) -> None:
    """The believed variance of every pair, none below a millionth of the largest."""
    S, A = variance.shape
    if known.size:
        for s in range(S):
            for a in range(A):
                variance[s, a] = known[s, a]
    else:
        table = seen.reshape(S, A, seen.shape[1])
        believe(table[:, :, COUNT], table[:, :, SQUARES], extra, caution, variance)
    top, bottom = 0.0, np.inf
    for s in range(S):
        for a in range(A):
            top, bottom = max(top, variance[s, a]), min(bottom, variance[s, a])
    now.top = max(now.top, top)
    if bottom < SMALLEST_VARIANCE * now.top or caution > 0.0:
        now.whole = 1
    for s in range(S):
        for a in range(A):
            variance[s, a] = max(variance[s, a], SMALLEST_VARIANCE * top)


@inlined
def replan_tree(scene: Any, rules: Any, run: Any) -> None:
    """`plan` on a tree, where only states visited since the last plan can have changed.

    That is so while no variance is floored; once one may be, `WHOLE` is set and all is planned anew.
    """
    A, layer, first_row = run.variance.shape[1], scene.nodes.layer, rules.first_row
    b, _, score, choice = run.tracker
    for t in range(len(layer) - 2, -1, -1):
        states = run.dirty[layer[t] : layer[t] + run.dirty_count[t]]
        for s in states:
            run.mark[s] = False
            for a in range(A):
                p = s * A + a
                v = spread_believed(run.seen[p, COUNT], run.seen[p, SQUARES], rules.extra, 0.0)
                run.variance[s, a] = v
                run.now.top = max(run.now.top, v)
                if v < SMALLEST_VARIANCE * run.now.top:
                    run.now.whole = 1
        M = run.spread[0]
        spread_over(scene.nodes, states, scene.target, run.variance, scene.rate, M, M, b[first_row:])
        for s in states:
            for a in range(A):
                first = comes_first(run.needed, run.seen, s * A + a, run.now.enough)
                score[first_row + s, a] = rate(b[first_row + s, a], run.tracker.T[first_row + s, a], first)
            choice[first_row + s] = pick(score, first_row + s)
        run.dirty_count[t] = 0


@inner
def plan_dag(scene: Any, rules: Any, run: Any, b: Any) -> None:
    """`design.dag`, by step or stationary."""
    nodes, ahead, here = scene.nodes, run.spread[0], run.spread[1]
    steps, each = len(nodes.layer) - 1, len(scene.target_by_step) > 1
    for s in range(len(ahead)):
        ahead[s] = 0.0
    for t in range(len(scene.factor) - 1, -1, -1):
        pi = scene.target_by_step[t if each else 0]
        spread_over(nodes, scene.order, pi, run.variance, scene.rate, ahead, here, run.policy)
        ahead, here = here, ahead
        if rules.design_by_node and t < steps:
            for i in range(nodes.layer[t], nodes.layer[t + 1]):
                for a in range(b.shape[1]):
                    b[i, a] = run.policy[nodes.state[i], a]
    if not rules.design_by_node:
        spread_over(nodes, scene.order, scene.target, run.variance, scene.rate, ahead, here, b)


@inner
def plan_one(scene: Any, rules: Any, run: Any, g: Any, several: Any, general: Any, b: Any) -> None:
    """The exact design of the only decision; elsewhere play is uniform."""
    only, A, m = scene.nodes.state[0], run.variance.shape[1], len(g.state)
    means, required, paced, w = np.empty((m, A)), np.empty(m), np.empty(m), np.empty(A)
    for a in range(A):
        p = only * A + a
        w[a] = scene.pairs[p].weight * scene.pairs[p].weight * run.variance[only, a]
        for i in range(m):
            means[i, a] = likely_mean(g, run.seen, i, p)
    asked_of_design(g, run.now, rules.episodes - run.now.done, rules.paced, general, required, paced)
    allowed = scene.nodes.available[only]
    row = one_row(w, means, allowed, required, paced, several)
    for s in range(b.shape[0]):
        for a in range(A):
            b[s, a] = row[a] if s == only else scene.uniform[s, a]
