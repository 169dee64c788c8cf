"""Small budgets, coins and slack, in two checkouts with the same seeds: what a certificate costs.

    python benchmarks/budgets.py OLD      OLD is a folder that holds src/saver; writes results/budgets.md

`over the limit` is K times the conditional mean squared error over the exact safe limit, with the standard
error over the runs. `slack` is the true minus the believed budget at the end, as a share of (1 - alpha) K V0.
`broken` counts campaigns whose true budget was below 0 at any episode, at delta .05. "Coins .05" is a bandit
with six arms at alpha .05 whose constraints succeed with probability .95 .93 .80 .90 .97 .70 (`Bounded`);
the baseline plays the first, the target .3 .2 .15 .15 .1 .1, and rewards vary by .2 1 4 .5 .3 9.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tables import Table

CELLS = [
    *(("bandit", "saver-opt", K, 400) for K in (120, 240, 500, 1000, 5000)),
    *(("gridworld", "saver-opt", K, 100) for K in (200, 500)),
    ("tree", "saver-opt", 200, 400),
    ("movielens", "saver-opt", 200, 400),
    *(("coins .05", "saver-opt", K, 400) for K in (1000, 5000, 20000)),
    ("coins .02", "saver-opt", 5000, 400),
    *(("gridworld", "saver", K, 100) for K in (200, 500, 1000)),
]
WORKER = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import saver


def coins(alpha):
    mdp = saver.Mdp(np.zeros((1, 6, 1)), horizon=1)
    reward = saver.Gaussian(np.zeros((1, 6)), [[0.2, 1.0, 4.0, 0.5, 0.3, 9.0]])
    world = saver.World(mdp, reward, saver.Bernoulli([[0.95, 0.93, 0.80, 0.90, 0.97, 0.70]]))
    problem = saver.Problem(
        mdp, [[0.3, 0.2, 0.15, 0.15, 0.1, 0.1]], np.eye(6)[[0]], alpha=alpha, baseline_value=0.95,
        constraint=saver.Bounded(0.0, 1.0),
    )
    return saver.Scenario("coins", world, problem, 1000)


for line in sys.stdin:
    name, collector, K, runs = json.loads(line)
    asked = coins(float(name.split()[1])) if name.startswith("coins") else saver.SCENARIOS[name]()
    problem, world = asked.problem, asked.world
    limit = saver.design.exact(problem, world.reward.variance, world.constraint.mean).limit
    found = saver.simulate(asked, collector, episodes=K, runs=runs, seed=0, checkpoints=[])
    error = K * found.conditional_mse[:, -1] / limit
    slack = (found.budget - found.ledger)[:, -1].mean() / (K * problem.required)
    share, broken = found.baseline_share[:, -1].mean(), round(found.violation_rate() * runs)
    print(json.dumps([error.mean(), error.std() / runs**0.5, share, 100 * slack, broken]), flush=True)
"""


def measured(folder: str) -> list[list[float]]:
    command = [sys.executable, "-c", WORKER, str(Path(folder) / "src")]
    asked = "\n".join(json.dumps(cell) for cell in CELLS)
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(old: str) -> Table:
    both = zip(CELLS, measured(old), measured(str(Path(__file__).parents[1])), strict=True)
    rows = []
    for (name, collector, K, runs), *found in both:
        error, share, slack, broken = (
            " -> ".join(shown)
            for shown in zip(
                *(
                    (f"{mean:.3f} +- {spread:.3f}", f"{part:.3f}", f"{left:.2f} %", f"{int(count)}")
                    for mean, spread, part, left, count in found
                ),
                strict=True,
            )
        )
        rows.append([name, collector, K, runs, error, share, slack, broken])
    columns = ("world", "collector", "K", "runs", "over the limit", "baseline", "slack", "broken")
    return Table("budgets", __doc__ or "", columns, rows)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give the folder of the older checkout: python benchmarks/budgets.py OLD")
    made = table(sys.argv[1])
    print(made.markdown())
    print(f"written to {made.write()}")
