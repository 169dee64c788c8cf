"""What SQLite and PostgreSQL have in common: the statements, and migrations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from saver.errors import StoreFailed
from saver.journal.protocol import Header, Journal, Record

TOGETHER = 32  # records that one statement inserts
COLUMNS = "campaign, seq, kind, trial, key, body, chain, at, actor"  # of a record
OF_CAMPAIGN = "id, name, fingerprint, setup, versions, created"


@cache
def migrations() -> tuple[str, ...]:
    """The steps from an empty database to this version's schema, in order."""
    files = resources.files("saver.journal").joinpath("schema").iterdir()
    return tuple(file.read_text() for file in sorted(files, key=lambda file: file.name))


class SqlJournal(Journal):
    """Campaigns in a database; a subclass connects, locks, runs statements and tells the time.

    Its `writing` puts the campaign's number where `append` and `keep` find it; `writing(0)` is alone among
    all that make campaigns.
    """

    _campaign = 0  # of the transaction

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement finds, with values in the place of each "?"."""
        raise NotImplementedError

    def flush(self) -> None:
        """Where a commit is durable there is nothing to do."""

    def campaigns(self) -> list[Header]:
        return [Header(*row) for row in self.run(f"select {OF_CAMPAIGN} from campaign order by id")]

    def create(self, header: Header, first: Sequence[Record]) -> Header:
        with self.writing(0):
            for found in self.campaigns():
                if found.name == header.name:
                    return found
            last = self.run("select coalesce(max(id), 0) from campaign")[0][0]
            made = Header(int(last) + 1, *header[1:])
            self.run(f"insert into campaign ({OF_CAMPAIGN}) values {_marks(len(made))}", made)
            self._insert(made.id, first)
        self.flush()
        return made

    def append(self, records: Sequence[Record]) -> None:
        self._insert(self._campaign, records)

    def keep(self, seq: int, body: bytes) -> None:
        self.run(f"insert into snapshot values {_marks(3)}", (self._campaign, seq, body))

    def records(self, campaign: int, after: int = 0, most: int | None = None) -> list[Record]:
        only = "" if most is None else f" limit {int(most)}"
        return self._found(f"campaign = ? and seq > ? order by seq{only}", campaign, after)

    def of_key(self, campaign: int, key: str) -> Record | None:
        return next(iter(self._found("campaign = ? and key = ?", campaign, key)), None)

    def of_trial(self, campaign: int, trial: int) -> list[Record]:
        return self._found("campaign = ? and trial = ? order by seq", campaign, trial)

    def snapshots(self, campaign: int) -> list[int]:
        rows = self.run("select seq from snapshot where campaign = ? order by seq", (campaign,))
        return [int(row[0]) for row in rows]

    def snapshot(self, campaign: int, seq: int) -> bytes:
        rows = self.run("select body from snapshot where campaign = ? and seq = ?", (campaign, seq))
        return bytes(rows[0][0])

    def _found(self, where: str, *values: Any) -> list[Record]:
        rows = self.run(f"select {COLUMNS} from event where {where}", values)
        return [
            Record(seq, kind, trial, key, _bytes(body), _bytes(chain), at, actor)
            for _, seq, kind, trial, key, body, chain, at, actor in rows
        ]

    def _insert(self, campaign: int, records: Sequence[Record]) -> None:
        """In one statement for some at a time: it takes the thread's turn less often than one for each."""
        for first in range(0, len(records), TOGETHER):
            some = records[first : first + TOGETHER]
            values = [value for record in some for value in (campaign, *record)]
            marks = ", ".join([_marks(len(values) // len(some))] * len(some))
            self.run(f"insert into event ({COLUMNS}) values {marks}", values)

    def steps_from(self, version: int) -> tuple[str, ...]:
        """The migrations that are to come; a database that a later version has changed is refused."""
        if version > len(migrations()):
            raise StoreFailed(
                f"{self.name} has schema {version}, and this version of saver knows {len(migrations())}; "
                "open it with the version that wrote it, or a later one"
            )
        return migrations()[version:]


def _marks(count: int) -> str:
    return f"({', '.join('?' * count)})"


def _bytes(stored: Any) -> bytes:
    """As they were written; a text was put there by somebody else."""
    return stored.encode() if isinstance(stored, str) else bytes(stored)
