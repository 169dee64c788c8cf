"""Trials as a durable campaign hands them out: reserved, or running with a lease that is renewed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from saver.collect.trial import Trial
from saver.errors import InvalidData, SaverError

BEATS = 3  # renewals in the time of a lease
LONGEST = 3600.0  # seconds between two


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
    """A trial in a `with campaign.trial()` block."""

    def __init__(self, campaign: Any, trial: Trial) -> None:
        self.campaign, self.trial, self.told = campaign, trial, ""

    @property
    def number(self) -> int:
        """Of the trial."""
        return self.trial.number

    @property
    def kind(self) -> str:
        """Of the trial."""
        return self.trial.kind

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
