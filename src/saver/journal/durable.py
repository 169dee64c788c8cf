"""A campaign whose every step is in a journal before anybody hears of it.

The state in memory is a fold of the journal's records. A request waits for its turn, takes over what others
have written, does its work, and is answered when its records are durable. If they cannot be written, memory
is ahead of the journal: it is thrown away and read anew.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from saver.collect import admit
from saver.collect import decide as deciding
from saver.collect.events import Abandoned, Event, Told
from saver.collect.trial import Trial
from saver.errors import CampaignEnded, InvalidData, SaverError, StoreFailed, TooManyOut
from saver.journal.folding import Folded, Stated, pressed
from saver.journal.owner import Owner
from saver.journal.protocol import Journal
from saver.journal.records import (
    ASKED,
    KINDS,
    LATE,
    RENEWED,
    STARTED,
    TOLD,
    Header,
    Record,
    body_of,
)
from saver.journal.running import Reserved, Running
from saver.problem import checks

T = TypeVar("T")
EVERY = 2000  # records between two snapshots
AGAIN, WAS_TOLD, WAS_LATE = "again", "told", "late"


class DurableCampaign(Folded):
    """A `Campaign` in a store; `saver.open` makes it.

    Any number of processes may share it (mode="embedded"), or one owns it and its threads share it
    (mode="leader"). All answers of `Campaign` are here.
    """

    def __init__(
        self, journal: Journal, header: Header, stated: Stated, mode: str, lease: float | None, max_out: int
    ) -> None:
        self.mode, self.lease, self.max_out = mode, lease, max_out
        self._actor = f"{socket.gethostname()}:{os.getpid()}"
        self._pending: list[Record] = []  # of the requests that are being done
        self._asked_to_keep, self._now = False, -math.inf
        super().__init__(journal, header, stated)
        self._alone = mode == "leader"
        self._owner = Owner(self._group) if self._alone else None

    # -- requests ----------------------------------------------------------------------------------------

    def ask(self, n: int | None = None, *, key: str | None = None, start: bool = True) -> Any:
        """The next episode to run, or with `n` a list of so many; fewer where fewer are left.

        It is out, and durable, before it is handed over, and has started unless start=False: then `start`
        must be called before it is run, and it costs nothing if it never is. With a `key` the same request
        may be repeated, and gives the same trials.
        """
        many = 1 if n is None else checks.whole("n", n, 1, self.max_out)
        checks.flag("start", start)
        found = self._request(functools.partial(self._ask, many, _key(key), start))
        return found[0] if n is None else found

    def start(self, trial: Trial | Reserved | int) -> Trial:
        """A trial that was asked for with start=False will run now; what `act` is asked of."""
        return self._request(functools.partial(self._start, _number(trial)))

    def renew(self, trial: Trial | int) -> None:
        """A trial takes longer: its lease begins anew."""
        self._request(functools.partial(self._renew, _number(trial)))

    def tell(  # type: ignore[override]
        self,
        trial: Trial | int,
        states: Any,
        actions: Any = None,
        rewards: Any = None,
        constraints: Any = None,
        *,
        final_state: int | str | None = None,
        complete: bool = True,
        key: str | None = None,
    ) -> str:
        """What happened in a trial, as `Campaign.tell`; the answer says what became of it.

        "told": it counts. "again": the same was told already. "late": the trial was given up before; what
        was told is kept, and changes nothing. Something else about a trial that was told is refused.
        """
        columns = (actions, rewards, constraints)
        given = () if all(column is None for column in columns) else columns
        if isinstance(trial, Reserved):
            raise trial.refused("told")
        said = (complete, final_state, states, *given)
        return self._request(functools.partial(self._tell, trial, _key(key), said))

    def abandon(self, trial: Trial | int, ran: bool | None = None) -> None:
        """As `Campaign.abandon`; again, if it was abandoned already, it changes nothing."""

        def work() -> None:
            if _number(trial) not in self._state.abandoned:
                self._happen(admit.abandoned(self._state, _number(trial), ran))

        self._request(work)

    def cancel(self, trial: Trial | Reserved | int) -> None:
        """As `Campaign.cancel`; again, if it was cancelled already, it changes nothing."""

        def work() -> None:
            if _number(trial) not in self._state.cancelled:
                self._happen(admit.cancelled(self._setup, self._state, _number(trial)))

        self._request(work)

    def extend(self, episodes: int) -> None:
        """As `Campaign.extend`."""
        self._request(lambda: self._happen(admit.extended(episodes)))

    @contextmanager
    def trial(self, key: str | None = None) -> Iterator[Running]:
        """A trial while the block lasts: its lease is renewed, and it is abandoned unless it is told."""
        running = Running(self, self.ask(key=key))
        with running.renewing():
            try:
                yield running
            finally:
                if not running.told:
                    self.abandon(running.trial)

    def expire(self) -> list[int]:
        """Give up the trials whose time is over, which every request does first; their numbers."""
        before = set(self._state.out)
        self._request(lambda: None)
        return sorted(before - set(self._state.out))

    def snapshot(self) -> int:
        """Keep the state now, so that it opens sooner; after which record."""
        self._request(self._due)
        return self.last

    def close(self) -> None:
        """Let go of the store; nothing is lost."""
        if self._owner is not None:
            self._owner.close()
        super().close()

    # -- one request -------------------------------------------------------------------------------------

    def _request(self, work: Callable[[], T]) -> T:
        """Do it in turn; its records are durable when this returns."""
        self._alive()
        if self.mode == "read":
            raise StoreFailed(
                f'the campaign {self.name!r} was opened with mode="read"; open it with mode="embedded" to '
                "change it"
            )
        if self._owner is not None:
            found: T = self._owner.do(work)
            return found
        return self._group([work])[0].get()  # type: ignore[no-any-return]

    def _group(self, works: list[Callable[[], Any]]) -> list[Outcome]:
        """Several requests, durable together."""
        with self._lock:
            if self._busy:
                raise InvalidData("the campaign was called from inside a design; it must not be")
            self._busy = True
            try:
                with self._journal.writing(self.header.id) as writer:
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

    # -- what requests do --------------------------------------------------------------------------------

    def _ask(self, n: int, key: str | None, start: bool) -> list[Any]:
        if key is not None and (found := self._of_key(key)) is not None:
            return self._asked_before(found, n)
        if self._answered:
            raise CampaignEnded(f"{self.ended}; nothing more needs to be asked for")
        admit.may_ask(self._setup, self._state)
        n, asked = min(n, self._state.left(self.episodes)), n
        if len(self._state.out) + n > self.max_out:
            raise TooManyOut(
                f"{len(self._state.out)} trials are out, and {n} more are asked for; max_out is "
                f"{self.max_out}: tell, abandon or cancel some, or open the campaign with a larger one"
            )
        given = []
        for i in range(n):
            event = deciding.decide(self._setup, self._state)
            batch = {"n": asked, "given": n} if i == 0 else {}
            self._happen(event, key if i == 0 else None, until=self._until, started=start, **batch)
            given.append(self._handed(event.number))
        return given

    def _handed(self, number: int) -> Trial | Reserved:
        trial = self._state.out[number]
        return trial if self._leases.of[number].started else Reserved(trial.number, trial.kind)

    def _asked_before(self, found: Record, n: int) -> list[Any]:
        if found.kind != ASKED or found.trial is None:
            raise _used(found)
        told = found.told
        if told["n"] != n:
            raise InvalidData(
                f"the key {found.key!r} has asked for {told['n']} trials, not for {n}; use another key"
            )
        numbers = range(found.trial, found.trial + told["given"])
        for number in numbers:
            if number not in self._state.out:
                raise InvalidData(
                    f"trial {number}, which the key {found.key!r} has asked for, {self._fate(number)}; ask "
                    "with another key"
                )
        return [self._handed(number) for number in numbers]

    def _fate(self, number: int) -> str:
        if number in self._state.abandoned:
            return "was abandoned"
        return "was cancelled" if number in self._state.cancelled else "was told"

    def _start(self, number: int) -> Trial:
        trial = admit.find(self._state, number, "given up; it must not run now")
        if not self._leases.of[number].started:
            self._note(STARTED, number, until=self._until)
        return trial

    def _renew(self, number: int) -> None:
        admit.find(self._state, number, "given up; its lease cannot be renewed")
        if not self._leases.of[number].started:
            raise Reserved(number, "").refused("renewed")
        self._note(RENEWED, number, until=self._until)

    def _tell(self, trial: Trial | int, key: str | None, said: tuple[Any, ...]) -> str:
        number = _number(trial)
        used = None if key is None else self._of_key(key)
        if used is not None and (used.trial != number or used.kind not in (TOLD, LATE)):
            raise _used(used)
        if number in self._state.out:
            if not self._leases.of[number].started:
                raise Reserved(number, "").refused("told")
            self._happen(admit.told(self._setup, self._state, trial, *said), key)
            return WAS_TOLD
        if number > self._state.asked or number < 1:
            raise InvalidData(f"trial {number} was never asked; {self._state.asked} were")
        body = body_of(Told(number, admit.seen(self._setup, *said), said[0]))
        before = self._of_trial(number)
        if any(record.kind == TOLD for record in before):
            if all(record.body != body for record in before if record.kind == TOLD):
                raise InvalidData(
                    f"trial {number} was told already, and otherwise; what was told first stands"
                )
            return AGAIN
        if all(record.body != body for record in before if record.kind == LATE):
            self._write(LATE, number, body, key, None, {})
        return WAS_LATE

    def _give_up(self) -> None:
        """Trials whose time is over: what never started is free, what may have run is lost."""
        for number in self._leases.expired(self._now):
            event: Event = Abandoned(number)
            if not self._leases.of[number].started:
                with contextlib.suppress(InvalidData):  # with order="asked", after a later one
                    event = admit.cancelled(self._setup, self._state, number)
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


def _number(trial: Trial | Reserved | Running | int) -> int:
    return checks.whole("trial", trial, 1) if isinstance(trial, int) else int(trial.number)


def _used(record: Record) -> InvalidData:
    """The error of a key that another request has."""
    return InvalidData(
        f"the key {record.key!r} was used for something else: trial {record.trial} {record.kind}"
    )


def _key(key: Any) -> str | None:
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 200):
        raise InvalidData(f"key is {key!r}; it must be a text of 1 to 200 characters")
    return key
