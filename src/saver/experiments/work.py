"""How the rows of each table are computed; nothing here draws."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saver import design
from saver._types import Floats
from saver.design.exact import exact_pair
from saver.engine import Runs, simulate
from saver.errors import InvalidData, InvalidProblem
from saver.problem import Problem, Scenario, codec, value, visits
from saver.problem.checks import child_seed
from saver.problem.codec import fingerprint
from saver.scenarios import SCENARIOS, find_scenario
from saver.simulator import Truth, scenario_of
from saver.theory import regret_rate
from saver.theory.believed import known_twin
from saver.theory.hardness import closed_design
from saver.theory.prediction import Forecast

if TYPE_CHECKING:
    from saver.experiments.catalogue import Experiment, Rate

FILE = "file"  # the option that says where what is asked stands
Tick = Callable[[float], None]  # told which further share is done
Progress = Callable[[str, str, float], None]  # told the stage, what is being done, the share that is done
Rows = Iterator[tuple[Any, ...]]
Designs = dict[str, Floats]  # name -> policy
GAPS = ((5000, 1e-6), (100_000, 1e-3), (math.inf, 1e-2))  # flows, and how exact a limit they are worth


def silent(*told: Any) -> None:
    """A tick, or progress, that nobody watches."""


def named_seed(seed: int, *names: str) -> np.random.SeedSequence:
    """The child of a seed that belongs to these names."""
    return child_seed(seed, *(zlib.crc32(name.encode()) for name in names))


# -- scenarios -----------------------------------------------------------------------------------------------


def from_file(name: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What `made` makes a scenario of: a name with its options; of a file its name, and where it is."""
    path = Path(name)
    if name in SCENARIOS or not (path.is_file() or name.endswith(".json")):
        return name, options
    if options:
        raise InvalidProblem(f"{', '.join(options)} are of scenarios; the file {name} says them itself")
    return path.name, {FILE: name, "holds": fingerprint(codec.load(path))}


def made(name: str, options: dict[str, Any]) -> Scenario:
    """A scenario by its name; or that of a file: a problem is asked in the world as its log shows it."""
    if FILE not in options or name in SCENARIOS:
        return find_scenario(name, **options)
    found = codec.load(options[FILE])
    if isinstance(found, Scenario):
        return replace(found, name=name)
    if not isinstance(found, Problem):
        raise InvalidData(f"{options[FILE]} holds a {type(found).__name__}; it must hold a problem")
    return scenario_of(found, name=name)


# -- campaigns -----------------------------------------------------------------------------------------------


def campaigns(
    experiment: Experiment, collector: str, runs: int, seed: int, threads: int | None, tick: Tick
) -> Rows:
    """Errors and violations of one collector at checkpoints, averaged over runs."""
    scenario, found = experiment.make(), _simulated(experiment, collector, runs, seed, threads, tick)
    told = (
        *found.mse(), *_average(found.conditional_mse), *_average(-found.budget),
        found.ledger.mean(axis=0), found.baseline_share.mean(axis=0),
    )  # fmt: skip
    rate, allowance = found.violation_rate(), scenario.rails[0].credit
    for k, *numbers in zip(found.checkpoints, *told, strict=True):
        yield (
            experiment.name, experiment.scenario, collector, experiment.episodes, runs, int(k), *numbers,
            rate, int(k) * allowance, scenario.problem.delta,
        )  # fmt: skip


def guards(
    experiment: Experiment, collector: str, runs: int, seed: int, threads: int | None, tick: Tick
) -> Rows:
    """The budgets of each guardrail in the campaigns of `campaigns`, in the units that are told."""
    scenario, found = experiment.make(), _simulated(experiment, collector, runs, seed, threads, tick)
    truth = Truth(scenario)
    for rail, required, worth in zip(scenario.problem.rails, truth.required, truth.baselines, strict=True):
        told = *_average(found.budgets[rail.name]), found.ledgers[rail.name].mean(axis=0)
        broken = float(found.broken(rail.name).mean())
        for k, *numbers in zip(found.checkpoints, *told, strict=True):
            yield (
                experiment.name, collector, runs, rail.name, rail.sign < 0.0, rail.sign * worth,
                rail.sign * required, int(k), *numbers, broken,
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
            experiment.make(), collector, episodes=experiment.episodes, runs=runs, threads=threads,
            seed=named_seed(seed, experiment.name, collector), progress=lambda done: tick(done / runs),
        )  # fmt: skip
    return _LATEST[asked]


def _average(values: Floats) -> tuple[Floats, Floats]:
    """Means and their standard errors over the runs."""
    runs = len(values)
    spread = values.std(axis=0, ddof=1) if runs > 1 else np.full(values.shape[1], np.nan)
    return values.mean(axis=0), spread / np.sqrt(runs)


def rate(asked: Rate, runs: int, seed: int, threads: int | None, tick: Tick) -> Rows:
    """The regret at each budget with the exponent of the fit."""
    found = regret_rate(
        find_scenario(asked.scenario), asked.collector, budgets=asked.budgets, runs=runs, threads=threads,
        against=asked.against, seed=named_seed(seed, "rate", asked.name),
    )  # fmt: skip
    for K, regret, se in zip(found.budgets, found.regret, found.stderr, strict=True):
        yield (
            asked.scenario, asked.collector, asked.against, runs, int(K), regret, se, found.limit,
            found.exponent, *found.interval, found.misfit,
        )  # fmt: skip


# -- designs -------------------------------------------------------------------------------------------------


def prices(scenarios: tuple[str, ...], alphas: tuple[float, ...], tick: Tick) -> Rows:
    """What safety costs at each alpha: the exact safe limit, and the paper's way, over the unconstrained."""
    for name in scenarios:
        for alpha in alphas:
            made = find_scenario(name, alpha=alpha)
            problem, variance = made.problem, np.array(made.world.reward.variance)
            free, safe = exact_pair(problem, variance, made.constraint_mean)
            _, limit = Forecast(made, made.episodes).long_run(closed_design(problem, variance).policy)
            yield name, alpha, safe.price, float(limit) / free.limit  # type: ignore[arg-type]
        tick(1.0 / len(scenarios))


def designs(scenario: str, tick: Tick) -> Rows:
    """The expected visits of each design."""
    yield from visit_rows(*compared(scenario, {}))


def limits(scenario: str, options: dict[str, Any], tick: Tick) -> Rows:
    """The limit of each design."""
    yield from limit_rows(*compared(scenario, options))


def compared(name: str, options: dict[str, Any]) -> tuple[Scenario, Designs]:
    """A scenario, with its transitions known, and the designs that are compared in it."""
    scenario, _ = known_twin(made(name, options))
    problem, variance = scenario.problem, np.array(scenario.world.reward.variance)
    flows = sum(map(len, problem.mdp.layers)) * problem.mdp.actions
    gap = next(gap for most, gap in GAPS if flows <= most)
    free, safe = exact_pair(problem, variance, scenario.constraint_mean, tolerance=gap)
    found, closed = {"target": problem.first}, closed_design(problem, variance).policy
    if design.is_tree(problem.mdp):
        found["tree"] = closed
    else:
        if problem.first.ndim == 2:
            found["dag"] = design.dag(problem.mdp, problem.first, variance).policy
        found["dag by step"] = closed
    return scenario, {**found, "exact": free.policy, "exact safe": safe.policy}


def visit_rows(scenario: Scenario, compared: Designs) -> Rows:
    """One row for each design, state and action."""
    for name, policy in compared.items():
        for (s, a), d in np.ndenumerate(visits(scenario.problem.mdp, policy)):
            yield scenario.name, name, s, a, d


def limit_rows(scenario: Scenario, compared: Designs) -> Rows:
    """One row for each design, in units of one episode; of several guardrails, that which is worst kept."""
    problem, variance = scenario.problem, scenario.world.reward.variance
    for name, policy in compared.items():
        found = design.limit(problem.mdp, problem.first, variance, policy)
        worst = min(guard_rows(scenario, policy), key=lambda row: row.over)
        yield scenario.name, name, found, worst.value, worst.required, worst.over >= -1e-9


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
