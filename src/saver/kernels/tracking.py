"""The tracker: which action comes next in each row, and what an episode teaches it."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import bare, inlined, jit
from saver.kernels.forms import DESIGN, EARN, EXPLORE, OUTSIDE, TREE
from saver.kernels.keeping import COUNT


@inlined
def row_of(scene: Any, first_row: int, by_node: bool, t: int, s: int) -> Any:
    """The row of a state at a step, in a table that begins at `first_row`."""
    return first_row + (scene.slot[t, s] if by_node else s)


@inlined
def drawn_row(scene: Any, plays: Any, kind: int, t: int, s: int) -> Any:
    """The row of a state at a step, in the policy of a kind of episode that is drawn from."""
    return row_of(scene, plays.kinds[kind].first, plays.kinds[kind].by_node == 1, t, s)


@inlined
def row_at(first_row: int, by_node: bool, node: int, s: int) -> Any:
    """The row of a node, which is in state s."""
    return first_row + (node if by_node else s)


@inlined
def comes_first(needed: Any, seen: Any, p: int, enough: int) -> Any:
    """Whether a pair goes before all others: it is needed by now, and has fewer than `enough` samples."""
    return needed[p] <= enough and seen[p, COUNT] < enough


@inlined
def pick(score: Any, row: int) -> Any:
    """argmax of a row; ties go to the lowest index. No branches: they would be guessed wrong."""
    at, best = 0, score[row, 0]
    for a in range(1, score.shape[1]):
        better = score[row, a] > best
        at = a if better else at
        best = score[row, a] if better else best
    return at


@inlined
def rate(b: float, T: float, first: bool) -> Any:
    """The tracker's score b / T; infinite for a pair that comes first."""
    if first:
        return np.inf
    return b / T if b > 0.0 else 0.0


@inlined
def rescore(tracker: Any, row: int, a: int, first: bool) -> Any:
    """Score one action anew, and choose again; whether the choice is another."""
    b, T, score, choice = tracker
    score[row, a] = rate(b[row, a], T[row, a], first)
    before, choice[row] = choice[row], pick(score, row)
    return choice[row] != before


@jit
def rate_all(tracker: Any, begin: Any, states: Any, enough: Any, needed: Any, seen: Any) -> None:
    """Score all rows from `begin` on anew; `states` gives the state of each."""
    A = tracker.b.shape[1]
    for i in range(len(states)):
        for a in range(A):
            p = states[i] * A + a
            first = comes_first(needed, seen, p, enough)
            tracker.score[begin + i, a] = rate(tracker.b[begin + i, a], tracker.T[begin + i, a], first)
        tracker.choice[begin + i] = pick(tracker.score, begin + i)


@inlined
def learn(scene: Any, rules: Any, run: Any, kind: int, taken: int, learned: bool) -> Any:
    """Counts and scores after an episode; the first step at which another action may now be taken."""
    now, A, enough, since = run.now, scene.uniform.shape[1], run.now.enough, len(scene.factor)
    planned, by_node = now.planned == 1, now.by_node == 1
    follows = rules.tracked and (kind in (DESIGN, EARN) or rules.track_all)
    explores = kind == EXPLORE and rules.explore_tracked
    for t in range(taken):
        s, a = run.path[t, 0], run.path[t, 1]
        p = s * A + a
        if explores:
            row = row_of(scene, 0, rules.explore_by_node, t, s)
            run.tracker.T[row, a] += 1.0
            if rescore(run.tracker, row, a, False):
                since = 0
        if follows:
            row = row_of(scene, rules.first_row, by_node, t, s)
            if rules.plan == OUTSIDE:
                run.node_visits[scene.slot[t, s], a] += 1.0
            run.tracker.T[row, a] += 1.0
            if planned and rescore(run.tracker, row, a, comes_first(run.needed, run.seen, p, enough)):
                since = min(since, t if by_node else 0)
        if learned and planned:
            if rules.tracked and run.seen[p, COUNT] < enough + taken and run.needed[p] <= enough:
                released(scene, rules, run, s, a)
                since = 0
            if rules.plan == TREE and not run.mark[s]:
                run.mark[s] = True
                run.dirty[scene.nodes.layer[t] + run.dirty_count[t]] = s
                run.dirty_count[t] += 1
    return since


@bare
def released(scene: Any, rules: Any, run: Any, s: int, a: int) -> None:
    """Score a pair anew wherever it can be met: it may no longer come first."""
    first = comes_first(run.needed, run.seen, s * scene.uniform.shape[1] + a, run.now.enough)
    for t in range(len(scene.slot) if run.now.by_node else 1):
        row = row_of(scene, 0, run.now.by_node == 1, t, s)
        if row >= 0:
            rescore(run.tracker, rules.first_row + row, a, first)
