"""Counts how often the promise breaks and the interval misses, and judges the counts.

A violation is a campaign whose true budget was below 0 at any episode. Of n campaigns with risk delta each, v
or more violations have a probability that the exact binomial distribution gives; a group is called broken if
that is below ERROR, divided by the number of groups (Bonferroni): then chance is no explanation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver.collect import COLLECTORS
from saver.engine import simulate
from saver.engine.runs import VIOLATED
from saver.experiments.audit.delayed import CORRELATED, MANNERS, delayed_campaign
from saver.experiments.audit.worlds import SHAPES, describe, hostile_worlds, random_world
from saver.experiments.folder import Row, number
from saver.experiments.steps import Step, Tick, named_seed
from saver.problem import Scenario
from saver.scenarios import SCENARIOS, find_scenario

ERROR = 1e-3
LEVEL = 0.95  # of the intervals
PROMISING = tuple(name for name, recipe in COLLECTORS.items() if recipe.promises)
COLUMNS = (
    "group", "world", "states", "law", "alpha", "delta", "episodes", "collector", "runs", "violations",
    "worst", "covered", "bounded", "bias", "bias_se", "baseline_share", "unused",
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How much is drawn: worlds of each shape, runs of each world, runs of scenarios and of delayed ones."""

    worlds: dict[str, int]
    runs: dict[str, int]
    heavy: dict[str, int]  # runs for collectors that plan by the exact design, where that is slow
    scenarios: dict[str, int]
    delayed: int


AUDITS = {
    "quick": Size(
        {"bandit": 12, "tree": 6, "graph": 6},
        {"bandit": 40, "tree": 20, "graph": 10},
        {"bandit": 40, "tree": 10, "graph": 2},
        {"bandit": 100, "movielens": 40, "tree": 40, "gridworld": 8, "intractable": 100},
        4,
    ),
    "full": Size(
        {"bandit": 120, "tree": 60, "graph": 60},
        {"bandit": 80, "tree": 80, "graph": 60},
        {"bandit": 80, "tree": 40, "graph": 6},
        {"bandit": 2000, "movielens": 1000, "tree": 1000, "gridworld": 100, "intractable": 2000},
        60,
    ),
}


def steps(level: str, seed: int, threads: int | None) -> list[Step]:
    """Every step of the audit."""
    size = AUDITS[level]
    made_of = [
        _step(find_scenario(name), "scenarios", size.scenarios[name], size.scenarios[name], seed, threads)
        for name in SCENARIOS
    ]
    for shape in SHAPES:
        for i in range(size.worlds[shape]):
            made = random_world(shape, i, seed)
            made_of.append(_step(made, f"random {shape}", size.runs[shape], size.heavy[shape], seed, threads))
    for name, made in hostile_worlds().items():
        few = size.scenarios["gridworld" if made.name == "gridworld" else "tree"]
        made_of.append(_step(made, f"hostile: {name}", few, few, seed, threads))
    return made_of + [_delayed(manner, size.delayed, seed) for manner in MANNERS]


def collectors_for(scenario: Scenario) -> tuple[str, ...]:
    """Those that promise safety and can run here."""
    bandit = scenario.problem.mdp.states == 1
    return tuple(name for name in PROMISING if bandit or COLLECTORS[name].design != "sepec")


def _step(scenario: Scenario, group: str, runs: int, heavy: int, seed: int, threads: int | None) -> Step:
    """All collectors in one world."""
    names = collectors_for(scenario)
    counts = {name: heavy if COLLECTORS[name].design == "exact" else runs for name in names}

    def rows(tick: Tick) -> Iterator[tuple[Any, ...]]:
        about = describe(scenario)
        for name, count in counts.items():
            found = simulate(
                scenario,
                name,
                runs=count,
                seed=named_seed(seed, "audit", group, scenario.name, name),
                checkpoints=[],
                threads=threads,
            )
            broken = int(np.sum(found.worst_budget < -VIOLATED * found.baseline_value))
            bounded = np.isfinite(found.stderr[:, -1])
            low, high = found.interval(LEVEL)
            inside = (low[:, -1] <= found.true_value) & (found.true_value <= high[:, -1]) & bounded
            error = found.estimates[bounded, -1] - found.true_value
            spread = error.std(ddof=1) / math.sqrt(len(error)) if len(error) > 1 else math.nan
            unused = found.ledger[:, -1].mean() / (scenario.episodes * scenario.problem.required or 1.0)
            yield (
                group, *about.values(), name, count, broken, float(found.worst_budget.min()),
                int(inside.sum()), int(bounded.sum()),
                float(error.mean()) if len(error) else math.nan, spread,
                float(found.baseline_share[:, -1].mean()), float(unused),
            )  # fmt: skip
            tick(1.0 / len(counts))

    weight = sum(counts.values()) * scenario.episodes * scenario.problem.mdp.horizon
    return Step(
        f"{group}.{scenario.name}".replace(" ", "-").replace(":", ""), "audit", COLUMNS, float(weight), rows
    )


def _delayed(manner: str, runs: int, seed: int) -> Step:
    """Thirty trials out at once."""
    episodes = 300

    def rows(tick: Tick) -> Iterator[tuple[Any, ...]]:
        group = f"thirty out: {manner}" if manner != CORRELATED else "rewards that follow constraints"
        for name in ("saver", "saver-opt"):
            made = hostile_worlds()["noise x 10"]
            about = {**describe(made), "episodes": episodes}
            found = [
                delayed_campaign(
                    made, name, episodes, manner, named_seed(seed, "delayed", manner, name, str(r))
                )
                for r in range(runs)
            ]
            worst, share = np.array(found).T
            broken = int(np.sum(worst < -VIOLATED * made.problem.baseline_value))
            yield (
                group, *about.values(), name, runs, broken, float(worst.min()), 0, 0,
                math.nan, math.nan, float(share.mean()), math.nan,
            )  # fmt: skip
            tick(0.5)

    return Step(f"delayed.{manner.replace(' ', '-')}", "audit", COLUMNS, runs * 1e6, rows)


@dataclass(frozen=True)
class Group:
    """Campaigns of one collector with one delta in one group of worlds."""

    group: str
    collector: str
    delta: float
    worlds: int
    runs: int
    violations: int
    upper: float  # one-sided 95 % bound on the frequency, Clopper and Pearson's
    chance: float  # of as many violations or more at risk delta
    broken: bool
    tellable: bool  # whether all campaigns broken would have been beyond chance
    bounded: int
    covered: float
    bias: float  # the root mean square of bias / its standard error over worlds; about 1 without bias
    baseline: float


def judged(rows: list[Row]) -> list[Group]:
    """The counts of each group, collector and delta, and whether chance explains them."""
    keys = list(dict.fromkeys((row["group"], row["collector"], row["delta"]) for row in rows))
    found = []
    for key in keys:
        chosen = [row for row in rows if (row["group"], row["collector"], row["delta"]) == key]
        runs, violations = (int(sum(number(r, c) for r in chosen)) for c in ("runs", "violations"))
        bounded, covered = (int(sum(number(r, c) for r in chosen)) for c in ("bounded", "covered"))
        chance = tail(runs, violations, float(key[2]))
        scores = [number(r, "bias") / number(r, "bias_se") for r in chosen if number(r, "bias_se") > 0]
        bias = math.sqrt(sum(s * s for s in scores) / len(scores)) if scores else math.nan
        share = sum(number(r, "baseline_share") * number(r, "runs") for r in chosen) / runs
        few = ERROR / len(keys)
        made = Group(
            key[0], key[1], float(key[2]), len(chosen), runs, violations, upper_bound(runs, violations),
            chance, chance < few, tail(runs, runs, float(key[2])) < few, bounded,
            covered / bounded if bounded else math.nan, bias,
            share,
        )  # fmt: skip
        found.append(made)
    return found


def tail(runs: int, violations: int, delta: float) -> float:
    """P(Binomial(runs, delta) >= violations)."""
    from scipy.special import betainc

    return 1.0 if violations == 0 else float(betainc(violations, runs - violations + 1, delta))


def upper_bound(runs: int, violations: int, level: float = 0.95) -> float:
    """The largest frequency that is compatible with the count at `level`."""
    from scipy.special import betaincinv

    return 1.0 if violations == runs else float(betaincinv(violations + 1, runs - violations, level))
