"""Campaigns whose feedback is lost, late, cut off or cancelled, by somebody who knows the outcomes."""

from __future__ import annotations

import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from saver.collect import Campaign
from saver.collect.collectors import find_collector
from saver.estimate import Estimate
from saver.estimate.interval import LEVEL
from saver.experiments.work import named_seed
from saver.problem.checks import child_seed
from saver.simulator import Player, Truth, knowledge_of, rounds
from saver_audit.manners import EPISODES, MANNERS, VETOES, Case

FEW = 50  # campaigns: so many do not need other processes
LOOK = 30  # trials between two looks at the interval at all times


class Ended(NamedTuple):
    """Of one campaign, or of each of many, [runs].

    Attributes:
        worst: the worst true budget.
        least: the least of true minus believed.
        share: of baseline episodes.
        ever: whether the interval at all times missed the truth at some look.
        inside: whether the interval at one time holds it at the end; NaN where it is unbounded, and where
            feedback may be lost by choice: then it promises nothing.
    """

    worst: Any
    least: Any
    share: Any
    ever: Any
    inside: Any


def campaign(case: Case, seed: np.random.SeedSequence) -> Ended:
    """One campaign."""
    made, manner = case.make(), (MANNERS | VETOES)[case.manner]
    recipe = find_collector(case.collector)
    collecting = Campaign(
        made.problem,
        recipe,
        EPISODES,
        knowledge=knowledge_of(made, recipe),
        seed=child_seed(seed, 0),
        losses=manner.losses,
        order=manner.order,
    )
    player, truth, least = Player(made.world, child_seed(seed, 1)), Truth(made), math.inf
    ever = False
    for done in rounds(collecting, player, truth, manner.feedback, child_seed(seed, 2)):
        account = done.account
        least = min(least, account.budget - collecting.believed)
        if done.trial.number % LOOK == 0 or account.episodes == EPISODES:
            ever |= not _holds(collecting.estimate(level=LEVEL, anytime=True), truth.value)
    found = collecting.estimate(level=LEVEL)
    told = manner.losses == "random" and math.isfinite(found.interval[1] - found.interval[0])
    inside = float(_holds(found, truth.value)) if told else math.nan
    return Ended(account.worst, least, account.baseline / account.episodes, float(ever), inside)


def _holds(found: Estimate, value: float) -> bool:
    return found.interval[0] <= value <= found.interval[1]


def some(case: Case, seed: int, numbers: range) -> list[Ended]:
    """Campaigns by their numbers."""
    names = (case.manner, case.world, case.collector, f"{case.delta:g}")
    return [campaign(case, named_seed(seed, "losses", *names, str(r))) for r in numbers]


def counted(case: Case, runs: int, seed: int, jobs: int = 1) -> Ended:
    """`campaign` of each, the same for any number of processes."""
    if jobs == 1 or runs <= FEW:
        return Ended(*np.array(some(case, seed, range(runs))).T)
    parts = [range(first, min(first + FEW, runs)) for first in range(0, runs, FEW)]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.map(partial(some, case, seed), parts)
        return Ended(*np.array([row for part in found for row in part]).T)
