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
import time
from pathlib import Path

from tables import Table

ABOUT = """
What the first call takes where nothing was compiled before, and what the same takes afterwards: seconds of
the processor in all threads, imports included, and by the clock in brackets. Every cell is a process of its
own; the shortest of {}. `python benchmarks/cold.py OLD NEW` measures two checkouts in one run. Before: the
commit before compiled code was found by its content. On two cores; elsewhere seconds differ, ratios hardly.
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


def seconds(folder: str, words: list[str], cache: str) -> tuple[float, float]:
    """Of the processor, and by the clock."""
    usual = os.environ | {"PYTHONPATH": str(Path(folder).resolve() / "src"), "NUMBA_CACHE_DIR": cache}
    before, began = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *words], env=usual, check=True, capture_output=True)
    took, after = time.perf_counter() - began, os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return used, took


def main() -> None:
    old, new, *more = sys.argv[1:]
    repeats, rows = int(more[0]) if more else 1, []
    for name, words in CELLS.items():
        found: dict[str, list[tuple[float, float]]] = {old: [], new: [], "again": []}
        for _ in range(repeats):
            for folder in (old, new):
                with tempfile.TemporaryDirectory() as cache:
                    found[folder].append(seconds(folder, words, cache))
                    if folder == new:
                        found["again"].append(seconds(folder, words, cache))
        (before, _), (now, _) = min(found[old]), min(found[new])
        shown = [f"{used:.1f} ({took:.1f})" for used, took in map(min, found.values())]
        rows.append([name, *shown[:2], f"{now / before:.2f}", shown[2]])
        print(*rows[-1], flush=True)
    print(f"written to {Table('cold', ABOUT.format(repeats), COLUMNS, rows).write()}")


if __name__ == "__main__":
    main()
