"""What a cancelled trial costs: unseen, or by somebody who may have looked.

`saver-opt` at delta .05, K told episodes beside those that were cancelled. Of the trials asked a share is
cancelled, each as it is asked ("newest") or among a batch of ten that is out; by lot, so that only what is
declared differs. `over the limit` is K times the conditional mean squared error over the exact safe limit,
with its standard error, `baseline` the share of baseline episodes. "lost" are abandoned in the place of
cancelled.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from tables import Table

import saver
from saver.simulator import Truth
from saver_audit.making import coins_of, with_constraints

RUNS, EPISODES = 10, 500
WAYS = ("unseen, newest", "unseen, in batches", "seen, newest", "seen, in batches", "lost")
GRID = saver.SCENARIOS["gridworld"]()
WORLDS = {
    "gridworld": GRID,
    "gridworld of coins": with_constraints(GRID, coins_of(np.array(GRID.means[0]))),
}


def campaign(asked: Any, K: int, seed: int, share: float, way: str) -> tuple[float, float]:
    """One campaign: its conditional error, and its share of baseline episodes."""
    made = saver.Campaign(asked.problem, "saver-opt", K, seed=seed)
    player, rng = (
        saver.Player(asked.world, np.random.SeedSequence([seed, 1])),
        np.random.default_rng([seed, 2]),
    )
    waiting: list[Any] = []
    while True:
        trial = made.ask()
        waiting.append(trial)
        most = 9 if "batches" in way and not made.done else 0
        while len(waiting) > most:
            trial = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() >= share:
                made.tell(trial, player.run(trial))
            elif way == "lost":
                made.abandon(trial)
            else:
                made.cancel(trial, unseen=way.startswith("unseen"))
        if made.done:
            break
    told = made.budget
    error = Truth(asked).conditional_mse(made.counts, next(iter(asked.problem.targets)))
    return K * error, told.baseline_episodes / max(told.episodes, 1)


def row(name: str, share: float, way: str, limit: float) -> list[Any]:
    found = np.array([campaign(WORLDS[name], EPISODES, seed, share, way) for seed in range(RUNS)]).T
    over = found[0] / limit
    print(name, share, way, over.mean(), found[1].mean(), file=sys.stderr, flush=True)
    return [
        name, EPISODES, f"{share:.0%}", way, f"{over.mean():.3f} ± {over.std() / RUNS**0.5:.3f}",
        f"{found[1].mean():.3f}",
    ]  # fmt: skip


def table() -> Table:
    rows = []
    for name, asked in WORLDS.items():
        variance = asked.world.reward.variance
        limit = saver.design.exact(asked.problem, variance, asked.means[0]).limit
        rows.append(row(name, 0.0, "none", limit))
        rows += [row(name, share, way, limit) for share in (0.05, 0.3) for way in WAYS]
    columns = ("scenario", "K", "cancelled", "how", "over the limit", "baseline")
    return Table("vetoes", __doc__ or "", columns, rows)


if __name__ == "__main__":
    print(table().write())
