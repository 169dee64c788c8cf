"""Feedback that is lost or late, in two checkouts with the same seeds: what it costs, before and after.

    python benchmarks/losses.py OLD       OLD is a folder that holds src/saver; writes results/losses.md

`over the limit` is K times the conditional mean squared error over the exact safe limit, with the standard
error over the runs, `baseline` the share of baseline episodes; all by `saver-opt`, at delta .05. Lost trials
are lost at random. "Hostile" campaigns do not count on that, "random" ones do and are told that lost trials
ran. With 100 out the trials come back at random or in the order of asking, and are said to start in any order
or in that order. The straggler is the first trial: it never comes back. An older version knows none of these
declarations, and abandons; its campaigns are the first few of the same. `bar` is what was asked for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tables import Table

RUNS, BEFORE = 100, 10  # campaigns of each cell, now and in the older checkout
LOST = {
    f"{share} % lost, {losses}": {"lose": share / 100, "losses": losses}
    for share in (5, 30)
    for losses in ("hostile", "random")
}
OUT = {
    "100 out, back at random, any order": {"out": 100, "back": "random"},
    "100 out, back in order, any order": {"out": 100},
    "100 out, back in order, started in order": {"out": 100, "order": "asked"},
}
NONE: dict[str, Any] = {"all told": {}}
STRAGGLER = {"one straggler": {"straggle": 1}}
FEW = {name: LOST[name] for name in ("5 % lost, hostile", "5 % lost, random")}
CELLS = [
    (world, K, name, rules)
    for world, K, cells in (
        ("bandit", 1000, NONE | LOST | OUT | STRAGGLER),
        ("bandit", 5000, {name: OUT[name] for name in OUT if "back in order" in name}),
        ("tree", 500, NONE | STRAGGLER),
        ("gridworld", 500, NONE | FEW | STRAGGLER),
    )
    for name, rules in cells.items()
]
BARS = {
    ("bandit", 1000): dict(zip([*LOST, *OUT], (1.20, 1.13, 2.3, 1.65, 1.45, 1.45, 1.15), strict=True)),
    ("bandit", 5000): dict(zip(list(OUT)[1:], (1.12, 1.05), strict=True)),
    ("gridworld", 500): {"5 % lost, hostile": 1.35},
}
WORKER = """
import inspect, json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import saver
from saver.simulator import Truth

KNOWN = inspect.signature(saver.Campaign).parameters
SAYS = "ran" in inspect.signature(saver.Campaign.abandon).parameters


def campaign(asked, truth, K, seed, rules):
    declared = {name: rules[name] for name in ("losses", "order") if name in rules and name in KNOWN}
    made = saver.Campaign(asked.problem, "saver-opt", K, seed=seed, **declared)
    player, rng = saver.Player(asked.world, [seed, 1]), np.random.default_rng([seed, 2])
    ran = {"ran": True} if SAYS and rules.get("losses") == "random" else {}
    waiting, baseline = [], 0
    for number in range(1, K + 1):
        trial = made.ask()
        baseline += trial.kind == "baseline"
        if number > rules.get("straggle", 0):
            waiting.append((trial, player.run(trial)))
        while len(waiting) > (rules.get("out", 0) if number < K else 0):
            at_random = rules.get("back") == "random"
            trial, episode = waiting.pop(int(rng.integers(len(waiting))) if at_random else 0)
            if rng.random() < rules.get("lose", 0.0):
                made.abandon(trial, **ran)
            else:
                made.tell(trial, episode)
    return truth.conditional_mse(made.counts), baseline / K


for line in sys.stdin:
    world, K, runs, rules = json.loads(line)
    asked = saver.SCENARIOS[world]()
    problem, truth = asked.problem, Truth(asked)
    limit = saver.design.exact(problem, asked.world.reward.variance, asked.world.constraint.mean).limit
    error, share = np.array([campaign(asked, truth, K, seed, rules) for seed in range(runs)]).T
    error *= K / limit
    print(json.dumps([error.mean(), error.std(ddof=1) / runs**0.5, share.mean()]), flush=True)
"""


def measured(folder: str, cell: tuple[str, int, str, Any], runs: int) -> list[float]:
    world, K, _, rules = cell
    command = [sys.executable, "-c", WORKER, str(Path(folder) / "src")]
    asked = json.dumps([world, K, runs, rules])
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=True)
    found: list[float] = json.loads(done.stdout)
    print(folder, world, K, cell[2], runs, found, file=sys.stderr, flush=True)
    return found


def table(old: str, runs: int = RUNS, before: int = BEFORE) -> Table:
    """Two processes, the shortest campaigns first."""
    here = str(Path(__file__).parents[1])
    asked = sorted(CELLS, key=lambda cell: cell[1])
    with ThreadPoolExecutor(2) as pool:
        then = list(pool.map(lambda cell: measured(old, cell, before), asked))
        now = list(pool.map(lambda cell: measured(here, cell, runs), asked))
    none = {cell[:2]: new[0] for cell, new in zip(asked, now, strict=True) if cell[2] in NONE}
    rows = []
    for cell, *found in zip(asked, then, now, strict=True):
        world, K, name, _ = cell
        error = " -> ".join(f"{mean:.3f} +- {spread:.3f}" for mean, spread, _ in found)
        share = " -> ".join(f"{part:.3f}" for *_, part in found)
        bar = f"{1.05 * none[world, K]:.3f}" if name in STRAGGLER else BARS.get((world, K), {}).get(name, "")
        rows.append([world, K, name, f"{before} -> {runs}", error, share, bar])
    columns = ("world", "K", "feedback", "runs", "over the limit", "baseline", "bar")
    return Table("losses", __doc__ or "", columns, rows)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("give the folder of the older checkout, and perhaps fewer runs: benchmarks/losses.py OLD 4")
    few = [int(sys.argv[2])] * 2 if len(sys.argv) == 3 else []
    made = table(sys.argv[1], *few)
    print(made.markdown())
    if len(sys.argv) == 2:
        print(f"written to {made.write()}")
