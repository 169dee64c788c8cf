"""Two checkouts side by side: what the first call takes where nothing was compiled before.

    python benchmarks/cold.py OLD NEW [repeats]        OLD and NEW are folders that hold src/saver

Every cell is a process of its own with an empty cache. Seconds are those of the processor, in all threads,
beginning and imports included; the clock's are in brackets. The figures are the shortest of the repeats.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
    repeats = int(more[0]) if more else 1
    wanted = more[1:] or list(CELLS)
    print(f"{'':30} {'old':>16} {'new':>16}   new / old   warm")
    for name in wanted:
        found: dict[str, list[tuple[float, float]]] = {old: [], new: []}
        warm = []
        for _ in range(repeats):
            for folder in (old, new):
                with tempfile.TemporaryDirectory() as cache:
                    found[folder].append(seconds(folder, CELLS[name], cache))
                    if folder == new:
                        warm.append(seconds(folder, CELLS[name], cache))
        (a, b), (c, d), (e, f) = min(found[old]), min(found[new]), min(warm)
        print(
            f"{name:30} {a:8.1f} ({b:5.1f}) {c:8.1f} ({d:5.1f}) {c / a:8.3f}   {e:8.2f} ({f:.2f})", flush=True
        )


if __name__ == "__main__":
    main()
