"""What every store can do. A campaign is folded from its records; nothing here knows what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from saver.errors import StoreFailed
from saver.journal.records import Header, Record

PART = 5000  # records that are read at once
Waiting = Callable[[], None] | None


class Writer(Protocol):
    """One transaction: what it wrote is there when the block ends, all of it, or nothing is.

    Others may see it then; it is durable after `Journal.flush`.
    """

    def append(self, records: Sequence[Record]) -> None:
        """Write records, whose numbers go on from the last."""

    def keep(self, seq: int, body: bytes) -> None:
        """A snapshot after record `seq`."""


class Journal(Protocol):
    """Campaigns and their records."""

    name: str  # what messages call it

    def now(self) -> float:
        """Seconds since 1970 by the store's clock."""

    def campaigns(self) -> list[Header]:
        """All of them, in the order of their making."""

    def create(self, header: Header, first: Sequence[Record]) -> Header:
        """A new campaign with its first records, or the one that has its name; the id is the store's."""

    def hold(self, campaign: int, *, alone: bool) -> None:
        """Until `close`: alone, as a leader, or beside others. Refused while that cannot be."""

    def writing(self, campaign: int, meanwhile: Waiting = None) -> AbstractContextManager[Writer]:
        """A transaction that no other process can be in at the same time; `meanwhile` is done before it.

        It is for what need not wait: where several processes want to write, the next does it while another
        still does.
        """

    def flush(self) -> None:
        """What was written, here and by others whom a transaction here has followed, is durable.

        An answer waits for this. It is no part of the transaction: the next one begins meanwhile.
        """

    def records(self, campaign: int, after: int = 0, most: int | None = None) -> list[Record]:
        """Those after a number, in order."""

    def of_key(self, campaign: int, key: str) -> Record | None:
        """The record with this key."""

    def of_trial(self, campaign: int, trial: int) -> list[Record]:
        """What happened to a trial, in order."""

    def snapshots(self, campaign: int) -> list[int]:
        """After which records there are snapshots, in order."""

    def snapshot(self, campaign: int, seq: int) -> bytes:
        """The snapshot after a record."""

    def close(self) -> None:
        """Let go of everything."""


def in_parts(journal: Journal, campaign: int, after: int = 0) -> Iterator[list[Record]]:
    """The records after a number, so many at once that memory is bounded."""
    while part := journal.records(campaign, after, PART):
        yield part
        if len(part) < PART:
            return
        after = part[-1].seq


def held_by(who: str, alone: bool) -> StoreFailed:
    """The error of a campaign that others hold."""
    if alone:
        return StoreFailed(
            f"the campaign is open elsewhere ({who}), and a leader must be alone; close it there, or open it "
            'with mode="embedded"'
        )
    return StoreFailed(
        "a leader holds the campaign; talk to it, or close it and open the campaign anew "
        '(mode="embedded" shares it, mode="leader" does not)'
    )
