"""A campaign as a fold of a journal's records: read, followed, thrown away, read anew and compared.

No thread and no lock is here, and nothing is written: `writing` does that.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from saver._jit import plainly
from saver.collect import snapshot
from saver.collect.campaign import Campaign, happen
from saver.collect.collectors import Collector
from saver.collect.events import Event, Recalled
from saver.collect.setup import Setup
from saver.collect.state import State
from saver.errors import StoreFailed
from saver.journal.protocol import CREATED, FIRST, LAST, Header, Journal, Record, in_parts
from saver.problem.statement import Problem


@dataclass(frozen=True)
class Lease:
    """Of a trial that is out.

    Attributes:
        until: when it expires, by the store's clock; None: never.
        started: whether it may have run; only what was not is free when it expires.
    """

    until: float | None
    started: bool = True


class Stated(NamedTuple):
    """What a campaign is made of."""

    problem: Problem  # what is asked
    collector: Collector  # how data are collected
    setup: Callable[[], Setup]  # prepares both, which may take long, and is done where it must
    plain: dict[str, Any]  # what is stored, and must be the same when the campaign is opened again
    learned: Recalled | None = None  # what is known before the first trial, if anything


def made_of(journal: Journal, header: Header) -> dict[str, Any]:
    """As it was stored; refused if it was changed since: what a campaign promises hangs on that."""
    first = journal.records(header.id, 0, 1)
    if not first or first[0].kind != CREATED or first[0].sealed(FIRST).chain != first[0].chain:
        raise StoreFailed(
            f"{journal.name}, campaign {header.name!r}: the record of its making is missing or was changed; "
            "restore a backup"
        )
    told = first[0].told
    try:
        if told["setup"] != header.fingerprint or told.get("text", header.seal) != header.seal:
            raise ValueError
        return dict(json.loads(header.setup))
    except ValueError:
        raise StoreFailed(
            f"what the campaign {header.name!r} is said to be made of was changed or damaged since it was "
            "made; restore a backup"
        ) from None


class Fold:
    """What the records so far make of a campaign, and of the leases of its trials that are out.

    `setup`, `state` (one object, which changes record by record) and `campaign`, which answers from both;
    `leases` by the numbers of trials; `seq`, `chain` and `at` of the last record. `stale`: memory is not what
    the records make, and must be read anew. `kept`: after which record there is a snapshot, as far as is
    known here. `warned`: `caution` has been said.
    """

    def __init__(self, journal: Journal, header: Header, stated: Stated) -> None:
        self.journal, self.header, self.stated = journal, header, stated
        self.id, self.name = header.id, header.name

    def begin(self) -> None:
        """Before the first record."""
        setup = self.stated.setup()
        with plainly(setup.small):
            state = State.begin(setup, self.stated.plain["seed"])
        self._set(setup, state, {}, 0, FIRST, -math.inf)

    def _set(
        self, setup: Setup, state: State, leases: dict[int, Lease], seq: int, chain: bytes, at: float
    ) -> None:
        self.setup, self.state, self.leases = setup, state, leases
        self.seq, self.chain, self.at = seq, chain, at
        self.campaign, self.stale, self.warned = Campaign.of(setup, state), False, False

    def reload(self) -> None:
        """From the last snapshot, or from the beginning."""
        kept = self.journal.snapshots(self.id)
        while kept and not self._recalled(kept[-1]):
            kept.pop()
        self.kept = kept[-1] if kept else 0
        if not kept:
            self.begin()
        self.follow()

    def _recalled(self, place: int) -> bool:
        """From a snapshot; a damaged one is left aside, as the records are all there: `verify` names it."""
        try:
            image = read(self.journal.snapshot(self.id, place))
            setup, state, _ = snapshot.load(self.stated.problem, self.stated.collector, image["campaign"])
            leases = {int(number): Lease(*item) for number, item in image["leases"].items()}
            self._set(setup, state, leases, image["seq"], bytes.fromhex(image["chain"]), image["at"])
        except (zlib.error, ValueError, KeyError, TypeError):
            return False
        return True

    def follow(self, until: int | None = None) -> None:
        """What was written since, by anybody; up to a record, which must be there."""
        for part in in_parts(self.journal, self.id, self.seq, LAST if until is None else until):
            for record in part:
                if record.seq != self.seq + 1 or record.sealed(self.chain).chain != record.chain:
                    raise StoreFailed(
                        f"{self.journal.name}, campaign {self.name!r}: record {record.seq} does not "
                        "follow from those before it; it was changed or damaged: restore a backup"
                    )
                self.take(record, *record.read())
        if until not in (None, self.seq):
            raise StoreFailed(f"the campaign {self.name!r} has {self.seq} records, and {until} were there")

    def take(self, record: Record, event: Event | None, more: dict[str, Any]) -> None:
        """What a record does: to the campaign, and to leases."""
        self.stale = True  # until all of it has happened
        if event is not None:
            happen(self.setup, self.state, event)
        if record.trial is not None and "until" in more:  # it was asked for, starts, or its lease is renewed
            self.leases[record.trial] = Lease(more["until"], more.get("started", True))
        elif record.trial is not None and event is not None:
            self.leases.pop(record.trial, None)
        self.chain, self.seq, self.at, self.stale = record.chain, record.seq, record.at, False

    def image(self) -> dict[str, Any]:
        """All that the records so far have made, as plain data."""
        return {
            "campaign": snapshot.dump(self.setup, self.state),
            "leases": {str(number): [lease.until, lease.started] for number, lease in self.leases.items()},
            "seq": self.seq,
            "at": self.at,
            "chain": self.chain.hex(),
        }


def read(body: bytes) -> dict[str, Any]:
    """An image from bytes."""
    return dict(json.loads(zlib.decompress(body)))


def pressed(image: dict[str, Any]) -> bytes:
    """An image as bytes."""
    return zlib.compress(json.dumps(image, separators=(",", ":")).encode(), 1)


# -- everything anew, from the first record, compared with all that is kept of it ----------------------------


@dataclass(frozen=True)
class Verified:
    """What was found in order.

    Attributes:
        records: read, each sealed by the one before.
        snapshots: compared with the records before them, bit by bit.
        chain: the last seal, in hex: keep it elsewhere, and nobody can change the past unseen.
    """

    records: int
    snapshots: int
    chain: str


def verify(live: Fold) -> Verified:
    """Refuse a journal whose records, snapshots or live image do not belong together."""
    anew, same = Fold(live.journal, live.header, live.stated), 0
    anew.begin()
    for place in live.journal.snapshots(live.id):
        if place <= live.seq:
            anew.follow(place)
            same += _same(anew, live.journal.snapshot(live.id, place))
    anew.follow(live.seq)
    if anew.image() != live.image():
        raise StoreFailed(
            f"the campaign {live.name!r} in memory is not what its {live.seq} records make; open it anew"
        )
    return Verified(live.seq, same, anew.chain.hex())


def _same(made: Fold, body: bytes) -> bool:
    """Whether a snapshot is of this version, and then what the records make; others are left aside."""
    try:
        kept = read(body)
    except (zlib.error, ValueError, TypeError):
        kept = {}
    match kept:
        case {"campaign": {"format": int(form)}} if form < snapshot.FORMAT:
            return False
    if made.image() != kept:
        raise StoreFailed(
            f"the snapshot of {made.name!r} after record {made.seq} is not what the records before it make; "
            "it was changed: restore a backup"
        )
    return True
