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
def counting(text: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on standard error over a number of things."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(text, total=total)
        yield lambda name: bar.advance(task)
