"""What a journal holds: records of what happened, each sealed by a hash of all before it."""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any, NamedTuple

from saver.collect.events import Abandoned, Asked, Cancelled, Event, Extended, Learned, Told
from saver.errors import InvalidData
from saver.problem.codec import pack, read

CREATED, LEARNED, ASKED, STARTED, RENEWED = "created", "learned", "asked", "started", "renewed"
TOLD, LATE, ABANDONED, CANCELLED, EXTENDED = "told", "late", "abandoned", "cancelled", "extended"
KINDS: dict[type, str] = {
    Asked: ASKED,
    Told: TOLD,
    Abandoned: ABANDONED,
    Cancelled: CANCELLED,
    Learned: LEARNED,
    Extended: EXTENDED,
}
EVENTS = frozenset(KINDS.values())
LARGEST = 2**24  # bytes of a record, but for history
FEW = 32  # entries of an array that is written as it is
FIRST = b"\0" * 32  # the seal before the first record


_written = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_quoted = functools.lru_cache(1024)(json.dumps)


class Header(NamedTuple):
    """A campaign that a journal holds.

    Attributes:
        id: its number in the journal.
        name: what users call it.
        fingerprint: a hash of `setup`.
        setup: problem, collector and all that a campaign is made of, as JSON.
        versions: of what made it, as JSON.
        created: when, by the store's clock.
    """

    id: int
    name: str
    fingerprint: str
    setup: str
    versions: str
    created: float


class Record(NamedTuple):
    """Something that happened.

    Attributes:
        seq: from 1, without a gap.
        kind: one of the words above.
        trial: its number, or None.
        key: what a client calls its request, or None.
        body: JSON.
        chain: sha256 of the chain before and of all of the above and below.
        at: when, by the store's clock.
        actor: who wrote it.
    """

    seq: int
    kind: str
    trial: int | None
    key: str | None
    body: bytes
    chain: bytes
    at: float
    actor: str

    def sealed(self, before: bytes) -> Record:
        """With its chain, after that of the record before."""
        seq, kind, trial, key, body, _, at, actor = self
        of, said = "null" if trial is None else trial, "null" if key is None else json.dumps(key)
        head = f'[{seq}, "{kind}", {of}, {said}, {at!r}, {_quoted(actor)}]'  # JSON
        chain = hashlib.sha256(b"\0".join((before, head.encode(), body))).digest()
        return Record(seq, kind, trial, key, body, chain, at, actor)

    @property
    def told(self) -> dict[str, Any]:
        """The body, read."""
        found: dict[str, Any] = json.loads(self.body.decode())
        return found

    def says(self, body: bytes) -> bool:
        """Whether the body is this one, however it was written."""
        return self.body == body or (self.event is not None and body_of(self.event) == body)

    @property
    def event(self) -> Event | None:
        """What the campaign is to apply, if anything."""
        return self.read()[0]

    def read(self) -> tuple[Event | None, dict[str, Any]]:
        """What the campaign is to apply, if anything: what came late is nothing; and what else is kept."""
        if self.kind not in EVENTS:
            return None, self.told
        told = read(self.body.decode())
        return told.pop("event"), told


def body_of(event: Event | None = None, **more: Any) -> bytes:
    """An event, and what else is kept with it, as JSON."""
    plain = more if event is None else {"event": pack(event, small=True, few=FEW), **more}
    body = _written(plain).encode()
    if len(body) > LARGEST and not isinstance(event, Learned):
        raise InvalidData(
            f"what was told takes {len(body) / 2**20:,.0f} MB; one episode may take {LARGEST // 2**20} MB"
        )
    return body
