"""Campaigns in the memory of one process: for tests, and to try things out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from saver.journal.protocol import Header, Journal, Record, Waiting, held_by


class Shelf:
    """What a process keeps; every journal in it is a view."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.headers: dict[str, Header] = {}
        self.rows: dict[int, list[Record]] = {}
        self.kept: dict[int, dict[int, bytes]] = {}
        self.holders: list[tuple[int, bool, Journal]] = []  # of which campaign, and whether alone


SHELF = Shelf()


class MemoryJournal(Journal):
    """A view of the shelf."""

    name = "memory:"

    def __init__(self) -> None:
        self.shelf = SHELF
        self.fresh, self.looks = list[Record](), dict[int, bytes]()  # of the transaction

    def campaigns(self) -> list[Header]:
        return list(self.shelf.headers.values())

    def create(self, header: Header, first: Sequence[Record]) -> Header:
        with self.shelf.lock:
            if header.name not in self.shelf.headers:
                made = header._replace(id=len(self.shelf.headers) + 1)
                self.shelf.headers[header.name] = made
                self.shelf.rows[made.id], self.shelf.kept[made.id] = list(first), {}
            return self.shelf.headers[header.name]

    def hold(self, campaign: int, *, alone: bool) -> None:
        with self.shelf.lock:
            others = [led for held, led, _ in self.shelf.holders if held == campaign]
            if any(others) or (alone and others):
                raise held_by("a leader" if any(others) else "others", alone)
            self.shelf.holders.append((campaign, alone, self))

    @contextmanager
    def writing(self, campaign: int, meanwhile: Waiting = None) -> Iterator[MemoryJournal]:
        with self.shelf.lock:
            self.fresh, self.looks = [], {}
            yield self
            self.shelf.rows[campaign] += self.fresh
            self.shelf.kept[campaign] |= self.looks

    def now(self) -> float:
        return time.time()

    def flush(self) -> None:
        """Nothing outlives the process."""

    def append(self, records: Sequence[Record]) -> None:
        self.fresh += records

    def keep(self, seq: int, body: bytes) -> None:
        self.looks[seq] = body

    def records(self, campaign: int, after: int = 0, most: int | None = None) -> list[Record]:
        rows = self.shelf.rows[campaign]
        return rows[after : len(rows) if most is None else after + most]

    def of_key(self, campaign: int, key: str) -> Record | None:
        return next((record for record in self.shelf.rows[campaign] if record.key == key), None)

    def of_trial(self, campaign: int, trial: int) -> list[Record]:
        return [record for record in self.shelf.rows[campaign] if record.trial == trial]

    def snapshots(self, campaign: int) -> list[int]:
        return sorted(self.shelf.kept[campaign])

    def snapshot(self, campaign: int, seq: int) -> bytes:
        return self.shelf.kept[campaign][seq]

    def close(self) -> None:
        with self.shelf.lock:
            self.shelf.holders = [held for held in self.shelf.holders if held[-1] is not self]
