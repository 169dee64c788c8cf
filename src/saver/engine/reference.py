"""The plain-Python engine: a loop of ask and tell over a world. It is the specification of any faster one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Campaign, Collector
from saver.estimate import Estimate
from saver.problem.seeds import child_seed
from saver.problem.world import Scenario
from saver.simulator import Feedback, Player, Truth, knowledge_of, rounds

RECORDED = (
    "estimates",
    "stderr",
    "freedom",
    "below",
    "above",
    "budget",
    "ledger",
    "baseline_share",
    "conditional_mse",
    "anytime_low",
    "anytime_high",
)


class Returns(NamedTuple):
    """How trials come back, and what the campaign is told of that."""

    feedback: Feedback | None = None
    losses: str = "hostile"
    order: str = "any"


AT_ONCE = Returns()


def run_reference(
    scenario: Scenario,
    collector: Collector,
    episodes: int,
    checkpoints: Ints,
    seed: int | np.random.SeedSequence,
    runs: int,
    truth: Truth,
    tick: Callable[[int], None],
    returns: Returns = AT_ONCE,
) -> tuple[dict[str, Floats], Floats]:
    """All runs, one after the other; `tick` is told after each."""
    kept = {name: np.full((runs, len(checkpoints)), np.nan) for name in RECORDED}
    worst = np.full(runs, np.nan)
    for r in range(runs):
        own = child_seed(seed, r)
        found, worst[r] = run_once(scenario, collector, episodes, checkpoints, own, truth, returns)
        for name in RECORDED:
            kept[name][r] = found[name]
        tick(1)
    return kept, worst


def interval_of(found: Estimate) -> dict[str, float]:
    """What is recorded of an estimate; one without bounds has an infinite standard error."""
    bounded = math.isfinite(found.below + found.above)
    return {
        "estimates": found.value,
        "stderr": found.stderr if bounded else math.inf,
        "freedom": found.freedom if bounded else math.nan,
        "below": found.below,
        "above": found.above,
    }


def run_once(
    scenario: Scenario,
    collector: Collector,
    episodes: int,
    checkpoints: Ints,
    seed: np.random.SeedSequence,
    truth: Truth,
    returns: Returns = AT_ONCE,
) -> tuple[dict[str, Floats], float]:
    """One campaign: what is recorded at the checkpoints, and the worst true budget."""
    known = knowledge_of(scenario, collector)
    losses, order = returns.losses, returns.order
    campaign = Campaign(
        scenario.problem, collector, episodes, knowledge=known, seed=seed, losses=losses, order=order
    )
    player = Player(scenario.world, child_seed(seed, 1))
    kept = {name: np.full(len(checkpoints), np.nan) for name in RECORDED}
    at, worst = 0, math.inf
    for done in rounds(campaign, player, truth, returns.feedback, child_seed(seed, 2)):
        account, worst = done.account, done.account.worst
        if account.episodes == checkpoints[at]:
            found = campaign.estimate()
            for name, number in interval_of(found).items():
                kept[name][at] = number
            kept["budget"][at] = account.budget
            kept["ledger"][at] = campaign.believed
            kept["baseline_share"][at] = account.baseline / account.episodes
            if collector.estimate == "certainty":
                kept["conditional_mse"][at] = truth.conditional_mse(campaign.counts)
            ends = campaign.estimate(anytime=True).interval
            kept["anytime_low"][at], kept["anytime_high"][at] = ends
            at += 1
    return kept, worst
