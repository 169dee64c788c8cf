"""How often the interval at one time holds the truth: 95 % intervals at the end of campaigns of K episodes.

`bounded` is the share of campaigns with a bounded interval, `covered` the share whose interval holds the
target's value. `declared` is the share of the width that the declaration adds: the ranges of pairs never
seen, and, where rewards are bounded, the two rewards added at each end (against the same campaigns with
nothing declared, whose coverage is in `bare`, of the intervals that are bounded). The verdict is by exact
binomial tests at .001 over all cells together: `low` if covered is below .94, `high` if it is above .97 where
the declaration adds less than a tenth. Importance weights are reported, not judged.

Campaigns are 2,000 a cell, 40 on the taxi.
The last worlds have other rewards than the scenario of their name: coins (means .5), rare coins (.02), heavy
tails in [0, 1] (Beta(.1, 1)), ten times the noise, and an outcome that is both the reward and the constraint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom
from tables import Table

from saver import (
    COLLECTORS,
    SCENARIOS,
    Bernoulli,
    Bounded,
    Empirical,
    Gaussian,
    Scenario,
    SubGaussian,
    simulate,
)
from saver.problem.world import Law
from saver_audit.hostile import HOSTILE

BUDGETS = (100, 200, 500, 1000)
BANDITS = ("bandit", "movielens", "intractable")
PATHS = ("gridworld", "lake")
LOWEST, HIGHEST, CHANCE, TENTH = 0.94, 0.97, 1e-3, 0.1


def with_rewards(name: str, kind: str) -> Scenario:
    """A scenario with other rewards, and what is true of them declared."""
    made = SCENARIOS[name]()
    shape, law = made.world.reward.mean.shape, made.world.reward
    heavy = betaincinv(0.1, 1.0, (np.arange(400) + 0.5) / 400).tolist()
    laws: dict[str, Law] = {
        "coins": Bernoulli(np.full(shape, 0.5)),
        "rare coins": Bernoulli(np.full(shape, 0.02)),
        "heavy tails": Empirical([[heavy] * shape[1] for _ in range(shape[0])]),
        "noise x 10": Gaussian(law.mean, 100.0 * np.asarray(law.variance)),
    }
    declared: SubGaussian | Bounded = Bounded(0.0, 1.0)
    if kind == "noise x 10":
        declared = SubGaussian(10.0 * np.sqrt(law.variance))
    world = dataclasses.replace(made.world, reward=laws[kind])
    problem = dataclasses.replace(made.problem, reward=declared)
    return Scenario(f"{name}, {kind}", world, problem, made.episodes)


WORLDS: dict[str, Callable[[], Scenario]] = {
    "bandit, coins": partial(with_rewards, "bandit", "coins"),
    "tree, coins": partial(with_rewards, "tree", "coins"),
    "bandit, rare coins": partial(with_rewards, "bandit", "rare coins"),
    "bandit, heavy tails": partial(with_rewards, "bandit", "heavy tails"),
    "bandit, noise x 10": partial(with_rewards, "bandit", "noise x 10"),
    "one outcome": HOSTILE["one outcome"],
}


def cells() -> Iterator[tuple[str, str, int, int]]:
    """Name, collector, episodes and campaigns of every cell."""
    for name in (*SCENARIOS, *WORLDS):
        for collector, recipe in COLLECTORS.items():
            if recipe.design == "sepec" and name not in BANDITS:
                continue
            if name == "taxi":
                if recipe.design != "exact":
                    yield name, collector, 200, 40
                continue
            slow = name == "lake" or (
                recipe.design == "exact" and name in ("tree", "tree, coins", "gridworld")
            )
            budgets = (
                (*BUDGETS, 5000) if name == "bandit" else BUDGETS[:2] if name in PATHS and slow else BUDGETS
            )
            for K in budgets:
                yield name, collector, K, 2000


MAKE: dict[str, Callable[[], Scenario]] = {**SCENARIOS, **WORLDS}


def measured(name: str, collector: str, K: int, runs: int) -> tuple[int, float, float, str]:
    """Intervals that hold, and what the columns `bounded`, `declared` and `bare` say."""
    made = MAKE[name]()
    found = simulate(made, collector, episodes=K, runs=runs, seed=19, checkpoints=[])
    low, high = (ends[:, -1] for ends in found.interval())
    inside, bounded = (low <= found.true_value) & (found.true_value <= high), np.isfinite(high - low)
    width = np.mean((high - low)[bounded])
    adds, bare = np.mean((found.below + found.above)[bounded, -1]) / width, ""
    if isinstance(made.problem.reward, Bounded):
        silent = dataclasses.replace(made, problem=dataclasses.replace(made.problem, reward=None))
        ends = simulate(silent, collector, episodes=K, runs=runs, seed=19, checkpoints=[]).interval()
        least, most = (end[:, -1] for end in ends)
        both = np.isfinite(most - least) & bounded
        if both.any():
            adds = max(adds, 1.0 - np.mean((most - least)[both]) / np.mean((high - low)[both]))
            bare = f"{np.mean(((least <= found.true_value) & (found.true_value <= most))[both]):.3f}"
    return int(inside.sum()), float(bounded.mean()), float(adds), bare


def verdict(inside: int, runs: int, adds: float, judged: bool, tests: int) -> str:
    if not judged:
        return "-"
    if binom.cdf(inside, runs, LOWEST) < CHANCE / tests:
        return "low"
    if adds < TENTH and binom.sf(inside - 1, runs, HIGHEST) < CHANCE / tests:
        return "high"
    return "holds"


def table() -> Table:
    found = [(cell, measured(*cell)) for cell in cells()]
    judged = [COLLECTORS[cell[1]].estimate != "importance" for cell, _ in found]
    rows: list[list[Any]] = []
    for ((name, collector, K, runs), (inside, bounded, adds, bare)), judge in zip(found, judged, strict=True):
        said = verdict(inside, runs, adds, judge, sum(judged))
        rows.append([name, collector, K, runs, bounded, f"{inside / runs:.3f}", f"{adds:.2f}", bare, said])
    columns = ("scenario", "collector", "K", "campaigns", "bounded", "covered", "declared", "bare", "verdict")
    return Table("coverage", __doc__ or "", columns, rows)
