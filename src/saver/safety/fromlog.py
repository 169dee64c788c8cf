"""The ledger of the promise where a log shows what some policies are worth: step 16 of docs/proof/logs.md.

The larger of two: what the campaign's own returns say (`ModelFree`, with the rest of delta), in which a trial
of such a policy is worth at least what the log shows; and what the log shows alone,

    sum of floor_j over the designed trials + n_B credit,

floor_j = min over the episodes of b_j of V(b_j) - r0 - r1 V0, which is a difference: what the policy and the
baseline share is in both. Nothing that trials hide is in it: it is about policies, whatever comes of them. A
trial of any other policy counts there as the least that an episode can be worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from saver._types import Floats
from saver.play.stage import Play
from saver.problem.codec import portable
from saver.problem.history import Logged
from saver.safety.ledger import Book, Ledger, Seen, Terms, Ticket
from saver.safety.modelfree import LOG, ModelFree


@portable("log-ticket")
@dataclass(frozen=True, eq=False)
class LogTicket(Ticket):
    """Also what a trial is worth at least above what is required, and the ticket of the other ledger."""

    floor: float = 0.0
    main: Any = None


@portable("log-book")
@dataclass(eq=False)
class LogBook(Book):
    """Also what the log shows of the told designed trials, and the book of the other ledger."""

    shown: float = 0.0
    main: Any = None


class FromLog(Ledger):
    """The larger of what a log shows and of what the campaign's own returns say."""

    certifies = True

    def __init__(self, terms: Terms, kind: type[ModelFree]) -> None:
        super().__init__(terms)
        self.main = kind(terms.of(replace(terms.rail, level=(1.0 - LOG) * terms.rail.level)))

    # -- what the other ledger knows ---------------------------------------------------------------------

    def open(self) -> LogBook:
        """Nothing asked."""
        return LogBook(main=self.main.open())

    def values(self, book: Any) -> tuple[float, ...]:
        """The ends between which V0 lies."""
        return self.main.values(book.main)

    def value(self, book: Any) -> float:
        """V0 as it is believed."""
        return self.main.value(book.main)

    def exact(self, play: Play) -> bool:
        """Whether a policy is the baseline."""
        return self.main.exact(play)

    def ends(self, book: Any) -> tuple[Floats, Floats]:
        """Nothing is learned of single pairs."""
        return self.main.ends(book.main)

    def floor_value(self, play: Play) -> float:
        """What any policy is worth at least."""
        return self.main.floor_value(play)

    def lower(self, book: Any, play: Play) -> float:
        """What a policy is worth at least."""
        return self.main.lower(book.main, play)

    def pace(self, book: Any, done: int, baseline: int, remaining: int) -> float:
        """As the returns can afford."""
        return self.main.pace(book.main, done, baseline, remaining)

    def learn(self, book: Any, logged: Logged) -> None:
        """Baseline episodes of the past."""
        self.main.learn(book.main, logged)

    # -- trials ------------------------------------------------------------------------------------------

    def shown(self, play: Play) -> float | None:
        """What the log shows."""
        return self.main.shown(play)

    def floor(self, play: Play) -> float:
        """The same, of any policy."""
        found = self.shown(play)
        if found is not None:
            return found
        return self.floor_value(play) - self.rail.most_required

    def freeze(self, book: Any, play: Play, baseline: bool, believed: float | None = None) -> LogTicket:
        """What is known of a trial before it runs."""
        main = self.main.freeze(book.main, play, baseline, believed)
        floor = 0.0 if main.baseline else self.floor(play)
        return LogTicket(baseline=main.baseline, cost=min(0.0, floor), floor=floor, main=main)

    def ask(self, book: Any, number: int, ticket: Any, play: Play) -> None:
        """A trial goes out."""
        self.main.ask(book.main, number, ticket.main, play)
        super().ask(book, number, replace(ticket, main=None), play)

    def resume(self, book: Any, number: int, play: Play) -> None:
        """A trial that is out, after a restart."""
        self.main.resume(book.main, number, play)

    def note_safe(self, book: Any, episode: Seen) -> None:
        """The other ledger does."""
        return

    def tell(self, book: Any, number: int, play: Play, episode: Seen, complete: bool = True) -> None:
        """A trial came back: its policy is worth what it was, also if it was cut off."""
        ticket = self.close(book, number, episode, complete)
        book.shown += ticket.floor
        self.main.tell(book.main, number, play, episode, complete)

    def abandon(self, book: Any, number: int, play: Play, ran: bool) -> None:
        """It may have run, or did; what it was worth does not depend on what came of it."""
        ticket = book.out[number]
        if ran and not ticket.baseline:
            book.out[number] = replace(ticket, cost=ticket.floor)
        super().abandon(book, number, play, ran=ran and ticket.baseline)
        self.main.abandon(book.main, number, play, ran)

    def cancel(self, book: Any, number: int, unseen: bool) -> None:
        """It never ran."""
        super().cancel(book, number, unseen)
        self.main.cancel(book.main, number, unseen)

    # -- budgets -----------------------------------------------------------------------------------------

    def earned(self, book: Any) -> float:
        """What the returns of the told designed trials say."""
        return self.main.earned(book.main)

    def known(self, book: Any) -> float:
        """The budget that the log shows alone."""
        credit = self.credit(book)
        safe = (book.baseline_told + book.safe_ran) * credit + book.safe_may * min(0.0, credit)
        out = sum(min(0.0, credit) if ticket.baseline else ticket.cost for ticket in book.out.values())
        return float(safe + book.shown + book.lost + out)

    def budget(self, book: Any) -> float:
        """The larger."""
        return max(self.main.budget(book.main), self.known(book))

    def after(self, book: Any, low: float) -> float:
        """As the returns have it."""
        return self.main.after(book.main, low)

    def next(self, book: Any, play: Play) -> float:
        """The believed budget if one more trial of a policy runs; the log's, of policies that it shows."""
        found, shown = super().next(book, play), self.shown(play)
        return found if shown is None else max(found, self.known(book) + shown)
