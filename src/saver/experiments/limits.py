"""The limit of each design on each scenario: K times the mean squared error after K episodes, as K grows.

Run as `python -m saver.experiments.limits --out DIR`: prints the table and writes DIR/limits.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from saver import design
from saver._files import replacing
from saver.problem import Scenario
from saver.problem.checks import Floats
from saver.scenarios import SCENARIOS

COLUMNS = ("scenario", "design", "limit", "constraint_value", "required", "safe")


def rows() -> Iterator[tuple[str, str, float, float, float, str]]:
    """One row for each scenario and design, in units of one episode."""
    for make in SCENARIOS.values():
        scenario = make()
        problem, variance = scenario.problem, scenario.world.reward.variance
        for name, policy in _designs(scenario).items():
            found = design.limit(problem.mdp, problem.target, variance, policy)
            earned = scenario.world.constraint_value(policy)
            safe = "yes" if earned >= problem.required * (1 - 1e-9) else "no"
            yield scenario.name, name, found, earned, problem.required, safe


def _designs(scenario: Scenario) -> dict[str, Floats]:
    mdp, target = scenario.problem.mdp, scenario.problem.target
    variance = scenario.world.reward.variance
    policies: dict[str, Floats] = {"on-policy": target}
    if design.is_tree(mdp):
        policies["tree"] = design.tree(mdp, target, variance).policy
    else:
        policies["dag"] = design.dag(mdp, target, variance).policy
        policies["dag, by step"] = design.dag(mdp, target, variance, time_indexed=True).policy
        policies["exact"] = design.exact(scenario.problem, variance).policy
    policies["exact, safe"] = design.exact(scenario.problem, variance, scenario.world.constraint.mean).policy
    return policies


def main() -> None:
    """Print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for limits.csv")
    path = parser.parse_args().out / "limits.csv"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        parser.error(f"cannot write to {path.parent}: {cause.strerror}; give another --out")
    table = list(rows())
    with replacing(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *table])
    print(f"{'scenario':<13}{'design':<15}{'K * MSE':>10}{'constraint':>12}{'required':>10}  safe")
    for name, policy, found, earned, required, safe in table:
        print(f"{name:<13}{policy:<15}{found:>10.4g}{earned:>12.4g}{required:>10.4g}  {safe}")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
