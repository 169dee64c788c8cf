"""Reads a campaign anew from its first record, and compares it with everything that is kept of it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

from saver.collect.snapshot import FORMAT
from saver.errors import StoreFailed
from saver.journal.folding import Folded, Stated, read
from saver.journal.protocol import Journal
from saver.journal.records import Header, Record


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


def verify(
    journal: Journal, header: Header, stated: Stated, seq: int, image: dict[str, Any] | None = None
) -> Verified:
    """Refuse a journal whose records, snapshots or live `image` at record `seq` do not belong together."""
    kept = [place for place in journal.snapshots(header.id) if place <= seq]
    replay = Replay(_Bare(journal), header, stated)  # type: ignore[arg-type]
    older = 0
    for place in (*kept, seq):
        replay.follow(place)
        if place in kept and not _same(header, place, replay.image(), journal.snapshot(header.id, place)):
            older += 1
    if image is not None and replay.image() != image:
        raise StoreFailed(
            f"the campaign {header.name!r} in memory is not what its {seq} records make; open it anew"
        )
    return Verified(seq, len(kept) - older, replay.image()["chain"])


def _same(header: Header, place: int, made: dict[str, Any], body: bytes) -> bool:
    """Whether a snapshot is of this version, and then what the records make; others are left aside."""
    try:
        kept = read(body)
        form = kept["campaign"]["format"]
    except (zlib.error, ValueError, KeyError, TypeError):
        kept, form = {}, FORMAT
    if isinstance(form, int) and form < FORMAT:
        return False
    if made != kept:
        raise StoreFailed(
            f"the snapshot of {header.name!r} after record {place} is not what the records before it make; "
            "it was changed: restore a backup"
        )
    return True


class _Bare:
    """A journal without its snapshots, as far as it is wanted."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.name, self.end = journal, journal.name, 0

    def snapshots(self, campaign: int) -> list[int]:
        return []

    def records(self, campaign: int, after: int = 0, most: int | None = None) -> list[Record]:
        left = self.end - after
        return (
            self.journal.records(campaign, after, left if most is None else min(left, most))
            if left > 0
            else []
        )


class Replay(Folded):
    """A campaign that only reads."""

    def follow(self, seq: int) -> None:
        """Up to a record."""
        self._journal.end = seq  # type: ignore[attr-defined]
        self._catch_up()
        if self._seq != seq:
            raise StoreFailed(f"the campaign {self.name!r} has {self._seq} records, and {seq} were there")
