"""What the audit counts: every collector that promises safety, in every world, as steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from saver._files import sources
from saver.collect import COLLECTORS, Collector
from saver.engine import simulate
from saver.engine.runs import VIOLATED, Runs
from saver.engine.simulate import cores
from saver.estimate.interval import LEVEL
from saver.experiments.catalogue import Plan, Step
from saver.experiments.work import Tick, named_seed
from saver.play import Stage
from saver.problem import Problem, Scenario
from saver_audit.hostile import HOSTILE
from saver_audit.losses import counted
from saver_audit.making import FORMS
from saver_audit.manners import CASES as LOST, EPISODES, VETO_CASES, Case
from saver_audit.uncharted import COLLECT, DELTAS, FAMILY, MODEL_FREE, RECKLESS, WORLDS as UNKNOWN, moving
from saver_audit.worlds import SHAPES, Place, describe

LOOKS, FIRST, LATER = 150, 50, 500  # at the interval at all times; LATER is where it is right in the limit
FEWER = 7  # at least so many episodes between two looks, on average
PROMISING = tuple(name for name, recipe in COLLECTORS.items() if recipe.promises)
VARIANTS = {
    "saver, earner": replace(COLLECTORS["saver"], fallback="earner"),
    "saver-opt, baseline unseen": replace(COLLECTORS["saver-opt"], learn_from_baseline=False),
}  # in hostile worlds too: the first spends all it has, the second does not see that the baseline earns most
RECIPES = COLLECTORS | VARIANTS | RECKLESS
HEAVY = ("exact", moving)  # designs that take time
CASES = (*LOST, *VETO_CASES)  # whose feedback is chosen by somebody
SLOWER = 1e3  # about how many times the reference engine is


@dataclass(frozen=True)
class Size:
    """How much is drawn: worlds of each shape, runs of each, of scenarios and of each case of losses."""

    worlds: dict[str, int]
    runs: dict[str, int]
    heavy: dict[str, int]  # runs for collectors that plan by the exact design, where that is slow
    scenarios: dict[str, int]
    hostile: dict[str, int]  # by `kind_of`
    losses: int
    guarded: dict[str, int] = field(default_factory=dict)  # worlds of each shape, in each of FORMS
    unknown: dict[str, int] = field(default_factory=dict)  # as `unknown_places` reads it


AUDITS = {
    "quick": Size(
        {"bandit": 12, "tree": 6, "graph": 6},
        {"bandit": 40, "tree": 20, "graph": 10},
        {"bandit": 40, "tree": 10, "graph": 2},
        {"bandit": 100, "movielens": 40, "tree": 40, "gridworld": 8, "intractable": 100, "lake": 6},
        {"one way": 20, "random": 6, "outcome": 5},
        2,
        {"bandit": 6, "tree": 2, "graph": 2},
        {"runs": 20, "heavy": 3, "outcome": 1, "losses": 1, "worlds": 2, "random": 10, "few": 2},
    ),
    "full": Size(
        {"bandit": 120, "tree": 60, "graph": 60},
        {"bandit": 80, "tree": 80, "graph": 60},
        {"bandit": 80, "tree": 40, "graph": 6},
        {
            "bandit": 2000, "movielens": 1000, "tree": 1000, "gridworld": 100, "intractable": 2000,
            "lake": 200, "taxi": 4,
        },
        {"one way": 400, "random": 120, "outcome": 60},
        500,
        {"bandit": 40, "tree": 16, "graph": 12},
        {"runs": 300, "heavy": 50, "outcome": 30, "losses": 30, "worlds": 8, "random": 60, "few": 10},
    ),
}  # fmt: skip


def plan_audit(level: str = "quick", seed: int = 0, jobs: int | None = None) -> Plan:
    """Every step of the audit."""
    made_of, size = sources(Path(__file__).parent), AUDITS[level]
    settings = {"command": "audit", "level": level, "seed": seed, "sources": made_of}
    places = [(Place("scenario", name), runs, runs) for name, runs in size.scenarios.items()]
    places += [
        (Place(form, shape, i, seed), size.runs[shape], size.heavy[shape])
        for form in ("random", *FORMS)
        for shape in SHAPES
        for i in range((size.worlds if form == "random" else size.guarded).get(shape, 0))
    ]
    places += unknown_places(size, seed)
    for name in HOSTILE:
        place = Place("hostile", name)
        runs = size.hostile[kind_of(place.make())]
        places.append((place, runs, runs))
    steps = [_world_step(place, runs, heavy, seed, jobs) for place, runs, heavy in places]
    steps += [_loss_step(case, size.losses, seed, jobs) for case in CASES]
    return Plan(settings, steps)


def unknown_places(size: Size, seed: int = 0) -> list[tuple[Place, int, int]]:
    """Worlds whose transitions are unknown, and their runs.

    In each world `runs`, or `heavy`, or `outcome` where the reference engine must run them; of each form and
    shape `worlds` random ones, with `random`, or `few`, runs.
    """
    if not size.unknown:
        return []
    found = []
    for name, make in UNKNOWN.items():
        few = (size.unknown["outcome"],) * 2
        runs, heavy = few if kind_of(make()) == "outcome" else (size.unknown["runs"], size.unknown["heavy"])
        found += [(Place(FAMILY, name, i, seed), runs, heavy) for i in range(len(DELTAS))]
    return found + [
        (Place(form, shape, i, seed), size.unknown["random"], size.unknown["few"])
        for form in MODEL_FREE
        for shape in SHAPES
        for i in range(size.unknown["worlds"])
    ]


def kind_of(scenario: Scenario) -> str:
    """What a campaign costs: little where all goes one way, most where the reference engine must run it."""
    if callable(scenario.world.outcome):
        return "outcome"
    return "one way" if Stage(scenario.world.mdp).deterministic else "random"


def collectors_for(place: Place, scenario: Scenario) -> tuple[str, ...]:
    """Those that promise safety and can run here."""
    if not scenario.problem.mdp.known:
        return COLLECT
    names = (*PROMISING, *VARIANTS) if place.family == "hostile" else PROMISING
    return tuple(name for name in names if _runs(RECIPES[name], scenario.problem))


def counts_for(place: Place, scenario: Scenario, runs: int, heavy: int) -> dict[str, int]:
    """How many campaigns of each collector."""
    names = collectors_for(place, scenario)
    return {name: heavy if RECIPES[name].design in HEAVY else runs for name in names}


def _runs(recipe: Collector, problem: Problem) -> bool:
    if recipe.design != "sepec":
        return True
    first = problem.rails[0]
    known = recipe.side_information != "none" or first.promise.floor >= 0
    return problem.mdp.states == 1 and known and len(problem.rails) == 1 and first.exact


def _world_step(place: Place, runs: int, heavy: int, seed: int, threads: int | None) -> Step:
    """All collectors in one world."""
    scenario = place.make()
    counts = counts_for(place, scenario, runs, heavy)
    weight = float(sum(counts.values()) * scenario.episodes * scenario.problem.mdp.horizon)
    weight *= SLOWER if kind_of(scenario) == "outcome" else 1.0
    name = f"{place.group}.{scenario.name}".replace(" ", "-").replace(":", "")
    name += f".{scenario.problem.delta:g}" if place.family == FAMILY else ""
    given = {"place": place, "counts": counts, "seed": seed, "threads": threads}
    return Step(name, "audit", weight, world_rows, given)


def world_rows(
    place: Place, counts: dict[str, int], seed: int, threads: int | None, tick: Tick
) -> Iterator[tuple[Any, ...]]:
    """A row for each collector: how often it broke its promise and missed with its intervals, by how much."""
    scenario = place.make()
    K = scenario.episodes
    looks = np.unique(np.geomspace(min(FIRST, K), K, min(LOOKS, K // FEWER)).astype(int))
    if not scenario.problem.mdp.known:
        looks = looks[-1:]  # one takes as long as a campaign
    for name, count in counts.items():
        found = simulate(
            scenario,
            RECIPES[name],
            runs=count,
            seed=named_seed(seed, "audit", place.group, scenario.name, name),
            checkpoints=looks,
            engine="reference" if kind_of(scenario) == "outcome" else "compiled",
            threads=threads,
        )
        broken = int(np.sum(np.any([found.broken(name) for name in found.budgets], axis=0)))
        bounded = np.isfinite(found.stderr[:, -1]) & (name not in RECKLESS)  # these ask no question
        low, high = found.interval(LEVEL)
        inside = (low[:, -1] <= found.true_value) & (found.true_value <= high[:, -1]) & bounded
        error = found.estimates[bounded, -1] - found.true_value
        spread = error.std(ddof=1) / math.sqrt(len(error)) if len(error) > 1 else math.nan
        unused = found.ledger[:, -1].mean() / (scenario.episodes * scenario.rails[0].required or 1.0)
        yield (
            place.group, *describe(scenario), name, RECIPES[name].estimate, count, broken,
            float(found.worst_budget.min()), int(inside.sum()), int(bounded.sum()),
            *_ever(found, scenario.problem, RECIPES[name]),
            float(error.mean()) if len(error) else math.nan, spread,
            float(found.baseline_share[:, -1].mean()), float(unused),
        )  # fmt: skip
        tick(1.0 / len(counts))


def _ever(found: Runs, problem: Problem, recipe: Collector) -> tuple[int, int]:
    """How many campaigns missed at some look with the interval at all times, and of how many.

    With nothing declared about rewards, or transitions unknown, it is the one at one time, widened, and
    nothing is said of that where it is made of importance weights.
    """
    declared = problem.reward is not None and problem.mdp.known
    first = FIRST if declared else LATER
    if found.checkpoints[-1] < first or (recipe.estimate == "importance" and not declared):
        return 0, 0
    runs = len(found.worst_budget)
    return round(found.ever_missed(first) * runs), runs


def _loss_step(case: Case, runs: int, seed: int, jobs: int | None) -> Step:
    """Campaigns whose feedback is lost or late."""
    given = {"case": case, "runs": runs, "seed": seed, "jobs": jobs}
    name = f"losses.{case.manner}.{case.world}.{case.delta:g}".replace(" ", "-").replace(",", "")
    return Step(name.replace("%", "percent"), "audit", runs * EPISODES * SLOWER, loss_rows, given)


def loss_rows(case: Case, runs: int, seed: int, jobs: int | None, tick: Tick) -> Iterator[tuple[Any, ...]]:
    """The row of one case, its campaigns spread over processes.

    Where transitions are learned intervals promise nothing if somebody chooses what is told or starts.
    """
    scenario = case.make()
    found = counted(case, runs, seed, jobs or cores())
    broken = int(np.sum(found.worst < -VIOLATED * scenario.problem.rails[0].unit))
    bounded = ~np.isnan(found.inside)
    watched = runs if scenario.problem.mdp.known else 0
    yield (
        case.group, *describe(scenario), case.collector, RECIPES[case.collector].estimate, runs, broken,
        float(found.worst.min()), int(found.inside[bounded].sum()), int(bounded.sum()),
        int(found.ever.sum()) if watched else 0, watched,
        math.nan, math.nan, float(found.share.mean()), math.nan,
    )  # fmt: skip
    tick(1.0)
