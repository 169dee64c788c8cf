"""What the benchmarks share: timing by medians, and tables as Markdown."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Table:
    name: str
    about: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    more: Sequence[Table] = ()  # below it, in the same file

    def markdown(self, mark: str = "#") -> str:
        lines = [f"{mark} {self.name}", "", self.about.strip(), ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("|" + "---|" * len(self.columns))
        lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in self.rows]
        return (
            "\n".join([*lines, *["\n" + other.markdown(mark + "#").rstrip() for other in self.more]]) + "\n"
        )

    def write(self) -> Path:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}.md"
        path.write_text(self.markdown(), encoding="utf-8")
        return path


def median_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """The median of `repeats` calls after one that is not counted."""
    call()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
