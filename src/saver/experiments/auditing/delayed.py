"""Campaigns whose trials are out by tens and come back late, in an order that outcomes choose, or never."""

from __future__ import annotations

import math

import numpy as np

from saver.collect import Campaign
from saver.collect.collectors import find_collector
from saver.engine.reference import Player, Truth, knowledge_of
from saver.problem.seeds import child_seed
from saver.problem.statement import Scenario

OUT = 30  # trials at once
CORRELATED = "correlated"  # nothing is late, but rewards move with constraints
MANNERS = ("in any order", "best first", "worst given up", CORRELATED)


def delayed_campaign(
    scenario: Scenario, collector: str, episodes: int, manner: str, seed: np.random.SeedSequence
) -> tuple[float, float]:
    """The worst true budget and the share of baseline episodes of one campaign.

    A trial counts from when it is asked.
    """
    recipe = find_collector(collector)
    campaign = Campaign(
        scenario.problem, recipe, episodes, knowledge=knowledge_of(scenario, recipe), seed=child_seed(seed, 0)
    )
    truth, player = Truth(scenario), Player(scenario.world, child_seed(seed, 1))
    rng = np.random.default_rng(child_seed(seed, 2))
    waiting: dict[int, tuple[object, tuple[list[int], list[int], list[float], list[float]]]] = {}
    earned, worst, baseline = 0.0, math.inf, 0
    for k in range(1, episodes + 1):
        trial = campaign.ask()
        baseline += trial.kind == "baseline"
        earned += truth.baseline if trial.kind == "baseline" else truth.worth(trial.policy)
        worst = min(worst, earned - k * scenario.problem.required)
        states, actions, rewards, constraints = player.run(trial)
        if manner == CORRELATED:
            campaign.tell(trial, states, actions, [10.0 * c for c in constraints], constraints)
            continue
        waiting[trial.number] = trial, (states, actions, rewards, constraints)
        if len(waiting) < OUT:
            continue
        ranked = sorted(waiting, key=lambda number: sum(waiting[number][1][3]))
        if manner == "worst given up" and k % 3 == 0:
            campaign.abandon(waiting.pop(ranked[0])[0])  # type: ignore[arg-type]
            continue
        chosen = ranked[-1] if manner != "in any order" else ranked[int(rng.integers(len(ranked)))]
        told, episode = waiting.pop(chosen)
        campaign.tell(told, *episode)  # type: ignore[arg-type]
    return worst, baseline / episodes
