"""What a store holds, records of what happened, each sealed by a hash of all before it; and what it can do.

A campaign is folded from its records; no store knows what they mean.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple, get_args

from saver.collect.events import Asked, Event, Recalled, Told
from saver.errors import InvalidData, StoreFailed
from saver.problem.codec import NAMES, pack, read

KINDS: dict[type, str] = {event: NAMES[event] for event in get_args(Event)}  # of records
ASKED, TOLD, RECALLED = KINDS[Asked], KINDS[Told], KINDS[Recalled]
CREATED, STARTED, RENEWED, LATE = "created", "started", "renewed", "late"  # which are no events
EVENTS = frozenset(KINDS.values())
LARGEST = 2**24  # bytes of a record, but for history
FEW = 32  # entries of an array that is written as it is
FIRST = b"\0" * 32  # the seal before the first record
LAST = 2**62  # no record has a larger number
PART = 5000  # records that are read at once
TOGETHER = 32  # records that one statement inserts
COLUMNS = "campaign, seq, kind, trial, key, body, chain, at, actor"  # of a record
OF_CAMPAIGN = "id, name, fingerprint, setup, versions, created"
Waiting = Callable[[], None] | None
_written = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_quoted = lru_cache(1024)(json.dumps)


class Header(NamedTuple):
    """A campaign that a journal holds.

    Attributes:
        id: its number in the journal.
        name: what users call it.
        fingerprint: a hash of `setup`.
        setup: problem, collector and all that a campaign is made of, as JSON.
        versions: of what made it, as JSON.
        created: when, by the store's clock.
    """

    id: int
    name: str
    fingerprint: str
    setup: str
    versions: str
    created: float

    @property
    def seal(self) -> str:
        """What the first record of the campaign keeps of `setup`."""
        return hashlib.sha256(self.setup.encode()).hexdigest()


class Record(NamedTuple):
    """Something that happened.

    Attributes:
        seq: from 1, without a gap.
        kind: "created", "started", "renewed", "late", or what a campaign's event is called.
        trial: its number, or None.
        key: what a client calls its request, or None.
        body: JSON.
        chain: sha256 of the chain before and of all of the above and below.
        at: when, by the store's clock.
        actor: who wrote it.
    """

    seq: int
    kind: str
    trial: int | None
    key: str | None
    body: bytes
    chain: bytes
    at: float
    actor: str

    def sealed(self, before: bytes) -> Record:
        """With its chain, after that of the record before."""
        seq, kind, trial, key, body, _, at, actor = self
        of, said = "null" if trial is None else trial, "null" if key is None else json.dumps(key)
        head = f'[{seq}, "{kind}", {of}, {said}, {at!r}, {_quoted(actor)}]'  # JSON
        chain = hashlib.sha256(b"\0".join((before, head.encode(), body))).digest()
        return Record(seq, kind, trial, key, body, chain, at, actor)

    @property
    def told(self) -> dict[str, Any]:
        """The body, read."""
        return dict(json.loads(self.body.decode()))

    def says(self, body: bytes) -> bool:
        """Whether the body is this one, however it was written."""
        return self.body == body or (self.event is not None and body_of(self.event) == body)

    @property
    def event(self) -> Event | None:
        """What the campaign is to apply, if anything."""
        return self.read()[0]

    def read(self) -> tuple[Event | None, dict[str, Any]]:
        """What the campaign is to apply, if anything: what came late is nothing; and what else is kept."""
        if self.kind not in EVENTS:
            return None, self.told
        told = read(self.body.decode())
        return told.pop("event"), told


def body_of(event: Event | None = None, **more: Any) -> bytes:
    """An event, and what else is kept with it, as JSON."""
    plain = more if event is None else {"event": pack(event, small=True, few=FEW), **more}
    body = _written(plain).encode()
    if len(body) > LARGEST and not isinstance(event, Recalled):
        raise InvalidData(
            f"what was told takes {len(body) / 2**20:,.0f} MB; one episode may take {LARGEST // 2**20} MB"
        )
    return body


# -- what every store can do ---------------------------------------------------------------------------------


@cache
def migrations() -> tuple[str, ...]:
    """The steps from an empty database to this version's schema, in order."""
    files = resources.files("saver.journal").joinpath("schema").iterdir()
    return tuple(file.read_text() for file in sorted(files, key=lambda file: file.name))


class Journal(ABC):
    """Campaigns and their records in a database; a store connects, locks, runs statements, tells the time.

    Its `writing` puts the campaign's number where `append` and `keep` find it; `writing(0)` is alone among
    all that make campaigns.
    """

    name: str  # what messages call it
    _campaign = 0  # of the transaction

    @abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement finds, with values in the place of each "?"."""

    @abstractmethod
    def now(self) -> float:
        """Seconds since 1970 by the store's clock."""

    @abstractmethod
    def hold(self, campaign: int, *, alone: bool) -> None:
        """Until `close`: alone, as a leader, or beside others. Refused while that cannot be."""

    @abstractmethod
    def writing(self, campaign: int, meanwhile: Waiting = None) -> AbstractContextManager[Journal]:
        """A transaction that no other process can be in at the same time; `meanwhile` is done before it.

        What the block writes is there when it ends, all of it, or nothing is; others may see it then, and it
        is durable after `flush`. `meanwhile` is for what need not wait: where several processes want to
        write, the next does it while another still does.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def flush(self) -> None:  # noqa: B027  (where a commit is durable there is nothing to do)
        """What was written, here and by others whom a transaction here has followed, is durable.

        An answer waits for this. It is no part of the transaction: the next one begins meanwhile.
        """

    def campaigns(self) -> list[Header]:
        """All of them, in the order of their making."""
        return [Header(*row) for row in self.run(f"select {OF_CAMPAIGN} from campaign order by id")]

    def create(self, header: Header, first: Sequence[Record]) -> Header:
        """A new campaign with its first records, or the one that has its name; the id is the store's."""
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
        """In the block: write records, whose numbers go on from the last."""
        self._insert(self._campaign, records)

    def keep(self, seq: int, body: bytes) -> None:
        """In the block: a snapshot after record `seq`."""
        self.run(f"insert into snapshot values {_marks(3)}", (self._campaign, seq, body))

    def records(self, campaign: int, after: int = 0, most: int | None = None) -> list[Record]:
        """Those after a number, in order."""
        only = "" if most is None else f" limit {int(most)}"
        return self._found(f"campaign = ? and seq > ? order by seq{only}", campaign, after)

    def of_key(self, campaign: int, key: str) -> Record | None:
        """The record with this key."""
        return next(iter(self._found("campaign = ? and key = ?", campaign, key)), None)

    def of_trial(self, campaign: int, trial: int) -> list[Record]:
        """What happened to a trial, in order."""
        return self._found("campaign = ? and trial = ? order by seq", campaign, trial)

    def snapshots(self, campaign: int) -> list[int]:
        """After which records there are snapshots, in order."""
        rows = self.run("select seq from snapshot where campaign = ? order by seq", (campaign,))
        return [int(row[0]) for row in rows]

    def snapshot(self, campaign: int, seq: int) -> bytes:
        """The snapshot after a record."""
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


def in_parts(journal: Journal, campaign: int, after: int = 0, until: int = LAST) -> Iterator[list[Record]]:
    """The records after a number, up to another, so many at once that memory is bounded."""
    while after < until:
        part = journal.records(campaign, after, min(PART, until - after))
        if part:
            yield part
        if len(part) < PART:
            return
        after = part[-1].seq


def held_by(who: str, alone: bool) -> StoreFailed:
    """The error of a campaign that others hold."""
    if alone:
        return StoreFailed(
            f"the campaign is open elsewhere ({who}), and a leader must be alone; close it there, or open it "
            'with mode="embedded"'
        )
    return StoreFailed(
        "a leader holds the campaign; talk to it, or close it and open the campaign anew "
        '(mode="embedded" shares it, mode="leader" does not)'
    )
