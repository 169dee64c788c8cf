"""The loop of `kernel.stretch` for bandits: one step from one state, where every nanosecond counts.

It serves tracked designs behind the certified ledger or behind none. The candidate is one action: there is no
path to follow and no flow to evaluate. What it gives is what `kernel.stretch` would give.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
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
    R_HIGH,
    R_LOW,
    R_SCALE,
    R_WHERE,
    SAFE,
    TREE,
    WORTH,
)
from saver.engine.kernel.keeping import CONSTRAINT, COUNT
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
    planned, gated, learns = now.planned == 1, rules.gate != NO_GATE, rules.learn_from_baseline
    k, explored, base = now.done, now.explored, now.baseline
    exact, designed, bound = now.exact, now.designed, now.bound
    earned, worst, gained = now.earned, now.worst, now.gained
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
                    by_low, by_sum = bound + low, gained - rules.table[place(designed)]
                    bound = by_sum if by_sum > by_low else by_low
                    if rules.paced:
                        now.last_low = low
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
            played, surely = safe, 0.0
            if rules.earner:
                played, surely = instead_one(
                    scene.nodes.available[s], seen[s * A : s * A + A], rules.known_constraint[s : s + 1],
                    rules.depth, rules.box.floor, safe, rules.declared,
                    budget - rules.required + rules.tolerance,
                )  # fmt: skip
            p, earns = s * A + played, played != safe
            while True:  # the baseline, until the candidate can be afforded or may have become another
                c = observe(rules, pairs, seen, scene.rewards, scene.constraints, p, earns or learns, world)
                if c < least or c > most:
                    return False
                if earns:
                    earned += pairs[p, WORTH]
                    designed += 1
                    gained += c
                    now.last_low, bound = surely, max(bound + surely, gained - rules.table[place(designed)])
                    T[design_row, played] += 1.0
                else:
                    base += 1
                    exact += 1
                if planned and (earns or (learns and seen[p, COUNT] <= enough)):
                    rescore(run.tracker, design_row, played, comes_first(run.needed, seen, p, enough))
                    a = pick(score, row)
                    break
                budget = budget_of(rules, exact, designed, bound)
                if rules.earner or k >= until or budget + low - rules.required >= -rules.tolerance:
                    break
                worst = min(worst, base * rules.baseline + earned - k * rules.required)
                k += 1
        worst = min(worst, base * rules.baseline + earned - k * rules.required)
        if candidate == EXPLORE and explored >= rules.explorations and not rules.explore_by_clock:
            break
    choice[row] = a
    if planned and rules.plan == TREE:
        run.mark[s], run.dirty[0], run.dirty_count[0] = True, s, 1
    now.done, now.explored, now.baseline = k, explored, base
    now.exact, now.designed, now.units = exact, designed, designed
    now.earned, now.worst, now.bound = earned, worst, bound
    now.gained, now.proxy, now.length = gained, designed * rules.unit, designed * 1.0
    return True


@inlined
def lower_end(rules: Any, seen: Any, p: int) -> Any:
    """The lower end of a pair's box."""
    return max(seen[p, CONSTRAINT] - rules.depth[place(int(seen[p, COUNT]))], rules.box.floor)


@inner
def instead_one(
    available: Any, seen: Any, known: Any, depth: Any, floor: float, safe: int, enough: float, spare: float
) -> Any:
    """What surely earns most and its lower end, or the safe action, of the one state's.

    `enough` is what it must earn as believed, and at worst no less than -`spare`.
    """
    best, at = -np.inf, safe
    for a in range(len(available)):
        if available[a]:
            low = max(seen[a, CONSTRAINT] - depth[int(seen[a, COUNT])], floor)
            if low > best:
                best, at = low, a
    likely = seen[at, CONSTRAINT] if seen[at, COUNT] > 0.0 else floor
    if known.size:
        likely = known[0, at]
    if (best + likely) / 2 < enough or best + spare < 0.0:
        return safe, 0.0
    return at, best


@inlined
def observe(
    rules: Any, pairs: Any, seen: Any, rewards: Any, constraints: Any, p: int, learned: bool, world: Any
) -> Any:
    """Draw a reward and a constraint and learn from them; the constraint, or inf if the reward is refused."""
    r = draw(world, rules.laws[0], pairs[p, R_WHERE], pairs[p, R_SCALE], rewards)
    c = r
    if not rules.shared:
        c = draw(world, rules.laws[1], pairs[p, C_WHERE], pairs[p, C_SCALE], constraints)
    if rules.watched and (r < pairs[p, R_LOW] or r > pairs[p, R_HIGH]):
        return np.inf
    if learned:
        take(seen, p, r, c)
    return c
