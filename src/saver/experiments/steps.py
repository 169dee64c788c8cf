"""What is computed: each step gives the rows of one table, and nothing here draws.

Every step has its own child of the seed, named by what it is, so that no step depends on another.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver import design
from saver.collect.collectors import find_collector
from saver.design.exact import exact_pair
from saver.engine import simulate
from saver.experiments.catalogue import ALPHAS, LEVELS, PRICES, Experiment, Rate
from saver.problem import Scenario, visits
from saver.problem.checks import Floats
from saver.problem.seeds import child_seed
from saver.scenarios import find_scenario
from saver.theory import regret_rate
from saver.theory.parts import closed_design
from saver.theory.prediction import Forecast

Tick = Callable[[float], None]
STEP, DRAWN, FLOW = (
    1e-7,
    5e-7,
    5e-6,
)  # seconds: of a step, of one that draws its action, of a plan for each flow
CAMPAIGNS = (
    "experiment", "scenario", "collector", "episodes", "runs", "episode", "mse", "mse_se", "conditional_mse",
    "conditional_se", "violation", "violation_se", "believed", "baseline_share", "violation_rate",
    "allowance", "delta",
)  # fmt: skip
RATES = (
    "scenario", "collector", "against", "runs", "episodes", "regret", "regret_se", "limit", "exponent", "low",
    "high", "misfit",
)  # fmt: skip
PRICE = ("scenario", "alpha", "price", "paper")
VISITS = ("scenario", "design", "state", "action", "visits")
LIMITS = ("scenario", "design", "limit", "constraint_value", "required", "safe")


@dataclass(frozen=True)
class Step:
    """One table to be computed; `weight` is about how many seconds that takes, for the progress bar."""

    name: str
    kind: str
    columns: tuple[str, ...]
    weight: float
    rows: Callable[[Tick], Iterator[tuple[Any, ...]]]


def campaigns(experiment: Experiment, level: str, seed: int, threads: int | None) -> list[Step]:
    """A step for each collector: errors and violations at checkpoints, averaged over runs."""
    runs = experiment.runs[LEVELS.index(level)]

    def rows(collector: str, tick: Tick) -> Iterator[tuple[Any, ...]]:
        found = simulate(
            experiment.make(),
            collector,
            episodes=experiment.episodes,
            runs=runs,
            seed=named_seed(seed, experiment.name, collector),
            threads=threads,
            progress=lambda done: tick(done / runs),
        )
        mse, mse_se = found.mse()
        conditional, conditional_se = _average(found.conditional_mse)
        violation, violation_se = _average(-found.budget)
        believed, share = found.ledger.mean(axis=0), found.baseline_share.mean(axis=0)
        rate, problem = found.violation_rate(), experiment.make().problem
        allowance = problem.alpha * problem.baseline_value
        for i, k in enumerate(found.checkpoints):
            yield (
                experiment.name, experiment.scenario, collector, experiment.episodes, runs, int(k), mse[i],
                mse_se[i], conditional[i], conditional_se[i], violation[i], violation_se[i], believed[i],
                share[i], rate, int(k) * allowance, problem.delta,
            )  # fmt: skip

    return [
        Step(
            f"{experiment.name}.{collector}",
            "campaigns",
            CAMPAIGNS,
            runs * _cost(experiment, collector),
            lambda tick, collector=collector: rows(collector, tick),  # type: ignore[misc]
        )
        for collector in experiment.collectors
    ]


def _cost(experiment: Experiment, collector: str) -> float:
    """About how many seconds one run takes."""
    recipe, mdp = find_collector(collector), experiment.make().problem.mdp
    steps = experiment.episodes * mdp.horizon * (DRAWN if recipe.track == "sample" else STEP)
    if recipe.design != "exact" or mdp.states == 1:
        return steps
    plans = math.log(experiment.episodes) / math.log(recipe.replan)
    return steps + plans * FLOW * sum(map(len, mdp.layers)) * mdp.actions


def rate(asked: Rate, level: str, seed: int, threads: int | None) -> Step:
    """The regret at each budget with the exponent of the fit."""
    runs = asked.runs[LEVELS.index(level)]

    def rows(tick: Tick) -> Iterator[tuple[Any, ...]]:
        found = regret_rate(
            find_scenario(asked.scenario),
            asked.collector,
            budgets=asked.budgets,
            runs=runs,
            against=asked.against,
            seed=named_seed(seed, "rate", asked.name),
            threads=threads,
        )
        for K, regret, se in zip(found.budgets, found.regret, found.stderr, strict=True):
            yield (
                asked.scenario, asked.collector, asked.against, runs, int(K), regret, se, found.limit,
                found.exponent, *found.interval, found.misfit,
            )  # fmt: skip

    return Step(f"rate.{asked.name}", "rates", RATES, runs * sum(asked.budgets) * STEP, rows)


def prices() -> Step:
    """What safety costs at each alpha: the exact safe limit, and the paper's way, over the unconstrained."""

    def rows(tick: Tick) -> Iterator[tuple[Any, ...]]:
        for name in PRICES:
            for alpha in ALPHAS:
                made = find_scenario(name, alpha=alpha)
                problem, variance = made.problem, np.array(made.world.reward.variance)
                free, safe = exact_pair(problem, variance, made.world.constraint.mean)
                way = Forecast(made, made.episodes).way(
                    closed_design(problem, variance).policy, None, safe=True
                )
                yield name, alpha, safe.price, float(way.limit) / free.limit  # type: ignore[arg-type]

    return Step("prices", "prices", PRICE, 5.0, rows)


def designs(scenario: Scenario) -> Step:
    """The expected visits of each design."""
    return Step(
        f"design.{scenario.name}",
        "designs",
        VISITS,
        0.2,
        lambda tick: visit_rows(scenario, policies(scenario)),
    )


Designs = dict[str, Floats]  # name -> policy


def visit_rows(scenario: Scenario, compared: Designs) -> Iterator[tuple[str, str, int, int, float]]:
    """One row for each design, state and action."""
    for name, policy in compared.items():
        for (s, a), d in np.ndenumerate(visits(scenario.problem.mdp, policy)):
            yield scenario.name, name, s, a, d


def limits(scenario: Scenario) -> Step:
    """The limit of each design."""
    return Step(
        f"limits.{scenario.name}",
        "limits",
        LIMITS,
        0.2,
        lambda tick: limit_rows(scenario, policies(scenario)),
    )


def limit_rows(scenario: Scenario, compared: Designs) -> Iterator[tuple[str, str, float, float, float, str]]:
    """One row for each design, in units of one episode."""
    problem, variance = scenario.problem, scenario.world.reward.variance
    for name, policy in compared.items():
        found = design.limit(problem.mdp, problem.target, variance, policy)
        earned = scenario.world.constraint_value(policy)
        safe = "yes" if earned >= problem.required * (1 - 1e-9) else "no"
        yield scenario.name, name, found, earned, problem.required, safe


def policies(scenario: Scenario) -> Designs:
    """The designs that are compared."""
    problem, variance = scenario.problem, np.array(scenario.world.reward.variance)
    free, safe = exact_pair(problem, variance, scenario.world.constraint.mean)
    found = {"target": problem.target}
    if design.is_tree(problem.mdp):
        found["tree"] = closed_design(problem, variance).policy
    else:
        if problem.target.ndim == 2:
            found["dag"] = design.dag(problem.mdp, problem.target, variance).policy
        found["dag by step"] = closed_design(problem, variance).policy
    return {**found, "exact": free.policy, "exact safe": safe.policy}


def named_seed(seed: int, *names: str) -> np.random.SeedSequence:
    """The child of a seed that belongs to these names."""
    return child_seed(seed, *(zlib.crc32(name.encode()) for name in names))


def _average(values: Any) -> tuple[Any, Any]:
    """Means and their standard errors over the runs."""
    runs = len(values)
    spread = values.std(axis=0, ddof=1) if runs > 1 else np.full(values.shape[1], np.nan)
    return values.mean(axis=0), spread / np.sqrt(runs)
