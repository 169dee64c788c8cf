"""Re-solves under three guardrails against one: milliseconds, all in one run, one solve of each in turn.

Variances move by about 10 % and constraint means by 0.02 between two solves, as between two plans of a
campaign; each solve starts from the last and stops as a replan does (a gap of 0.2 %, or an improvement of
less than 0.05 % in ten iterations, or 2e6 flow updates). The first guardrail is the model's own, or random,
the others are random; each requires what lies half-way between what the free optimum earns and what the most
balanced behaviour does. `one` is the mean over the three of them alone, `three` has that behaviour as its
anchor, `unanchored` has to find one each time, `balance` is what the most balanced behaviour takes to find.
`ratio` is three over one, `iterations` and `gap` are medians (one / three), `bind` is how many of the three
have a multiplier on average.
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
from saver.collect.planning import GAP, QUOTA, SETTLED
from saver.design import Plan, Planner
from saver.problem import weights

REPLAN: dict[str, Any] = {"tolerance": GAP, "settle": SETTLED, "work": QUOTA}
MOVES = 40


def posed(mdp: Mdp, w: Floats, first: Floats) -> tuple[Floats, Floats, Floats]:
    """Means [3, S, A], what they require, and the policy that is most balanced."""
    planner, rng = Planner(mdp), np.random.default_rng(1)
    means = np.stack([first, *rng.random((2, *w.shape))])
    free = planner.unroll(planner.solve(w, tolerance=1e-3, work=1e7))[1]
    fade = mdp.discount ** np.arange(mdp.horizon)[:, None, None]
    least = np.sum(fade * free * means[:, None], axis=(1, 2, 3))
    found = planner.balance(means, least)
    policy = np.tile(mdp.uniform, (mdp.horizon, 1, 1))
    policy[planner.nodes.step, planner.nodes.state] = planner.walk.by_row(
        planner.walk.steps, found.flow, planner.walk.even(planner.walk.steps)
    )
    return means, 0.5 * (least + found.values), policy


def timed(solve: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = solve()
    return 1e3 * (time.perf_counter() - began), found


def compared(name: str, mdp: Mdp, w: Floats, first: Floats) -> list[Any]:
    means, required, anchor = posed(mdp, w, first)
    alone, anchored, bare = [Planner(mdp) for _ in means], Planner(mdp), Planner(mdp)
    rng, rows, plans = np.random.default_rng(0), [], []
    for move in range(MOVES + 1):
        costs = w * np.exp(0.1 * rng.normal(size=w.shape))
        moved = means + 0.02 * rng.normal(size=means.shape)
        ones = [
            timed(lambda i=i: alone[i].solve(costs, moved[i], required[i], **REPLAN))  # type: ignore[misc]
            for i in range(3)
        ]
        three = timed(lambda: anchored.solve(costs, moved, required, anchor=anchor, **REPLAN))
        without = timed(lambda: bare.solve(costs, moved, required, **REPLAN))
        balance = timed(lambda: bare.balance(moved, required))
        if move:  # the first solves start from nothing
            rows.append([np.mean([took for took, _ in ones]), three[0], without[0], balance[0]])
            plans.append(([plan for _, plan in ones], three[1]))
    one, several, unanchored, balanced = np.median(rows, axis=0)
    return [
        name, len(bare.nodes.state) * mdp.actions, one, several, several / one, unanchored, unanchored / one,
        balanced, *described(plans),
    ]  # fmt: skip


def described(plans: list[tuple[list[Plan], Plan]]) -> list[str]:
    """Iterations and gaps of one / three, and how many of three bind."""
    ones, threes = [plan for single, _ in plans for plan in single], [plan for _, plan in plans]
    bind = np.mean([np.sum(plan.multipliers > 1e-9 * plan.limit) for plan in threes])
    steps = [np.median([plan.iterations for plan in each]) for each in (ones, threes)]
    gaps = [np.median([plan.gap for plan in each]) for each in (ones, threes)]
    return [f"{steps[0]:.0f} / {steps[1]:.0f}", f"{gaps[0]:.2g} / {gaps[1]:.2g}", f"{bind:.1f}"]


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
    columns = ("model", "flows", "one", "three", "ratio", "unanchored", "its ratio", "balance", "iterations",
               "gap", "bind")  # fmt: skip
    return Table("guards", __doc__ or "", columns, rows)


if __name__ == "__main__":
    print(table().write())
