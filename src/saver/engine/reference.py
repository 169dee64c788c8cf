"""The plain-Python engine: a loop of ask and tell over a world. It is the specification of any faster one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Campaign, Collector
from saver.problem.seeds import child_seed
from saver.problem.world import Scenario
from saver.simulator import Player, Truth, knowledge_of, rounds

RECORDED = ("estimates", "stderr", "freedom", "budget", "ledger", "baseline_share", "conditional_mse")


def run_reference(
    scenario: Scenario,
    collector: Collector,
    episodes: int,
    checkpoints: Ints,
    seed: int | np.random.SeedSequence,
    runs: int,
    truth: Truth,
    tick: Callable[[int], None],
) -> tuple[dict[str, Floats], Floats]:
    """All runs, one after the other; `tick` is told after each."""
    kept = {name: np.full((runs, len(checkpoints)), np.nan) for name in RECORDED}
    worst = np.full(runs, np.nan)
    for r in range(runs):
        found, worst[r] = run_once(scenario, collector, episodes, checkpoints, child_seed(seed, r), truth)
        for name in RECORDED:
            kept[name][r] = found[name]
        tick(1)
    return kept, worst


def run_once(
    scenario: Scenario,
    collector: Collector,
    episodes: int,
    checkpoints: Ints,
    seed: np.random.SeedSequence,
    truth: Truth,
) -> tuple[dict[str, Floats], float]:
    """One campaign: what is recorded at the checkpoints, and the worst true budget."""
    known = knowledge_of(scenario, collector)
    campaign = Campaign(scenario.problem, collector, episodes, knowledge=known, seed=seed)
    player = Player(scenario.world, child_seed(seed, 1))
    kept = {name: np.full(len(checkpoints), np.nan) for name in RECORDED}
    at, worst = 0, math.inf
    for done in rounds(campaign, player, truth):
        account, worst = done.account, done.account.worst
        if account.episodes == checkpoints[at]:
            found = campaign.estimate()
            kept["estimates"][at] = found.value
            whole = found.covered == 1.0 or collector.estimate == "importance"
            kept["stderr"][at] = found.stderr if whole else math.inf
            kept["freedom"][at] = found.freedom if whole else math.nan
            kept["budget"][at] = account.budget
            kept["ledger"][at] = campaign.believed
            kept["baseline_share"][at] = account.baseline / account.episodes
            if collector.estimate == "certainty":
                kept["conditional_mse"][at] = truth.conditional_mse(campaign.counts)
            at += 1
    return kept, worst
