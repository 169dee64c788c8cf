"""How often the interval at all times is ever wrong, and how wide it is.

Campaigns of K episodes, looked at 150 times from episode 50 on, the looks evenly spaced in the logarithm.
`ever missed` is the share of campaigns in which some look from that episode on has the truth outside the 95 %
interval; `by chance` is the probability of as many or more from 50 on if each is wrong with probability .05.
A row is WRONG if that is below .001 over the number of rows. `width` is the mean of half the length at the
end over 1.96 true standard errors given the visits. `promised`: "scales", the true standard deviation of each
pair; "range", only where rewards can lie. Where nothing is promised: see inthelimit.md.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from tables import Table

import saver
from saver.problem import Bernoulli, Bounded, Scenario, World
from saver_audit.judge import ERROR, tail

LOOKS, FIRST, LATER = 150, 50, 500
RUNS = 1000
SCENARIOS = {
    "bandit": 5000,
    "tree": 2000,
    "gridworld": 1000,
    "intractable": 2000,
    "movielens": 1000,
    "lake": 1000,
}
FEWER = {"gridworld": 300, "lake": 200, "tree": 500}
COLLECTORS = ("saver-opt", "saver", "safe-oracle", "on-policy")


def coins(scenario: Scenario) -> Scenario:
    """The same with rewards that are coins."""
    old = scenario.world
    mean = np.clip(np.array(old.reward.mean), 0.0, 1.0)
    problem = replace(scenario.problem, reward=Bounded(0.0, 1.0))
    return Scenario(
        f"{scenario.name}, coins", World(old.mdp, Bernoulli(mean), old.constraint), problem, scenario.episodes
    )


def cases() -> list[tuple[Scenario, str, int, int]]:
    found = []
    for name, K in SCENARIOS.items():
        plain = saver.SCENARIOS[name]()
        runs = FEWER.get(name, RUNS)
        found += [(plain, collector, K, runs) for collector in COLLECTORS]
    for name in ("bandit", "gridworld"):
        found += [(coins(saver.SCENARIOS[name]()), collector, SCENARIOS[name], FEWER.get(name, RUNS))
                  for collector in COLLECTORS[:2]]  # fmt: skip
    return found


def row(scenario: Scenario, collector: str, K: int, runs: int, rows: int) -> list[Any]:
    points = np.unique(np.geomspace(FIRST, K, LOOKS).astype(int))
    found = saver.simulate(scenario, collector, episodes=K, runs=runs, seed=19, checkpoints=points)
    reward = scenario.problem.reward
    promised = "range" if isinstance(reward, Bounded) else "scales"
    missed = round(found.ever_missed(FIRST) * runs)
    chance = tail(runs, missed, 0.05)
    half = (found.anytime_high - found.anytime_low)[:, -1] / 2
    width = np.mean(half / np.sqrt(found.conditional_mse[:, -1])) / 1.96
    print(scenario.name, collector, promised, missed, f"{width:.2f}", file=sys.stderr, flush=True)
    return [
        scenario.name, collector, promised, K, runs,
        *(f"{found.ever_missed(k):.3f}" for k in (FIRST, 100, LATER)),
        f"{chance:.2g}", f"{width:.2f}", "WRONG" if chance < ERROR / rows else "kept",
    ]  # fmt: skip


def table() -> Table:
    columns = ("scenario", "collector", "promised", "episodes", "campaigns", "ever missed from 50",
               "from 100", "from 500", "by chance", "width", "verdict")  # fmt: skip
    chosen = cases()
    return Table("anytime", __doc__ or "", columns, [row(*case, len(chosen)) for case in chosen])
