"""What is to be computed, as data: each step is one part of a table, and can be shipped to another process.

Every step has its own child of the seed, named by what it is, so that no step depends on another.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from saver._files import sources
from saver.collect import Campaign
from saver.collect.collectors import find_collector
from saver.engine.simulate import POINTS, check_memory
from saver.experiments import work
from saver.experiments.catalogue import ALPHAS, DESIGNS, EXPERIMENTS, LEVELS, PRICES, RATES, Experiment, Rate
from saver.experiments.tables import Cells
from saver.experiments.work import Tick, silent
from saver.simulator import knowledge_of

STEP, DRAWN, FLOW = (
    1e-7,
    5e-7,
    5e-6,
)  # seconds: of a step, of one that draws its action, of a plan for each flow


@dataclass(frozen=True)
class Step:
    """One part of a table.

    Attributes:
        name: of the part.
        kind: of the table, a name in TABLES.
        weight: about how many seconds it takes, for whoever waits.
        work: a function of a module, which gives the rows; it is told `tick`, how to say what share is done.
        arguments: its other arguments, plain data.
    """

    name: str
    kind: str
    weight: float
    work: Callable[..., Iterator[Cells]]
    arguments: dict[str, Any]

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
    steps = [step for e in EXPERIMENTS.values() for step in _campaigns(e, level, seed, jobs)]
    steps += [_limits(name, {}) for name in dict.fromkeys(e.scenario for e in EXPERIMENTS.values())]
    steps += [Step(f"design.{n}", "designs", 0.2, work.designs, {"scenario": n}) for n in DESIGNS]
    steps += [Step("prices", "prices", 5.0, work.prices, {"scenarios": PRICES, "alphas": ALPHAS})]
    steps += [_rate(asked, level, seed, jobs) for asked in RATES]
    return Plan(settings, steps)


def plan_run(experiment: Experiment, seed: int = 0, jobs: int | None = None) -> Plan:
    """One experiment of the user's; what cannot run is refused here."""
    scenario = experiment.make()
    for name in experiment.collectors:
        recipe = find_collector(name)
        Campaign(scenario.problem, recipe, 1, knowledge=knowledge_of(scenario, recipe))
    check_memory(max(experiment.runs), POINTS, experiment.episodes)
    described = {
        **dataclasses.asdict(experiment),
        "options": {k: str(v) for k, v in experiment.options.items()},
    }
    settings = {"command": "run", "experiment": described, "seed": seed, "sources": sources()}
    limits = _limits(experiment.scenario, experiment.options)
    return Plan(settings, [*_campaigns(experiment, LEVELS[1], seed, jobs), limits])


def _campaigns(experiment: Experiment, level: str, seed: int, threads: int | None) -> list[Step]:
    """A step for each collector."""
    runs = experiment.runs[LEVELS.index(level)]
    several, steps = len(experiment.make().problem.rails) > 1, []
    for collector in experiment.collectors:
        given = {"experiment": experiment, "collector": collector}
        given |= {"runs": runs, "seed": seed, "threads": threads}
        name, weight = f"{experiment.name}.{collector}", runs * _cost(experiment, collector)
        steps.append(Step(name, "campaigns", weight, work.campaigns, given))
        if several:
            steps.append(Step(f"guards.{name}", "guards", 0.2, work.guards, given))
    return steps


def _cost(experiment: Experiment, collector: str) -> float:
    """About how many seconds one run takes."""
    recipe, mdp = find_collector(collector), experiment.make().problem.mdp
    steps: float = experiment.episodes * mdp.horizon * (DRAWN if recipe.track == "sample" else STEP)
    if recipe.design != "exact" or mdp.states == 1:
        return steps
    plans = math.log(experiment.episodes) / math.log(recipe.replan)
    return float(steps + plans * FLOW * sum(map(len, mdp.layers)) * mdp.actions)


def _rate(asked: Rate, level: str, seed: int, threads: int | None) -> Step:
    runs = asked.runs[LEVELS.index(level)]
    given = {"asked": asked, "runs": runs, "seed": seed, "threads": threads}
    return Step(f"rate.{asked.name}", "rates", runs * sum(asked.budgets) * STEP, work.rate, given)


def _limits(scenario: str, options: dict[str, Any]) -> Step:
    given = {"scenario": scenario, "options": options}
    return Step(f"limits.{scenario}", "limits", 0.2, work.limits, given)
