"""The plain-Python engine: a loop of ask and tell over a world. It is the specification of any faster one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saver._types import Ints
from saver.collect import Campaign, Collector, Trial
from saver.estimate import Estimate
from saver.kernels.keeping import Out
from saver.play import stage_of
from saver.problem.checks import child_seed
from saver.problem.episode import Episode
from saver.problem.world import Scenario
from saver.simulator import Feedback, Player, Truth, knowledge_of, rounds


class Job(NamedTuple):
    """What all runs share, and how trials come back; the campaign is told of `losses` and `order`."""

    scenario: Scenario
    collector: Collector
    episodes: int
    truth: Truth
    feedback: Feedback | None = None
    losses: str = "hostile"
    order: str = "any"
    fair: bool = False
    history: int = 0


def run_reference(
    job: Job, checkpoints: Ints, seed: int | np.random.SeedSequence, runs: int, tick: Callable[[int], None]
) -> Out:
    """All runs, one after the other; `tick` is told after each."""
    kept = Out.room(checkpoints, runs, len(job.truth.values), len(job.truth.required))
    for r in range(runs):
        run_once(job, kept.of(r), child_seed(seed, r))
        tick(1)
    return kept


def answers(campaign: Campaign, truth: Truth, target: str, fair: bool) -> dict[str, float]:
    """What is recorded of one target."""
    problem = campaign.problem
    asked: dict[str, Any] = {"of": target, "against": problem.against}
    found = interval_of(campaign.estimate(**asked))
    found["anytime_low"], found["anytime_high"] = campaign.estimate(**asked, anytime=True).interval
    if campaign.collector.estimate == "certainty" and problem.mdp.known:
        found["conditional_mse"] = truth.conditional_mse(campaign.counts, target)
        if fair:
            weighed = campaign.estimate(**asked, fair=True)
            found["fair"], found["fair_stderr"] = weighed.value, weighed.stderr
    return found


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


def logged(scenario: Scenario, player: Player, count: int) -> list[Episode]:
    """So many baseline episodes; what is drawn by the baseline comes from the world's stream too."""
    problem = scenario.problem
    safe, found = stage_of(problem.mdp).grid.policy(problem.baseline), []
    for number in range(1, count + 1):
        draws = None if safe.sure else player.rng.random(problem.mdp.horizon)
        found.append(player.run(Trial(number, "baseline", safe, draws)))
    return found


def run_once(job: Job, kept: Out, seed: np.random.SeedSequence) -> None:
    """One campaign: what is recorded at the checkpoints goes to `kept`, of this run alone."""
    scenario, truth, at = job.scenario, job.truth, 0
    player = Player(scenario.world, child_seed(seed, 1), tells_end=not scenario.problem.mdp.known)
    campaign = Campaign(
        scenario.problem, job.collector, job.episodes, knowledge=knowledge_of(scenario, job.collector),
        history=logged(scenario, player, job.history) if job.history else None, seed=seed,
        losses=job.losses, order=job.order,
    )  # fmt: skip
    for done in rounds(campaign, player, truth, job.feedback, child_seed(seed, 2)):
        account = done.account
        kept.worst[:] = account.worsts
        if account.episodes == kept.checkpoints[at]:
            share = account.baseline / account.episodes
            kept.common[at] = account.budget, campaign.believed, share
            kept.rails["budgets"][:, at] = account.budgets
            kept.rails["ledgers"][:, at] = list(campaign.believed_of.values())
            for i, target in enumerate(truth.values):
                for name, number in answers(campaign, truth, target, job.fair).items():
                    kept.answers[name][i, at] = number
            at += 1
