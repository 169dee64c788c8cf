"""Campaigns in the memory of one process: for tests, and to try things out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from saver.journal.protocol import Waiting, held_by
from saver.journal.records import Header, Record


class Shelf:
    """What a process keeps; every journal in it is a view."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.headers: dict[str, Header] = {}
        self.rows: dict[int, list[Record]] = {}
        self.kept: dict[int, dict[int, bytes]] = {}
        self.holders: dict[int, list[bool]] = {}


SHELF = Shelf()


class MemoryJournal:
    """A view of the shelf."""

    name = "memory:"

    def __init__(self) -> None:
        self.shelf, self.held = SHELF, list[tuple[int, bool]]()
        self.fresh: list[Record] = []
        self.looks: dict[int, bytes] = {}

    def campaigns(self) -> list[Header]:
        """All of them."""
        return list(self.shelf.headers.values())

    def create(self, header: Header, first: Sequence[Record]) -> Header:
        """A new one, or that of the name."""
        with self.shelf.lock:
            if header.name not in self.shelf.headers:
                made = header._replace(id=len(self.shelf.headers) + 1)
                self.shelf.headers[header.name] = made
                self.shelf.rows[made.id], self.shelf.kept[made.id] = list(first), {}
            return self.shelf.headers[header.name]

    def hold(self, campaign: int, *, alone: bool) -> None:
        """Alone, or beside others."""
        with self.shelf.lock:
            others = self.shelf.holders.setdefault(campaign, [])
            if any(others) or (alone and others):
                raise held_by("a leader" if any(others) else "others", alone)
            others.append(alone)
            self.held.append((campaign, alone))

    @contextmanager
    def writing(self, campaign: int, meanwhile: Waiting = None) -> Iterator[MemoryJournal]:
        """One transaction at a time."""
        with self.shelf.lock:
            self.fresh, self.looks = [], {}
            yield self
            self.shelf.rows[campaign] += self.fresh
            self.shelf.kept[campaign] |= self.looks

    def now(self) -> float:
        """The process's clock."""
        return time.time()

    def flush(self) -> None:
        """Nothing outlives the process."""

    def append(self, records: Sequence[Record]) -> None:
        """Written when the block ends."""
        self.fresh += records

    def keep(self, seq: int, body: bytes) -> None:
        """Likewise."""
        self.looks[seq] = body

    def records(self, campaign: int, after: int = 0, most: int | None = None) -> list[Record]:
        """Those after a number."""
        rows = self.shelf.rows[campaign]
        return rows[after : len(rows) if most is None else after + most]

    def of_key(self, campaign: int, key: str) -> Record | None:
        """By its key."""
        return next((record for record in self.shelf.rows[campaign] if record.key == key), None)

    def of_trial(self, campaign: int, trial: int) -> list[Record]:
        """Of a trial."""
        return [record for record in self.shelf.rows[campaign] if record.trial == trial]

    def snapshots(self, campaign: int) -> list[int]:
        """Their places."""
        return sorted(self.shelf.kept[campaign])

    def snapshot(self, campaign: int, seq: int) -> bytes:
        """One of them."""
        return self.shelf.kept[campaign][seq]

    def close(self) -> None:
        """Let go."""
        with self.shelf.lock:
            for campaign, alone in self.held:
                self.shelf.holders[campaign].remove(alone)
            self.held = []
