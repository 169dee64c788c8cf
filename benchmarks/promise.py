"""The promise, counted: campaigns in which the true budget was below 0 at any episode, at delta = 0.05.

`at most` is the exact one-sided 95 % bound on that frequency. `over` counts campaigns in which the believed
budget was above the true one at some checkpoint. `slack` is true minus believed budget at the end, as a share
of (1 - alpha) K V0. `K * MSE` is the conditional error, with its limit for the exact safe design beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv
from tables import Table

from saver import design, scenarios, simulate

RUNS, EPISODES = 1000, 500
COLLECTORS = ("saver", "safe-oracle", "safe-on-policy", "saver-opt")
NAMES = ("bandit", "tree", "intractable", "movielens", "gridworld")


def row(name: str, collector: str) -> list[Any]:
    asked = scenarios.SCENARIOS[name]()
    runs = RUNS if name != "gridworld" else RUNS // 4
    found = simulate(asked, collector, episodes=EPISODES, runs=runs)
    broken = round(found.violation_rate() * runs)
    bound = float(betaincinv(broken + 1, runs - broken, 0.95)) if broken < runs else 1.0
    over = int((found.ledger > found.budget + 1e-9).any(axis=1).sum())
    slack = (found.budget - found.ledger)[:, -1].mean() / (EPISODES * asked.problem.required)
    limit = design.exact(asked.problem, asked.world.reward.variance, asked.world.constraint.mean).limit
    error = EPISODES * found.conditional_mse[:, -1]
    return [
        name,
        collector,
        runs,
        broken,
        bound,
        over,
        f"{100 * slack:.2f} %",
        float(found.baseline_share[:, -1].mean()),
        f"{error.mean():.4g} +- {error.std() / np.sqrt(runs):.2g}",
        limit,
    ]


def table() -> Table:
    columns = ("scenario", "collector", "runs", "violations", "at most", "over", "slack", "baseline share",
               f"K * MSE at K = {EPISODES}", "exact safe limit")  # fmt: skip
    return Table("promise", __doc__ or "", columns, [row(n, c) for n in NAMES for c in COLLECTORS])
