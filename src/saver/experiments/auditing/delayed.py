"""Campaigns whose trials are out by tens and come back late, in an order that outcomes choose, or never."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from saver.collect import Campaign, Trial
from saver.collect.collectors import find_collector
from saver.problem.episode import Episode
from saver.problem.seeds import child_seed
from saver.problem.world import Scenario
from saver.simulator import Player, Truth, knowledge_of, rounds

OUT = 30  # trials at once
CORRELATED = "correlated"  # nothing is late, but rewards move with constraints
MANNERS = ("in any order", "best first", "worst abandoned", CORRELATED)


@dataclass
class Late:
    """Tells in one of MANNERS: keeps episodes back until OUT wait, then lets one go."""

    manner: str
    rng: np.random.Generator
    waiting: dict[int, tuple[Trial, Episode]] = field(default_factory=dict)

    def __call__(self, campaign: Campaign, trial: Trial, episode: Episode) -> None:
        """One episode more."""
        if self.manner == CORRELATED:
            s, a, _, c = episode
            campaign.tell(trial, s, a, 10.0 * c, c)
            return
        self.waiting[trial.number] = trial, episode
        if len(self.waiting) < OUT:
            return
        ranked = sorted(self.waiting, key=lambda number: float(sum(self.waiting[number][1].constraints)))
        if self.manner == "worst abandoned" and trial.number % 3 == 0:
            campaign.abandon(self.waiting.pop(ranked[0])[0])
            return
        chosen = ranked[-1] if self.manner != "in any order" else ranked[int(self.rng.integers(len(ranked)))]
        campaign.tell(*self.waiting.pop(chosen))


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
    player = Player(scenario.world, child_seed(seed, 1))
    late = Late(manner, np.random.default_rng(child_seed(seed, 2)))
    worst, baseline = math.inf, 0
    for done in rounds(campaign, player, Truth(scenario), late):
        worst, baseline = done.account.worst, done.account.baseline
    return worst, baseline / episodes
