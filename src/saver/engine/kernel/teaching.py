"""What an episode taught the tracker and the box."""

from __future__ import annotations

from typing import Any

from saver._jit import inlined, loop
from saver.engine.kernel.following import comes_first, rescore, row_of
from saver.engine.kernel.forms import CERTIFIED, DESIGN, EARN, EXPLORE, OUTSIDE, TREE, WEIGHT
from saver.engine.kernel.keeping import COUNT
from saver.engine.kernel.reaching import box_one


@inlined
def learn(scene: Any, rules: Any, run: Any, kind: int, taken: int, learned: bool) -> Any:
    """Counts, scores and the box after an episode; whether any choice may have changed."""
    now, A, enough = run.now, scene.uniform.shape[1], run.now.enough
    planned = now.planned == 1
    follows = rules.tracked and (kind in (DESIGN, EARN) or rules.track_all)
    explores = kind == EXPLORE and rules.explore_tracked
    changed = follows or explores
    for t in range(taken):
        s, a = run.path[t, 0], run.path[t, 1]
        p = s * A + a
        if learned and rules.ledger == CERTIFIED:
            box_one(rules, run.seen, run.box, p)
        if explores:
            row = row_of(scene, 0, rules.explore_by_node, t, s)
            run.tracker.T[row, a] += 1.0
            rescore(run.tracker, row, a, False)
        if follows:
            row = row_of(scene, rules.first_row, now.by_node == 1, t, s)
            if rules.plan == OUTSIDE:
                run.node_visits[scene.slot[t, s], a] += 1.0
            run.tracker.T[row, a] += 1.0
            if planned:
                rescore(run.tracker, row, a, comes_first(run.needed, run.seen, p, enough))
        if learned and planned:
            if rules.tracked and run.seen[p, COUNT] < enough + taken and scene.pairs[p, WEIGHT] > 0.0:
                released(scene, rules, run, s, a)
                changed = True
            if rules.plan == TREE and not run.mark[s]:
                run.mark[s] = True
                run.dirty[scene.nodes.layer[t] + run.dirty_count[t]] = s
                run.dirty_count[t] += 1
    return changed


@loop
def released(scene: Any, rules: Any, run: Any, s: int, a: int) -> None:
    """Score a pair anew wherever it can be met: it may no longer come first."""
    first = comes_first(run.needed, run.seen, s * scene.uniform.shape[1] + a, run.now.enough)
    for t in range(len(scene.slot) if run.now.by_node else 1):
        row = row_of(scene, 0, run.now.by_node == 1, t, s)
        if row >= 0:
            rescore(run.tracker, rules.first_row + row, a, first)
