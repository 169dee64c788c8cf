"""Rounds (bandit) or steps (tree, gridworld) per second, K = 5000 unless said, all in one interleaved run.

Every row was measured five times, in turn with all others; figures are medians. `x` is how many times slower
a row is than the compiled engine on one core in the same scenario, the median of the five ratios. The draws
are those that one round needs: two normal numbers from `Generator(PCG64)` in compiled code. Peers play
another algorithm (UCB, no constraint) on a bandit of the same size; FrozenLake is a slippery 4x4 grid as ours
is. OBP 0.5.7 does not build here and SMPyBandits 0.9.7 needs an older SciPy: both are left out.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from peers import installed, plain_bandit
from tables import Table

from saver import SCENARIOS, Scenario, simulate

EPISODES, REPEATS = 5000, 5


@dataclass(frozen=True)
class Row:
    group: str
    name: str
    call: Callable[[], int]


@numba.njit(nogil=True)
def normals(rng: Any, rounds: int) -> float:
    total = 0.0
    for _ in range(rounds):
        total += rng.standard_normal()
        total += rng.standard_normal()
    return total


def draws() -> int:
    normals(np.random.default_rng(0), 1_000_000)
    return 1_000_000


def ours(scenario: Scenario, runs: int, engine: str, threads: int = 1, episodes: int = EPISODES) -> int:
    simulate(scenario, "saver", episodes=episodes, runs=runs, checkpoints=[], engine=engine, threads=threads)
    return episodes * runs * scenario.world.mdp.horizon


def steps_of_grid(scenario: Scenario) -> float:
    """The mean length of an episode over the horizon: gridworld's may end before."""
    from saver import Campaign, Player

    campaign, player = Campaign(scenario.problem, "saver", 300), Player(scenario.world, 1)
    taken = 0
    for _ in range(300):
        trial = campaign.ask()
        told = player.run(trial)
        campaign.tell(trial, *told)
        taken += len(told)
    return taken / 300 / scenario.world.mdp.horizon


def rows() -> list[Row]:
    bandit, tree, grid = SCENARIOS["bandit"](), SCENARIOS["tree"](), SCENARIOS["gridworld"]()
    deep, cores, share = SCENARIOS["tree"](depth=14), os.cpu_count() or 1, steps_of_grid(grid)
    million = 1_000_000
    found = [
        Row("bandit", "compiled", lambda: ours(bandit, 1000, "compiled")),
        Row("bandit", f"compiled, {cores} cores", lambda: ours(bandit, 2000, "compiled", cores)),
        Row("bandit", "compiled, K = 500,000", lambda: ours(bandit, 4, "compiled", 1, 500_000)),
        Row("bandit", "two normal draws", draws),
        Row("bandit", "plain NumPy, the same algorithm", lambda: plain_bandit(bandit, EPISODES)),
        Row("bandit", "reference", lambda: ours(bandit, 1, "reference")),
        Row("tree", "compiled", lambda: ours(tree, 100, "compiled")),
        Row("tree", f"compiled, {cores} cores", lambda: ours(tree, 200, "compiled", cores)),
        Row("tree", "reference", lambda: ours(tree, 1, "reference")),
        Row("tree", "compiled, a million steps", lambda: ours(tree, 1, "compiled", 1, million // 4)),
        Row("tree", "compiled, depth 14, a million", lambda: ours(deep, 1, "compiled", 1, million // 14)),
        Row("gridworld", "compiled", lambda: round(share * ours(grid, 40, "compiled"))),
        Row(
            "gridworld", f"compiled, {cores} cores", lambda: round(share * ours(grid, 80, "compiled", cores))
        ),
        Row("gridworld", "reference", lambda: round(share * ours(grid, 1, "reference"))),
    ]
    for name, call in installed(bandit).items():
        found.append(Row("gridworld" if "Gym" in name else "bandit", name, call))
    return sorted(found, key=lambda row: ("bandit", "tree", "gridworld").index(row.group))


def import_seconds(used: str) -> float:
    """Of processor time, until these names are there."""
    code = f"import time; t = time.process_time(); import saver; {used}; print(time.process_time() - t)"
    command = [sys.executable, "-c", code]
    told = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(REPEATS)]
    return statistics.median(float(done.stdout) for done in told)


def table() -> Table:
    measured = rows()
    rates: list[list[float]] = [[] for _ in measured]
    for row in measured:
        row.call()
    for _ in range(REPEATS):
        for row, rate in zip(measured, rates, strict=True):
            began = time.perf_counter()
            done = row.call()
            rate.append(done / (time.perf_counter() - began))
    first = {row.group: rates[i] for i, row in reversed(list(enumerate(measured))) if row.name == "compiled"}
    body: list[list[Any]] = []
    for row, rate in zip(measured, rates, strict=True):
        ratio = statistics.median(ours / this for ours, this in zip(first[row.group], rate, strict=True))
        body.append([row.group, row.name, f"{statistics.median(rate):,.0f}", float(ratio)])
    bare, engine = import_seconds("saver"), import_seconds("saver.Campaign, saver.simulate")
    told = (
        f"`import saver`: {bare:.3f} s, and {engine:.2f} s with the engine (medians of five, processor time)."
    )
    about = f"{(__doc__ or '').strip()}\n\n{told}"
    return Table("engine", about, ("scenario", "what", "per second", "x"), body)
