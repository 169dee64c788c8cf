"""The plain-Python engine: a loop of ask and tell over a world. It is the specification of any faster one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Campaign, Collector, Trial
from saver.engine.runs import ANSWERS, COMMON, GUARDED
from saver.estimate import Estimate
from saver.play import stage_of
from saver.problem.episode import Episode
from saver.problem.seeds import child_seed
from saver.problem.world import Scenario
from saver.simulator import Feedback, Player, Truth, knowledge_of, rounds


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
    fair: bool = False,
    history: int = 0,
) -> tuple[dict[str, Floats], Floats]:
    """All runs, one after the other; `tick` is told after each. Worst budgets are [runs, guardrails]."""
    kept, worst = room(truth, checkpoints, runs), np.full((runs, len(truth.required)), np.nan)
    for r in range(runs):
        own = child_seed(seed, r)
        found, worst[r] = run_once(
            scenario, collector, episodes, checkpoints, own, truth, returns, fair, history
        )
        for name, numbers in found.items():
            kept[name][r] = numbers
        tick(1)
    return kept, worst


def room(truth: Truth, checkpoints: Ints, runs: int) -> dict[str, Floats]:
    """For what is recorded: [runs, targets, C] for each answer, [runs, C] for the rest.

    Also [runs, guardrails, C] for budgets, where there are several.
    """
    shape, several = (runs, len(truth.values), len(checkpoints)), len(truth.required)
    found = {name: np.full(shape, np.nan) for name in ANSWERS}
    found |= {name: np.full((runs, len(checkpoints)), np.nan) for name in COMMON}
    if several > 1:
        found |= {name: np.full((runs, several, len(checkpoints)), np.nan) for name in GUARDED}
    return found


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


def run_once(
    scenario: Scenario,
    collector: Collector,
    episodes: int,
    checkpoints: Ints,
    seed: np.random.SeedSequence,
    truth: Truth,
    returns: Returns = AT_ONCE,
    fair: bool = False,
    history: int = 0,
) -> tuple[dict[str, Floats], list[float]]:
    """One campaign: what is recorded at the checkpoints, and the worst true budget of each guardrail."""
    known = knowledge_of(scenario, collector)
    player = Player(scenario.world, child_seed(seed, 1), tells_end=not scenario.problem.mdp.known)
    campaign = Campaign(
        scenario.problem,
        collector,
        episodes,
        knowledge=known,
        history=logged(scenario, player, history) if history else None,
        seed=seed,
        losses=returns.losses,
        order=returns.order,
    )
    kept = {name: numbers[0] for name, numbers in room(truth, checkpoints, 1).items()}
    at, worst = 0, [math.inf]
    for done in rounds(campaign, player, truth, returns.feedback, child_seed(seed, 2)):
        account, worst = done.account, done.account.worsts
        if account.episodes == checkpoints[at]:
            kept["budget"][at] = account.budget
            kept["ledger"][at] = campaign.believed
            if len(worst) > 1:
                kept["budgets"][:, at] = account.budgets
                kept["ledgers"][:, at] = list(campaign.believed_of.values())
            kept["baseline_share"][at] = account.baseline / account.episodes
            for i, target in enumerate(truth.values):
                for name, number in answers(campaign, truth, target, fair).items():
                    kept[name][i, at] = number
            at += 1
    return kept, worst
