"""Every kind of table: its file, its columns, and how a cell of each column is read.

A new kind is a new row of FILES. Tables are CSV with one row for each observation; numbers are written in
full, so that reading and writing again gives the same bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saver.errors import InvalidData

Row = dict[str, Any]
Cells = Iterable[Any]  # one row of a table, in the order of its columns
Reader = tuple[Callable[[str], Any], str]  # reads a cell, which must be so
NUMBER: Reader = (float, "a number")
YES = {"yes": True, "no": False}


@dataclass(frozen=True)
class Table:
    """A file and its columns."""

    file: str
    columns: list[str]

    def text(self, rows: Iterable[Cells]) -> str:
        """The file's content."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_cell(value) for value in row] for row in rows)
        return buffer.getvalue()

    def read(self, path: Path) -> list[Row]:
        """The rows of a file that holds `text`, with numbers as numbers."""
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.reader(file))
        except (OSError, ValueError, csv.Error) as cause:
            raise InvalidData(f"{path} cannot be read: {cause}; remove it and run again") from None
        if rows[:1] != [self.columns] or any(len(row) != len(self.columns) for row in rows):
            raise InvalidData(f"{path} is not a whole table; remove it and run again")
        return [{name: _read(name, cell, path) for name, cell in self.named(row).items()} for row in rows[1:]]

    def named(self, cells: Cells) -> Row:
        """Computed cells with their names."""
        return dict(zip(self.columns, cells, strict=True))


def _read(name: str, cell: str, path: Path) -> Any:
    read, wanted = READERS.get(name, NUMBER)
    try:
        return read(cell)
    except (ValueError, KeyError):
        raise InvalidData(
            f"{path} has {cell!r} for {name}, which must be {wanted}; run the experiment again"
        ) from None


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(float(value)) if isinstance(value, float) else str(value)


WORDS = (
    "experiment scenario collector guardrail design against group world law estimate who claim measured "
    "verdict"
)
WHOLE = "episodes runs episode state action states violations covered bounded ever watched"
READERS: dict[str, Reader] = {  # of columns that hold no numbers, or whole ones, in any table
    **dict.fromkeys(WORDS.split(), (str, "words")),
    **dict.fromkeys(WHOLE.split(), (int, "a whole number")),
    **dict.fromkeys(("cost", "safe"), (YES.__getitem__, "yes or no")),
}
FILES = {
    "campaigns": (
        "table.csv",
        "experiment scenario collector episodes runs episode mse mse_se conditional_mse conditional_se "
        "violation violation_se believed baseline_share violation_rate allowance delta",
    ),
    "guards": (
        "guardrails.csv",
        "experiment collector runs guardrail cost baseline_value required episode budget budget_se believed "
        "violation_rate",
    ),
    "limits": ("limits.csv", "scenario design limit constraint_value required safe"),
    "designs": ("designs.csv", "scenario design state action visits"),
    "prices": ("prices.csv", "scenario alpha price paper"),
    "rates": (
        "rates.csv",
        "scenario collector against runs episodes regret regret_se limit exponent low high misfit",
    ),
    "audit": (
        "audit.csv",
        "group world states law alpha delta episodes collector estimate runs violations worst covered "
        "bounded ever watched bias bias_se baseline_share unused",
    ),
    "claims": ("claims.csv", "who claim measured value error low high verdict"),
}
TABLES = {kind: Table(file, names.split()) for kind, (file, names) in FILES.items()}
