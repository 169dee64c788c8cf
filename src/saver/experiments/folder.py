"""A folder of results: whole files, a manifest, and what was done stays done.

`manifest.json` says what the folder is for, and holds a hash of every table. A step's rows are one file in
`parts/`: what is there and as it was written is not done again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from saver._files import PARTIAL, replacing
from saver.errors import InvalidData
from saver.experiments.tables import TABLES, Cells, Row

MANIFEST, PARTS, LOCK = "manifest.json", "parts", ".lock"
ROOM = 50_000_000  # bytes that results may need
PACKAGES = ("numpy", "scipy", "numba", "matplotlib")
MADE = (*(table.file for table in TABLES.values()), "audit.md", "report.md", "report.html", "figures")


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

    def _prepare(self, settings: dict[str, Any], force: bool) -> None:
        if force:
            self._clear()
        else:
            self._check(settings)
        if force or not (self.path / MANIFEST).exists():  # first: without it nothing here is known as ours
            self._write_manifest(
                {"settings": settings, "made with": _versions(), "started": _now(), "digests": {}}
            )
        parts = self.path / PARTS
        parts.mkdir(exist_ok=True)
        for place in (self.path, parts, self.path / "figures"):
            for left in place.glob(f"*{PARTIAL}"):
                left.unlink()  # of a process that was killed

    @classmethod
    def find(cls, path: Path) -> Folder:
        """A folder that was begun before."""
        folder = cls(path)
        folder.manifest()
        return folder

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

    def finish(self) -> None:
        """Note when everything was there."""
        content = self.manifest()
        if "finished" not in content:
            self._write_manifest({**content, "finished": _now()})

    def has(self, part: str) -> bool:
        """Whether a step is done and its rows are as they were written."""
        return self._intact(f"{PARTS}/{part}.csv")

    def keep(self, part: str, kind: str, rows: Iterable[Cells]) -> None:
        """Write the rows of a step that belong to the table of this kind."""
        self._write(f"{PARTS}/{part}.csv", kind, rows)

    def part(self, part: str, kind: str) -> list[Row]:
        """The rows of a step."""
        return self._read(f"{PARTS}/{part}.csv", kind)

    def read(self, kind: str) -> list[Row]:
        """A table of this folder, if it is as it was written."""
        return self._read(TABLES[kind].file, kind)

    def write(self, kind: str, rows: Iterable[Cells]) -> None:
        """Write a table, whole or not at all, and remember its hash."""
        self._write(TABLES[kind].file, kind, rows)

    def holds(self, kind: str) -> bool:
        """Whether there is such a table."""
        return (self.path / TABLES[kind].file).exists()

    def _read(self, name: str, kind: str) -> list[Row]:
        path = self.path / name
        if not path.exists():
            raise InvalidData(f"{path} is missing; run the experiment again to make it")
        if not self._intact(name):
            raise InvalidData(f"{path} was changed or damaged since it was written; run the experiment again")
        return TABLES[kind].read(path)

    def _write(self, name: str, kind: str, rows: Iterable[Cells]) -> None:
        self.write_text(name, TABLES[kind].text(rows))
        content = self.manifest()
        content["digests"][name] = _digest(self.path / name)
        self._write_manifest(content)

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file, whole or not at all."""
        path = self.path / name
        with replacing(path) as partial:
            partial.write_bytes(text.encode())
        return path

    def _intact(self, name: str) -> bool:
        known = self.manifest()["digests"].get(name)
        return known is not None and (self.path / name).is_file() and _digest(self.path / name) == known

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

    def _write_manifest(self, content: dict[str, Any]) -> None:
        self.write_text(MANIFEST, json.dumps(content, indent=2, sort_keys=True) + "\n")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {**found, "python": sys.version.split()[0], "platform": platform.platform()}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
