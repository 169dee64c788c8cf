"""Re-solves under three guardrails against one: milliseconds of processor time, one solve of each in turn.

Variances move by about 10 % and constraint means by 0.02 between two solves, as between two plans of a
campaign; each solve starts from the last and stops as a replan does (a gap of 0.2 %, or an improvement of
less than 0.05 % in ten iterations, or 2e6 flow updates). The first guardrail is the model's own, or random,
the others are random; each requires what lies half-way between what the free optimum earns and what the most
balanced behaviour does. Three together bind harder than each alone, so there are two measures: `one` is the
mean over the three alone, `mixed` is one guardrail too, the sum of the three by their multipliers, which has
the same optimum. `three` has as its anchor what was most balanced before the means moved, `unanchored` has to
find one each time, `balance` is what the most balanced behaviour takes to find to ten digits. `iterations`
and `gap` are medians (one / mixed / three), `bind` is how many of the three have a multiplier on average.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from exact import graph
from tables import Table

from saver import Mdp, scenarios
from saver._types import Floats
from saver.design import Plan, Planner
from saver.kernels.believing import GAP, QUOTA, SETTLED
from saver.problem import weights

REPLAN: dict[str, Any] = {"tolerance": GAP, "settle": SETTLED, "work": QUOTA}
MOVES = 40


def posed(planner: Planner, visits: Floats, means: Floats) -> tuple[Floats, Floats]:
    """What each guardrail requires, given the free optimum's discounted visits; the balanced policy."""
    mdp, walk = planner.mdp, planner.walk
    least = np.sum(visits * means, axis=(1, 2))
    found = planner.balance(means, least)
    policy = np.tile(mdp.uniform, (mdp.horizon, 1, 1))
    policy[walk.nodes.step, walk.nodes.state] = walk.by_row(walk.steps, found.flow, walk.even(walk.steps))
    return 0.5 * (least + found.values), policy


def timed(solve: Callable[..., Any], *given: Any, **options: Any) -> tuple[float, Any]:
    began = time.process_time()
    found = solve(*given, **options)
    return 1e3 * (time.process_time() - began), found


def compared(name: str, mdp: Mdp, w: Floats, first: Floats) -> list[Any]:
    rng, rows, plans = np.random.default_rng(0), list[list[float]](), list[tuple[list[Plan], ...]]()
    means = np.stack([first, *rng.random((2, *w.shape))])
    alone = [Planner(mdp) for _ in means]
    mixing, anchored, bare = Planner(mdp), Planner(mdp), Planner(mdp)
    free = Planner(mdp).unroll(Planner(mdp).solve(w, tolerance=1e-3, work=1e7))[1]
    visits = np.sum(mdp.discount ** np.arange(mdp.horizon)[:, None, None] * free, axis=0)
    anchor = posed(bare, visits, means)[1]
    for move in range(MOVES + 1):
        costs = w * np.exp(0.1 * rng.normal(size=w.shape))
        moved = means + 0.02 * rng.normal(size=means.shape)
        required = posed(bare, visits, moved)[0]
        ones = [
            timed(planner.solve, costs, mean, needed, **REPLAN)
            for planner, mean, needed in zip(alone, moved, required, strict=True)
        ]
        three = timed(anchored.solve, costs, moved, required, anchor=anchor, **REPLAN)
        by = three[1].multipliers / three[1].multiplier
        mixed = timed(mixing.solve, costs, np.tensordot(by, moved, 1), float(by @ required), **REPLAN)
        without = timed(bare.solve, costs, moved, required, **REPLAN)
        balance = timed(bare.balance, moved, required)
        if move:  # the first solves start from nothing
            single = sum(took for took, _ in ones) / 3
            rows.append([single, mixed[0], three[0], without[0], balance[0]])
            plans.append(([plan for _, plan in ones], [mixed[1]], [three[1]]))
    one, equal, several, unanchored, balanced = map(float, np.median(rows, axis=0))
    return [
        name, len(bare.nodes.state) * mdp.actions, one, equal, several, several / one, several / equal,
        unanchored, balanced, *described(plans),
    ]  # fmt: skip


def described(plans: list[tuple[list[Plan], ...]]) -> list[str]:
    """Iterations and gaps of one / mixed / three, and how many of three bind."""
    kinds = [[plan for plans in each for plan in plans] for each in zip(*plans, strict=True)]
    steps = [f"{np.median([plan.iterations for plan in kind]):.0f}" for kind in kinds]
    gaps = [f"{np.median([plan.gap for plan in kind]):.2g}" for kind in kinds]
    bind = np.mean([np.sum(plan.multipliers > 1e-9 * plan.limit) for plan in kinds[-1]])
    return [" / ".join(steps), " / ".join(gaps), f"{bind:.1f}"]


def table() -> Table:
    rows = []
    for name, asked in {
        "gridworld": scenarios.gridworld(),
        "lake 4x4": scenarios.lake(),
        "lake 8x8": scenarios.lake(size=8),
    }.items():
        mdp = asked.problem.mdp
        w = weights(mdp, asked.problem.target) ** 2 * asked.world.reward.variance
        rows.append(compared(name, mdp, w, np.array(asked.world.constraint.mean)))
        print(rows[-1], flush=True)
    for states, horizon in ((30, 10), (100, 15), (300, 20), (1000, 20)):
        mdp, w, mean, _ = graph(states, horizon=horizon)
        rows.append(compared(f"graph of {states} states, {horizon} steps", mdp, w, mean))
        print(rows[-1], flush=True)
    columns = ("model", "flows", "one", "mixed", "three", "three / one", "three / mixed", "unanchored",
               "balance", "iterations", "gap", "bind")  # fmt: skip
    return Table("guards", __doc__ or "", columns, rows)


if __name__ == "__main__":
    print(table().write())
