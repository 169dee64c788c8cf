"""The ledgers of `saver.safety` in compiled form: what an episode adds, what the sum is now."""

from __future__ import annotations

from typing import Any

from saver._jit import inlined, inner, jit
from saver.engine.kernel.forms import DESIGN, EXPLORE, LATEST, NO_LEDGER, PLUGIN, SAFE
from saver.engine.kernel.memory import CONSTRAINT, COUNT
from saver.engine.kernel.reaching import lower_bound
from saver.safety.boundaries import mixture, steepest, stitched


@inlined
def budget_of(rules: Any, exact: int, designed: int, earned: float) -> Any:
    """`Ledger.budget`."""
    return exact * rules.surplus + (earned - designed * rules.required)


@jit
def pace(rules: Any, run: Any, remaining: int) -> Any:
    """`Certified.pace`, or what is required of a design that is not told more."""
    if not rules.paced:
        return rules.required
    now = run.now
    done = now.done - now.baseline
    debt = rules.required - now.last_low - now.baseline * rules.surplus
    return rules.required + steepest(
        now.sum_v, now.last_v, done, debt, remaining, rules.boxed, rules.boundary
    )


@inlined
def boundary(rules: Any, units: int, designed: int, sum_v: float) -> Any:
    """`Certified.boundary`, from the table while all episodes had the full length."""
    rho, level, start, scale = rules.boundary
    if not rules.boxed and units == designed and units < len(rules.table):
        return rules.table[units]
    if sum_v == 0.0:
        return 0.0
    return stitched(sum_v, start, scale, level) if rules.boxed else mixture(sum_v, rho, level)


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
    flush(sheets, run)
    total = 0.0
    for p in range(len(run.terms)):
        run.terms[p] = run.visited[p] * bound_of(rules, run, p)
        total += run.terms[p]
    run.now.total = total
    run.now.since = 0


@jit
def flush(sheets: Any, run: Any) -> None:
    """Count the expected visits of the drawn policies that were only numbered so far."""
    A = sheets.weights.shape[2]
    for p in range(len(run.visited)):
        s, a = p // A, p % A
        run.visited[p] += run.now.uncounted_explore * sheets.weights[EXPLORE, s, a]
        run.visited[p] += run.now.uncounted * sheets.weights[DESIGN, s, a]
    run.now.uncounted = 0
    run.now.uncounted_explore = 0
