"""How a campaign changes: by requests, in groups; a group is one transaction, and memory follows it.

It is answered when it is durable, while the next may be under way. A leader's requests are done by one of the
threads that wait, and become durable together. The lead goes on before that: the next group is worked out
while this one goes to the disk.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

from saver._interrupt import postponed
from saver._jit import plainly
from saver.collect import admit
from saver.collect.campaign import caution
from saver.collect.events import Abandoned, Cancelled, Event
from saver.errors import InvalidData, SaverError, StoreFailed
from saver.journal.folding import Fold, Stated, pressed
from saver.journal.protocol import KINDS, Header, Journal, Record, body_of
from saver.safety.argument import ARGUMENT

T = TypeVar("T")
EVERY = 2000  # records between two snapshots
MOST = 256  # requests that become durable together
GATHER = 0.001  # seconds for which as many as before are waited for


class Writing:
    """The records of a campaign, and `fold`, what they make of it, in step; several threads may call.

    `pending` are the records of the requests that are being done, and `now` is their time.
    """

    def __init__(self, journal: Journal, header: Header, stated: Stated, mode: str) -> None:
        self.journal, self.name, self.mode = journal, header.name, mode
        self.fold, self.pending, self.now = Fold(journal, header, stated), list[Record](), -math.inf
        self.fold.reload()
        begun = int(json.loads(header.versions).get("argument", 1))
        if mode != "read" and self.fold.setup.bets and begun < ARGUMENT:
            raise StoreFailed(
                f"{journal.name}, campaign {self.name!r}: an earlier version of saver began it, whose "
                "certificate for bounded observations was another one. What a campaign promises is fixed "
                'before its first episode: finish it with that version, or look at it with mode="read"'
            )
        self._actor, self._pid = f"{socket.gethostname()}:{os.getpid()}", os.getpid()
        self._lock, self._busy, self._closed, self._keep = threading.RLock(), False, False, False
        self._turns = Turns(self._group, journal.flush) if mode == "leader" else None

    # -- looking -----------------------------------------------------------------------------------------

    @contextmanager
    def looking(self, what: str = "", *, fresh: bool = True) -> Iterator[Fold]:
        """In this block memory holds what others, too, have written and stays so; no design may do `what`."""
        with self._lock:
            if self._busy and what:
                raise InvalidData(f"{what} was called from inside a design; it must not be")
            self._alive()
            if fresh and not self._busy:
                with plainly(self.fold.setup.small):
                    self._catch_up()
            yield self.fold

    @property
    def gone(self) -> bool:
        """Whether it was closed, or is a copy in another process than that of the connection."""
        return self._closed or self._pid != os.getpid()

    def _alive(self) -> None:
        if self.gone:
            copied = "opened by another process, of which this one is a copy; open it here"
            how = "closed; open it anew" if self._closed else copied
            raise StoreFailed(f"the campaign {self.name!r} was {how}")

    def _catch_up(self) -> None:
        if self.fold.stale:
            self.fold.reload()
        elif self._turns is None:  # beside a leader nobody writes
            self.fold.follow()

    def close(self) -> None:
        """Let go of the store; nothing is lost."""
        if self._pid != os.getpid():
            return
        if self._turns is not None:
            self._turns.close()
        with self._lock:
            self.journal.close()
            self._closed = True

    # -- a group of requests -----------------------------------------------------------------------------

    def do(self, work: Callable[[], T]) -> T:
        """Do it in turn; its records are durable when this returns."""
        self._alive()
        if self.mode == "read":
            raise StoreFailed(
                f'the campaign {self.name!r} was opened with mode="read"; open it with mode="embedded" to '
                "change it"
            )
        if self._turns is not None:
            return self._turns.do(work)
        with postponed(lambda: None):  # compiled code that is being loaded would lose it
            outcome = self._group([work])[0]
            self.journal.flush()
        return cast(T, outcome.get())

    def _group(self, works: list[Callable[[], Any]]) -> list[Outcome]:
        """Several requests in one transaction."""
        fold = self.fold
        with self._lock, plainly(fold.setup.small):
            if self._busy:
                raise InvalidData("the campaign was called from inside a design; it must not be")
            self._busy = True
            try:
                with self.journal.writing(fold.id, self._catch_up) as writer:
                    self._catch_up()
                    self.now = max(self.journal.now(), fold.at)  # no clock goes back here
                    self.pending, self._keep = [], False
                    self._expire()
                    outcomes = [self._one(work) for work in works]
                    if self.pending:
                        writer.append(self.pending)
                    if self._keeps():
                        writer.keep(fold.seq, pressed(fold.image()))
                        fold.kept = fold.seq
            except BaseException:
                fold.stale = True  # memory may be ahead of the journal
                raise
            finally:
                self._busy = False
        return outcomes

    def _one(self, work: Callable[[], Any]) -> Outcome:
        before = self.fold.seq
        try:
            return Outcome(work(), None)
        except SaverError as refused:
            if self.fold.seq != before or self.fold.stale:
                raise  # half of it has happened in memory: none of it must
            return Outcome(None, refused)

    def _expire(self) -> None:
        """Trials whose time is over, the latest first: with order="asked" they can be cancelled so.

        What never started is free, what may have run is lost.
        """
        fold, leases = self.fold, self.fold.leases.items()
        late = [number for number, lease in leases if lease.until is not None and self.now > lease.until]
        for number in sorted(late, reverse=True):
            event: Event = Abandoned(number)
            if not fold.leases[number].started:
                with contextlib.suppress(InvalidData):  # with order="asked", after a later one
                    event = admit.cancelled(fold.setup, fold.state, number, True)
            self.happen(event, why="expired")

    def keep(self) -> None:
        """Keep a snapshot when all of the group is done, though none is due."""
        self._keep = True

    def _keeps(self) -> bool:
        """Whether a snapshot is due; another process may have kept one."""
        fold, wanted = self.fold, 1 if self._keep else EVERY
        if fold.seq - fold.kept >= wanted:
            fold.kept = max(self.journal.snapshots(fold.id), default=0)
        return fold.seq - fold.kept >= wanted

    # -- what a request does -----------------------------------------------------------------------------

    def until(self, lease: float | None) -> float | None:
        """When a lease that begins now expires."""
        return None if lease is None else self.now + lease

    def happen(self, event: Event, *, key: str | None = None, **more: Any) -> None:
        """An event takes effect, and will be written."""
        trial = getattr(event, "number", None)
        self.write(KINDS[type(event)], trial, key, body_of(event, **more), event, **more)

    def lose(self, event: Abandoned | Cancelled) -> None:
        """Somebody says that a trial is given up, or never started."""
        fold = self.fold
        if not fold.warned and admit.cares(fold.setup, fold.state.out.get(event.number)):
            fold.warned = True
            caution(event.number)
        self.happen(event)

    def write(
        self, kind: str, trial: int | None, key: str | None = None, body: bytes | None = None,
        event: Event | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """A record takes effect, and will be written; without an event it concerns leases alone."""
        fold, body = self.fold, body_of(**more) if body is None else body
        record = Record(fold.seq + 1, kind, trial, key, body, b"", self.now, self._actor).sealed(fold.chain)
        fold.take(record, event, more)
        self.pending.append(record)

    def of_key(self, key: str) -> Record | None:
        """The record with this key, which may be pending."""
        pending = next((record for record in self.pending if record.key == key), None)
        return pending or self.journal.of_key(self.fold.id, key)

    def of_trial(self, number: int) -> list[Record]:
        """What happened to a trial, also just now."""
        pending = [record for record in self.pending if record.trial == number]
        return self.journal.of_trial(self.fold.id, number) + pending


# -- whose turn it is ----------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What came of one request."""

    found: Any
    refused: BaseException | None

    def get(self) -> Any:
        """It, or the error."""
        if self.refused is not None:
            raise self.refused
        return self.found


class Request:
    """A request and, once that is durable, what came of it."""

    __slots__ = ("leads", "outcome", "ready", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.leads = work, False
        self.outcome: Outcome | None = None
        self.ready = threading.Lock()  # free when it is done, or has the lead
        self.ready.acquire()


class Turns:
    """Threads take turns to lead: no thread of its own has to be woken for each request.

    Who is answered comes back soon with the next request, so a new leader waits a moment for as many as the
    last group had: a commit takes as long for one as for all. Who comes last says so: a short sleep may take
    long.
    """

    def __init__(
        self,
        group: Callable[[list[Callable[[], Any]]], list[Outcome]],
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self._group, self._flush, self._waiting = group, flush, deque[Request]()
        self._mutex, self._closed = threading.RLock(), threading.Event()
        self._led, self._last = False, 1
        self._enough = threading.Condition(self._mutex)  # as many as before have come

    def do(self, work: Callable[[], T]) -> T:
        """It is done, and durable, when this returns."""
        asked = Request(work)
        with self._mutex:
            self._waiting.append(asked)
            if not self._led:
                self._led = asked.leads = True
            elif len(self._waiting) >= self._last:
                self._enough.notify()
        try:
            if not asked.leads:
                asked.ready.acquire()
            while asked.outcome is None:
                self._answer(asked)
        finally:
            self._hand_over(asked)
        return cast(T, asked.outcome.get())

    def close(self) -> None:
        """What was asked for before is done."""
        self.do(self._closed.set)

    def _hand_over(self, asked: Request) -> None:
        """The lead goes to the first that waits; a request that was interrupted waits no longer."""
        with self._mutex:
            if asked.outcome is None and asked in self._waiting:
                self._waiting.remove(asked)
            if asked.leads:
                asked.leads, self._led = False, bool(self._waiting)
                if self._waiting:
                    self._waiting[0].leads = True
                    self._waiting[0].ready.release()

    def _answer(self, leader: Request) -> None:
        """All that wait now. Ctrl-C comes after them: it is for one thread, and others wait for this one."""
        with postponed(lambda: None):
            with self._mutex:
                if len(self._waiting) < self._last:
                    self._enough.wait(GATHER)
                group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST))]
                self._last = len(group)
            try:
                if self._closed.is_set():
                    raise StoreFailed("the leader was closed; open the campaign anew")
                outcomes = self._group([one.work for one in group])
                self._hand_over(leader)
                self._flush()
            except Exception as cause:  # told to all of them
                outcomes = [Outcome(None, cause)] * len(group)
            except BaseException:
                interrupted = StoreFailed(
                    "the leader was interrupted, before or after it was done; call again, with the same key "
                    "if there was one"
                )
                outcomes = [Outcome(None, interrupted)] * len(group)
                raise
            finally:
                for asked, outcome in zip(group, outcomes, strict=True):
                    asked.outcome = outcome
                    if asked is not leader:
                        asked.ready.release()
