"""Many campaigns of one collector in one scenario."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saver._jit import plainly
from saver._types import Ints
from saver.collect import Collector
from saver.collect.collectors import find_collector
from saver.engine.compiled import Setting, run_compiled
from saver.engine.layout import only_reference
from saver.engine.reference import Job, run_reference
from saver.engine.runs import ANSWERS, COMMON, GUARDED, Runs
from saver.errors import InvalidProblem
from saver.estimate.asymptotic import start, stretched
from saver.estimate.interval import LEVEL
from saver.kernels.keeping import Out
from saver.problem import checks
from saver.problem.statement import Problem, is_small
from saver.problem.world import Scenario
from saver.safety import LOSSES, ORDERS
from saver.simulator import Feedback, Truth, scenario_of

ENGINES = ("compiled", "reference")
POINTS = 30  # checkpoints by default


def simulate(
    scenario: Scenario | Problem,
    collector: Collector | str,
    *,
    episodes: int | None = None,
    runs: int = 100,
    seed: int | np.random.SeedSequence = 0,
    checkpoints: ArrayLike | None = None,
    engine: str | None = None,
    threads: int | None = None,
    progress: bool | Callable[[int], None] = False,
    feedback: Feedback | None = None,
    losses: str = "hostile",
    order: str = "any",
    fair: bool = False,
    history: int = 0,
) -> Runs:
    """Simulate `runs` campaigns; run r uses the child r of `seed`, so results do not depend on anything else.

    `checkpoints` are episode counts at which results are kept, the last episode always among them; by default
    30, evenly spaced in the logarithm. `engine` is "compiled" or "reference": the same results in plain
    Python, in one thread. By default it is the first, and the second, which says so, where the first does not
    know a ledger, a law or an outcome of one's own, or feedback. `feedback` says how trials are lost and
    delayed, `losses` and `order` what the campaign is told of that. `threads` is the number of cores to use,
    by default all. `fair` asks for fair estimates too. `history` is how many logged baseline episodes each
    campaign is told before its first trial; the world of its run draws them. `progress` counts on standard
    error, or is a function that is told how many more runs are done.

    A problem with history (`Problem(history=...)`) can stand in the place of a scenario: it is asked in the
    world as its log shows it, and each campaign begins with that log.
    """
    if isinstance(scenario, Problem):
        scenario = scenario_of(scenario)
    checks.kind("scenario", scenario, Scenario)
    chosen = find_collector(collector)
    if engine is not None:
        checks.choice("engine", engine, ENGINES)
    at_once = _at_once(feedback, losses, order, engine)
    checks.flag("fair", fair)
    checks.whole("history", history, 0)
    if fair and (scenario.problem.reward is None or chosen.estimate != "certainty"):
        raise InvalidProblem(
            "fair is True, but fair estimates need a promise about rewards, Problem(reward=...), and a "
            "collector with estimate='certainty'"
        )
    if threads is not None:
        checks.whole("threads", threads, 1)
    count = checks.whole("episodes", scenario.episodes if episodes is None else episodes, 1)
    runs = checks.whole("runs", runs, 1)
    points = _checkpoints(checkpoints, count)
    check_memory(runs, len(points), count, len(scenario.problem.targets), len(scenario.problem.rails))
    small = is_small(scenario.problem)
    with plainly(small):
        truth = Truth(scenario)
    job = Job(scenario, chosen, count, truth, feedback, losses, order, fair, history)
    tick = counted(runs, progress)
    limits = False  # whether intervals at all times are still to be made
    if engine == "reference" or _outside(job, at_once):
        kept = run_reference(job, points, seed, runs, tick)
    else:
        with plainly(small):
            setting = Setting(job, seed)
        kept = run_compiled(setting, points, runs, threads or cores(), tick)
        limits = scenario.problem.reward is None and scenario.problem.mdp.known
    alone = np.ascontiguousarray
    shared: dict[str, Any] = {name: alone(kept.common[name]) for name in COMMON}
    shared |= _guarded(scenario, truth, kept)
    by_name = {}
    for i, (name, value) in enumerate(truth.values.items()):
        mine: dict[str, Any] = {column: alone(kept.answers[column][:, i]) for column in ANSWERS}
        one = Runs(checkpoints=points, true_value=value, **shared, **mine)
        by_name[name] = _in_the_limit(one, chosen, history) if limits else one
    return replace(next(iter(by_name.values())), by_name=by_name if len(by_name) > 1 else {})


def _guarded(scenario: Scenario, truth: Truth, kept: Out) -> dict[str, Any]:
    """What is known of each guardrail."""
    rails, worst = scenario.rails, kept.worst
    found: dict[str, Any] = {
        name: {rail.name: np.ascontiguousarray(kept.rails[name][:, i]) for i, rail in enumerate(rails)}
        for name in GUARDED
    }
    found["worst_budgets"] = {rail.name: np.ascontiguousarray(worst[:, i]) for i, rail in enumerate(rails)}
    found["units"] = {rail.name: rail.unit for rail in rails}
    near = worst[:, 0] if len(rails) == 1 else np.array([truth.nearest(list(row)) for row in worst])
    return found | {"worst_budget": near, "baseline_value": rails[0].sign * rails[0].value}


def _in_the_limit(found: Runs, collector: Collector, history: int) -> Runs:
    """With intervals at all times where nothing is promised: see `in_the_limit`, and `heavy`.

    In the place of their lower ends is the fewest samples of a pair; NaN for importance weights.
    """
    low, high = found.interval(LEVEL)
    counted = found.checkpoints * (1.0 - (not collector.learn_from_baseline) * found.baseline_share)
    counted = np.round(counted + history)
    factor = stretched(counted, int(found.checkpoints[-1]), LEVEL)
    needed = start(LEVEL)
    begun = (found.anytime_low >= needed) & (counted >= needed) & np.isfinite(found.stderr)
    with np.errstate(invalid="ignore"):
        ends = (found.estimates + factor * (end - found.estimates) for end in (low, high))
    below, above = (np.where(begun, end, far) for end, far in zip(ends, (-np.inf, np.inf), strict=True))
    return replace(found, anytime_low=below, anytime_high=above)


def _at_once(feedback: Feedback | None, losses: str, order: str, engine: str | None) -> bool:
    """Whether each trial is told before the next is asked, as campaigns believe; refuse what cannot be."""
    if feedback is not None:
        checks.kind("feedback", feedback, Feedback)
    checks.choice("losses", losses, LOSSES)
    checks.choice("order", order, ORDERS)
    at_once = (feedback, losses, order) == (None, "hostile", "any")
    if engine == "compiled" and not at_once:
        raise InvalidProblem(
            f"engine is 'compiled', feedback {feedback!r}, losses {losses!r} and order {order!r}; only the "
            "reference engine knows other feedback than all at once: leave engine out"
        )
    among = feedback is not None and (feedback.cancel or (feedback.out and feedback.veto))
    if among and order == "asked":
        raise InvalidProblem(
            f"order is 'asked' and {feedback!r} cancels among a batch what was asked before others that ran: "
            "give order='any'"
        )
    return at_once


def _outside(job: Job, at_once: bool) -> bool:
    """Whether only the reference can run this; then say so, once."""
    why = only_reference(job.scenario, job.collector)
    if why is None and not at_once:
        why = "feedback that is lost or late"
    if why is not None:
        _say(f"{why}: this runs in the reference engine, some hundred times slower than the compiled one")
    return why is not None


@cache
def _say(text: str) -> None:
    print(f"saver: {text}", file=sys.stderr, flush=True)


def _checkpoints(checkpoints: ArrayLike | None, episodes: int) -> Ints:
    if checkpoints is None:
        return np.unique(np.round(np.geomspace(1, episodes, POINTS)).astype(np.int64))
    try:
        raw = np.asarray(checkpoints)
    except ValueError:
        raw = np.empty((0, 0))
    if raw.ndim != 1 or (raw.size and raw.dtype.kind not in "iu"):
        raise InvalidProblem(f"checkpoints is {checkpoints!r}; it must be a list of episode counts")
    bad = raw[(raw < 1) | (raw > episodes)]
    if len(bad):
        raise InvalidProblem(f"checkpoints holds {bad[0]}; it must be from 1 to {episodes}, the episodes")
    return np.unique(np.append(raw.astype(np.int64), episodes))


def check_memory(runs: int, points: int, episodes: int, targets: int = 1, rails: int = 1) -> None:
    """Refuse what cannot be kept, before anything is run."""
    each = targets * len(ANSWERS) + len(COMMON) + rails * len(GUARDED)
    need = 8.0 * (runs * points * each + 2 * episodes)
    if hasattr(os, "sysconf") and need > 0.8 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise InvalidProblem(
            f"{runs} runs of {episodes} episodes at {points} checkpoints need {need / 1e9:,.0f} GB of "
            "memory; give fewer runs, episodes or checkpoints"
        )


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def counted(runs: int, progress: bool | Callable[[int], None]) -> Callable[[int], None]:
    """What is told how many more runs are done: a function of the user's, or a count on standard error."""
    if callable(progress):
        return progress
    if not progress:
        return lambda more: None
    done, said = 0, -1

    def count(more: int) -> None:
        nonlocal done, said
        done += more
        if (tenth := 10 * done // runs) > said:
            said = tenth
            print(f"campaigns: {done:,} of {runs:,}", file=sys.stderr, flush=True)

    count(0)
    return count
