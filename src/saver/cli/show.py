"""What commands print."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saver.experiments.tables import Row
    from saver.experiments.work import Designs
    from saver.problem import Scenario

WIDE = 160  # columns where there is no terminal
GAP = 3  # between two columns
COLOURS = {"held": "green", "did not hold": "red", "cannot be told": "yellow", "yes": "green", "no": "red"}


def width() -> int:
    """The columns of the terminal, or WIDE where there is none."""
    return shutil.get_terminal_size((WIDE, 24)).columns if sys.stdout.isatty() else WIDE


def plain(data: Any) -> None:
    """JSON on standard output; null for numbers that it cannot say."""
    finite = json.loads(json.dumps(data), parse_constant=lambda _: None)
    print(json.dumps(finite, indent=2))


def result(for_programs: bool, data: Any, *lines: str, rows: Iterable[Sequence[str]] = ()) -> None:
    """What a command found: the data as JSON, or a table of rows, its head first, and lines of text."""
    if for_programs:
        plain(data)
        return
    if rows:
        table(rows)
    for line in lines:
        print(line)


def table(rows: Iterable[Sequence[str]], title: str = "") -> None:
    """A table, its head first; where its words do not fit side by side, rows of name and value."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    head, *listed = (tuple(row) for row in rows)
    console = Console(width=width(), highlight=False)
    if title:
        console.print(f"[italic]{title}[/]")
    widths = column_widths([head, *listed], console.width - GAP * (len(head) - 1))
    if widths is None:
        _records(console, head, listed)
        return
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, size in zip(head, widths, strict=True):
        made.add_column(name, width=size)
    for row in listed:
        made.add_row(*map(_coloured, row))
    console.print(made)
    console.print()


def column_widths(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Columns that no word is wider than, sharing `room`; None if that is too little."""
    columns = list(zip(*rows, strict=True))
    found = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    wanted = [max(map(len, column)) for column in columns]
    if sum(found) > room:
        return None
    while sum(found) < min(room, sum(wanted)):
        neediest = max(range(len(found)), key=lambda i: wanted[i] / max(found[i], 1))
        found[neediest] += 1
    return found


def _records(console: Any, head: Sequence[str], rows: list[tuple[str, ...]]) -> None:
    """Row after row, each cell behind its name."""
    side = max(map(len, head)) + 2
    for row in rows:
        for name, cell in zip(head, row, strict=True):
            room = max(console.width - side, 1)
            lines = textwrap.wrap(cell, room, break_long_words=False, break_on_hyphens=False) or [""]
            for i, line in enumerate(lines):
                shown = _coloured(line, len(lines) == 1)
                console.print(f"{'' if i else name:<{side}}{shown}", soft_wrap=True)
        console.print()


def _coloured(cell: str, whole: bool = True) -> str:
    """Text in which rich sees no markup, but for a colour where a whole cell has one."""
    from rich.markup import escape

    return f"[{COLOURS[cell]}]{cell}[/]" if whole and cell in COLOURS else escape(cell)


def working(text: str) -> AbstractContextManager[Any]:
    """A sign of life on standard error while something takes a while."""
    from rich.console import Console

    return Console(stderr=True).status(text)


@contextmanager
def progress() -> Iterator[Callable[[str, str, float], None]]:
    """A bar on standard error for each stage, with the time that is left; another while it compiles."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from saver._compiling import WATCH

    said, left = TextColumn("{task.description:<28}"), TimeRemainingColumn(elapsed_when_finished=True)
    bar = Progress(said, BarColumn(), TaskProgressColumn(), left, console=Console(stderr=True))
    tasks: dict[str, Any] = {}

    def tell(stage: str, what: str, share: float) -> None:
        bar.start()  # not before there is something to show
        if stage not in tasks:
            tasks[stage] = bar.add_task(stage, total=1.0)
        bar.update(tasks[stage], completed=share, description=what if share < 1.0 else stage)

    def compiling(text: str) -> None:
        if text:
            bar.start()
            if "" not in tasks:
                tasks[""] = bar.add_task(text, total=None)
            bar.update(tasks[""], description=text)
        elif "" in tasks:
            bar.remove_task(tasks.pop(""))

    WATCH.drawn = compiling
    try:
        yield tell
    finally:
        WATCH.drawn = None
        if bar.live.is_started:
            bar.stop()


def print_designs(made: Scenario, compared: Designs, limits: list[Row]) -> None:
    """What each design is worth, of each guardrail."""
    from saver.experiments.work import guard_rows

    rails, found = made.problem.rails, {name: guard_rows(made, policy) for name, policy in compared.items()}
    head = ["constraint value", "required"]
    if len(rails) > 1:
        head = [
            f"{one.name}, at {'most' if rail.sign < 0 else 'least'} {one.required:.4g}"
            for one, rail in zip(found["target"], rails, strict=True)
        ]
    shown = [("design", "K * MSE", *head, "safe")]
    for row in limits:
        numbers = [row["limit"], *(one.value for one in found[row["design"]])]
        if len(rails) == 1:
            numbers.append(row["required"])
        cells = (f"{number:.4g}" for number in numbers)
        shown.append((row["design"], *cells, "yes" if row["safe"] else "no"))
    table(shown, f"{made.name}: designs")
