"""A folder of results: whole files, a manifest, and what was done stays done; and its tables, for reading.

`manifest.json` says what the folder is for, and holds a hash of every table. A step's rows are one file in
`parts/`: what is there and as it was written is not done again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from saver._files import PARTIAL, replacing
from saver._types import Floats
from saver.errors import InvalidData
from saver.experiments.tables import TABLES, Cells, Row

MANIFEST, PARTS, FIGURES, LOCK = "manifest.json", "parts", "figures", ".lock"
ROOM = 50_000_000  # bytes that results may need
PACKAGES = ("numpy", "scipy", "numba", "matplotlib")
MADE = (*(table.file for table in TABLES.values()), "audit.md", "report.md", "report.html", FIGURES)


class Folder:
    """Where one set of settings keeps its results; what it wrote is known by a hash in the manifest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @classmethod
    def begin(cls, path: Path, settings: dict[str, Any], *, force: bool = False) -> Folder:
        """The folder for these settings: a new one, or the same again to go on with.

        One that holds other results is refused, or with `force` emptied of what was written there before.
        """
        folder = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if (free := shutil.disk_usage(path).free) < ROOM:
                raise InvalidData(
                    f"only {free / 1e6:.0f} MB are free at {path}, and {ROOM / 1e6:.0f} MB are needed; make "
                    "room or give another --out"
                )
            folder._seize()
            folder._prepare(settings, force)
        except BaseException as cause:
            folder.release()
            if not isinstance(cause, OSError):
                raise
            raise InvalidData(
                f"cannot write to {path}: {cause.strerror or cause}; give another --out"
            ) from None
        return folder

    @classmethod
    def find(cls, path: Path) -> Folder:
        """A folder that was begun before."""
        folder = cls(path)
        folder.manifest()
        return folder

    def _prepare(self, settings: dict[str, Any], force: bool) -> None:
        if force:
            self._clear()
        else:
            self._check(settings)
        if force or not (self.path / MANIFEST).exists():  # first: without it nothing here is known as ours
            made = {name: importlib.metadata.version(name) for name in PACKAGES}
            made |= {"python": sys.version.split()[0], "platform": platform.platform()}
            self._note({"settings": settings, "made with": made, "started": _now(), "digests": {}})
        (self.path / PARTS).mkdir(exist_ok=True)
        for place in (".", PARTS, FIGURES):
            for left in (self.path / place).glob(f"*{PARTIAL}"):
                left.unlink()  # of a process that was killed

    def _check(self, settings: dict[str, Any]) -> None:
        """Refuse what is not ours, or is for other settings."""
        if (self.path / MANIFEST).exists():
            there = self.manifest()["settings"]
            for name in sorted(there.keys() | settings.keys()):
                if there.get(name) != json.loads(json.dumps(settings.get(name))):
                    raise InvalidData(
                        f"{self.path} holds results of other settings ({name} differs); give another --out, "
                        "or --force to replace them"
                    )
            return
        for name in (PARTS, *MADE):
            if (self.path / name).exists():
                raise InvalidData(
                    f"{self.path} has a {name} that is not ours: there is no {MANIFEST}; give another --out, "
                    "or --force to write over files of the same names"
                )

    def _clear(self) -> None:
        """Remove the tables that this folder wrote; figures and reports will be written over."""
        try:
            written = self.manifest()["digests"]
        except InvalidData:
            written = {}
        for name in written:
            if (self.path / name).resolve().is_relative_to(self.path.resolve()):
                (self.path / name).unlink(missing_ok=True)

    def _seize(self) -> None:
        """Keep other processes out until `release`, or this one ends, where the system has such locks."""
        try:
            import fcntl
        except ImportError:  # pragma: no cover  (not on this system)
            return
        self._lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._lock).st_ino != (self.path / LOCK).stat().st_ino:
                raise OSError("the lock was removed meanwhile")
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise InvalidData(
                f"another process is writing to {self.path}; wait for it, or give another --out"
            ) from None

    def release(self) -> None:
        """Let other processes write here."""
        if self._lock is not None:
            (self.path / LOCK).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def manifest(self) -> dict[str, Any]:
        """What the folder says about itself."""
        try:
            content: dict[str, Any] = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
            if not all(isinstance(content.get(name), dict) for name in ("settings", "digests")):
                raise ValueError("it is not one of ours")
        except FileNotFoundError:
            raise InvalidData(f"{self.path} holds no results: there is no {MANIFEST} in it") from None
        except (OSError, ValueError, AttributeError) as cause:
            raise InvalidData(
                f"{self.path / MANIFEST} cannot be read ({cause}); run the experiment again with --force"
            ) from None
        return content

    def _note(self, content: dict[str, Any]) -> None:
        self.write_text(MANIFEST, json.dumps(content, indent=2, sort_keys=True) + "\n")

    def finish(self) -> None:
        """Note when everything was there."""
        content = self.manifest()
        if "finished" not in content:
            self._note({**content, "finished": _now()})

    def holds(self, kind: str) -> bool:
        """Whether there is such a table."""
        return (self.path / _name(kind)).exists()

    def intact(self, kind: str, part: str = "") -> bool:
        """Whether a table, or the part of one step, is there as it was written."""
        known = self.manifest()["digests"].get(_name(kind, part))
        path = self.path / _name(kind, part)
        return known is not None and path.is_file() and _digest(path) == known

    def read(self, kind: str, part: str = "") -> list[Row]:
        """A table of this folder, or the part of one step, if it is as it was written."""
        path = self.path / _name(kind, part)
        if not path.exists():
            raise InvalidData(f"{path} is missing; run the experiment again to make it")
        if not self.intact(kind, part):
            raise InvalidData(f"{path} was changed or damaged since it was written; run the experiment again")
        return TABLES[kind].read(path)

    def write(self, kind: str, rows: Iterable[Cells], part: str = "") -> None:
        """Write a table, or the part of one step, whole or not at all, and remember its hash."""
        name = _name(kind, part)
        self.write_text(name, TABLES[kind].text(rows))
        content = self.manifest()
        content["digests"][name] = _digest(self.path / name)
        self._note(content)

    def write_text(self, name: str, text: str) -> None:
        """Write a text file, whole or not at all."""
        with replacing(self.path / name) as partial:
            partial.write_bytes(text.encode())


def _name(kind: str, part: str = "") -> str:
    return f"{PARTS}/{part}.csv" if part else TABLES[kind].file


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


# -- for reading ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """Rows that belong together, such as those of one collector in one experiment, [checkpoints]."""

    rows: list[Row]

    def column(self, name: str) -> Floats:
        """A column as numbers."""
        return np.array([float(row[name]) for row in self.rows])

    @cached_property
    def conditional(self) -> bool:
        """Whether the error given the visits, which has less noise, is known; it is not with weights."""
        return not np.isnan(self.column("conditional_mse")).any()

    @cached_property
    def mse(self) -> tuple[Floats, Floats]:
        """The mean squared error: given the visits where that is known, else plain."""
        names = ("conditional_mse", "conditional_se") if self.conditional else ("mse", "mse_se")
        return self.column(names[0]), self.column(names[1])

    def last(self) -> tuple[float, float]:
        """The error at the end, and its standard error."""
        return float(self.mse[0][-1]), float(self.mse[1][-1])

    def end(self, name: str) -> float:
        """A column's last entry."""
        return float(self.rows[-1][name])


def nested(rows: Iterable[Row], name: str, *names: str) -> dict[str, Any]:
    """A curve for each cell of a column, or for each of several columns a dict within the other."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return {cell: nested(own, *names) if names else Curve(own) for cell, own in found.items()}


class Results:
    """Everything that was computed into one folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.curves: dict[str, dict[str, Curve]]  # what each collector did, by experiment
        self.curves = nested(folder.read("campaigns"), "experiment", "collector")
        self._limits = folder.read("limits")
        self._guards: dict[str, dict[str, dict[str, Curve]]]
        self._guards = nested(self.rows("guards"), "experiment", "guardrail", "collector")

    def rows(self, kind: str) -> list[Row]:
        """A table, or nothing where it was not asked for."""
        return self.folder.read(kind) if self.folder.holds(kind) else []

    @property
    def experiments(self) -> list[str]:
        """In the order of the table."""
        return list(self.curves)

    def curve(self, experiment: str, collector: str) -> Curve:
        """What one collector did in one experiment."""
        if collector not in self.curves.get(experiment, ()):
            raise InvalidData(f"{self.folder.path} has no {collector} in {experiment}; run it again")
        return self.curves[experiment][collector]

    def guards(self, experiment: str) -> dict[str, dict[str, Curve]]:
        """Of several guardrails each: what each collector did with its budget; else nothing."""
        return self._guards.get(experiment, {})

    def scenario(self, experiment: str) -> str:
        """What it was run on."""
        return str(next(iter(self.curves[experiment].values())).rows[0]["scenario"])

    def limit(self, scenario: str, design: str = "exact safe") -> float:
        """The limit of a design."""
        for row in self._limits:
            if row["scenario"] == scenario and row["design"] == design:
                return float(row["limit"])
        raise InvalidData(f"{self.folder.path} has no limit of {design!r} for {scenario}; run it again")

    def ratio(self, experiment: str, one: str, other: str) -> tuple[float, float]:
        """The error of one collector over another's at the end, and its own; runs are independent."""
        (a, da), (b, db) = (self.curve(experiment, name).last() for name in (one, other))
        return a / b, a / b * math.hypot(da / a, db / b)
