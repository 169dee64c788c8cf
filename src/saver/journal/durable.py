"""A campaign whose every step is in a journal before anybody hears of it.

The state in memory is a fold of the journal's records. A request waits for its turn, takes over what others
have written, does its work, and is answered when its records are durable. If they cannot be written, memory
is ahead of the journal: it is thrown away and read anew.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from saver.collect import admit
from saver.collect import decide as deciding
from saver.collect.events import Told
from saver.collect.trial import Trial
from saver.errors import CampaignEnded, InvalidData, TooManyOut
from saver.journal.differences import short
from saver.journal.records import ASKED, LATE, RENEWED, STARTED, TOLD, Record, body_of
from saver.journal.running import Reserved, Running
from saver.journal.writing import Written
from saver.problem import checks

AGAIN, WAS_TOLD, WAS_LATE = "again", "told", "late"
EACH = "(trial, states, actions, rewards, constraints) or (trial, episode)"


class DurableCampaign(Written):
    """A `Campaign` in a store; `saver.open` makes it.

    Any number of processes may share it (mode="embedded"), or one owns it and its threads share it
    (mode="leader"). All answers of `Campaign` are here.
    """

    # -- requests ----------------------------------------------------------------------------------------

    def ask(self, n: int | None = None, *, key: str | None = None, start: bool = True) -> Any:
        """The next episode to run, or with `n` a list of so many; fewer where fewer are left.

        It is out, and durable, before it is handed over, and has started unless start=False: then `start`
        must be called before it is run, and it costs nothing if it never is. With a `key` the same request
        may be repeated, and gives the same trials.
        """
        many = 1 if n is None else checks.whole("n", n, 1)
        if many > self.max_out:
            raise TooManyOut(
                f"n is {many}, and max_out is {self.max_out}; open the campaign with a larger one"
            )
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
        said = complete, final_state, states, actions, rewards, constraints
        return self._request(functools.partial(self._tell_all, [Heard(trial, said, _key(key))]))[0]

    def tell_all(self, told: Iterable[Sequence[Any]]) -> list[str]:
        """What happened in several trials, durable together: sooner than one by one.

        Each is (trial, states, actions, rewards, constraints), or (trial, episode). The answers are those of
        `tell`. If one is refused, none is told.
        """
        heard = _all_heard(told)
        numbers = [_number(one.trial) for one in heard]
        if len(set(numbers)) < len(numbers):
            twice = next(number for number in numbers if numbers.count(number) > 1)
            raise InvalidData(f"trial {twice} is told twice in one call; tell each trial once")
        return self._request(functools.partial(self._tell_all, heard, True)) if heard else []

    def abandon(self, trial: Trial | int, ran: bool | None = None) -> None:
        """As `Campaign.abandon`; again, if it was abandoned already, it changes nothing."""

        def work() -> None:
            if _number(trial) not in self._state.abandoned:
                event = admit.abandoned(self._state, _number(trial), ran)
                self._caution(event.number)
                self._happen(event)

        self._request(work)

    def cancel(self, trial: Trial | Reserved | int, *, unseen: bool = False) -> None:
        """As `Campaign.cancel`; again, if it was cancelled already, it changes nothing.

        Only a trial that was asked for with start=False, and not started, can be cancelled with unseen=True.
        """
        number = _number(trial)

        def work() -> None:
            if number in self._state.cancelled:
                return
            event = admit.cancelled(self._setup, self._state, number, unseen)
            if unseen and self._leases.of[number].started:
                raise InvalidData(
                    f"unseen is True, but trial {number} was started, and where it starts may have been seen "
                    "in another process; ask with start=False what may be cancelled so, or cancel it without "
                    "unseen=True"
                )
            self._caution(number)
            self._happen(event)

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
                    self._request(functools.partial(self._leave, running.number))

    def expire(self) -> list[int]:
        """Give up the trials whose time is over, which every request does first; their numbers."""
        before = set(self._state.out)
        self._request(lambda: None)
        return sorted(before - set(self._state.out))

    def snapshot(self) -> int:
        """Keep the state now, so that it opens sooner; after which record."""
        self._request(self._due)
        return self.last

    # -- what requests do --------------------------------------------------------------------------------

    def _ask(self, n: int, key: str | None, start: bool) -> list[Any]:
        if key is not None and (found := self._of_key(key)) is not None:
            return self._asked_before(found, n, start)
        if self._answered:
            raise CampaignEnded(f"{self.ended}; nothing more needs to be asked for")
        admit.may_ask(self._setup, self._state)
        n, asked = min(n, self._state.left(self._setup.episodes)), n
        if len(self._state.out) + n > self.max_out:
            raise TooManyOut(
                f"{len(self._state.out)} trials are out, and {n} more are asked for; max_out is "
                f"{self.max_out}: tell, abandon or cancel some, or open the campaign with a larger one"
            )
        if start:
            self._in_order(self._state.asked + 1)
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

    def _asked_before(self, found: Record, n: int, start: bool) -> list[Any]:
        """Those that are still out: what was told or given up must not run again."""
        if found.kind != ASKED or found.trial is None:
            raise _used(found)
        told = found.told
        if told["n"] != n:
            raise InvalidData(
                f"the key {found.key!r} has asked for {told['n']} trials, not for {n}; use another key"
            )
        if told["started"] != start:
            raise InvalidData(f"the key {found.key!r} has asked with start={not start}; use another key")
        numbers = range(found.trial, found.trial + told["given"])
        out = [number for number in numbers if number in self._state.out]
        if not out:
            first = numbers[0]
            raise InvalidData(
                f"trial {first}, which the key {found.key!r} has asked for, {self._fate(first)}, and none of "
                "its trials is out; ask with another key"
            )
        return [self._handed(number) for number in out]

    def _fate(self, number: int) -> str:
        if number in self._state.abandoned:
            return "was abandoned"
        return "was cancelled" if number in self._state.cancelled else "was told"

    def _start(self, number: int) -> Trial:
        trial = admit.find(self._state, number, "given up; it must not run now")
        self._in_order(number)
        if not self._leases.of[number].started:
            self._note(STARTED, number, until=self._until)
        return trial

    def _in_order(self, number: int) -> None:
        """With order="asked" no trial starts before one that was asked earlier and is still reserved."""
        if self._setup.order != "asked":
            return
        waits = [n for n, lease in self._leases.of.items() if n < number and not lease.started]
        if waits:
            raise InvalidData(
                f"trial {number} cannot start before trial {min(waits)}, which is reserved: the campaign was "
                "declared with order='asked'; start or cancel the earlier ones first"
            )

    def _renew(self, number: int) -> None:
        admit.find(self._state, number, "given up; its lease cannot be renewed")
        if not self._leases.of[number].started:
            raise Reserved(number, "").refused("renewed")
        self._note(RENEWED, number, until=self._until)

    def _leave(self, number: int) -> None:
        """The end of a block in which nothing was told."""
        if number in self._state.out:
            self._caution(number)
            self._happen(admit.abandoned(self._state, number, None))

    def _tell_all(self, heard: list[Heard], several: bool = False) -> list[str]:
        """All are looked at before anything happens."""
        events = []
        for i, one in enumerate(heard):
            try:
                events.append(self._admitted(*one))
            except InvalidData as refused:
                if not several:
                    raise
                raise InvalidData(f"told[{i}], trial {_number(one.trial)}: {refused}") from None
        return [self._take_in(event, one.key) for event, one in zip(events, heard, strict=True)]

    def _admitted(self, trial: Any, said: tuple[Any, ...], key: str | None) -> Told:
        if isinstance(trial, Reserved):
            raise trial.refused("told")
        trial = trial.trial if isinstance(trial, Running) else trial
        number, used = _number(trial), None if key is None else self._of_key(key)
        if used is not None and (used.trial != number or used.kind not in (TOLD, LATE)):
            raise _used(used)
        if number in self._state.out:
            if not self._leases.of[number].started:
                raise Reserved(number, "").refused("told")
            return admit.told(self._setup, self._state, trial, *said)
        if number > self._state.asked or number < 1:
            raise InvalidData(f"trial {number} was never asked; {self._state.asked} were")
        late = Told(number, admit.seen(self._setup, *said), said[0])
        body = body_of(late)
        if used is not None and not used.says(body):
            raise InvalidData(f"the key {key!r} has told something else of trial {number}; use another key")
        if any(record.kind == TOLD and not record.says(body) for record in self._of_trial(number)):
            raise InvalidData(f"trial {number} was told already, and otherwise; what was told first stands")
        return late

    def _take_in(self, event: Told, key: str | None) -> str:
        """What became of what was told."""
        number = event.number
        if number in self._state.out:
            self._happen(event, key)
            return WAS_TOLD
        body, before = body_of(event), self._of_trial(number)
        if any(record.kind == TOLD for record in before):
            return AGAIN
        if all(not record.says(body) for record in before if record.kind == LATE):
            self._write(LATE, number, body, key, None, {})
        return WAS_LATE


class Heard(NamedTuple):
    """What was said of a trial: whether it is complete, where it ended, and its columns."""

    trial: Any
    said: tuple[Any, ...]
    key: str | None = None


def _number(trial: Trial | Reserved | Running | int) -> int:
    if isinstance(trial, Trial | Reserved | Running):
        return int(trial.number)
    return checks.whole("trial", trial, 1)


def _all_heard(told: Any) -> list[Heard]:
    """What `tell_all` was given, item by item."""
    if isinstance(told, str | dict) or not isinstance(told, Iterable):
        raise InvalidData(f"told is {short(told)}; it must hold {EACH}")
    heard = []
    for i, item in enumerate(told):
        if not isinstance(item, tuple | list) or len(item) not in (2, 5):
            raise InvalidData(f"told[{i}] is {short(item)}; it must be {EACH}")
        heard.append(Heard(item[0], (True, None, *item[1:])))
    return heard


def _used(record: Record) -> InvalidData:
    """The error of a key that another request has."""
    return InvalidData(
        f"the key {record.key!r} was used for something else: trial {record.trial} {record.kind}"
    )


def _key(key: Any) -> str | None:
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= 200:
        raise InvalidData(f"key is {short(key)}; it must be a text of 1 to 200 characters")
    if "\0" in key or key.encode(errors="replace").decode() != key:
        raise InvalidData(f"key is {key!r}, which no store can keep; leave out \\0 and halves of characters")
    return key
