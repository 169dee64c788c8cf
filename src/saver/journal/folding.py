"""A campaign as a fold of a journal's records: read, followed, thrown away and read anew."""

from __future__ import annotations

import json
import math
import os
import threading
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from saver.collect import snapshot
from saver.collect.campaign import Campaign
from saver.collect.collectors import Collector
from saver.collect.events import Event
from saver.collect.setup import Setup
from saver.collect.state import State
from saver.errors import InvalidData, StoreFailed
from saver.journal.leases import Lease, Leases
from saver.journal.protocol import Journal, in_parts
from saver.journal.records import FIRST, Header, Record
from saver.problem import checks
from saver.problem.statement import Problem

LAST = 2**62  # no record has a larger number


class Stated(NamedTuple):
    """What a campaign is made of; `begin` makes it as it is before its first record."""

    problem: Problem
    collector: Collector | str
    begin: Callable[[], tuple[Setup, State]]


class Folded(Campaign):
    """What the records of a campaign make of it. It only reads; requests are a subclass's."""

    def __init__(self, journal: Journal, header: Header, stated: Stated) -> None:
        self.header = header
        self._journal, self._stated, self._pid = journal, stated, os.getpid()
        self._lock, self._busy, self._closed = threading.RLock(), False, False
        self._stale, self._alone = False, False  # memory is ahead of the journal; nobody else writes
        self._leases, self._seq, self._kept, self._chain, self._at = Leases(), 0, 0, FIRST, -math.inf
        self._reload()

    @property
    def name(self) -> str:
        """What the journal calls it."""
        return self.header.name

    @property
    def last(self) -> int:
        """The number of the last record."""
        with self._lock:
            self._fresh()
            return self._seq

    def records(self, after: int = 0, most: int | None = None) -> list[Record]:
        """What happened after record number `after`, as it is stored."""
        self._alive()
        checks.whole("after", after, 0, LAST)
        if most is not None:
            checks.whole("most", most, 1, LAST)
        with self._lock:
            return self._journal.records(self.header.id, after, most)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened to the campaign itself, in order."""
        return tuple(event for record in self.records() if (event := record.event) is not None)

    @property
    def leases(self) -> dict[int, Lease]:
        """Those of the trials that are out."""
        with self._lock:
            self._fresh()
            return dict(self._leases.of)

    @property
    def given_up(self) -> dict[str, int]:
        """How many trials were abandoned, and how many never started."""
        with self._lock:
            self._fresh()
            return {"abandoned": len(self._state.abandoned), "cancelled": len(self._state.cancelled)}

    def verify(self) -> Any:
        """Read everything anew, from the first record: see `saver.journal.verify`."""
        from saver.journal.verify import verify

        self._alive()
        with self._lock:
            self._fresh()
            return verify(self._journal, self.header, self._stated, self._seq, self.image())

    def close(self) -> None:
        """Let go of the store; nothing is lost."""
        if self._pid != os.getpid():
            return  # the connection is of the process that opened it
        with self._lock:
            self._journal.close()
            self._closed = True

    def __repr__(self) -> str:
        if self._closed or self._pid != os.getpid():
            return f"DurableCampaign({self.name!r}, closed)"
        return super().__repr__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- memory and journal ------------------------------------------------------------------------------

    def _fresh(self) -> None:
        """Before a look: what others have written meanwhile."""
        self._alive()
        if not self._busy:
            self._catch_up()

    def _alive(self) -> None:
        if self._closed:
            raise StoreFailed(f"the campaign {self.name!r} was closed; open it anew")
        if self._pid != os.getpid():
            raise StoreFailed(
                f"the campaign {self.name!r} was opened by another process, of which this one is a copy; "
                "open it here"
            )

    def _catch_up(self) -> None:
        if self._stale:
            self._reload()
        elif not self._alone:
            self._follow()

    def _follow(self) -> None:
        """What was written since, by anybody."""
        for part in in_parts(self._journal, self.header.id, self._seq):
            for record in part:
                self._replay(record)

    def _replay(self, record: Record) -> None:
        if record.seq != self._seq + 1 or record.sealed(self._chain).chain != record.chain:
            raise StoreFailed(
                f"{self._journal.name}, campaign {self.name!r}: record {record.seq} does not follow from "
                "those before it; it was changed or damaged: restore a backup"
            )
        self._stale = True  # until all of it has happened
        self._fold(record, *record.read())
        self._stale = False

    def _reload(self) -> None:
        """From the last snapshot, or from the beginning."""
        kept, lock, busy = self._journal.snapshots(self.header.id), self._lock, self._busy
        self._stale = False
        while kept and not self._recalled(kept[-1]):
            kept.pop()
        if not kept:
            self._begin(*self._stated.begin(), None)
            self._leases, self._seq, self._chain, self._at = Leases(), 0, FIRST, -math.inf
        self._kept, self._lock, self._busy = kept[-1] if kept else 0, lock, busy
        self._follow()

    def _recalled(self, place: int) -> bool:
        """From a snapshot; a damaged one is left aside, as the records are all there: `verify` names it."""
        try:
            self._recall(read(self._journal.snapshot(self.header.id, place)))
        except (zlib.error, ValueError, KeyError, TypeError, InvalidData):
            return False
        return True

    def _recall(self, image: dict[str, Any]) -> None:
        self._begin(*snapshot.load(self._stated.problem, self._stated.collector, image["campaign"]))
        self._leases, self._seq, self._at = Leases(image["leases"]), image["seq"], image["at"]
        self._chain = bytes.fromhex(image["chain"])

    def image(self) -> dict[str, Any]:
        """All that the records so far have made, as plain data."""
        return {
            "campaign": snapshot.dump(self._setup, self._state),
            "leases": self._leases.plain(),
            "seq": self._seq,
            "at": self._at,
            "chain": self._chain.hex(),
        }

    def _fold(self, record: Record, event: Event | None, more: dict[str, Any]) -> None:
        """What a record does: to the campaign, and to leases."""
        if event is not None:
            self._take(event)
        self._leases.after(record, more)
        self._chain, self._seq, self._at = record.chain, record.seq, record.at


def read(body: bytes) -> dict[str, Any]:
    """An image from bytes."""
    found: dict[str, Any] = json.loads(zlib.decompress(body))
    return found


def pressed(image: dict[str, Any]) -> bytes:
    """An image as bytes."""
    return zlib.compress(json.dumps(image, separators=(",", ":")).encode(), 1)
