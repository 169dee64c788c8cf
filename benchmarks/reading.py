"""How much of the package a reader opens who follows one call: files, functions and lines, by tracing.

    python benchmarks/reading.py [--list WAY]

Every way runs in a process of its own, without the compiler, so that compiled functions are traced like
others. What is counted are files in which some function ran, not what happens while modules are imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tables import Table

ABOUT = """
Files of the package in which some function runs during a call, the functions that run, and the lines of
these files: what a reader opens who follows it. Traced without the compiler (`python benchmarks/reading.py`;
with `--list` and a word of a way it names the files). What was made before the call, the problem and in the
first row the campaign, is not counted.
"""
PACKAGE = Path(__file__).parents[1] / "src" / "saver"
MADE = """
campaign = saver.Campaign(problem, "saver-opt", 1000)
def call():
    trial = campaign.ask()
    campaign.tell(trial, [0], [trial.act(0, 0)], [0.4], [0.9])
    campaign.estimate()
"""
MAKING = """
def call():
    campaign = saver.Campaign(problem, "saver-opt", 1000)
    trial = campaign.ask()
    campaign.tell(trial, [0], [trial.act(0, 0)], [0.4], [0.9])
    campaign.estimate()
"""
SIMULATE = """
def call():
    saver.simulate(scenario, "saver-opt", episodes=30, runs=1)
"""
WAYS = {
    "ask, tell, estimate (bandit)": ("bandit", MADE),
    "the same, and the campaign made (bandit)": ("bandit", MAKING),
    **{f"simulate ({name})": (name, SIMULATE) for name in ("bandit", "gridworld", "shop", "contexts")},
}


def prepared(way: str) -> Any:
    """The call, with all that it needs made anew."""
    import saver

    name, text = WAYS[way]
    scenario = saver.SCENARIOS[name]()
    known: dict[str, Any] = {"saver": saver, "scenario": scenario, "problem": scenario.problem}
    exec(text, known)
    return known["call"]


def follow(way: str) -> dict[str, list[str]]:
    """The functions that ran, by file."""
    prepared(way)()  # rooms are loaded when they are used
    call = prepared(way)
    found: dict[str, set[str]] = {}

    def note(frame: Any, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(PACKAGE)) and frame.f_code.co_name != "<module>":
            found.setdefault(path, set()).add(frame.f_code.co_qualname)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {str(Path(path).relative_to(PACKAGE)): sorted(names) for path, names in sorted(found.items())}


def traced(way: str) -> dict[str, list[str]]:
    """`follow` in a process of its own."""
    usual = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, __file__, "--follow", way], env=usual, check=True, capture_output=True
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def row(way: str) -> tuple[str, int, int, int]:
    """One line of the table."""
    found = traced(way)
    lines = sum(len((PACKAGE / path).read_text(encoding="utf-8").splitlines()) for path in found)
    return way, len(found), sum(map(len, found.values())), lines


def table() -> Table:
    return Table("reading", ABOUT, ("way", "files", "functions", "lines"), [row(way) for way in WAYS])


def main() -> None:
    match sys.argv[1:]:
        case ["--follow", way]:
            print(json.dumps(follow(way)))
        case ["--list", word]:
            way = next(way for way in WAYS if word in way)
            for path, names in traced(way).items():
                print(f"{path}: {', '.join(names)}")
        case _:
            print(table().markdown())


if __name__ == "__main__":
    main()
