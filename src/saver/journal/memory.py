"""Campaigns in the memory of one process: for tests, and to try things out."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from saver.journal.protocol import Waiting, held_by
from saver.journal.sqlite import Lite


class Shelf:
    """What a process keeps, in a database without a file; every journal in it is a view."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.holders: list[tuple[int, bool, MemoryJournal]] = []  # of which campaign, and whether alone
        self.base = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


shelf = cache(Shelf)


class MemoryJournal(Lite):
    """A view of the shelf."""

    name = path = "memory:"

    def __init__(self) -> None:
        self.shelf = shelf()
        self._base = self.shelf.base
        with self.shelf.lock:
            if not self.run("pragma user_version")[0][0]:
                self._migrate(self.steps_from(0))

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows; nobody sees half of another's transaction."""
        with self.shelf.lock:
            return super().run(statement, values)

    @contextmanager
    def writing(self, campaign: int, meanwhile: Waiting = None) -> Iterator[MemoryJournal]:
        with self.shelf.lock, self._begun(campaign):
            yield self

    def hold(self, campaign: int, *, alone: bool) -> None:
        with self.shelf.lock:
            others = [led for held, led, _ in self.shelf.holders if held == campaign]
            if any(others) or (alone and others):
                raise held_by("a leader" if any(others) else "others", alone)
            self.shelf.holders.append((campaign, alone, self))

    def close(self) -> None:
        with self.shelf.lock:
            self.shelf.holders = [held for held in self.shelf.holders if held[-1] is not self]
