"""How a campaign changes: by requests, in groups; a group is one transaction, and memory follows it.

It is answered when it is durable, while the next may be under way.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from saver._interrupt import postponed
from saver._jit import plainly
from saver.collect import admit
from saver.collect.events import Abandoned, Event
from saver.errors import InvalidData, SaverError, StoreFailed
from saver.journal.folding import Folded, Stated, pressed
from saver.journal.protocol import Journal
from saver.journal.records import KINDS, Header, Record, body_of
from saver.journal.turns import Turns
from saver.safety.shares import ARGUMENT

T = TypeVar("T")
EVERY = 2000  # records between two snapshots


class Written(Folded):
    """What the records make of a campaign, and writing more of them."""

    def __init__(
        self, journal: Journal, header: Header, stated: Stated, mode: str, lease: float | None, max_out: int
    ) -> None:
        self.mode, self.lease, self.max_out = mode, lease, max_out
        self._actor = f"{socket.gethostname()}:{os.getpid()}"
        self._pending: list[Record] = []  # of the requests that are being done
        self._asked_to_keep, self._now = False, -math.inf
        super().__init__(journal, header, stated)
        self._alone = mode == "leader"
        if (
            mode != "read"
            and self._setup.bets
            and int(json.loads(header.versions).get("argument", 1)) < ARGUMENT
        ):
            raise StoreFailed(
                f"{journal.name}, campaign {header.name!r}: an earlier version of saver began it, whose "
                "certificate for bounded observations was another one. What a campaign promises is fixed "
                'before its first episode: finish it with that version, or look at it with mode="read"'
            )
        self._turns = Turns(self._group, journal.flush) if self._alone else None

    def close(self) -> None:
        """Let go of the store; nothing is lost."""
        if self._turns is not None:
            self._turns.close()
        super().close()

    def _request(self, work: Callable[[], T]) -> T:
        """Do it in turn; its records are durable when this returns."""
        self._alive()
        if self.mode == "read":
            raise StoreFailed(
                f'the campaign {self.name!r} was opened with mode="read"; open it with mode="embedded" to '
                "change it"
            )
        if self._turns is not None:
            found: T = self._turns.do(work)
            return found
        with postponed(lambda: None):  # compiled code that is being loaded would lose it
            outcome = self._group([work])[0]
            self._journal.flush()
        return outcome.get()  # type: ignore[no-any-return]

    def _group(self, works: list[Callable[[], Any]]) -> list[Outcome]:
        """Several requests in one transaction."""
        with self._lock, plainly(self._setup.small):
            if self._busy:
                raise InvalidData("the campaign was called from inside a design; it must not be")
            self._busy = True
            try:
                with self._journal.writing(self.header.id, self._catch_up) as writer:
                    self._catch_up()
                    self._now = max(self._journal.now(), self._at)  # no clock goes back here
                    self._pending, self._asked_to_keep = [], False
                    self._give_up()
                    outcomes = [self._one(work) for work in works]
                    if self._pending:
                        writer.append(self._pending)
                    if self._keeps():
                        writer.keep(self._seq, pressed(self.image()))
                        self._kept = self._seq
            except BaseException:
                self._stale = True  # memory may be ahead of the journal
                raise
            finally:
                self._busy = False
        return outcomes

    def _keeps(self) -> bool:
        """Whether a snapshot is due; another process may have kept one."""
        wanted = 1 if self._asked_to_keep else EVERY
        if self._seq - self._kept >= wanted:
            self._kept = max(self._journal.snapshots(self.header.id), default=0)
        return self._seq - self._kept >= wanted

    def _one(self, work: Callable[[], Any]) -> Outcome:
        before = self._seq
        try:
            return Outcome(work(), None)
        except SaverError as refused:
            if self._seq != before or self._torn:
                raise  # half of it has happened in memory: none of it must
            return Outcome(None, refused)

    def _happen(self, event: Event, key: str | None = None, **more: Any) -> None:
        """An event takes effect, and will be written."""
        trial, body = getattr(event, "number", None), body_of(event, **more)
        self._write(KINDS[type(event)], trial, body, key, event, more)

    def _note(self, kind: str, trial: int, **more: Any) -> None:
        """Something that concerns leases alone."""
        self._write(kind, trial, body_of(**more), None, None, more)

    def _write(
        self, kind: str, trial: int | None, body: bytes, key: str | None, event: Any, more: dict[str, Any]
    ) -> None:
        record = Record(self._seq + 1, kind, trial, key, body, b"", self._now, self._actor)
        record = record.sealed(self._chain)
        self._fold(record, event, more)
        self._pending.append(record)

    def _give_up(self) -> None:
        """Trials whose time is over: what never started is free, what may have run is lost."""
        for number in self._leases.expired(self._now):
            event: Event = Abandoned(number)
            if not self._leases.of[number].started:
                with contextlib.suppress(InvalidData):  # with order="asked", after a later one
                    event = admit.cancelled(self._setup, self._state, number, True)
            self._happen(event, why="expired")

    @property
    def _until(self) -> float | None:
        return None if self.lease is None else self._now + self.lease

    def _of_key(self, key: str) -> Record | None:
        pending = next((record for record in self._pending if record.key == key), None)
        return pending or self._journal.of_key(self.header.id, key)

    def _of_trial(self, number: int) -> list[Record]:
        pending = [record for record in self._pending if record.trial == number]
        return self._journal.of_trial(self.header.id, number) + pending

    def _due(self) -> None:
        self._asked_to_keep = True


class Outcome(NamedTuple):
    """What came of one request."""

    found: Any
    refused: Exception | None

    def get(self) -> Any:
        """It, or the error."""
        if self.refused is not None:
            raise self.refused
        return self.found
