"""What a ledger is: rules that say what is believed about the constraint value earned so far.

budget = sum over told trials of (value - required), required = r0 + r1 V0 of one guardrail, V0 the
baseline's value, which is what a baseline trial counts with. A trial that is out, or was abandoned, may or
may not run: it counts with min(0, low - required), where low is the least that it can be worth: V(b; floor),
or what is known. Where V0 is not known exactly the budget is the least over what V0 may be; for any set of
trials that ran it is linear in V0, so two ends suffice (`values`).

A ledger never changes; what it writes stands in its book, which is plain data and the ledger's own. To add a
ledger: a subclass of `Ledger` with its book in a file of its own, and a row in `registry.LEDGERS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.play.stage import Play, Stage
from saver.problem.codec import portable
from saver.problem.episode import Episode
from saver.problem.guardrail import Rail
from saver.problem.history import Logged
from saver.problem.statement import Problem

LOSSES = ("hostile", "random")  # who chooses what is told: somebody who may know the outcomes, or chance
ORDERS = ("any", "asked")  # in which trials start
Seen = Episode | None  # what is to be learned of a trial: nothing where it is None


class Terms(NamedTuple):
    """What a ledger is made for."""

    problem: Problem
    episodes: int
    stage: Stage
    losses: str = "hostile"
    order: str = "any"
    own: Rail | None = None
    shown: Any = None  # `Shown`: what a log shows of some policies

    def of(self, rail: Rail) -> Terms:
        """The same of another guardrail."""
        return self._replace(own=rail)

    @property
    def rail(self) -> Rail:
        """What is guarded; the problem's first where nothing else is said."""
        return self.own or self.problem.rails[0]

    @property
    def one_way(self) -> bool:
        """Whether all trials that count for something go one way: where V0 is learned, the baseline's too.

        Where no way is known, a trial is one observation of what it is worth: then it has but one, too.
        """
        if not self.problem.mdp.known:
            return True
        sure = not self.rail.learned or self.stage.play(self.problem.baseline).sure
        return self.stage.deterministic and sure


@portable("ticket")
@dataclass(frozen=True, eq=False)
class Ticket:
    """What a ledger freezes when a trial is asked.

    Attributes:
        baseline: the trial is worth exactly what the baseline is.
        cost: what it may cost while it is out, at most 0.
    """

    baseline: bool = False
    cost: float = 0.0


@portable("book")
@dataclass(eq=False)
class Book:
    """What every ledger writes down.

    Attributes:
        baseline_told: trials that were credited as baseline episodes.
        designed_told: the other told trials.
        lost: what abandoned trials may have cost.
        safe_ran, safe_may: of the abandoned trials, the baseline episodes that ran, and that may have.
        safe_sum, safe_seen: constraint values of the baseline episodes seen, and how many: where V0 is
            learned.
        out: the tickets of the trials that are out.
    """

    baseline_told: int = 0
    designed_told: int = 0
    lost: float = 0.0
    safe_ran: int = 0
    safe_may: int = 0
    safe_sum: float = 0.0
    safe_seen: int = 0
    out: dict[int, Any] = field(default_factory=dict)


class Ledger(ABC):
    """Counting that all ledgers share; a subclass says what the told designed trials are worth."""

    certifies = False  # whether the true budget is at least the believed one, always, but for delta

    def __init__(self, terms: Terms) -> None:
        self.problem, self.episodes, self.stage = terms.problem, terms.episodes, terms.stage
        self.losses, self.order, self.rail = terms.losses, terms.order, terms.rail
        self.promise = self.rail.promise

    @property
    def unit(self) -> float:
        """What rounding is measured in."""
        return self.rail.unit

    def values(self, book: Any) -> tuple[float, ...]:
        """V0, or the ends between which it lies; here, where it is learned, the average seen."""
        if self.rail.learned and book.safe_seen:
            return (book.safe_sum / book.safe_seen,)
        return (self.rail.low,) if self.rail.exact else (self.rail.low, self.rail.high)

    def value(self, book: Any) -> float:
        """V0, or the middle of where it lies."""
        found = self.values(book)
        return found[0] if len(found) == 1 else (found[0] + found[1]) / 2

    def credit(self, book: Any) -> float:
        """What a baseline episode adds at least, wherever V0 lies."""
        return min(self.rail.credit_at(value) for value in self.values(book))

    def required(self, book: Any) -> float:
        """What an episode must earn on average, if V0 is as believed."""
        return self.rail.required_at(self.value(book))

    def open(self) -> Book:
        """An empty book."""
        return Book()

    def exact(self, play: Play) -> bool:
        """Whether a policy that is not the baseline is known to be worth exactly as much."""
        return False

    def floor_value(self, play: Play) -> float:
        """V(b; floor): the value with every pair at the floor."""
        return float(self.promise.floor * play.length)

    def lower(self, book: Any, play: Play) -> float:
        """A lower value of a candidate."""
        return self.floor_value(play)

    def ends(self, book: Any) -> tuple[Floats, Floats]:
        """Between which every constraint mean lies, [S, A] each."""
        shape = self.problem.mdp.states, self.problem.mdp.actions
        return np.full(shape, self.promise.floor), np.full(shape, self.promise.ceiling)

    def pace(self, book: Any, done: int, baseline: int, remaining: int) -> float:
        """What the design should earn, after `done` designed and `baseline` episodes."""
        return self.required(book)

    def freeze(self, book: Any, play: Play, baseline: bool, believed: float | None = None) -> Ticket:
        """The ticket of a trial about to be asked, believed to earn so much; changes nothing."""
        if baseline or self.exact(play):
            return Ticket(baseline=True)
        return Ticket(cost=self.at_risk(self.floor_value(play), self.value(book)))

    def at_risk(self, low: float, value: float) -> float:
        """What a trial worth at least `low` may cost while nobody knows whether it ran, if V0 is `value`."""
        return min(0.0, low - self.rail.required_at(value))

    def ask(self, book: Any, number: int, ticket: Any, play: Play) -> None:
        """A trial goes out."""
        book.out[number] = ticket

    def resume(self, book: Any, number: int, play: Play) -> None:
        """A trial that is out, after a restart: what its policy says need not be written down."""
        return

    def learn(self, book: Any, logged: Logged) -> None:
        """Baseline episodes of the past: they may teach, and count for nothing."""
        if self.rail.learned:
            book.safe_sum += logged.gained
            book.safe_seen += logged.count

    def note_safe(self, book: Any, episode: Seen) -> None:
        """What a baseline episode earned, where V0 is learned."""
        if self.rail.learned and episode is not None:
            book.safe_sum += self.gained(episode)
            book.safe_seen += 1

    def gained(self, episode: Episode) -> float:
        """sum discount^t C_t."""
        gammas = self.problem.mdp.factors[: len(episode)]
        return float(np.add.reduce(gammas * episode.constraints))

    @abstractmethod
    def tell(self, book: Any, number: int, play: Play, episode: Seen, complete: bool = True) -> None:
        """A trial came back."""

    def close(self, book: Any, number: int, episode: Seen, complete: bool = True) -> Any:
        """Count a told trial and return its ticket: every `tell` begins with it."""
        ticket = book.out.pop(number)
        if ticket.baseline:
            book.baseline_told += 1
            self.note_safe(book, episode if complete else None)
        else:
            book.designed_told += 1
        return ticket

    def abandon(self, book: Any, number: int, play: Play, ran: bool) -> None:
        """Nothing will be told of a trial, which may have run, or did."""
        ticket = book.out.pop(number)
        if ticket.baseline:
            book.safe_ran, book.safe_may = book.safe_ran + ran, book.safe_may + (not ran)
        elif not ran:
            book.lost += ticket.cost
        else:
            book.lost += self.floor_value(play) - self.required(book)

    def cancel(self, book: Any, number: int, unseen: bool) -> None:
        """A trial has never started, and never will; `unseen`: nobody knew where it would."""
        del book.out[number]

    @abstractmethod
    def earned(self, book: Any) -> float:
        """The believed constraint value of the told designed trials."""

    def budget(self, book: Any) -> float:
        """The believed budget."""
        return min(self.budget_at(book, value) for value in self.values(book))

    def after(self, book: Any, low: float) -> float:
        """The believed budget if one more trial runs that is worth at least `low`.

        Nothing can be spent before it is known that baseline episodes earn.
        """
        if self.credit(book) <= 0.0:
            return -math.inf
        values = self.values(book)
        return min(self.spendable_at(book, value) + low - self.rail.required_at(value) for value in values)

    def shown(self, play: Play) -> float | None:
        """What a log shows that a policy is worth at least above what is required; None of most."""
        return None

    def next(self, book: Any, play: Play) -> float:
        """The believed budget if one more trial of a policy runs."""
        return self.after(book, self.lower(book, play))

    def budget_at(self, book: Any, value: float) -> float:
        """The believed budget if V0 is `value`."""
        return self.settled_at(book, value) + float(sum(ticket.cost for ticket in book.out.values()))

    def spendable_at(self, book: Any, value: float) -> float:
        """The same if one more trial runs, without it."""
        return self.budget_at(book, value)

    def settled_at(self, book: Any, value: float) -> float:
        """The part of the trials that are not out."""
        credit = self.rail.credit_at(value)
        safe = (book.baseline_told + book.safe_ran) * credit + book.safe_may * min(0.0, credit)
        return float(safe + self.earned(book) - book.designed_told * self.rail.required_at(value) + book.lost)


ROUNDING = 1e-12  # of the ledger's unit


def retrospective(ledger: Ledger, book: Any, play: Play) -> bool:
    """The paper's: play the design iff Z(k - 1) >= 0. Breaks the promise by one episode's worth, at once."""
    return ledger.budget(book) >= -ROUNDING * ledger.unit


def prospective(ledger: Ledger, book: Any, play: Play) -> bool:
    """Play it iff the budget stays at or above 0 even at the candidate's lower value."""
    return ledger.next(book, play) >= -ROUNDING * ledger.unit


GATES = {"retrospective": retrospective, "prospective": prospective}
