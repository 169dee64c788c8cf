"""What the certified ledger writes down: tickets, lines in order of asking, sums, and its book."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from saver.kernels.bounds.noise import most_visits
from saver.play.stage import Play, Stage
from saver.problem.codec import portable
from saver.safety.ledger import Book, Ticket


class Status:
    """What has become of a trial."""

    OUT, TOLD, CUT, LOST, CANCELLED = "out", "told", "cut", "lost", "cancelled"
    VETOED = "vetoed"  # cancelled by somebody who may have seen where it would start and what it would draw
    HIDDEN = "hidden"  # not told: all that intervals need to know


@portable("certified-ticket")
@dataclass(frozen=True, eq=False)
class CertifiedTicket(Ticket):
    """What the argument needs of a designed trial, known before it runs."""

    low: float = 0.0  # V(b; lower ends of the box)
    proxy: float = 0.0  # scale^2 sum discount^2t over the steps that can happen
    longest: float = 0.0  # sum discount^t over them
    v: float = 0.0  # the proxy of X
    centre: float = 0.0  # V(b; m)
    strays: float = 0.0  # how far X may be from V_c(b) by its path alone; of bounded ones, V(b; ceiling - m)
    depth: float = 0.0  # of bounded ones, how far X may be below V(b; m), in units of the range
    moved: Any = None  # pairs whose midpoint is another than at the last ask, s * A + a
    midpoints: Any = None  # of these


@portable("way")
@dataclass(frozen=True, eq=False)
class Way:
    """Where a policy may go."""

    pairs: Any  # s * A + a
    weights: Any  # discounted visits expected there
    visits: Any  # the same without discount, None where there is none
    sure: bool  # it goes one way only

    @classmethod
    def of(cls, play: Play) -> Way:
        """What `play` says."""
        pairs = np.flatnonzero(play.visits)
        visits = None if play.visits is play.weights else play.visits.ravel()[pairs]
        return cls(pairs, play.weights.ravel()[pairs], visits, play.sure)

    @property
    def expected(self) -> Any:
        """Visits to the pairs."""
        return self.weights if self.visits is None else self.visits

    def same_as(self, other: Way) -> bool:
        """Whether both go there as often."""
        return np.array_equal(self.pairs, other.pairs) and np.array_equal(self.weights, other.weights)


def forget(tables: dict[int, Any], asked_with: Iterable[int]) -> None:
    """Drop tables that no line was asked with, but for the latest."""
    if len(tables) > 1:
        needed = {*asked_with, max(tables)}
        for number in [number for number in tables if number not in needed]:
            del tables[number]


@portable("line", guessed="tilt")
@dataclass(eq=False)
class Line:
    """A trial in order of asking, from its ticket to what came of it."""

    ticket: Any
    order: int  # among designed trials, or among baseline trials
    low: float = 0.0  # the largest lower value so far
    box: int = 0  # which of the book's midpoints it was asked with
    status: str = Status.OUT
    episode: Any = None  # what the box learns
    gained: float = 0.0  # sum discount^t C
    proxy: float = 0.0  # scale^2 sum discount^2t over the steps seen
    guessed: float = 0.0  # of a return: see `bernstein`, R
    length: float = 0.0  # sum discount^t over them
    x: float = 0.0
    been: Any = None  # pairs, and discounted visits there
    kept: Any = None  # its way, once it is out no longer
    going: Any = field(default=None, init=False)  # the same while it is out: known from the trial

    @property
    def way(self) -> Way:
        """Where it may go."""
        return self.kept or self.going

    @property
    def designed(self) -> bool:
        """Whether it counts as what it earned."""
        return not self.ticket.baseline

    @property
    def earns(self) -> float:
        """Its lower value, if it is a designed trial that was told."""
        return self.low if self.designed and self.status in (Status.TOLD, Status.CUT) else 0.0


@portable("gone")
@dataclass(eq=False)
class Gone:
    """Lost trials of one policy: how many of them ran for sure, and how many may have.

    Where trials start in order, those that may have run stand alone, with their number.
    """

    way: Any
    low: float = 0.0  # the largest lower value so far
    ran: int = 0
    may: int = 0
    number: int = 0
    designed: bool = True


@dataclass(eq=False, kw_only=True)
class Visits:
    """Visits that may be hidden, by pair; None where there are none."""

    awaited: Any = None  # expected of trials whose way was not known before
    walked: Any = None  # how many of these were seen
    missed: Any = None  # of hidden trials whose way is known
    most: Any = None  # that the other hidden trials can have made

    def watch(self, way: Way, stage: Stage, been: Any, told: bool, shape: tuple[int, ...]) -> None:
        """A trial more: in which pairs it `been`, where that was seen, and whether that is all of it."""
        if not way.sure:
            self._table("awaited", shape)[way.pairs] += way.expected
            walked = self._table("walked", shape)
            if been is not None:
                np.add.at(walked, been, 1.0)
        if told:
            return
        hidden = self._table("missed" if way.sure else "most", shape)
        hidden[way.pairs] += way.expected if way.sure else stage.most[way.pairs // stage.mdp.actions, 0]
        if been is not None:
            np.add.at(hidden, been, -1.0)

    def _table(self, name: str, shape: tuple[int, ...]) -> Any:
        """One of them, flat; made when it is needed."""
        table = getattr(self, name)
        if table is None:
            table = np.zeros(shape)
            setattr(self, name, table)
        return table.ravel()

    def unwatched(self, most: Any, log_level: float) -> Any:
        """At most so often hidden trials have met each pair, `most` one trial; 0 where none is hidden."""
        missed = 0.0 if self.missed is None else self.missed
        if self.most is None:
            return missed
        left = most_visits(self.awaited, most, log_level) - self.walked
        return missed + np.maximum(0.0, np.minimum(self.most, np.floor(left)))

    def with_visits(self) -> Any:
        """The same, of which visits can be changed alone."""
        names = ("awaited", "walked", "missed", "most")
        return replace(self, **{name: copy.copy(getattr(self, name)) for name in names})


@dataclass(eq=False, kw_only=True)
class Earnings:
    """Sums over trials of one kind: over the steps seen, and what is hidden."""

    gained: float = 0.0
    proxy: float = 0.0
    guessed: float = 0.0  # of returns: see `bernstein`, R
    length: float = 0.0
    realised: Any = None  # discounted visits, by pair, None where there is one path
    sum_x: float = 0.0  # of X, or, where observations are bounded, of V(b; m): see `capital`
    logs: Any = None  # there, of log(1 + lambda y); of baseline trials both sides
    whole: int = 0  # trials that are hidden
    last: int = 0  # the place of the last hidden one

    def earn(self, line: Line) -> None:
        """What was seen of a trial."""
        self.gained += line.gained
        self.proxy += line.proxy
        self.guessed += line.guessed
        self.length += line.length
        if self.realised is not None:
            cells, been = line.been
            self.realised.ravel()[cells] += been


@portable("safe-tally", guessed="tilt")
@dataclass(eq=False)
class SafeTally(Earnings):
    """Sums over baseline trials, where V0 is learned."""

    count: int = 0  # of those seen
    never: int = 0  # those that were cancelled
    vetoed: int = 0  # of these, those whose path may have been seen


@portable("tally", guessed="tilt")
@dataclass(eq=False)
class Tally(Visits, Earnings):
    """Sums over trials, [S, A] where it says by pair; what was earned is that of designed trials."""

    seen: Any  # constraints, by pair
    expected: Any = None  # discounted visits, for the paths; by pair, None where there is one
    unseen: Any = None  # those after the cut of trials that go one way, or expected of the others, by pair
    sum_v: float = 0.0  # the proxy of X, or, where observations are bounded, y^2: see `capital`
    strays: float = 0.0  # what their paths may hide of those that have no X
    cut: int = 0  # trials that are hidden from some step on
    whole_proxy: float = 0.0  # of those that are hidden whole
    cut_proxy: float = 0.0  # of those that are cut
    rest_proxy: float = 0.0  # of the steps after the cut
    hides: float = 0.0  # what these steps may have earned, where observations are bounded
    cancelled: float = 0.0  # the proxy of trials that never ran
    fresh: float = 0.0  # of this, what nobody can have known: all of it, or that of the noise alone
    safe: Any = None  # of baseline trials, where V0 is learned


@dataclass(eq=False, kw_only=True)
class Ordered:
    """A book in the order of asking."""

    first: Any = None  # sums over the trials before the first that is out
    lines: dict[int, Any] = field(default_factory=dict)  # trials from that one on

    def settled(self) -> Iterator[Any]:
        """Take out the lines before the first trial that is out."""
        while self.lines and next(iter(self.lines.values())).status != Status.OUT:
            yield self.lines.pop(next(iter(self.lines)))


@portable("certified-book")
@dataclass(eq=False)
class CertifiedBook(Book, Ordered):
    """The sums of the argument, and the trials that they do not hold yet."""

    every: Any = None  # sums over all that are not out, where some of these are not in `first`
    behind: int = 0  # how many of `lines` are out no longer
    lows: float = 0.0  # the lower values of those that were told
    boxes: dict[int, Any] = field(default_factory=dict)  # midpoints, or m, of trials out, and the latest
    ordered: int = 0  # designed trials asked
    safe_ordered: int = 0  # baseline trials asked
    newest: int = 0  # the last trial asked
    renews: int = 0  # the trial with which m is made anew: see `capital`
    started: int = 0  # the last trial that is known to have started
    bound: float = 0.0  # of what the told designed trials are worth
    gone: list[Any] = field(default_factory=list)  # lost trials, by what they were to play
    last_proxy: float = 0.0  # of the last designed trial asked
    last_longest: float = 0.0
    last_low: float = 0.0

    now: Any = field(default=None, init=False)  # the box: made when needed, never written

    def forget(self) -> None:
        """Drop tables that no trial out was asked with."""
        forget(self.boxes, (self.lines[number].box for number in self.out))
