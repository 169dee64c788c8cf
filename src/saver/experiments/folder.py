"""A folder of results: whole files, a manifest, and what was done stays done.

`manifest.json` says what the folder is for. A step's rows are one file in `parts/`, there or not there: what
is there is not done again. Tables are CSV with one row for each observation; numbers are written in full.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.metadata
import json
import platform
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import saver
from saver._files import replacing
from saver.errors import InvalidData

Row = dict[str, str]
MANIFEST, PARTS = "manifest.json", "parts"
PACKAGES = ("numpy", "scipy", "numba", "matplotlib")
TABLES = {
    "campaigns": "table.csv",
    "limits": "limits.csv",
    "designs": "designs.csv",
    "prices": "prices.csv",
    "rates": "rates.csv",
    "audit": "audit.csv",
}  # kind of step -> where its parts are gathered
MADE = (
    *TABLES.values(),
    "claims.csv",
    "audit.md",
    "report.md",
    "report.html",
    "figures",
)  # beside manifest and parts


class Folder:
    """Where one set of settings keeps its results."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def begin(cls, path: Path, settings: dict[str, Any], *, force: bool = False) -> Folder:
        """The folder for these settings: a new one, or the same again to go on with.

        One that holds something else is refused, or emptied of it with `force`.
        """
        folder = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if force:
                folder._clear()
            folder._check(settings)
            (path / PARTS).mkdir(exist_ok=True)
            if not (path / MANIFEST).exists():
                folder._write_manifest({"settings": settings, "made with": _versions(), "started": _now()})
        except OSError as cause:
            raise InvalidData(f"cannot write to {path}: {cause.strerror}; give another folder") from None
        return folder

    @classmethod
    def find(cls, path: Path) -> Folder:
        """A folder that was begun before."""
        folder = cls(path)
        folder.manifest()
        return folder

    def manifest(self) -> dict[str, Any]:
        """What the folder says about itself."""
        try:
            content = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
            if not isinstance(content, dict) or not isinstance(content.get("settings"), dict):
                raise ValueError("no settings")
        except FileNotFoundError:
            raise InvalidData(f"{self.path} holds no results: there is no {MANIFEST} in it") from None
        except (OSError, ValueError) as cause:
            raise InvalidData(
                f"{self.path / MANIFEST} cannot be read ({cause}); give another folder or --force"
            ) from None
        return content

    def finish(self) -> None:
        """Note when everything was there."""
        content = self.manifest()
        if "finished" not in content:
            self._write_manifest({**content, "finished": _now()})

    def has(self, part: str) -> bool:
        """Whether a step is done."""
        return self._part(part).exists()

    def keep(self, part: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write the rows of a step."""
        self.write(f"{PARTS}/{part}.csv", columns, rows)

    def part(self, part: str) -> list[Row]:
        """The rows of a step."""
        return read_table(self._part(part))

    def write(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a table, whole or not at all."""
        with replacing(self.path / name) as partial, partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([_cell(value) for value in row] for row in rows)

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file, whole or not at all."""
        path = self.path / name
        with replacing(path) as partial:
            partial.write_text(text, encoding="utf-8")
        return path

    def _part(self, part: str) -> Path:
        return self.path / PARTS / f"{part}.csv"

    def _check(self, settings: dict[str, Any]) -> None:
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
                    "or --force to replace it"
                )

    def _clear(self) -> None:
        """Remove what we would write, and nothing else."""
        for name in (MANIFEST, PARTS, *MADE):
            path = self.path / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _write_manifest(self, content: dict[str, Any]) -> None:
        self.write_text(MANIFEST, json.dumps(content, indent=2, sort_keys=True) + "\n")


def read_table(path: Path) -> list[Row]:
    """A table that `Folder.write` wrote."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        raise InvalidData(f"{path} is missing; run the experiment again to make it") from None
    except (OSError, UnicodeDecodeError, csv.Error) as cause:
        raise InvalidData(f"{path} cannot be read: {cause}; remove it and run again") from None
    if not rows or any(None in row or None in row.values() for row in rows):
        raise InvalidData(f"{path} is not a whole table; remove it and run again")
    return rows


def number(row: Row, column: str) -> float:
    """A number of a table."""
    try:
        return float(row[column])
    except (KeyError, ValueError):
        raise InvalidData(
            f"a table has {row.get(column)!r} for {column}, which must be a number; run the experiment again"
        ) from None


def _cell(value: Any) -> str:
    return repr(float(value)) if isinstance(value, float) else str(value)


def sources() -> str:
    """A hash of the package, so that results of another version are not taken for this one's."""
    package, digest = Path(saver.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {**found, "python": sys.version.split()[0], "platform": platform.platform()}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
