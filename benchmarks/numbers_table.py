"""Every collector on the scenarios at K = 200, 1000, 5000 and 20000 episodes, with the compiled engine.

Taxi is in planning.md.

`K * MSE` is the conditional mean squared error (empirical for importance-weighted estimates) times K, with
the standard error of its average over the runs; `limit` divides it by the limit of the exact safe design,
which no safe collector beats in the long run. `violations` is the share of runs whose true budget was below 0
at any episode (delta = 0.05 for the collectors behind the certificate; the others promise nothing),
`baseline` the share of baseline episodes, `unused` what the collector's own ledger still held at the end, as
a share of (1 - alpha) K V0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tables import Table

from saver import COLLECTORS, SCENARIOS, design, simulate

EPISODES = (200, 1000, 5000, 20000)
RUNS = {"bandit": 400, "intractable": 400, "movielens": 200, "tree": 100, "gridworld": 50, "lake": 40}
LONGEST = {"lake": 5000}  # episodes


def rows_of(name: str) -> list[list[Any]]:
    asked = SCENARIOS[name]()
    limit = design.exact(asked.problem, asked.world.reward.variance, asked.world.constraint.mean).limit
    runs, body = RUNS[name], []
    for collector, recipe in COLLECTORS.items():
        if recipe.design == "sepec" and asked.problem.mdp.states > 1:
            continue
        for K in [K for K in EPISODES if LONGEST.get(name, K) >= K]:
            found = simulate(asked, collector, episodes=K, runs=runs, checkpoints=[])
            squares = found.conditional_mse[:, -1]
            if recipe.estimate == "importance":
                squares = (found.estimates[:, -1] - found.true_value) ** 2
            error, spread = K * np.nanmean(squares), K * np.nanstd(squares) / np.sqrt(runs)
            unused = found.ledger[:, -1].mean() / (K * asked.problem.required)
            body.append(
                [name, collector, K, runs, f"{error:.4g} +- {spread:.1g}", float(error / limit),
                 f"{found.violation_rate():.3f}", f"{found.baseline_share[:, -1].mean():.3f}",
                 f"{100 * unused:.2f} %"]
            )  # fmt: skip
            print(*body[-1], flush=True)
    return body


def table() -> Table:
    columns = ("scenario", "collector", "K", "runs", "K * MSE", "limit", "violations", "baseline", "unused")
    return Table("numbers", __doc__ or "", columns, [row for name in RUNS for row in rows_of(name)])
