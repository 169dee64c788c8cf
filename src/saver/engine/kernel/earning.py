"""The ledgers of `saver.safety` in compiled form: what an episode adds, what the sum is now."""

from __future__ import annotations

from typing import Any

from saver._jit import inlined, inner, jit
from saver.engine.kernel.following import row_of
from saver.engine.kernel.forms import (
    BY_NODE,
    DESIGN,
    EARN,
    EXPLORE,
    FIRST,
    LATEST,
    NO_LEDGER,
    PLUGIN,
    SAFE,
    WORTH,
)
from saver.engine.kernel.keeping import CONSTRAINT, COUNT
from saver.engine.kernel.reaching import lower_bound, pair_sums, path_low, place, reach
from saver.play.nodes import richest
from saver.play.stage import farthest
from saver.safety.boundaries import stitched
from saver.safety.noise import least, missing


@inlined
def budget_of(rules: Any, exact: int, designed: int, earned: float) -> Any:
    """`Ledger.budget`."""
    return exact * rules.surplus + (earned - designed * rules.required)


@jit
def pace(
    line: tuple[float, float, float], rule: Any, now: Any, expected: Any, realised: Any, half: Any, left: int
) -> Any:
    """`Certified.pace`: `line` is what is required, a baseline episode earns, and lasts, `half` the box's."""
    required, surplus, longest = line
    done = now.done - now.baseline
    debt = required - now.last_low - now.baseline * surplus
    rate = required / longest if now.length == 0.0 else now.gained / now.length
    v, length = now.proxy + left * now.last_proxy, now.length + left * now.last_longest
    hidden = missing(rate, v, length, rule)
    for p in range(len(expected)):
        hidden += abs(realised[p] - expected[p]) * half[p]
    return required + (hidden + debt) / (done + left)


@inlined
def paced(rules: Any, run: Any) -> Any:
    """`pace`, or what is required of a design that is not told more."""
    if not rules.paced:
        return rules.required
    line, left = (rules.required, rules.surplus, rules.last[1]), rules.episodes - run.now.done
    return pace(line, rules.rule, run.now, run.expected, run.realised, run.box.half, left)


@inlined
def seen_worth(rules: Any, units: int, designed: int, gained: float, proxy: float, length: float) -> Any:
    """`Certified.seen_worth`, from the table while all episodes had the full length."""
    if units == designed and units < len(rules.table):
        return gained - rules.table[units]
    return least(gained, proxy, length, rules.rule)


@inlined
def together(rules: Any, sum_x: float, sum_v: float) -> Any:
    """sum X - u(sum v): the bound of noise and paths together."""
    start, scale, level = rules.boundary
    return sum_x - stitched(sum_v, start, scale, level)


@inlined
def note_visits(scene: Any, run: Any, visits: Any, taken: int) -> None:
    """Where a designed episode was expected, and where it was."""
    A = scene.uniform.shape[1]
    for p in range(place(len(visits))):
        run.expected[p] += visits[p]
    for t in range(taken):
        run.realised[run.path[t, 0] * A + run.path[t, 1]] += scene.factor[t]


@inlined
def lowest(
    scene: Any, rules: Any, sheets: Any, run: Any, r: Any, kind: int, tracked: bool, steps: int, floor: float
) -> Any:
    """`Certified.lower` of a candidate; where paths are random also V(b; m) and V(b; h^2)."""
    if rules.paths:
        low, centre, spread = pair_sums(r.visits if tracked else sheets.visits[kind], run.box)
        return max(floor, low), centre, spread
    if tracked:
        return max(floor, path_low(scene, r, steps, run.box)), 0.0, 0.0
    return -farthest(scene.nodes, sheets.behaviour[kind], run.box.lower_table, -1.0), 0.0, 0.0


@inlined
def likely_mean(known: Any, floor: float, seen: Any, p: int) -> Any:
    """`Statistics.constraint_mean` of a pair; `known` are the true ones, if they are."""
    if known.size:
        A = known.shape[1]
        return known[p // A, p % A]
    return seen[p, CONSTRAINT] if seen[p, COUNT] > 0.0 else floor


@inlined
def instead(scene: Any, rules: Any, sheets: Any, run: Any, budget: float) -> Any:
    """`fall_back`: the steps of the earner, 0 for the baseline; its worth, and what `lowest` says of it."""
    A = scene.uniform.shape[1]
    for p in range(len(run.seen)):
        run.likely[p // A, p % A] = likely_mean(rules.known_constraint, rules.floor, run.seen, p)
    surely, likely = richest(scene.nodes, run.box.lower_table, run.likely, run.earner)
    if (surely + likely) / 2 < rules.declared:
        return 0, 0.0, 0.0, 0.0, 0.0
    steps, length, worth, same = reach(scene, run.earner, 0, True, sheets, run.detour)
    low, centre, spread = lowest(
        scene, rules, sheets, run, run.detour, EARN, True, steps, rules.floor * length
    )
    if same or budget + low - rules.required < -rules.tolerance:
        return 0, 0.0, 0.0, 0.0, 0.0
    return steps, worth, low, centre, spread


@inlined
def drawn_path(scene: Any, sheets: Any, run: Any, taken: int) -> Any:
    """What the draws made of a policy: worth, lower value, and whether it went as the baseline does."""
    A, worth, low, same = scene.uniform.shape[1], 0.0, 0.0, True
    for t in range(taken):
        s, a = run.path[t, 0], run.path[t, 1]
        worth += scene.factor[t] * scene.pairs[s * A + a, WORTH]
        low += scene.factor[t] * run.box.lower[s * A + a]
        safe = row_of(scene, sheets.flags[SAFE, FIRST], sheets.flags[SAFE, BY_NODE] == 1, t, s)
        same = same and sheets.policy[safe, a] == 1.0
    return worth, low, same


@inlined
def bounded_value(scene: Any, rules: Any, run: Any, tracked: bool, steps: int, sheets: Any, kind: int) -> Any:
    """V(b; lower bounds) with the paper's widths; none for the plug-in ledger."""
    A, r, total = scene.uniform.shape[1], run.reach, 0.0
    if tracked:
        for t in range(steps):
            for i in r.node[r.layer[t] : r.layer[t + 1]]:
                total += scene.factor[t] * r.mass[i] * bound_of(rules, run, r.pair[i])
    else:
        for p in range(len(run.seen)):
            if sheets.weights[kind, p // A, p % A] > 0.0:
                total += sheets.weights[kind, p // A, p % A] * bound_of(rules, run, p)
    return total


@inlined
def bound_of(rules: Any, run: Any, p: int) -> Any:
    """The lower bound of one pair's constraint mean; the plain average for `plugin` and for no ledger."""
    scale = 0.0 if rules.ledger in (PLUGIN, NO_LEDGER) else rules.scale
    return lower_bound(run.seen[p, COUNT], run.seen[p, CONSTRAINT], scale, rules.width, rules.floor)


@inlined
def keep_visits(
    scene: Any, rules: Any, sheets: Any, run: Any, kind: int, tracked: bool, steps: int, taken: int
) -> None:
    """Expected visits of the designed episodes, and the sum that `latest` and `plugin` make of them."""
    A, r, sums = scene.uniform.shape[1], run.reach, rules.ledger in (LATEST, PLUGIN)
    if kind != SAFE and tracked:
        for t in range(steps):
            for i in r.node[r.layer[t] : r.layer[t + 1]]:
                p = r.pair[i]
                run.visited[p] += scene.factor[t] * r.mass[i]
                if sums:
                    renew(rules, run, p)
    elif kind == EXPLORE:
        run.now.uncounted_explore += 1
    elif kind == DESIGN:
        run.now.uncounted += 1
    if sums:
        for t in range(taken):
            renew(rules, run, run.path[t, 0] * A + run.path[t, 1])
        run.now.since += 1
        if run.now.since >= len(run.terms) or (kind != SAFE and not tracked):
            add_up(rules, sheets, run)


@inlined
def renew(rules: Any, run: Any, p: int) -> None:
    """Bring one term of the ledger's sum up to date."""
    term = run.visited[p] * bound_of(rules, run, p)
    run.now.total += term - run.terms[p]
    run.terms[p] = term


@inner
def add_up(rules: Any, sheets: Any, run: Any) -> None:
    """The whole sum of visits times lower bounds, anew."""
    flush(sheets.weights, run.visited, run.now)
    total = 0.0
    for p in range(len(run.terms)):
        run.terms[p] = run.visited[p] * bound_of(rules, run, p)
        total += run.terms[p]
    run.now.total = total
    run.now.since = 0


@jit
def flush(weights: Any, visited: Any, now: Any) -> None:
    """Count the expected visits of the drawn policies that were only numbered so far."""
    A = weights.shape[2]
    for p in range(len(visited)):
        s, a = p // A, p % A
        visited[p] += now.uncounted_explore * weights[EXPLORE, s, a]
        visited[p] += now.uncounted * weights[DESIGN, s, a]
    now.uncounted = 0
    now.uncounted_explore = 0
