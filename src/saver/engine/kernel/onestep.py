"""The loop of `kernel.stretch` for bandits: one step from one state, where every nanosecond counts.

It serves tracked designs behind the certified ledger or behind none. The candidate is one action: there is no
path to follow and no flow to evaluate. What it gives is what `kernel.stretch` would give.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined
from saver.engine.kernel.earning import budget_of
from saver.engine.kernel.following import comes_first, pick, rate, rescore, row_of
from saver.engine.kernel.forms import (
    BY_NODE,
    C_SCALE,
    C_WHERE,
    DESIGN,
    EXPLORE,
    FIRST,
    NO_GATE,
    R_SCALE,
    R_WHERE,
    SAFE,
    TREE,
    WORTH,
)
from saver.engine.kernel.memory import CONSTRAINT, COUNT
from saver.engine.kernel.reaching import place
from saver.engine.kernel.sampling import draw, take


@inlined
def stretch_one(  # noqa: PLR0912, PLR0915  (one loop whose numbers stay in registers)
    scene: Any, rules: Any, sheets: Any, run: Any, candidate: int, until: int, world: Any
) -> Any:
    """Episodes up to number `until`, each a `candidate` or what it falls back to; False if one is refused."""
    now, seen, pairs = run.now, run.seen, scene.pairs
    b, T, score, choice = run.tracker
    s, A, enough = scene.start[0], scene.uniform.shape[1], now.enough
    design_row = row_of(scene, rules.first_row, now.by_node == 1, 0, s)
    row = design_row if candidate == DESIGN else row_of(scene, 0, rules.explore_by_node, 0, s)
    safe = sheets.sure[row_of(scene, sheets.flags[SAFE, FIRST], sheets.flags[SAFE, BY_NODE] == 1, 0, s)]
    planned, gated = now.planned == 1, rules.gate != NO_GATE
    k, explored, base = now.done, now.explored, now.baseline
    exact, designed, bound = now.exact, now.designed, now.bound
    earned, worst, gained, last_low = now.earned, now.worst, now.gained, now.last_low
    a, (least, most) = choice[row], rules.bounds
    while k < until and run.stop[0] == 0:
        k += 1
        kind, low, budget = candidate, 0.0, budget_of(rules, exact, designed, bound)
        same = gated and a == safe
        if gated and not same:
            low = lower_end(rules, seen, s * A + a)
            kind = candidate if budget + low - rules.required >= -rules.tolerance else SAFE
        if kind == candidate:
            p = s * A + a
            c = observe(rules, pairs, seen, scene.rewards, scene.constraints, p, True, world)
            if c < least or c > most:
                return False
            earned += pairs[p, WORTH]
            if same:
                exact += 1
            else:
                designed += 1
                if gated:
                    gained += c
                    last_low, bound = low, max(bound + low, gained - rules.table[place(designed)])
                else:
                    run.visited[p] += 1.0
            T[row, a] += 1.0
            first = candidate == DESIGN and comes_first(run.needed, seen, p, enough)
            score[row, a] = rate(b[row, a], T[row, a], first)
            if candidate == EXPLORE:
                explored += 1
                if planned:
                    rescore(run.tracker, design_row, a, comes_first(run.needed, seen, p, enough))
            a = pick(score, row)
        else:
            played, low = instead_one(scene, rules, seen, s, safe, budget)
            p, earns = s * A + played, played != safe
            learned = earns or rules.learn_from_baseline
            c = observe(rules, pairs, seen, scene.rewards, scene.constraints, p, learned, world)
            if c < least or c > most:
                return False
            if earns:
                earned += pairs[p, WORTH]
                designed += 1
                gained += c
                last_low, bound = low, max(bound + low, gained - rules.table[place(designed)])
                T[design_row, played] += 1.0
            else:
                base += 1
                exact += 1
            if planned and (earns or (learned and seen[p, COUNT] <= enough)):
                rescore(run.tracker, design_row, played, comes_first(run.needed, seen, p, enough))
                a = pick(score, row)
        worst = min(worst, base * rules.baseline + earned - k * rules.required)
        if candidate == EXPLORE and explored >= rules.explorations and not rules.explore_by_clock:
            break
    choice[row] = a
    if planned and rules.plan == TREE:
        run.mark[s], run.dirty[0], run.dirty_count[0] = True, s, 1
    now.done, now.explored, now.baseline = k, explored, base
    now.exact, now.designed, now.units = exact, designed, designed
    now.earned, now.worst, now.bound = earned, worst, bound
    now.gained, now.proxy, now.length, now.last_low = gained, designed * rules.unit, designed * 1.0, last_low
    return True


@inlined
def lower_end(rules: Any, seen: Any, p: int) -> Any:
    """The lower end of a pair's box."""
    return max(seen[p, CONSTRAINT] - rules.depth[place(int(seen[p, COUNT]))], rules.box.floor)


@inlined
def instead_one(scene: Any, rules: Any, seen: Any, s: int, safe: int, budget: float) -> Any:
    """What surely earns most and its lower end, or the safe action."""
    if not rules.earner:
        return safe, 0.0
    A, best, at = scene.uniform.shape[1], -np.inf, safe
    for a in range(A):
        if scene.nodes.available[s, a]:
            low = lower_end(rules, seen, s * A + a)
            if low > best:
                best, at = low, a
    likely = seen[s * A + at, CONSTRAINT] if seen[s * A + at, COUNT] > 0.0 else rules.floor
    if rules.known_constraint.size:
        likely = rules.known_constraint[s, at]
    if (best + likely) / 2 < rules.declared or budget + best - rules.required < -rules.tolerance:
        return safe, 0.0
    return at, best


@inlined
def observe(
    rules: Any, pairs: Any, seen: Any, rewards: Any, constraints: Any, p: int, learned: bool, world: Any
) -> Any:
    """Draw a reward and a constraint, take them into the statistics, return the constraint."""
    r = draw(world, rules.laws[0], pairs[p, R_WHERE], pairs[p, R_SCALE], rewards)
    c = r
    if not rules.shared:
        c = draw(world, rules.laws[1], pairs[p, C_WHERE], pairs[p, C_SCALE], constraints)
    if learned:
        take(seen, p, r, c)
    return c
