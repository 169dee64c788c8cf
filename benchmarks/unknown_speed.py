"""Campaigns whose transitions are unknown: seconds of one, compiled on one core, and in the reference.

Seconds of processor time, medians of three, one of each in turn; compiled is the mean over RUNS campaigns.
`planning` is the share of the compiled time that goes into plans. The answer is asked for at the end alone.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from tables import Table

from saver import Scenario, scenarios, simulate
from saver.engine.compiled import Worker

RUNS, REPEATS = 5, 3
SIZES = (2000, 20_000)


def seconds(scenario: Scenario, collector: str, episodes: int, engine: str, runs: int) -> float:
    """Of one campaign."""
    began = time.process_time()
    simulate(scenario, collector, episodes=episodes, runs=runs, engine=engine, threads=1, checkpoints=[])
    return (time.process_time() - began) / runs


class Clock:
    """Counts the time that goes into plans."""

    def __init__(self) -> None:
        self.spent, self._plan = 0.0, Worker._plan

    def __enter__(self) -> Clock:
        def timed(worker: Any) -> None:
            began = time.process_time()
            self._plan(worker)
            self.spent += time.process_time() - began

        Worker._plan = timed  # type: ignore[method-assign, assignment]
        return self

    def __exit__(self, *_: object) -> None:
        Worker._plan = self._plan  # type: ignore[method-assign]


def measured(scenario: Scenario, collector: str, episodes: int) -> list[Any]:
    seconds(scenario, collector, 50, "compiled", 1)
    rows = []
    for _ in range(REPEATS):
        with Clock() as clock:
            ours = seconds(scenario, collector, episodes, "compiled", RUNS)
        theirs = seconds(scenario, collector, episodes, "reference", 1)
        rows.append((1e3 * ours, 1e3 * theirs, theirs / ours, clock.spent / RUNS / ours))
    compiled, reference, ratio, plans = (statistics.median(column) for column in zip(*rows, strict=True))
    return [scenario.name, collector, f"{episodes:,}", compiled, reference, ratio, f"{plans:.0%}"]


def table() -> Table:
    rows = [
        measured(scenario, collector, episodes)
        for scenario in (scenarios.contexts(), scenarios.unknown_gridworld())
        for collector in ("saver-opt", "safe-on-policy")
        for episodes in SIZES
    ]
    columns = ("scenario", "collector", "episodes", "compiled, ms", "reference, ms", "x", "planning")
    return Table("unknown-speed", (__doc__ or "").replace("RUNS", str(RUNS)), columns, rows)


if __name__ == "__main__":
    found = table()
    print(found.markdown())
    found.write()
