"""What special cases save: the same campaigns through them and through the general code, in turn."""

from __future__ import annotations

import time
from typing import Any

from tables import Table

import saver
from saver.design import planner
from saver.engine import compiled
from saver.kernels.solve.columns import width

ABOUT = """
Processor seconds of the same simulation by the loop that it uses and by the general one (`play_alike`), or by
the solver's passes for one guardrail and by those for several (`kernels/solve/columns.py`), the shortest of
four in turn, in one process, compiled before. `python benchmarks/run.py loops`.
"""
CELLS = (
    ("play_one_step", "bandit", "saver", 5000, 400),
    ("play_one_step", "bandit", "saver-opt", 5000, 200),
    ("play_one_way", "tree", "saver", 5000, 60),
    ("play_one_way", "tree", "saver-opt", 2000, 60),
    ("passes for one rail", "gridworld", "saver-opt", 5000, 8),
)
TURNS = 4
engine: Any = compiled  # its choice of a loop is overruled, and the solver's of its passes
solver: Any = planner
chosen, begun = engine.quick_loops, solver.begin_search


def seconds(general: bool, scenario: saver.Scenario, collector: str, episodes: int, runs: int) -> float:
    """Of one simulation."""
    engine.quick_loops = (lambda *_: (False, False)) if general else chosen
    solver.begin_search = (lambda *given: begun(*given[:3], width(1))) if general else begun
    began = time.process_time()
    saver.simulate(scenario, collector, episodes=episodes, runs=runs, checkpoints=[], threads=1)
    return time.process_time() - began


def row(loop: str, name: str, collector: str, episodes: int, runs: int) -> tuple[object, ...]:
    """One line of the table."""
    scenario = saver.SCENARIOS[name]()
    found: dict[bool, float] = {}
    for general in (False, True):
        seconds(general, scenario, collector, episodes, 1)  # compiles
    for turn in range(TURNS):
        for general in (turn % 2 == 0, turn % 2 == 1):
            took = seconds(general, scenario, collector, episodes, runs)
            found[general] = min(found.get(general, took), took)
    engine.quick_loops, solver.begin_search = chosen, begun
    return (
        loop,
        name,
        collector,
        f"{found[False]:.3f}",
        f"{found[True]:.3f}",
        f"{found[False] / found[True]:.2f}",
    )


def table() -> Table:
    return Table(
        "loops",
        ABOUT,
        ("loop", "scenario", "collector", "seconds", "general", "share"),
        [row(*cell) for cell in CELLS],
    )
