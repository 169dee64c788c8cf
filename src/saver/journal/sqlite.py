"""Campaigns in one file.

SQLite's own waiting is unfair: of eight processes one gets nearly nothing. So everyone waits for locks on
files beside the database first, which the system gives in turn, and which a killed process cannot keep: one
to be the next, who takes over what others have written while another still writes, and one to write.

A commit is in the log file of SQLite (WAL), where every process sees it, and `flush` brings that to the disk
before anybody is answered: as `synchronous = FULL`, but without the lock, so that others decide and write
meanwhile. One flush does for all that was written before it, by whomever: what an answer rests on is durable.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from saver.errors import StoreFailed
from saver.journal.protocol import Journal, Waiting, held_by, migrations

MAGIC = b"SQLite format 3\0"
OPEN: Counter[tuple[int, int] | None] = Counter()  # files that this process has open: see `_is_database`
OPENING = threading.Lock()
OURS = 0x53615665  # application_id: "SaVe"
to_disk = getattr(os, "fdatasync", os.fsync)
REMOTE = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs"}
PATIENCE = 60.0  # seconds for which a reader waits
NOTHING = "{}; nothing was written"
REMEDIES = (
    ("full", f"{NOTHING}. Free some space and call again"),
    ("not a database", "it is no SQLite database; give another path"),
    ("malformed", "{}; it was damaged: restore a backup"),
    ("readonly", "{}; give a path that can be written"),
    ("unable to open", "{}; give a path that can be written"),
)


class Lite(Journal):
    """A database of SQLite's, wherever it is; `_begun` is a transaction for who is alone."""

    _base: Any
    path: Any  # what errors of SQLite's own call it

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows."""
        try:
            return self._base.execute(statement, values).fetchall()
        except sqlite3.Error as cause:
            raise self._failed(cause) from None

    def _failed(self, cause: sqlite3.Error) -> StoreFailed:
        said = next((remedy for part, remedy in REMEDIES if part in str(cause)), NOTHING)
        return StoreFailed(f"{self.path}: {said.format(cause)}")

    @contextmanager
    def _begun(self, campaign: int) -> Iterator[None]:
        self.run("begin immediate")
        self._campaign = campaign
        try:
            yield
            self.run("commit")
        except BaseException:
            if self._base.in_transaction:
                self._base.execute("rollback")
            raise

    def _migrate(self, steps: Sequence[str]) -> None:
        """Bring the schema up to date."""
        with self._begun(0):
            for statement in ";".join(steps).split(";"):
                self.run(statement)
            self.run(f"pragma application_id = {OURS}")
            self.run(f"pragma user_version = {len(migrations())}")

    def now(self) -> float:
        """The machine's clock, which is SQLite's too."""
        return time.time()


class SqliteJournal(Lite):
    """A database file, which is made if it is not there."""

    def __init__(self, path: Path, durability: str, *, make: bool = True) -> None:
        self.name = str(path)
        self.path = Path(os.path.realpath(path))  # locks are of the file, however it is called
        self._files: list[int] = []
        self._is: tuple[int, int] | None = None
        self._flushing, self._lost = threading.Lock(), ""
        self._ended, self._flushed = 0, 0  # transactions
        self._log = -1 if durability == "power" else None
        with OPENING:
            try:
                _check_place(path, make)
                self._line, self._gate = self._lock_file("line"), self._lock_file("lock")
                self._base = sqlite3.connect(
                    self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
                )
                self._prepare()
                self._is = identity(self.path)
                OPEN[self._is] += 1
            except BaseException as cause:
                self.close()
                if isinstance(cause, sqlite3.Error):
                    raise self._failed(cause) from None
                if isinstance(cause, OSError):
                    raise StoreFailed(
                        f"cannot open {path}: {cause.strerror} ({cause.filename}); give another path, in a "
                        "folder where files for locks can be made"
                    ) from None
                raise

    def _lock_file(self, name: str) -> int:
        """A file that is there to be locked; the system frees it when the process ends."""
        made = os.open(f"{self.path}-{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._files.append(made)
        return made

    def _prepare(self) -> None:
        """Check what is there before anything is changed; then bring the schema up to date."""
        with self._locked():
            ours, version = (int(self.run(f"pragma {n}")[0][0]) for n in ("application_id", "user_version"))
            if ours != OURS and (ours or self.run("select 1 from sqlite_master limit 1")):
                raise StoreFailed(f"{self.path} is a database of something else; give another path")
            steps = self.steps_from(version)
            self.run("pragma journal_mode = wal")
            self.run("pragma synchronous = normal")
            if steps:
                self._migrate(steps)

    @contextmanager
    def writing(self, campaign: int, meanwhile: Waiting = None) -> Iterator[Journal]:
        """All campaigns of a file wait for each other."""
        with self._locked(meanwhile):
            if self._lost:
                raise self._not_on_disk()
            if identity(self.path) != self._is:
                raise StoreFailed(
                    f"{self.name} was removed, or is another file now; nothing was written. Open the "
                    "campaign anew, from a backup if it is gone"
                )
            with self._begun(campaign):
                yield self
            self._ended += 1

    def flush(self) -> None:
        """By the log's own file; what failed once is not tried again: the system may forget the failure."""
        if self._log is None:
            return
        wanted = self._ended
        with self._flushing:
            if self._lost:
                raise self._not_on_disk()
            if self._flushed >= wanted:
                return
            now = self._ended
            try:
                if self._log < 0:
                    self._log = os.open(f"{self.path}-wal", os.O_RDWR | os.O_CLOEXEC)
                    self._files.append(self._log)
                to_disk(self._log)
            except OSError as cause:
                self._lost = cause.strerror or str(cause)
                raise self._not_on_disk() from None
            self._flushed = now

    def _not_on_disk(self) -> StoreFailed:
        return StoreFailed(
            f"{self.name}: what was written last may not be on the disk ({self._lost}); look after the disk, "
            "open the campaign anew, and say again what was not answered"
        )

    @contextmanager
    def _locked(self, meanwhile: Waiting = None) -> Iterator[None]:
        """The gate is this process's in this block."""
        fcntl.flock(self._line, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody writes
            if meanwhile is not None:
                meanwhile()
            fcntl.flock(self._gate, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._line, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def hold(self, campaign: int, *, alone: bool) -> None:
        """By a lock on a file that is named by the campaign."""
        place = self._lock_file(f"held-{campaign}")
        try:
            fcntl.flock(place, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError:
            self._files.remove(place)
            os.close(place)
            raise held_by("another process, or another open() in this one", alone) from None

    def close(self) -> None:
        """Let go."""
        if hasattr(self, "_base"):
            self._base.close()
            if self._is is not None:
                OPEN[self._is] -= 1
                self._is = None
        while self._files:
            os.close(self._files.pop())


def identity(path: Path) -> tuple[int, int] | None:
    """Which file a path means."""
    with suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def _check_place(path: Path, make: bool) -> None:
    if path.is_dir():
        raise StoreFailed(f"{path} is a folder; give the path of a file")
    if path.exists() and not path.is_file():
        raise StoreFailed(f"{path} is a device or the like; give the path of a file")
    if path.is_file() and not OPEN[identity(path)] and not _is_database(path):
        raise StoreFailed(f"{path} is no SQLite database; give another path")
    if not path.parent.is_dir():
        raise StoreFailed(f"the folder {path.parent} is not there; make it first")
    if not make and not path.exists():
        raise StoreFailed(f"{path} is not there; give the path of a database that saver.open made")
    kind = filesystem(path.parent.resolve(), _mounts())
    if kind in REMOTE:
        raise StoreFailed(
            f"{path} is on a network file system ({kind}), where SQLite loses data; give a local path, or "
            "use postgresql://"
        )


def _is_database(path: Path) -> bool:
    """Or empty, or not to be read, which others say: nothing is made beside what is not ours.

    Never of a file that this process has open: to close it would drop all locks that SQLite has on it (they
    are the process's, not the connection's), and another process would take the log for left over.
    """
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(MAGIC)) in (MAGIC, b"")
    return True


def _mounts() -> str:
    with suppress(OSError):
        return Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    return ""


def filesystem(folder: Path, mounts: str) -> str:
    """The kind of file system that a folder is on, by the system's list of mounts; empty: nobody knows."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        _, place, found, *_ = [*line.split(" "), "", ""]
        where = Path(place.replace("\\040", " "))
        if (folder == where or where in folder.parents) and len(where.parts) >= best:
            best, kind = len(where.parts), found
    return kind
