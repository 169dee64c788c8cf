"""What commands print."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

COLOURS = {"held": "green", "did not hold": "red", "cannot be told": "yellow", "yes": "green", "no": "red"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """A table on standard output; in full where that is no terminal."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    made = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name in head:
        made.add_column(name, overflow="fold")
    for row in rows:
        made.add_row(*(f"[{COLOURS[c]}]{c}[/]" if c in COLOURS else escape(c) for c in row))
    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False).print(made)


def plain(data: Any) -> None:
    """JSON on standard output; null for numbers that it cannot say."""
    print(json.dumps(_finite(data), indent=2, allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


@contextmanager
def working(text: str) -> Iterator[None]:
    """A sign of life on standard error while something takes a while."""
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextmanager
def progress() -> Iterator[Callable[[str, str, float], None]]:
    """A bar on standard error for each stage, with the time that is left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    bar, tasks = Progress(*columns, console=Console(stderr=True)), dict[str, Any]()

    def tell(stage: str, what: str, share: float) -> None:
        bar.start()  # not before there is something to show
        if stage not in tasks:
            tasks[stage] = bar.add_task(stage, total=1.0)
        bar.update(tasks[stage], completed=share, description=what if share < 1.0 else stage)

    try:
        yield tell
    finally:
        if tasks:
            bar.stop()
