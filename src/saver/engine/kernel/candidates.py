"""What a policy is worth to each guardrail, whether all let it pass, and what is played instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.design.flows import richest
from saver.engine.kernel.following import row_of
from saver.engine.kernel.forms import BY_NODE, EARN, FIRST, PROSPECTIVE, SAFE
from saver.engine.kernel.guards import after, believed, likely_mean, required_at, value_of
from saver.engine.kernel.reaching import reach
from saver.safety.plays import farthest


@inlined
def along(scene: Any, r: Any, visits: Any, steps: int, table: Any) -> Any:
    """V(b; table), by its visits where these are known, else by the nodes of `r`."""
    total = 0.0
    for p in range(len(visits)):
        total += visits[p] * table[p]
    for t in range(steps if len(visits) == 0 else 0):
        for j in range(r.layer[t], r.layer[t + 1]):
            i = r.node[j]
            total += scene.factor[t] * r.mass[i] * table[r.pair[i]]
    return total


@inner
def lowest(
    scene: Any, sheets: Any, run: Any, g: Any, r: Any, visits: Any, kind: int, tracked: bool, steps: int
) -> None:
    """`Certified.lower` of a candidate by each guardrail; V(b; m) and V(b; h^2) too where they are asked."""
    for i in range(len(g.state)):
        c, s = g.rails.fixed[i], g.state[i]
        if g.rails.drawn and not tracked:
            s.low = -farthest(scene.nodes, sheets.behaviour[kind], g.lower_table[i], -1.0)
            continue
        s.low = along(scene, r, visits, steps, g.lower[i])
        if c.crosses == 1:
            for p in range(len(g.mixed)):
                g.mixed[p] = g.half[i, p] * g.half[i, p]
            s.centre = along(scene, r, visits, steps, g.middle[i])
            s.spread = along(scene, r, visits, steps, g.mixed)


@inner
def affordable(rules: Any, sheets: Any, run: Any, g: Any) -> Any:
    """Whether every guardrail's gate lets the candidate pass."""
    for i in range(len(g.state)):
        if rules.gate == PROSPECTIVE:
            found = after(g, run.now, i, sheets.visits[SAFE])
        else:
            found = believed(g, run.now, i, sheets.visits[SAFE])
        if found < -g.rails.fixed[i].tolerance:
            return False
    return True


@inner
def nearest(sheets: Any, run: Any, g: Any) -> Any:
    """The guardrail whose believed budget is the least, in units of what is required, and that budget."""
    at, least, kept = 0, np.inf, 0.0
    for i in range(len(g.state)):
        found = believed(g, run.now, i, sheets.visits[SAFE])
        unit = abs(required_at(g, i, value_of(g, i)))
        if unit == 0.0:
            unit = g.rails.fixed[i].unit if g.rails.fixed[i].unit > 0.0 else 1.0
        if i == 0 or found / unit < least:
            at, least, kept = i, found / unit, found
    return at, kept


@inner
def instead(scene: Any, rules: Any, sheets: Any, run: Any, g: Any) -> Any:
    """`fall_back`: the steps of the earner, 0 for the baseline."""
    m = len(g.state)
    at = nearest(sheets, run, g)[0] if m > 1 else 0
    for i in range(m):
        for p in range(len(run.seen)):
            g.likely[i, p] = likely_mean(g, run.seen, i, p)
    surely, likely = richest(scene.nodes, g.lower_table[at], g.likely_table[at], run.earner)
    steps, _, _, same = reach(scene, run.earner, 0, True, sheets, run.detour)
    if same:
        return 0
    visits = run.detour.visits
    for i in range(m):
        if i != at:
            surely = along(scene, run.detour, visits, steps, g.lower[i])
            likely = along(scene, run.detour, visits, steps, g.likely[i])
        if (surely + likely) / 2 < value_of(g, i):
            return 0
    lowest(scene, sheets, run, g, run.detour, visits, EARN, True, steps)
    if not affordable(rules, sheets, run, g):
        return 0
    for i in range(m):
        g.state[i].value = along(scene, run.detour, visits, steps, g.rails.means[i])
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
        one = g.state[i]
        one.value = one.low = one.centre = one.spread = 0.0
        for t in range(taken):
            p, factor = run.path[t, 0] * A + run.path[t, 1], scene.factor[t]
            one.value += factor * g.rails.means[i, p]
            one.low += factor * g.lower[i, p]
            one.centre += factor * g.middle[i, p]
            one.spread += factor * g.half[i, p] * g.half[i, p]
    return same
