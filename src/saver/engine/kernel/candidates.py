"""What a policy is worth to each guardrail, whether all let it pass, and what is played instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.engine.kernel.following import row_of
from saver.engine.kernel.forms import BY_NODE, FIRST, PROSPECTIVE, SAFE
from saver.engine.kernel.guards import after, believed, likely_mean, required_at, value_of
from saver.engine.kernel.rails import HALF, LIKELY, LOWER, MIDDLE, ROOM, TRUE
from saver.engine.kernel.reaching import reach
from saver.play.nodes import richest
from saver.play.stage import farthest


@inlined
def along(factor: Any, r: Any, visits: Any, steps: int, table: Any) -> Any:
    """V(b; table), by its visits where these are known, else by the nodes of `r`."""
    total = 0.0
    for p in range(len(visits)):
        total += visits[p] * table[p]
    for t in range(steps if len(visits) == 0 else 0):
        for j in range(r.layer[t], r.layer[t + 1]):
            i = r.node[j]
            total += factor[t] * r.mass[i] * table[r.pair[i]]
    return total


@inner
def worths(factor: Any, r: Any, visits: Any, steps: int, g: Any) -> None:
    """What a candidate is truly worth."""
    for i in range(len(g.state)):
        g.state[i].worth = along(factor, r, visits, steps, g.tables[i, TRUE])


@inner
def lowest(factor: Any, r: Any, visits: Any, steps: int, g: Any) -> None:
    """`Certified.lower` of a candidate by each guardrail; V(b; m) and V(b; h^2) too where they are asked."""
    for i in range(len(g.state)):
        s, table = g.state[i], g.tables[i]
        s.low = along(factor, r, visits, steps, table[LOWER])
        if g.fixed[i].bets == 1:
            s.centre = along(factor, r, visits, steps, table[MIDDLE])
        elif g.fixed[i].crosses == 1:
            squares = g.visits[ROOM]
            for p in range(len(squares)):
                squares[p] = table[HALF, p] * table[HALF, p]
            s.centre = along(factor, r, visits, steps, table[MIDDLE])
            s.spread = along(factor, r, visits, steps, squares)


@inner
def lowest_drawn(nodes: Any, behaviour: Any, g: Any) -> None:
    """The same of the worst that a policy can draw, where draws decide all."""
    for i in range(len(g.state)):
        g.state[i].low = -farthest(nodes, behaviour, g.shaped[i, LOWER], -1.0)


@inner
def affordable(gate: int, now: Any, g: Any, safe: Any) -> Any:
    """Whether every guardrail's gate lets the candidate pass."""
    for i in range(len(g.state)):
        found = after(g, now, i, safe) if gate == PROSPECTIVE else believed(g, now, i, safe)
        if found < -g.fixed[i].tolerance:
            return False
    return True


@inner
def nearest(now: Any, g: Any, safe: Any) -> Any:
    """The guardrail whose believed budget is the least, in units of what is required, and that budget."""
    at, least, kept = 0, np.inf, 0.0
    for i in range(len(g.state)):
        found, unit = believed(g, now, i, safe), abs(required_at(g, i, value_of(g, i)))
        if unit == 0.0:
            unit = g.fixed[i].unit if g.fixed[i].unit > 0.0 else 1.0
        if i == 0 or found / unit < least:
            at, least, kept = i, found / unit, found
    return at, kept


@inner
def instead(scene: Any, rules: Any, sheets: Any, run: Any, g: Any) -> Any:
    """`fall_back`: the steps of the earner, 0 for the baseline."""
    m, r, safe = len(g.state), run.detour, sheets.visits[SAFE]
    at = nearest(run.now, g, safe)[0] if m > 1 else 0
    for i in range(m):
        for p in range(len(run.seen)):
            g.tables[i, LIKELY, p] = likely_mean(g, run.seen, i, p)
    surely, likely = richest(scene.nodes, g.shaped[at, LOWER], g.shaped[at, LIKELY], run.earner)
    if (surely + likely) / 2 < value_of(g, at):
        return 0
    steps, _, _, same = reach(scene, run.earner, 0, True, sheets, r)
    if same:
        return 0
    for i in range(m):
        surely = along(scene.factor, r, r.visits, steps, g.tables[i, LOWER])
        likely = along(scene.factor, r, r.visits, steps, g.tables[i, LIKELY])
        if i != at and (surely + likely) / 2 < value_of(g, i):
            return 0
    lowest(scene.factor, r, r.visits, steps, g)
    if not affordable(rules.gate, run.now, g, safe):
        return 0
    for i in range(m):
        g.state[i].value = along(scene.factor, r, r.visits, steps, g.tables[i, TRUE])
    return steps


@inner
def drawn_way(scene: Any, sheets: Any, run: Any, g: Any, taken: int) -> Any:
    """What the draws made of a policy: worth, lower values, and whether it went as the baseline does."""
    A, same = scene.uniform.shape[1], True
    for t in range(taken):
        s, a = run.path[t, 0], run.path[t, 1]
        safe = row_of(scene, sheets.flags[SAFE, FIRST], sheets.flags[SAFE, BY_NODE] == 1, t, s)
        same = same and sheets.policy[safe, a] == 1.0
    for i in range(len(g.state)):
        one, table = g.state[i], g.tables[i]
        one.value = one.low = one.centre = one.spread = 0.0
        for t in range(taken):
            p, factor = run.path[t, 0] * A + run.path[t, 1], scene.factor[t]
            one.value += factor * table[TRUE, p]
            one.low += factor * table[LOWER, p]
            one.centre += factor * table[MIDDLE, p]
            one.spread += factor * table[HALF, p] * table[HALF, p]
    return same
