"""Compile all that is not on disk yet: for containers, for CI, for whoever does not want to wait later.

What is compiled depends on the kinds of arguments alone, so a few episodes of each kind of problem do it.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from saver._codecache import folder
from saver._compiling import WATCH
from saver._jit import config, hurry
from saver.collect import COLLECTORS, Campaign
from saver.design import exact
from saver.engine.simulate import cores, simulate
from saver.errors import StoreFailed
from saver.experiments.work import Progress, silent
from saver.problem.world import Scenario
from saver.scenarios import SCENARIOS
from saver.simulator import Player
from saver.theory import diagnose

TICK, NEARLY = 0.2, 0.95  # seconds; the most that counts as done of what is not
EPISODES = 30  # of a campaign: three trials are out at once
Names = tuple[str, ...]


@dataclass(frozen=True)
class Warmed:
    """What was compiled: how many functions, in how many seconds, and the folder where they are."""

    functions: int
    seconds: float
    folder: Path


def _compile(played: dict[str, Names], asked: dict[str, Names]) -> None:
    """Collectors by scenario: simulated in both engines, and in campaigns."""
    for name, collectors in played.items():
        for collector in collectors:
            simulate(SCENARIOS[name](), collector, episodes=10, runs=2)
            simulate(SCENARIOS[name](), collector, episodes=4, runs=1, engine="reference")
    for name, collectors in asked.items():
        for collector in collectors:
            _ask(SCENARIOS[name](), collector)


def _ask(scenario: Scenario, collector: str) -> None:
    """A campaign, with trials that are out, cancelled and lost, and all that can be asked of it."""
    campaign = Campaign(scenario.problem, collector, EPISODES, seed=1)
    player = Player(scenario.world, seed=2)
    for i in range(0, EPISODES, 3):
        trials = [campaign.ask() for _ in range(3)]
        ran = [player.run(trial) for trial in trials]
        campaign.tell(trials[2], *ran[2])
        if i % 2:
            campaign.abandon(trials[0])
        else:
            campaign.tell(trials[0], *ran[0])
        campaign.cancel(trials[1])
        campaign.estimate(), campaign.budget
    Campaign.restore(scenario.problem, collector, campaign.state())


def _design() -> None:
    for name in ("bandit", "tree", "gridworld", "shop", "contexts"):
        diagnose(SCENARIOS[name]())
    problem = SCENARIOS["gridworld"]().problem
    exact(problem, np.ones((problem.mdp.states, problem.mdp.actions)))


OPT: Names = ("saver-opt",)
BOTH: Names = (*OPT, "safe-on-policy")
CELLS: dict[str, tuple[float, Callable[[], None]]] = {  # about how many seconds, the longest first
    "several guardrails": (90.0, partial(_compile, {"shop": (*BOTH, "saver")}, {"shop": OPT})),
    "unknown transitions": (
        70.0, partial(_compile, {"contexts": BOTH, "unknown-gridworld": OPT}, {"contexts": BOTH}),
    ),
    "paths": (
        60.0,
        partial(
            _compile, {"tree": (*OPT, "saver", "exact-oracle"), "gridworld": BOTH}, {"gridworld": BOTH}
        ),
    ),
    "one step": (45.0, partial(_compile, {"bandit": (*COLLECTORS,)}, {"bandit": (*OPT, "sepec")})),
    "designs": (30.0, _design),
}  # fmt: skip


def do(name: str) -> int:
    """Compile one cell in this process; how many functions there were."""
    hurry()
    WATCH.silent, before = True, WATCH.functions
    CELLS[name][1]()
    return WATCH.functions - before


def warm(*, jobs: int | None = None, progress: Progress = silent) -> Warmed:
    """Compile everything; what is on disk is not compiled again.

    `jobs` is the number of processes, by default one for each core. An interrupted run leaves what is done.
    """
    if config.DISABLE_JIT:
        raise StoreFailed("nothing can be compiled: NUMBA_DISABLE_JIT is set; unset it")
    place, began = folder(), time.monotonic()
    if place is None:
        raise StoreFailed(
            "compiled code cannot be kept: the folder for it cannot be written; set NUMBA_CACHE_DIR to one "
            "that can"
        )
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs or cores(), len(CELLS)), mp_context=spawned) as pool:
        futures = _submitted(pool)
        try:
            _watch(futures, progress)
            found = sum(future.result() for future in futures)
        except BrokenProcessPool as cause:
            raise StoreFailed(
                "a process that compiled was ended, perhaps for want of memory; what is done is kept: run it "
                "again, with one job at a time"
            ) from cause
        except BaseException:
            for child in multiprocessing.active_children():
                child.kill()  # entries are written whole or not at all
            raise
    return Warmed(found, time.monotonic() - began, place)


def _submitted(pool: ProcessPoolExecutor) -> dict[Future[int], str]:
    """All cells, for processes that leave Ctrl-C to this one, which ends them."""
    main = threading.current_thread() is threading.main_thread()
    usual: Any = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        return {pool.submit(do, name): name for name in CELLS}
    finally:
        if main:
            signal.signal(signal.SIGINT, usual)


def _watch(futures: dict[Future[int], str], progress: Progress) -> None:
    """Tell the share that is done, by the seconds that cells usually take, as this machine takes them."""
    total, done, spent, speed = sum(seconds for seconds, _ in CELLS.values()), 0.0, 0.0, 1.0
    begun: dict[Future[int], float] = {}
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, TICK)
        now = time.monotonic()
        begun |= {one: now for one in futures if one not in begun and (one.running() or one.done())}
        for future in finished:
            done, spent = done + CELLS[futures[future]][0], spent + now - begun[future]
            speed = done / max(spent, TICK)
        running = {futures[one]: speed * (now - begun[one]) for one in pending if one in begun}
        part = sum(min(NEARLY * CELLS[name][0], far) for name, far in running.items())
        with suppress(StopIteration):
            progress("compiling", f"compiling: {next(iter(running))}", (done + part) / total)
    progress("compiling", "compiling", 1.0)
