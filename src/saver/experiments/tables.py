"""Every kind of table: its file, its columns, and how a cell of each column is read.

A new kind is a new row of TABLES. Tables are CSV with one row for each observation; numbers are written in
full, so that reading and writing again gives the same bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saver.errors import InvalidData

Row = dict[str, Any]
Cells = Sequence[Any]  # one row of a table, in the order of its columns


def yes(cell: str) -> bool:
    """What is written as yes or no."""
    return {"yes": True, "no": False}[cell]


@dataclass(frozen=True)
class Table:
    """A file and its columns, each with what reads a cell."""

    file: str
    columns: dict[str, Callable[[str], Any]]

    def text(self, rows: Iterable[Cells]) -> str:
        """The file's content."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_cell(value) for value in row] for row in rows)
        return buffer.getvalue()

    def read(self, path: Path) -> list[Row]:
        """The rows of a file that holds `text`."""
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.reader(file))
        except (OSError, ValueError, csv.Error) as cause:
            raise InvalidData(f"{path} cannot be read: {cause}; remove it and run again") from None
        if rows[:1] != [list(self.columns)] or any(len(row) != len(self.columns) for row in rows):
            raise InvalidData(f"{path} is not a whole table; remove it and run again")
        return [self._row(row, path) for row in rows[1:]]

    def _row(self, cells: list[str], path: Path) -> Row:
        """One row, with numbers as numbers."""
        found = {}
        for (name, read), cell in zip(self.columns.items(), cells, strict=True):
            try:
                found[name] = read(cell)
            except (ValueError, KeyError):
                wanted = {int: "a whole number", float: "a number", yes: "yes or no"}[read]
                raise InvalidData(
                    f"{path} has {cell!r} for {name}, which must be {wanted}; run the experiment again"
                ) from None
        return found

    def named(self, cells: Cells) -> Row:
        """Computed cells with their names."""
        return dict(zip(self.columns, cells, strict=True))


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(float(value)) if isinstance(value, float) else str(value)


TABLES = {
    "campaigns": Table(
        "table.csv",
        {
            "experiment": str, "scenario": str, "collector": str, "episodes": int, "runs": int,
            "episode": int, "mse": float, "mse_se": float, "conditional_mse": float,
            "conditional_se": float, "violation": float, "violation_se": float, "believed": float,
            "baseline_share": float, "violation_rate": float, "allowance": float, "delta": float,
        },
    ),
    "guards": Table(
        "guardrails.csv",
        {
            "experiment": str, "collector": str, "runs": int, "guardrail": str, "cost": yes,
            "baseline_value": float, "required": float, "episode": int, "budget": float, "budget_se": float,
            "believed": float, "violation_rate": float,
        },
    ),
    "limits": Table(
        "limits.csv",
        {
            "scenario": str, "design": str, "limit": float, "constraint_value": float, "required": float,
            "safe": yes,
        },
    ),
    "designs": Table(
        "designs.csv", {"scenario": str, "design": str, "state": int, "action": int, "visits": float}
    ),
    "prices": Table("prices.csv", {"scenario": str, "alpha": float, "price": float, "paper": float}),
    "rates": Table(
        "rates.csv",
        {
            "scenario": str, "collector": str, "against": str, "runs": int, "episodes": int,
            "regret": float, "regret_se": float, "limit": float, "exponent": float, "low": float,
            "high": float, "misfit": float,
        },
    ),
    "audit": Table(
        "audit.csv",
        {
            "group": str, "world": str, "states": int, "law": str, "alpha": float, "delta": float,
            "episodes": int, "collector": str, "estimate": str, "runs": int, "violations": int,
            "worst": float, "covered": int, "bounded": int, "ever": int, "watched": int, "bias": float,
            "bias_se": float, "baseline_share": float, "unused": float,
        },
    ),
    "claims": Table(
        "claims.csv",
        {
            "who": str, "claim": str, "measured": str, "value": float, "error": float, "low": float,
            "high": float, "verdict": str,
        },
    ),
}  # fmt: skip
