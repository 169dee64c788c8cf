"""The experiments, as data: what is run on what, for how long and how often, and the steps that compute it.

A step is one part of a table, and can be shipped to another process. Every step has its own child of the
seed, named by what it is, so that no step depends on another.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from saver._files import sources
from saver.collect import Campaign
from saver.collect.collectors import find_collector
from saver.engine.simulate import POINTS, check_memory
from saver.experiments import work
from saver.experiments.tables import Cells
from saver.experiments.work import Tick, silent
from saver.problem import Scenario
from saver.simulator import knowledge_of

LEVELS = ("quick", "default", "full")
SAFE = ("saver-opt", "saver", "safe-oracle", "safe-on-policy")
STEP, DRAWN, FLOW = 1e-7, 5e-7, 5e-6  # seconds: of a step, of one that draws its action, of a plan for a flow


@dataclass(frozen=True)
class Experiment:
    """Campaigns of some collectors in one scenario."""

    name: str
    title: str  # above its figure
    scenario: str  # a name in SCENARIOS, made with `options`; or a file's, which these name
    collectors: tuple[str, ...]  # names in COLLECTORS, in the order of the legend
    episodes: int  # K of every campaign; `runs` is how many campaigns, for each of LEVELS
    runs: tuple[int, int, int]
    figure: str = ""  # the figure that it is a panel of, beside one of its own; "" for none
    options: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Scenario:
        """The scenario."""
        return work.made(self.scenario, self.options)


_PAPER = (*SAFE, "saver-paper")
_ALL = [
    Experiment("bandit", "Bandit", "bandit", (*_PAPER, "sepec"), 240, (200, 4000, 40_000), "paper"),
    Experiment("movielens", "MovieLens", "movielens", (*_PAPER, "sepec"), 30_000, (20, 100, 400), "paper"),
    Experiment("tree", "Tree", "tree", _PAPER, 480, (50, 600, 6000), "paper"),
    Experiment("gridworld", "Gridworld", "gridworld", _PAPER, 200, (20, 120, 1500), "paper"),
    Experiment("bandit-long", "Bandit", "bandit", (*SAFE, "sepec"), 5000, (100, 1000, 20_000), "long"),
    Experiment("tree-long", "Tree", "tree", SAFE, 5000, (20, 200, 2000), "long"),
    Experiment("gridworld-long", "Gridworld", "gridworld", SAFE, 5000, (6, 30, 400), "long"),
    Experiment("lake", "FrozenLake", "lake", SAFE, 1000, (4, 40, 400)),
    Experiment("taxi", "Taxi", "taxi", SAFE, 1000, (2, 4, 20)),
    Experiment("intractable-long", "Intractable", "intractable", SAFE, 5000, (100, 1000, 10_000), "long"),
]
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


@dataclass(frozen=True)
class Rate:
    """One measurement of the regret's exponent; `runs` for each of LEVELS."""

    scenario: str
    collector: str
    against: str
    budgets: tuple[int, ...] = (4000, 8000, 16_000, 32_000, 64_000, 128_000)
    runs: tuple[int, int, int] = (40, 200, 1000)

    @property
    def name(self) -> str:
        """For files."""
        return f"{self.scenario}-{self.collector}-{self.against}"


RATES = [
    Rate("bandit", "saver-opt", "safe"),
    Rate("bandit", "exact-oracle", "safe"),
    Rate("bandit", "saver", "safe"),
    Rate("intractable", "saver-opt", "unconstrained"),
    Rate("intractable", "saver", "unconstrained"),
]
PRICES = ("bandit", "tree", "gridworld", "movielens", "intractable")  # scenarios of the price of safety
ALPHAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DESIGNS = ("tree", "gridworld")  # scenarios whose designs are drawn


@dataclass(frozen=True)
class Step:
    """One part of a table."""

    name: str
    kind: str  # of the table, a name in TABLES
    weight: float  # about how many seconds it takes, for whoever waits
    work: Callable[..., Iterator[Cells]]  # of a module: gives the rows, tells `tick` what share is done
    arguments: dict[str, Any]  # the others, plain data

    def rows(self, tick: Tick = silent) -> list[Cells]:
        """Compute it."""
        return list(self.work(**self.arguments, tick=tick))


@dataclass(frozen=True)
class Plan:
    """What a folder is to hold: the settings that say so, and the steps."""

    settings: dict[str, Any]
    steps: list[Step]


def plan_reproduce(level: str = "default", seed: int = 0, jobs: int | None = None) -> Plan:
    """The paper's experiments, and what it could not draw."""
    settings = {"command": "reproduce", "level": level, "seed": seed, "sources": sources()}
    place = LEVELS.index(level)
    steps = [step for e in EXPERIMENTS.values() for step in _campaigns(e, e.runs[place], seed, jobs)]
    steps += [_limits(name, {}) for name in dict.fromkeys(e.scenario for e in EXPERIMENTS.values())]
    steps += [Step(f"design.{n}", "designs", 0.2, work.designs, {"scenario": n}) for n in DESIGNS]
    steps += [Step("prices", "prices", 5.0, work.prices, {"scenarios": PRICES, "alphas": ALPHAS})]
    for asked in RATES:
        runs, name = asked.runs[place], f"rate.{asked.name}"
        given = {"asked": asked, "runs": runs, "seed": seed, "threads": jobs}
        steps.append(Step(name, "rates", runs * sum(asked.budgets) * STEP, work.rate, given))
    return Plan(settings, steps)


def plan_run(experiment: Experiment, seed: int = 0, jobs: int | None = None) -> Plan:
    """One experiment of the user's; what cannot run is refused here."""
    scenario = experiment.make()
    for name in experiment.collectors:
        recipe = find_collector(name)
        Campaign(scenario.problem, recipe, 1, knowledge=knowledge_of(scenario, recipe))
    check_memory(max(experiment.runs), POINTS, experiment.episodes)
    described = dataclasses.asdict(experiment)
    described["options"] = {name: str(value) for name, value in experiment.options.items()}
    settings = {"command": "run", "experiment": described, "seed": seed, "sources": sources()}
    limits = _limits(experiment.scenario, experiment.options)
    return Plan(settings, [*_campaigns(experiment, experiment.runs[1], seed, jobs), limits])


def _campaigns(experiment: Experiment, runs: int, seed: int, threads: int | None) -> Iterator[Step]:
    """A step for each collector; another where there are several guardrails."""
    problem = experiment.make().problem
    flows = sum(map(len, problem.mdp.layers)) * problem.mdp.actions
    for collector in experiment.collectors:
        recipe = find_collector(collector)
        cost = experiment.episodes * problem.mdp.horizon * (DRAWN if recipe.track == "sample" else STEP)
        if recipe.design == "exact" and problem.mdp.states > 1:
            cost += math.log(experiment.episodes) / math.log(recipe.replan) * FLOW * flows
        given = {"experiment": experiment, "collector": collector}
        given |= {"runs": runs, "seed": seed, "threads": threads}
        name = f"{experiment.name}.{collector}"
        yield Step(name, "campaigns", runs * cost, work.campaigns, given)
        if len(problem.rails) > 1:
            yield Step(f"guards.{name}", "guards", 0.2, work.guards, given)


def _limits(scenario: str, options: dict[str, Any]) -> Step:
    given = {"scenario": scenario, "options": options}
    return Step(f"limits.{scenario}", "limits", 0.2, work.limits, given)
