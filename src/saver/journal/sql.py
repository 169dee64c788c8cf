"""What SQLite and PostgreSQL have in common: the statements, and migrations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import resources
from typing import Any

from saver.errors import StoreFailed
from saver.journal.protocol import Waiting
from saver.journal.records import Header, Record

TOGETHER = 32  # records that one statement inserts
COLUMNS = "seq, kind, trial, key, body, chain, at, actor"


@cache
def migrations() -> tuple[str, ...]:
    """The steps from an empty database to this version's schema, in order."""
    files = resources.files("saver.journal").joinpath("schema").iterdir()
    return tuple(file.read_text() for file in sorted(files, key=lambda file: file.name))


class SqlJournal(ABC):
    """Campaigns in a database; a subclass connects, locks and tells the time."""

    name: str
    mark: str  # what stands for a value in a statement
    _campaign = 0  # of the transaction

    @abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement finds."""

    @abstractmethod
    def writing(self, campaign: int, meanwhile: Waiting = None) -> AbstractContextManager[SqlJournal]:
        """One transaction, alone among all that write to a campaign; 0: among all that make campaigns.

        It puts the campaign's number where `append` and `keep` find it.
        """

    def flush(self) -> None:
        """Where a commit is durable there is nothing to do."""
        return

    @abstractmethod
    def now(self) -> float:
        """The store's clock."""

    def campaigns(self) -> list[Header]:
        """All of them."""
        rows = self.run("select id, name, fingerprint, setup, versions, created from campaign order by id")
        return [Header(*row) for row in rows]

    def create(self, header: Header, first: Sequence[Record]) -> Header:
        """A new one, or that of the name."""
        with self.writing(0):
            for found in self.campaigns():
                if found.name == header.name:
                    return found
            last = self.run("select coalesce(max(id), 0) from campaign")[0][0]
            made = header._replace(id=int(last) + 1)
            self.run(f"insert into campaign values ({self._marks(6)})", made)
            self._insert(made.id, first)
        self.flush()
        return made

    def append(self, records: Sequence[Record]) -> None:
        """Insert them."""
        self._insert(self._campaign, records)

    def keep(self, seq: int, body: bytes) -> None:
        """Insert a snapshot."""
        self.run(f"insert into snapshot values ({self._marks(3)})", (self._campaign, seq, body))

    def records(self, campaign: int, after: int = 0, most: int | None = None) -> list[Record]:
        """Those after a number."""
        only = "" if most is None else f" limit {int(most)}"
        return self._found(
            f"campaign = {self.mark} and seq > {self.mark} order by seq{only}", (campaign, after)
        )

    def of_key(self, campaign: int, key: str) -> Record | None:
        """By its key."""
        found = self._found(f"campaign = {self.mark} and key = {self.mark}", (campaign, key))
        return found[0] if found else None

    def of_trial(self, campaign: int, trial: int) -> list[Record]:
        """Of a trial."""
        return self._found(f"campaign = {self.mark} and trial = {self.mark} order by seq", (campaign, trial))

    def snapshots(self, campaign: int) -> list[int]:
        """Their places."""
        rows = self.run(f"select seq from snapshot where campaign = {self.mark} order by seq", (campaign,))
        return [int(row[0]) for row in rows]

    def snapshot(self, campaign: int, seq: int) -> bytes:
        """One of them."""
        where = f"campaign = {self.mark} and seq = {self.mark}"
        return bytes(self.run(f"select body from snapshot where {where}", (campaign, seq))[0][0])

    def _found(self, where: str, values: Sequence[Any]) -> list[Record]:
        rows = self.run(f"select {COLUMNS} from event where {where}", values)
        return [
            Record(seq, kind, trial, key, _bytes(body), _bytes(chain), at, actor)
            for seq, kind, trial, key, body, chain, at, actor in rows
        ]

    def _insert(self, campaign: int, records: Sequence[Record]) -> None:
        """In one statement for some at a time: it takes the thread's turn less often than one for each."""
        for first in range(0, len(records), TOGETHER):
            some = records[first : first + TOGETHER]
            rows = ", ".join([f"({self._marks(9)})"] * len(some))
            values = [value for record in some for value in (campaign, *record)]
            self.run(f"insert into event (campaign, {COLUMNS}) values {rows}", values)

    def _marks(self, count: int) -> str:
        return ", ".join([self.mark] * count)

    def check_version(self, version: int) -> None:
        """Refuse a database that a later version has changed."""
        if version > len(migrations()):
            raise StoreFailed(
                f"{self.name} has schema {version}, and this version of saver knows {len(migrations())}; "
                "open it with the version that wrote it, or a later one"
            )


def _bytes(stored: Any) -> bytes:
    """As they were written; a text was put there by somebody else."""
    return stored.encode() if isinstance(stored, str) else bytes(stored)
