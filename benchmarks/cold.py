"""Two checkouts side by side: what the first call takes where nothing was compiled before.

    python benchmarks/cold.py OLD NEW [repeats]        OLD and NEW are folders that hold src/saver

Every cell is a process of its own with an empty cache. The table goes to benchmarks/results/cold.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tables import Table

ABOUT = """
What the first call takes where nothing was compiled before, and what the same takes afterwards: seconds of
the processor in all threads, imports included. Every cell is a process of its own; the shortest where there
are repeats ({}). `python benchmarks/cold.py OLD NEW` measures two checkouts in one run. Before: f6f5fb3, the
last commit with an engine of its own for each kind of guardrail. On two cores, beside other work; by the
clock as long as that where a core is free.
"""
COLUMNS = ("first call", "before", "now", "now / before", "afterwards")
README = re.findall(r"```python\n(.*?)```", Path("README.md").read_text(encoding="utf-8"), re.S)[0]
SIMULATE = """
import saver
saver.simulate(saver.SCENARIOS["{}"](), "{}", episodes=1000, runs=4)
"""
ASK = """
import saver
print(saver.Campaign(saver.SCENARIOS["bandit"]().problem, "saver-opt", 1000).ask().kind)
"""
CELLS = {
    "README's example": ["-c", README],
    "first ask, bandit": ["-c", ASK],
    "saver diagnose bandit": ["-m", "saver", "diagnose", "bandit"],
    "simulate bandit saver-opt": ["-c", SIMULATE.format("bandit", "saver-opt")],
    "simulate bandit saver": ["-c", SIMULATE.format("bandit", "saver")],
    "simulate tree saver": ["-c", SIMULATE.format("tree", "saver")],
    "simulate gridworld saver-opt": ["-c", SIMULATE.format("gridworld", "saver-opt")],
    "simulate shop saver-opt": ["-c", SIMULATE.format("shop", "saver-opt")],
    "simulate contexts saver-opt": ["-c", SIMULATE.format("contexts", "saver-opt")],
}


def seconds(folder: str, words: list[str], cache: str) -> float:
    """Of the processor."""
    usual = os.environ | {"PYTHONPATH": str(Path(folder).resolve() / "src"), "NUMBA_CACHE_DIR": cache}
    before = os.times()
    subprocess.run([sys.executable, *words], env=usual, check=True, capture_output=True)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def main() -> None:
    old, new, *more = sys.argv[1:]
    repeats, rows = int(more[0]) if more else 1, []
    for name, words in CELLS.items():
        found: dict[str, list[float]] = {old: [], new: [], "again": []}
        for _ in range(repeats):
            for folder in (old, new):
                with tempfile.TemporaryDirectory() as cache:
                    found[folder].append(seconds(folder, words, cache))
                    if folder == new:
                        found["again"].append(seconds(folder, words, cache))
        before, now, again = map(min, found.values())
        rows.append([name, f"{before:.1f}", f"{now:.1f}", f"{now / before:.2f}", f"{again:.1f}"])
        print(*rows[-1], flush=True)
    print(f"written to {Table('cold', ABOUT.format(repeats), COLUMNS, rows).write()}")


if __name__ == "__main__":
    main()
