"""What a request says, what it finds, and what is handed out: trials, reserved or in a block."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from saver.collect import admit
from saver.collect.events import Told, Trial
from saver.errors import InvalidData, SaverError
from saver.journal.protocol import ASKED, LATE, TOLD, Record, body_of
from saver.journal.writing import Writing
from saver.problem import checks

EACH = "(trial, states, actions, rewards, constraints) or (trial, episode)"
BEATS = 3  # renewals in the time of a lease
LONGEST = 3600.0  # seconds between two
SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True)
class Reserved:
    """A trial that was asked for with start=False: `campaign.start` makes a `Trial` of it."""

    number: int
    kind: str

    def act(self, step: int, state: Any) -> Any:
        """Refused."""
        raise self.refused("acted in")

    def refused(self, what: str) -> InvalidData:
        """The error of what needs a trial that was started."""
        return InvalidData(
            f"trial {self.number} is reserved and was not started, so it cannot be {what}; call "
            "campaign.start(trial) first"
        )


class Running:
    """A trial in a `with campaign.trial()` block.

    Attributes:
        number, kind: of the trial.
        told: what became of what was told here; empty before.
    """

    def __init__(self, campaign: Any, trial: Trial) -> None:
        self.campaign, self.trial, self.told = campaign, trial, ""
        self.number, self.kind = trial.number, trial.kind

    def act(self, step: int, state: Any) -> Any:
        """The action to take, as `Trial.act`."""
        return self.trial.act(step, state)

    def tell(self, *columns: Any, **options: Any) -> str:
        """What happened: "told", "again" or "late", as `DurableCampaign.tell`."""
        self.told = self.campaign.tell(self.trial, *columns, **options)
        return self.told

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """A thread renews the lease until the block ends; what was given up meanwhile is told late."""
        if self.campaign.lease is None:
            yield
            return
        over = threading.Event()

        def beat() -> None:
            while not over.wait(min(self.campaign.lease / BEATS, LONGEST)):
                with contextlib.suppress(SaverError):
                    self.campaign.renew(self.trial)

        thread = threading.Thread(target=beat, daemon=True, name=f"lease of trial {self.number}")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def handed(on: Writing, number: int) -> Trial | Reserved:
    """A trial that is out, as it may be used."""
    trial = on.fold.state.out[number]
    return trial if on.fold.leases[number].started else Reserved(trial.number, trial.kind)


def asked_before(on: Writing, found: Record, n: int, start: bool) -> list[Trial | Reserved]:
    """Those of a key's trials that are still out: what was told or given up must not run again."""
    if found.kind != ASKED or found.trial is None:
        raise _used(found)
    told, state, first, key = found.told, on.fold.state, found.trial, found.key
    if told["n"] != n:
        raise InvalidData(f"the key {key!r} has asked for {told['n']} trials, not for {n}; use another key")
    if told["started"] != start:
        raise InvalidData(f"the key {key!r} has asked with start={not start}; use another key")
    out = [number for number in range(first, first + told["given"]) if number in state.out]
    if not out:
        fates = (("abandoned", state.abandoned), ("cancelled", state.cancelled))
        fate = next((fate for fate, numbers in fates if first in numbers), "told")
        raise InvalidData(
            f"trial {first}, which the key {key!r} has asked for, was {fate}, and none of its trials is out; "
            "ask with another key"
        )
    return [handed(on, number) for number in out]


def has_started(on: Writing, number: int, what: str) -> None:
    """A trial that is out and only reserved cannot be renewed or told."""
    if not on.fold.leases[number].started:
        raise Reserved(number, "").refused(what)


def in_order(on: Writing, number: int) -> None:
    """With order="asked" no trial starts before one that was asked earlier and is still reserved."""
    if on.fold.setup.order != "asked":
        return
    waits = [n for n, lease in on.fold.leases.items() if n < number and not lease.started]
    if waits:
        raise InvalidData(
            f"trial {number} cannot start before trial {min(waits)}, which is reserved: the campaign was "
            "declared with order='asked'; start or cancel the earlier ones first"
        )


class Heard(NamedTuple):
    """What was said of a trial: whether it is complete, where it ended, and its columns."""

    trial: Any
    said: tuple[Any, ...]
    key: str | None = None


def all_heard(told: Any) -> list[Heard]:
    """What `tell_all` was given, item by item."""
    if isinstance(told, str | dict) or not isinstance(told, Iterable):
        raise InvalidData(f"told is {short(told)}; it must hold {EACH}")
    heard = []
    for i, item in enumerate(told):
        if not isinstance(item, tuple | list) or len(item) not in (2, 5):
            raise InvalidData(f"told[{i}] is {short(item)}; it must be {EACH}")
        heard.append(Heard(item[0], (True, None, *item[1:])))
    numbers = [number_of(one.trial) for one in heard]
    if len(set(numbers)) < len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise InvalidData(f"trial {twice} is told twice in one call; tell each trial once")
    return heard


def admitted(on: Writing, heard: Heard) -> tuple[str, Callable[[], None]]:
    """What was said, looked at: what becomes of it, and how it takes effect; nothing happens yet."""
    trial, said, key = heard
    if isinstance(trial, Reserved):
        raise trial.refused("told")
    trial = trial.trial if isinstance(trial, Running) else trial
    setup, state = on.fold.setup, on.fold.state
    number, used = number_of(trial), None if key is None else on.of_key(key)
    if used is not None and (used.trial != number or used.kind not in (TOLD, LATE)):
        raise _used(used)
    if number in state.out:
        has_started(on, number, "told")
        return "told", partial(on.happen, admit.told(setup, state, trial, *said), key=key)
    if number > state.asked or number < 1:
        raise InvalidData(f"trial {number} was never asked; {state.asked} were")
    body = body_of(Told(number, admit.seen(setup, *said), said[0]))
    if used is not None and not used.says(body):
        raise InvalidData(f"the key {key!r} has told something else of trial {number}; use another key")
    for record in on.of_trial(number):
        if record.kind in (TOLD, LATE) and record.says(body):
            return "again" if record.kind == TOLD else "late", lambda: None
        if record.kind == TOLD:
            raise InvalidData(f"trial {number} was told already, and otherwise; what was told first stands")
    return "late", partial(on.write, LATE, number, key, body)


def number_of(trial: Trial | Reserved | Running | int) -> int:
    """Of the trial that is meant."""
    if isinstance(trial, Trial | Reserved | Running):
        return int(trial.number)
    return checks.whole("trial", trial, 1)


def key_of(key: Any) -> str | None:
    """A key that every store can keep."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= 200:
        raise InvalidData(f"key is {short(key)}; it must be a text of 1 to 200 characters")
    if "\0" in key or key.encode(errors="replace").decode() != key:
        raise InvalidData(f"key is {key!r}, which no store can keep; leave out \\0 and halves of characters")
    return key


def short(value: Any) -> str:
    """A value as it is said in a message."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _used(by: Record) -> InvalidData:
    """The error of a key that another request has."""
    return InvalidData(f"the key {by.key!r} was used for something else: trial {by.trial} {by.kind}")
