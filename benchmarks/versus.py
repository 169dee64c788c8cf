"""Two checkouts side by side: how fast each simulates, in turn, in one run.

    python benchmarks/versus.py OLD NEW [repeats]      OLD and NEW are folders that hold src/saver

Each repeat runs every cell once in each checkout, in processes of their own that were warmed up first.
Seconds are those of the processor, which other work on the machine disturbs less than the clock. The figures
are the median over repeats of seconds in NEW over seconds in OLD, and the ratio of the two shortest.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

CELLS = {
    "bandit saver": ("bandit", "saver", 5000, 1000),
    "tree saver": ("tree", "saver", 5000, 100),
    "gridworld saver": ("gridworld", "saver", 5000, 20),
    "bandit saver-opt": ("bandit", "saver-opt", 5000, 300),
    "gridworld safe-on-policy": ("gridworld", "safe-on-policy", 2000, 10),
}
WORKER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import saver
for line in sys.stdin:
    scenario, collector, episodes, runs = line.split()
    asked = saver.SCENARIOS[scenario]()
    began = time.process_time()
    saver.simulate(asked, collector, episodes=int(episodes), runs=int(runs), checkpoints=[], threads=1)
    print(time.process_time() - began, flush=True)
"""


class Checkout:
    """A process that measures one checkout."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", WORKER, str(folder / "src")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, cell: tuple[str, str, int, int]) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(map(str, cell)) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main() -> None:
    old, new = Checkout(Path(sys.argv[1])), Checkout(Path(sys.argv[2]))
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    for name, cell in CELLS.items():
        for one in (old, new):
            one.seconds((*cell[:3], 1))
        ratios: list[float] = []
        shortest = {old: float("inf"), new: float("inf")}
        for r in range(repeats):
            pair = [old, new] if r % 2 else [new, old]
            took = {one: one.seconds(cell) for one in pair}
            ratios.append(took[new] / took[old])
            shortest = {one: min(shortest[one], took[one]) for one in pair}
        least = shortest[new] / shortest[old]
        print(f"{name:26} new / old {statistics.median(ratios):.3f}, of the shortest {least:.3f}", flush=True)


if __name__ == "__main__":
    main()
