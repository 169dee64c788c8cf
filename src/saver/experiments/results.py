"""The tables of a folder, for reading."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.errors import InvalidData
from saver.experiments.folder import Folder
from saver.experiments.tables import Row


class Measured(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Curve:
    """One collector in one experiment: what its rows say, each [checkpoints]."""

    rows: tuple[Row, ...]

    def column(self, name: str) -> Floats:
        """A column as numbers."""
        return np.array([float(row[name]) for row in self.rows])

    @cached_property
    def episode(self) -> Floats:
        """The checkpoints."""
        return self.column("episode")

    @cached_property
    def mse(self) -> tuple[Floats, Floats]:
        """The mean squared error: given the visits, which has less noise, where that is known; else plain."""
        error, spread = self.column("conditional_mse"), self.column("conditional_se")
        if np.isnan(error).any():
            return self.column("mse"), self.column("mse_se")
        return error, spread

    @property
    def conditional(self) -> bool:
        """Whether `mse` is given the visits."""
        return not np.isnan(self.column("conditional_mse")).any()

    def last(self) -> Measured:
        """The error at the end."""
        return Measured(float(self.mse[0][-1]), float(self.mse[1][-1]))

    def end(self, name: str) -> float:
        """A column's last entry."""
        return float(self.rows[-1][name])


class Results:
    """Everything that was computed into one folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._curves: dict[tuple[str, str], list[Row]] = {}
        for row in folder.read("campaigns"):
            self._curves.setdefault((row["experiment"], row["collector"]), []).append(row)
        self._limits = folder.read("limits")
        self._guards = folder.read("guards") if folder.holds("guards") else []

    @property
    def experiments(self) -> list[str]:
        """In the order of the table."""
        return list(dict.fromkeys(experiment for experiment, _ in self._curves))

    def collectors(self, experiment: str) -> list[str]:
        """Those of one experiment."""
        return [collector for name, collector in self._curves if name == experiment]

    def scenario(self, experiment: str) -> str:
        """What it was run on."""
        return str(self.curve(experiment, self.collectors(experiment)[0]).rows[0]["scenario"])

    def curve(self, experiment: str, collector: str) -> Curve:
        """What one collector did in one experiment."""
        rows = self._curves.get((experiment, collector))
        if rows is None:
            raise InvalidData(f"{self.folder.path} has no {collector} in {experiment}; run it again")
        return Curve(tuple(rows))

    def guards(self, experiment: str) -> dict[str, dict[str, Curve]]:
        """Of several guardrails each: what each collector did with its budget; else nothing."""
        found: dict[str, dict[str, list[Row]]] = {}
        for row in self._guards:
            if row["experiment"] == experiment:
                found.setdefault(row["guardrail"], {}).setdefault(row["collector"], []).append(row)
        return {
            name: {collector: Curve(tuple(rows)) for collector, rows in by.items()}
            for name, by in found.items()
        }

    def limit(self, scenario: str, design: str = "exact safe") -> float:
        """The limit of a design."""
        for row in self._limits:
            if row["scenario"] == scenario and row["design"] == design:
                return float(row["limit"])
        raise InvalidData(f"{self.folder.path} has no limit of {design!r} for {scenario}; run it again")

    def ratio(self, experiment: str, one: str, other: str) -> Measured:
        """The error of one collector over another's at the end; runs are independent."""
        a, b = self.curve(experiment, one).last(), self.curve(experiment, other).last()
        value = a.value / b.value
        return Measured(value, value * math.hypot(a.error / a.value, b.error / b.value))


def measurements(rows: list[Row]) -> list[list[Row]]:
    """The rows of each measurement of a rate."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["scenario"], row["collector"], row["against"]), []).append(row)
    return list(groups.values())
