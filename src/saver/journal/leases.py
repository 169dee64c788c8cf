"""How long a trial may take, and what becomes of it then."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from saver.journal.records import ABANDONED, ASKED, CANCELLED, RENEWED, STARTED, TOLD, Record


@dataclass(frozen=True)
class Lease:
    """Of a trial that is out.

    Attributes:
        until: when it expires, by the store's clock; None: never.
        started: whether it may have run; only what was not is free when it expires.
    """

    until: float | None
    started: bool = True


class Leases:
    """Those of all trials that are out, by number; folded from records."""

    def __init__(self, plain: dict[str, Any] | None = None) -> None:
        self.of = {int(number): Lease(*item) for number, item in (plain or {}).items()}

    def plain(self) -> dict[str, Any]:
        """For a snapshot."""
        return {str(number): [lease.until, lease.started] for number, lease in self.of.items()}

    def after(self, record: Record, told: dict[str, Any]) -> None:
        """What a record does to them."""
        if record.trial is None:
            return
        if record.kind == ASKED:
            self.of[record.trial] = Lease(told["until"], told["started"])
        elif record.kind in (STARTED, RENEWED):
            self.of[record.trial] = Lease(told["until"], True)
        elif record.kind in (TOLD, ABANDONED, CANCELLED):
            self.of.pop(record.trial, None)

    def expired(self, now: float) -> list[int]:
        """The trials whose time is over, the latest first: with order="asked" they can be cancelled so."""
        late = (
            number
            for number, lease in self.of.items()
            if now > (math.inf if lease.until is None else lease.until)
        )
        return sorted(late, reverse=True)
