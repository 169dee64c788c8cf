"""One episode, step by step, for the loops of several guardrails and of unknown transitions.

The loop of one guardrail has a walk of its own, in `stretching`: with this one, its branches left out by the
type of None, a simulated step of the tree took 1.02 to 2.0 times as long (`benchmarks/versus.py`).
"""

from __future__ import annotations

from typing import Any

from saver._jit import inlined
from saver.engine.kernel.entering import teaches
from saver.engine.kernel.following import row_of
from saver.engine.kernel.forms import (
    BY_NODE,
    ESTIMATED,
    FIRST,
    IMPORTANCE,
    R_HIGH,
    R_LOW,
    R_SCALE,
    R_WHERE,
    RANDOM,
    SAFE,
)
from saver.engine.kernel.keeping import COUNT
from saver.engine.kernel.rails import COUNTED, MEAN, MIDDLE, SCALE, SEEN, SQUARED, WHERE
from saver.engine.kernel.sampling import act, choose, draw, take, welford
from saver.engine.kernel.streams import uniform
from saver.problem.checks import LARGEST


@inlined
def walk(  # noqa: PLR0912, PLR0915  (every estimator and law in one pass over the steps)
    scene: Any, rules: Any, sheets: Any, run: Any, g: Any, starts: Any, kind: int, choice: Any,
    tracked: bool, first_row: int, by_node: bool, learned: bool, taught: bool, past: bool, acting: Any,
    world: Any,
) -> Any:  # fmt: skip
    """Play one episode; return its length, 0 if it is refused. Its sums are kept with each guardrail.

    If it is `learned` the statistics learn from it. The ledgers do if they are `taught`, or learn V0. Where
    transitions are unknown `starts` counts where episodes begin, and where the last action led is told too;
    else it is None.
    """
    L, A, pairs = len(scene.factor), scene.uniform.shape[1], scene.pairs
    weighted = rules.estimate == IMPORTANCE and kind != SAFE
    counted = learned and (starts is not None or rules.estimate == ESTIMATED)
    random = not tracked and sheets.flags[kind, RANDOM] == 1
    ratio, weighed, p, taken, r = 1.0, 0.0, 0, 0, 0.0
    for i in range(len(g.state)):
        g.state[i].total = g.state[i].guess = 0.0
    for t in range(L if random else 0):
        run.draws[t] = uniform(acting)
    s = scene.start[choose(world, scene.start_chance, 0, len(scene.start))]
    if starts is not None:
        starts[s] += learned
    for t in range(L):
        if tracked:
            a = choice[row_of(scene, first_row, by_node, t, s)]
        else:
            row = row_of(scene, sheets.flags[kind, FIRST], sheets.flags[kind, BY_NODE] == 1, t, s)
            a = act(sheets.policy, row, run.draws[t]) if random else sheets.sure[row]
            if weighted:
                ratio /= sheets.policy[row, a]
        p = s * A + a
        run.path[t, 0], run.path[t, 1] = s, a
        r = draw(world, rules.laws[0], pairs[p, R_WHERE], pairs[p, R_SCALE], scene.rewards)
        if learned:
            take(run.seen, p, r, 0.0)
        if not observe(rules, run, g, p, scene.factor[t], r, learned, taught, past, world):
            return 0
        if rules.watched and (r < pairs[p, R_LOW] or r > pairs[p, R_HIGH]):
            return 0
        if weighted:
            ratio *= scene.target_by_step[t if len(scene.target_by_step) > 1 else 0, s, a]
            weighed += scene.factor[t] * ratio * r
        taken = t + 1
        stays = scene.indptr[p] == scene.indptr[p + 1]
        if starts is None:
            stays = stays or taken == L
        if stays:
            break
        e = choose(world, scene.chance, scene.indptr[p], scene.indptr[p + 1])
        s = scene.to[e]
        if scene.ends[s]:
            break
        if counted:
            run.moves[e] += 1.0
            run.paid[e] += r
    over = taken < L
    if starts is not None:
        over = scene.indptr[p] == scene.indptr[p + 1] or scene.ends[s]
    if counted and over:
        run.ends[p] += 1.0
        run.ends_paid[p] += r
    if weighted:
        if not abs(weighed) <= LARGEST:
            return 0
        now = run.now
        now.weighted += 1
        now.weighted_mean, now.weighted_squares = welford(
            now.weighted, now.weighted_mean, now.weighted_squares, weighed
        )
    return taken


@inlined
def observe(
    rules: Any, run: Any, g: Any, p: int, factor: float, r: float, learned: bool, taught: bool, past: bool,
    world: Any,
) -> Any:  # fmt: skip
    """Draw what is guarded and learn from it, in the order of the world's laws; False if it is refused."""
    for j in range(len(g.state)):
        i = g.fixed[j].draws
        c, s, table, x = g.fixed[i], g.state[i], g.tables[i], r
        if not rules.shared:
            x = draw(world, c.law, table[WHERE, p], table[SCALE, p], g.data)
        x *= c.sign
        if x < c.least or x > c.most:
            return False
        s.total += factor * x
        s.guess += factor * table[MIDDLE, p]
        if learned:
            table[MEAN, p] += (x - table[MEAN, p]) / run.seen[p, COUNT]
        if taught or teaches(c, past):
            table[COUNTED, p] += 1.0
            table[SEEN, p], table[SQUARED, p] = welford(
                table[COUNTED, p], table[SEEN, p], table[SQUARED, p], x
            )
    return True
