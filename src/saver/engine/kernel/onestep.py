"""The loop of `kernel.stretch` for bandits: one step from one state, where every nanosecond counts.

It serves tracked designs behind the certified ledger or behind none. The candidate is one action: there is no
path to follow and no flow to evaluate. What it gives is what `kernel.stretch` would give.
"""

from __future__ import annotations

from typing import Any

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
from saver.engine.kernel.memory import COUNT
from saver.engine.kernel.sampling import draw, take


@inlined
def stretch_one(  # noqa: PLR0912, PLR0915  (one loop whose numbers stay in registers)
    scene: Any, rules: Any, sheets: Any, run: Any, candidate: int, until: int, world: Any
) -> Any:
    """Episodes up to number `until`, each a `candidate` or the baseline; False if one is refused."""
    now, seen, pairs = run.now, run.seen, scene.pairs
    b, T, score, choice = run.tracker
    s, A, enough = scene.start[0], scene.uniform.shape[1], now.enough
    design_row = row_of(scene, rules.first_row, now.by_node == 1, 0, s)
    row = design_row if candidate == DESIGN else row_of(scene, 0, rules.explore_by_node, 0, s)
    safe = sheets.sure[row_of(scene, sheets.flags[SAFE, FIRST], sheets.flags[SAFE, BY_NODE] == 1, 0, s)]
    planned, gated, floor = now.planned == 1, rules.gate != NO_GATE, rules.floor * 1.0
    k, explored, base = now.done, now.explored, now.baseline
    exact, designed, bound = now.exact, now.designed, now.bound
    earned, worst, sum_x = now.earned, now.worst, now.sum_x
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
            first = candidate == DESIGN and comes_first(run.needed, seen, p, enough)
            score[row, a] = rate(b[row, a], T[row, a], first)
            if candidate == EXPLORE:
                explored += 1
                if planned:
                    rescore(run.tracker, design_row, a, comes_first(run.needed, seen, p, enough))
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
                rescore(run.tracker, design_row, safe, comes_first(run.needed, seen, p, enough))
                a = pick(score, row)
        worst = min(worst, base * rules.baseline + earned - k * rules.required)
        if candidate == EXPLORE and explored >= rules.explorations and not rules.explore_by_clock:
            break
    choice[row] = a
    if planned and rules.plan == TREE:
        run.mark[s], run.dirty[0], run.dirty_count[0] = True, s, 1
    now.done, now.explored, now.baseline = k, explored, base
    now.exact, now.designed, now.units = exact, designed, designed
    now.earned, now.worst = earned, worst
    now.sum_x, now.bound, now.sum_v = sum_x, bound, designed * rules.unit
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
