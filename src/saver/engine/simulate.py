"""Many campaigns of one collector in one scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saver.collect import Collector
from saver.collect.collectors import find_collector
from saver.engine.reference import RECORDED, Truth, run_once
from saver.engine.runs import Runs
from saver.errors import InvalidProblem
from saver.problem import checks
from saver.problem.checks import Ints
from saver.problem.seeds import child_seed
from saver.problem.statement import Scenario

POINTS = 30  # checkpoints by default


def simulate(
    scenario: Scenario,
    collector: Collector | str,
    *,
    episodes: int | None = None,
    runs: int = 100,
    seed: int | np.random.SeedSequence = 0,
    checkpoints: ArrayLike | None = None,
    engine: str = "reference",
    threads: int | None = None,
    progress: bool = False,
) -> Runs:
    """Simulate `runs` campaigns; run r uses the child r of `seed`, so results do not depend on anything else.

    `checkpoints` are episode counts at which results are kept, the last episode always among them; by default
    30, evenly spaced in the logarithm. The reference engine uses one thread.
    """
    checks.kind("scenario", scenario, Scenario)
    chosen = find_collector(collector)
    if engine != "reference":
        raise InvalidProblem(f"engine is {engine!r}; it must be 'reference'")
    if threads is not None:
        checks.whole("threads", threads, 1)
    count = checks.whole("episodes", scenario.episodes if episodes is None else episodes, 1)
    runs = checks.whole("runs", runs, 1)
    points = _checkpoints(checkpoints, count)
    truth = Truth(scenario)
    kept: dict[str, list[Any]] = {name: [] for name in RECORDED}
    worst = []
    for r in _counted(runs, progress):
        record, lowest = run_once(scenario, chosen, count, points, child_seed(seed, r), truth)
        for name in RECORDED:
            kept[name].append(record[name])
        worst.append(lowest)
    return Runs(
        checkpoints=points,
        worst_budget=np.array(worst),
        true_value=truth.value,
        baseline_value=scenario.problem.baseline_value,
        **{name: np.array(rows) for name, rows in kept.items()},
    )


def _checkpoints(checkpoints: ArrayLike | None, episodes: int) -> Ints:
    if checkpoints is None:
        return np.unique(np.round(np.geomspace(1, episodes, POINTS)).astype(np.int64))
    raw = np.asarray(checkpoints)
    if raw.ndim != 1 or (raw.size and raw.dtype.kind not in "iu"):
        raise InvalidProblem(f"checkpoints is {checkpoints!r}; it must be a list of episode counts")
    bad = raw[(raw < 1) | (raw > episodes)]
    if len(bad):
        raise InvalidProblem(f"checkpoints holds {bad[0]}; it must be from 1 to {episodes}, the episodes")
    return np.unique(np.append(raw.astype(np.int64), episodes))


def _counted(runs: int, progress: bool) -> Any:
    if not progress:
        return range(runs)
    from rich.progress import track

    show: Callable[..., Any] = track
    return show(range(runs), description="campaigns")
