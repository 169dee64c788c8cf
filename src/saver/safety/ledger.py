"""What a ledger is: rules that say what is believed about the constraint value earned so far.

budget = sum over told trials of (value - required), required = (1 - alpha) baseline_value. A baseline trial
counts with exactly `baseline_value`. A trial that is out, or was abandoned, may or may not run: it counts
with min(0, low - required), where low is the least that it can be worth: V(b; floor), or what is known.

A ledger never changes; what it writes stands in its book, which is plain data and the ledger's own. To add a
ledger: a subclass of `Ledger` with its book in a file of its own, and a row in `registry.LEDGERS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.problem.codec import portable
from saver.problem.episode import Episode
from saver.problem.statement import Problem
from saver.safety.plays import Play, Stage

LOSSES = ("hostile", "random")  # who chooses what is told: somebody who may know the outcomes, or chance
ORDERS = ("any", "asked")  # in which trials start


class Terms(NamedTuple):
    """What a ledger is made for."""

    problem: Problem
    episodes: int
    stage: Stage
    losses: str = "hostile"
    order: str = "any"


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
        out: the tickets of the trials that are out.
    """

    baseline_told: int = 0
    designed_told: int = 0
    lost: float = 0.0
    out: dict[int, Any] = field(default_factory=dict)


class Ledger(ABC):
    """Counting that all ledgers share; a subclass says what the told designed trials are worth."""

    certifies = False  # whether the true budget is at least the believed one, always, but for delta

    def __init__(self, terms: Terms) -> None:
        self.problem, self.episodes, self.stage = terms.problem, terms.episodes, terms.stage
        self.losses, self.order = terms.losses, terms.order

    @property
    def required(self) -> float:
        """What an episode must earn on average."""
        return self.problem.required

    @property
    def credit(self) -> float:
        """What a baseline episode adds to the budget."""
        return self.problem.alpha * self.problem.baseline_value

    @property
    def unit(self) -> float:
        """What rounding is measured in."""
        return self.problem.baseline_value

    def open(self) -> Book:
        """An empty book."""
        return Book()

    def exact(self, play: Play) -> bool:
        """Whether a policy that is not the baseline is known to be worth exactly as much."""
        return False

    def floor_value(self, play: Play) -> float:
        """V(b; floor): the value with every pair at the floor."""
        return float(self.problem.constraint.floor * play.weights.sum())

    def lower(self, book: Any, play: Play) -> float:
        """A lower value of a candidate."""
        return self.floor_value(play)

    def ends(self, book: Any) -> tuple[Floats, Floats]:
        """Between which every constraint mean lies, [S, A] each."""
        shape, promise = (self.problem.mdp.states, self.problem.mdp.actions), self.problem.constraint
        return np.full(shape, promise.floor), np.full(shape, promise.ceiling)

    def pace(self, book: Any, done: int, baseline: int, remaining: int) -> float:
        """What the design should earn, after `done` designed and `baseline` episodes."""
        return self.required

    def freeze(self, book: Any, play: Play, baseline: bool) -> Ticket:
        """The ticket of a trial about to be asked; changes nothing."""
        if baseline or self.exact(play):
            return Ticket(baseline=True)
        return Ticket(cost=self.at_risk(self.floor_value(play)))

    def at_risk(self, low: float) -> float:
        """What a trial worth at least `low` may cost while nobody knows whether it ran."""
        return min(0.0, low - self.required)

    def ask(self, book: Any, number: int, ticket: Any, play: Play) -> None:
        """A trial goes out."""
        book.out[number] = ticket

    def resume(self, book: Any, number: int, play: Play) -> None:
        """A trial that is out, after a restart: what its policy says need not be written down."""
        return

    def learn(self, book: Any, episode: Episode) -> None:
        """An episode of the past: it may teach, and counts for nothing."""
        return

    @abstractmethod
    def tell(
        self, book: Any, number: int, play: Play, episode: Episode | None, complete: bool = True
    ) -> None:
        """A trial came back; `episode` is None where nothing is to be learned from it."""

    def close(self, book: Any, number: int) -> Any:
        """Count a told trial and return its ticket: every `tell` begins with it."""
        ticket = book.out.pop(number)
        if ticket.baseline:
            book.baseline_told += 1
        else:
            book.designed_told += 1
        return ticket

    def abandon(self, book: Any, number: int, play: Play, ran: bool) -> None:
        """Nothing will be told of a trial, which may have run, or did."""
        ticket = book.out.pop(number)
        if not ran:
            book.lost += ticket.cost
        elif ticket.baseline:
            book.lost += self.credit
        else:
            book.lost += self.floor_value(play) - self.required

    def cancel(self, book: Any, number: int) -> None:
        """A trial has never started, and never will."""
        del book.out[number]

    @abstractmethod
    def earned(self, book: Any) -> float:
        """The believed constraint value of the told designed trials."""

    def budget(self, book: Any) -> float:
        """The believed budget."""
        return self.settled(book) + float(sum(ticket.cost for ticket in book.out.values()))

    def spendable(self, book: Any) -> float:
        """The believed budget if one more trial runs."""
        return self.budget(book)

    def settled(self, book: Any) -> float:
        """The part of the trials that are not out."""
        safe = book.baseline_told * self.credit
        return float(safe + self.earned(book) - book.designed_told * self.required + book.lost)
