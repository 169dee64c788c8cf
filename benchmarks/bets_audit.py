"""The promise with bounded guardrails and known transitions, whose returns are bet on: counted.

Worlds: contexts that decide what an episode is worth, of one step and of three, at the edge of what is
required; graphs and discounted grids of coins; coins that the next state shows; four even states in which
an episode stays, where every step earns 1 or none, at the edge; random graphs of coins. `learned`: the same
against a baseline value that is learned. `moving` goes from what earns most to what earns least as it is
told. `broken` counts campaigns whose true budget was below 0 at any episode, `over` those whose believed
budget was above the true one at some of 150 looks: either has a probability of at most delta. `at most` is
the one-sided 95 % bound of Clopper and Pearson on the larger, `by chance` the probability of as many or
more at risk delta; BROKEN if that is below .001 over the number of groups. `baseline` is the share of
baseline episodes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from tables import Table

import saver
from saver.problem import Scenario
from saver_audit.count import RECIPES
from saver_audit.hostile import HOSTILE
from saver_audit.judge import ERROR, tail, upper_bound
from saver_audit.making import guarded
from saver_audit.manners import paths
from saver_audit.uncharted import EDGES

RUNS, SLOW, LOOKS = 2000, 500, 150
PLAY = ("safe-on-policy", "saver", "saver-opt")
KEPT = ("contexts of coins", "contexts of coins, steps", "coins on a graph", "discounted graph")
AT_EDGE = ("coins", "coins, one step", "coins, discount .7", "disasters", "ends early, coins")
WORLDS: dict[str, Callable[[], Scenario]] = {
    **{name: HOSTILE[name] for name in KEPT},
    **{f"edge, {name}": EDGES[name] for name in AT_EDGE},
    "coins on paths": partial(paths, True),
}
REFERENCE = ("next state, coins", "next state, coins, not declared")


def cases() -> list[tuple[str, str, Scenario]]:
    """World, collector, scenario."""
    found = []
    for name, make in WORLDS.items():
        for collector in (*PLAY, *(("moving",) if name.startswith("edge") else ())):
            found.append((name, collector, make()))
            if collector == "safe-on-policy":
                found.append((f"{name}, learned", collector, guarded(make(), "learned", 1)))
    return found + [(name, "saver", HOSTILE[name]()) for name in REFERENCE]


def row(name: str, collector: str, made: Scenario, delta: float, few: float, share: float) -> list[Any]:
    slow = name in REFERENCE or collector in ("saver-opt", "moving")
    runs = max(4, int(share * (SLOW if slow else RUNS)))
    asked = replace(made, problem=replace(made.problem, delta=delta), episodes=min(made.episodes, 500))
    looks = np.unique(np.geomspace(1, asked.episodes, LOOKS).astype(int))
    found = saver.simulate(asked, RECIPES[collector], runs=runs, checkpoints=looks, seed=11)
    broken = int(np.sum(found.broken(next(iter(found.budgets)))))
    over = int(np.sum(np.any(found.ledger > found.budget + 1e-9, axis=1)))
    most = max(broken, over)
    chance = tail(runs, most, delta)
    print(name, collector, delta, runs, broken, over, file=sys.stderr, flush=True)
    return [
        name, collector, delta, runs, asked.episodes, broken, over, f"{upper_bound(runs, most):.4f}",
        f"{chance:.2g}", f"{found.baseline_share[:, -1].mean():.3f}", "BROKEN" if chance < few else "kept",
    ]  # fmt: skip


def table(share: float = 1.0) -> Table:
    every = cases()
    few = ERROR / (2 * len(every))
    rows = [row(*case, delta, few, share) for case in every for delta in (0.05, 0.5)]
    columns = ("world", "collector", "delta", "campaigns", "episodes", "broken", "over", "at most",
               "by chance", "baseline", "verdict")  # fmt: skip
    return Table("bets-audit", __doc__ or "", columns, rows)


if __name__ == "__main__":
    print(table(*map(float, sys.argv[1:])).markdown())
