"""The loop of `kernel.stretch` for bandits: one step from one state, where every nanosecond counts.

It serves tracked designs behind the certified ledger or behind none. The candidate is one action: there is no
path to follow and no flow to evaluate. What it gives is what `kernel.stretch` would give.
"""

from __future__ import annotations

from typing import Any

from saver._jit import inlined
from saver.engine import state
from saver.engine.earning import budget_of
from saver.engine.layout import (
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
    WEIGHT,
    WORTH,
)
from saver.engine.parts import draw, pick, rate, take
from saver.engine.state import COUNT


@inlined
def stretch_one(  # noqa: PLR0912, PLR0915  (one loop whose numbers stay in registers)
    scene: Any, rules: Any, sheets: Any, run: Any, candidate: int, until: int, world: Any
) -> Any:
    """Episodes up to number `until`, each a `candidate` or the baseline; False if one is refused."""
    n, f, seen, pairs = run.n, run.f, run.seen, scene.pairs
    b, T, score, choice = run.tracker
    s, A, enough = scene.start[0], scene.uniform.shape[1], n[state.ENOUGH]
    design_row = rules.first_row + (scene.slot[0, s] if n[state.BY_NODE] else s)
    row = design_row if candidate == DESIGN else (scene.slot[0, s] if rules.explore_by_node else s)
    safe = sheets.sure[sheets.flags[SAFE, FIRST] + (scene.slot[0, s] if sheets.flags[SAFE, BY_NODE] else s)]
    planned, gated, floor = n[state.PLANNED] == 1, rules.gate != NO_GATE, rules.floor * 1.0
    k, explored, base = n[state.DONE], n[state.EXPLORED], n[state.BASELINE]
    exact, designed, bound = n[state.EXACT], n[state.DESIGNED], f[state.BOUND]
    earned, worst, sum_x = f[state.EARNED], f[state.WORST], f[state.SUM_X]
    a, (low, high) = choice[row], rules.bounds
    while k < until and run.stop[0] == 0:
        k += 1
        same = gated and a == safe
        budget = budget_of(rules, exact, designed, bound)
        if not gated or same or budget + floor - rules.required >= -rules.tolerance:
            p = s * A + a
            c = observe(rules, pairs, seen, scene.rewards, scene.constraints, p, True, world)
            if c < low or c > high:
                return False
            earned += pairs[p, WORTH]
            if same:
                exact += 1
            else:
                designed += 1
                if gated:
                    sum_x += c
                    bound = max(sum_x - rules.table[designed], bound + floor)
                else:
                    run.visited[p] += 1.0
            T[row, a] += 1.0
            first = candidate == DESIGN and pairs[p, WEIGHT] > 0.0 and seen[p, COUNT] < enough
            score[row, a] = rate(b[row, a], T[row, a], first)
            if candidate == EXPLORE:
                explored += 1
                if planned:
                    release(pairs, seen, b, T, score, choice, design_row, a, p, enough)
            a = pick(score, row)
        else:
            p = s * A + safe
            learned = rules.learn_from_baseline
            c = observe(rules, pairs, seen, scene.rewards, scene.constraints, p, learned, world)
            if c < low or c > high:
                return False
            base += 1
            exact += 1
            if learned and planned and seen[p, COUNT] <= enough:
                release(pairs, seen, b, T, score, choice, design_row, safe, p, enough)
                a = pick(score, row)
        worst = min(worst, base * rules.baseline + earned - k * rules.required)
        if candidate == EXPLORE and explored >= rules.explorations and not rules.explore_by_clock:
            break
    choice[row] = a
    if planned and rules.plan == TREE:
        run.mark[s], run.dirty[0], run.dirty_count[0] = True, s, 1
    n[state.DONE], n[state.EXPLORED], n[state.BASELINE] = k, explored, base
    n[state.EXACT], n[state.DESIGNED], n[state.UNITS] = exact, designed, designed
    f[state.EARNED], f[state.WORST] = earned, worst
    f[state.SUM_X], f[state.BOUND], f[state.SUM_V] = sum_x, bound, designed * rules.unit
    return True


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


@inlined
def release(
    pairs: Any, seen: Any, b: Any, T: Any, score: Any, choice: Any, row: int, a: int, p: int, enough: int
) -> None:
    """Score an action of the design anew: it may no longer come first."""
    first = pairs[p, WEIGHT] > 0.0 and seen[p, COUNT] < enough
    score[row, a] = rate(b[row, a], T[row, a], first)
    choice[row] = pick(score, row)
