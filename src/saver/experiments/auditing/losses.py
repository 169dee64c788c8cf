"""Campaigns whose feedback is lost, late, cut off or cancelled, by somebody who knows the outcomes."""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from saver.collect import Campaign
from saver.collect.collectors import find_collector
from saver.estimate import Estimate
from saver.estimate.interval import LEVEL
from saver.experiments.auditing.asked import COINS, asked, grid, one_outcome, with_constraints
from saver.experiments.auditing.hostile import HOSTILE
from saver.experiments.work import named_seed
from saver.problem import Bernoulli, Gaussian, Scenario, SubGaussian
from saver.problem.seeds import child_seed
from saver.scenarios import find_scenario
from saver.scenarios.tree import tree_model
from saver.simulator import Feedback, Player, Truth, knowledge_of, rounds

EPISODES = 300
FEW = 50  # campaigns: so many do not need other processes
LOW, HIGH = 0.05, 0.5  # deltas
LOOK = 30  # trials between two looks at the interval at all times
ONE = ", one outcome"  # worlds where whoever hides constraints hides rewards


def noisy_bandit() -> Scenario:
    """The bandit, with noise as large as what is allowed to be lost."""
    made = find_scenario("bandit", alpha=0.3)
    return with_constraints(made, Gaussian(made.world.constraint.mean, 0.09), SubGaussian(0.3))


def paths(coins: bool) -> Scenario:
    """A gridworld where a third may be lost: there is much to spend."""
    made, mean = grid(0.9, 0.1, horizon=3, alpha=0.35)
    if coins:
        return with_constraints(made, Bernoulli(mean), COINS)
    return with_constraints(made, Gaussian(mean, 0.25), SubGaussian(0.5))


def debts() -> Scenario:
    """A tree where what was not seen of an episode may be worth less than nothing."""
    mdp = tree_model(3)
    law = Gaussian([[0.6, -0.4]] * mdp.states, 0.04)
    return asked(mdp, law, SubGaussian(0.2, -1.0, 1.0), alpha=0.5, episodes=EPISODES)


WORLDS: dict[str, Callable[[], Scenario]] = {
    "noisy bandit": noisy_bandit,
    "paths": partial(paths, False),
    "coins on paths": partial(paths, True),
    "debts": debts,
    **{name: HOSTILE[name] for name in ("rare disasters", "drawn baseline", "all or nothing", "next state")},
}


class Manner(NamedTuple):
    """How feedback comes, and what is declared about it."""

    feedback: Feedback
    losses: str = "hostile"
    order: str = "any"


MANNERS = {
    "5 % lost at random": Manner(Feedback(lose=0.05)),
    "30 % lost at random": Manner(Feedback(lose=0.3, out=5, back="random")),
    "5 % lost, lowest outcomes": Manner(Feedback(lose=0.05, which="outcome", out=30, back="best")),
    "30 % lost, lowest outcomes": Manner(Feedback(lose=0.3, which="outcome", out=10, back="best")),
    "5 % lost, lowest sums": Manner(Feedback(lose=0.05, which="sum", out=30, back="best")),
    "30 % lost, lowest sums": Manner(Feedback(lose=0.3, which="sum", out=5)),
    "held back, then 10 % lost": Manner(Feedback(lose=0.1, which="sum", out=20, back="held")),
    "cancelled against the sum": Manner(Feedback(cancel=0.5, out=20, back="held")),
    "30 out, best first": Manner(Feedback(out=30, back="best")),
    "100 out, best first": Manner(Feedback(out=100, back="best")),
    "100 out, in order": Manner(Feedback(out=100), order="asked"),
    "three stragglers": Manner(Feedback(straggle=3, lose=0.05, which="sum", out=10, back="best")),
    "half cut off at their best": Manner(Feedback(cut=0.5, which="outcome")),
    "30 % lost, declared random": Manner(
        Feedback(lose=0.3, ran=True, out=30, back="random"), losses="random"
    ),
}


@dataclass(frozen=True)
class Case:
    """Campaigns that are counted together."""

    manner: str
    world: str
    collector: str
    delta: float

    @property
    def group(self) -> str:
        """As the audit calls it."""
        return f"{self.manner}: {self.world}"

    def make(self) -> Scenario:
        """The world, with this delta."""
        name = self.world.removesuffix(ONE)
        made = WORLDS[name]() if name == self.world else one_outcome(WORLDS[name]())
        problem = dataclasses.replace(made.problem, delta=self.delta)
        return dataclasses.replace(made, problem=problem, episodes=EPISODES)


CASES = tuple(
    Case(manner, world, collector, delta)
    for manner, both, then, collectors, delta in (
        ("5 % lost at random", "drawn baseline", "paths", ("safe-on-policy", "saver-opt"), HIGH),
        ("30 % lost at random", "noisy bandit", "coins on paths", ("saver-opt", "saver"), LOW),
        ("5 % lost, lowest outcomes", "rare disasters", "paths", ("saver", "saver"), HIGH),
        ("30 % lost, lowest outcomes", "noisy bandit", "drawn baseline", ("saver", "saver"), LOW),
        ("5 % lost, lowest sums", "noisy bandit", "coins on paths", ("saver", "saver-opt"), HIGH),
        ("30 % lost, lowest sums", "rare disasters", "noisy bandit", ("saver-opt", "safe-on-policy"), HIGH),
        ("held back, then 10 % lost", "noisy bandit", "next state", ("saver-opt", "saver"), HIGH),
        ("cancelled against the sum", "noisy bandit", "paths", ("saver", "saver"), HIGH),
        ("30 out, best first", "coins on paths", "noisy bandit", ("saver", "saver"), HIGH),
        ("100 out, best first", "rare disasters", "all or nothing", ("saver-opt", "safe-on-policy"), LOW),
        ("100 out, in order", "noisy bandit", "drawn baseline", ("saver-opt", "safe-on-policy"), HIGH),
        ("three stragglers", "noisy bandit", "coins on paths", ("saver", "saver-opt"), LOW),
        ("half cut off at their best", "debts", "paths", ("saver-opt", "saver"), HIGH),
        ("30 % lost, declared random", "noisy bandit", "paths", ("saver", "saver"), HIGH),
    )
    for world, collector, delta in (
        (both, collectors[0], LOW),
        (both + ONE, collectors[0], HIGH),
        (then, collectors[1], delta),
    )
)


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
    made, manner = case.make(), MANNERS[case.manner]
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
            ever |= not _holds(collecting.estimate(LEVEL, anytime=True), truth.value)
    found = collecting.estimate(LEVEL)
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
