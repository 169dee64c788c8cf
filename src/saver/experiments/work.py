"""How the rows of each table are computed; nothing here draws."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from saver import design
from saver._types import Floats
from saver.design.exact import exact_pair
from saver.engine import Runs, simulate
from saver.experiments.catalogue import Experiment, Rate
from saver.problem import Scenario, value, visits
from saver.problem.seeds import child_seed
from saver.scenarios import find_scenario
from saver.simulator import Truth
from saver.theory import regret_rate
from saver.theory.believed import known_twin
from saver.theory.nodewise import closed_design
from saver.theory.prediction import Forecast

Tick = Callable[[float], None]  # told which further share is done
Designs = dict[str, Floats]  # name -> policy


def silent(share: float) -> None:
    """Tell nobody."""


def campaigns(
    experiment: Experiment, collector: str, runs: int, seed: int, threads: int | None, tick: Tick
) -> Iterator[tuple[Any, ...]]:
    """Errors and violations of one collector at checkpoints, averaged over runs."""
    scenario, found = experiment.make(), _simulated(experiment, collector, runs, seed, threads, tick)
    mse, mse_se = found.mse()
    conditional, conditional_se = _average(found.conditional_mse)
    violation, violation_se = _average(-found.budget)
    believed, share = found.ledger.mean(axis=0), found.baseline_share.mean(axis=0)
    rate, problem = found.violation_rate(), scenario.problem
    allowance = scenario.rails[0].credit
    for i, k in enumerate(found.checkpoints):
        yield (
            experiment.name, experiment.scenario, collector, experiment.episodes, runs, int(k), mse[i],
            mse_se[i], conditional[i], conditional_se[i], violation[i], violation_se[i], believed[i],
            share[i], rate, int(k) * allowance, problem.delta,
        )  # fmt: skip


def guards(
    experiment: Experiment, collector: str, runs: int, seed: int, threads: int | None, tick: Tick
) -> Iterator[tuple[Any, ...]]:
    """The budgets of each guardrail in the campaigns of `campaigns`, in the units that are told."""
    scenario, found = experiment.make(), _simulated(experiment, collector, runs, seed, threads, tick)
    truth = Truth(scenario)
    for rail, required, worth in zip(scenario.problem.rails, truth.required, truth.baselines, strict=True):
        budget, error = _average(found.budgets[rail.name])
        believed, broken = found.ledgers[rail.name].mean(axis=0), float(found.broken(rail.name).mean())
        for i, k in enumerate(found.checkpoints):
            yield (
                experiment.name, collector, runs, rail.name, rail.sign < 0.0, rail.sign * worth,
                rail.sign * required, int(k), budget[i], error[i], believed[i], broken,
            )  # fmt: skip


_LATEST: dict[str, Runs] = {}  # the campaigns simulated last: two tables are made of them


def _simulated(
    experiment: Experiment, collector: str, runs: int, seed: int, threads: int | None, tick: Tick
) -> Runs:
    """The campaigns of one collector."""
    asked = repr((experiment, collector, runs, seed))
    if asked not in _LATEST:
        _LATEST.clear()
        _LATEST[asked] = simulate(
            experiment.make(),
            collector,
            episodes=experiment.episodes,
            runs=runs,
            seed=named_seed(seed, experiment.name, collector),
            threads=threads,
            progress=lambda done: tick(done / runs),
        )
    return _LATEST[asked]


def rate(asked: Rate, runs: int, seed: int, threads: int | None, tick: Tick) -> Iterator[tuple[Any, ...]]:
    """The regret at each budget with the exponent of the fit."""
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


def prices(
    scenarios: tuple[str, ...], alphas: tuple[float, ...], tick: Tick
) -> Iterator[tuple[str, float, float, float]]:
    """What safety costs at each alpha: the exact safe limit, and the paper's way, over the unconstrained."""
    for name in scenarios:
        for alpha in alphas:
            made = find_scenario(name, alpha=alpha)
            problem, variance = made.problem, np.array(made.world.reward.variance)
            free, safe = exact_pair(problem, variance, made.constraint_mean)
            way = Forecast(made, made.episodes).way(closed_design(problem, variance).policy, None, safe=True)
            yield name, alpha, safe.price, float(way.limit) / free.limit  # type: ignore[arg-type]
        tick(1.0 / len(scenarios))


def designs(scenario: str, tick: Tick) -> Iterator[tuple[str, str, int, int, float]]:
    """The expected visits of each design."""
    made, _ = known_twin(find_scenario(scenario))
    yield from visit_rows(made, policies(made))


def limits(
    scenario: str, options: dict[str, Any], tick: Tick
) -> Iterator[tuple[str, str, float, float, float, bool]]:
    """The limit of each design."""
    made, _ = known_twin(find_scenario(scenario, **options))
    yield from limit_rows(made, policies(made))


def visit_rows(scenario: Scenario, compared: Designs) -> Iterator[tuple[str, str, int, int, float]]:
    """One row for each design, state and action."""
    for name, policy in compared.items():
        for (s, a), d in np.ndenumerate(visits(scenario.problem.mdp, policy)):
            yield scenario.name, name, s, a, d


def limit_rows(scenario: Scenario, compared: Designs) -> Iterator[tuple[str, str, float, float, float, bool]]:
    """One row for each design, in units of one episode; of several guardrails, that which is worst kept."""
    problem, variance = scenario.problem, scenario.world.reward.variance
    for name, policy in compared.items():
        found = design.limit(problem.mdp, problem.first, variance, policy)
        worst = min(guard_rows(scenario, policy), key=lambda row: row.over)
        safe = worst.over >= -1e-9
        yield scenario.name, name, found, worst.value, worst.required, safe


class Guarded(NamedTuple):
    """What a policy is worth of one guardrail, in the units that are told."""

    name: str
    value: float
    required: float
    over: float  # how far it keeps what is required, in units of that


def guard_rows(scenario: Scenario, policy: Floats) -> list[Guarded]:
    """One for each guardrail."""
    found = []
    for rail, mean in zip(scenario.rails, scenario.means, strict=True):
        worth = value(scenario.world.mdp, policy, mean)
        over = rail.relative(worth - rail.required, rail.value)
        found.append(Guarded(rail.name, rail.sign * worth, rail.sign * rail.required, over))
    return found


GAPS = ((5000, 1e-6), (100_000, 1e-3), (math.inf, 1e-2))  # flows, and how exact a limit they are worth


def policies(scenario: Scenario) -> Designs:
    """The designs that are compared."""
    problem, variance = scenario.problem, np.array(scenario.world.reward.variance)
    flows = sum(map(len, problem.mdp.layers)) * problem.mdp.actions
    gap = next(gap for most, gap in GAPS if flows <= most)
    free, safe = exact_pair(problem, variance, scenario.constraint_mean, tolerance=gap)
    found = {"target": problem.first}
    if design.is_tree(problem.mdp):
        found["tree"] = closed_design(problem, variance).policy
    else:
        if problem.first.ndim == 2:
            found["dag"] = design.dag(problem.mdp, problem.first, variance).policy
        found["dag by step"] = closed_design(problem, variance).policy
    return {**found, "exact": free.policy, "exact safe": safe.policy}


def named_seed(seed: int, *names: str) -> np.random.SeedSequence:
    """The child of a seed that belongs to these names."""
    return child_seed(seed, *(zlib.crc32(name.encode()) for name in names))


def _average(values: Floats) -> tuple[Floats, Floats]:
    """Means and their standard errors over the runs."""
    runs = len(values)
    spread = values.std(axis=0, ddof=1) if runs > 1 else np.full(values.shape[1], np.nan)
    return values.mean(axis=0), spread / np.sqrt(runs)
