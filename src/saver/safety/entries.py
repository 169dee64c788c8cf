"""What the certified ledger writes down: tickets, lines in order of asking, sums, and its book."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from saver.play.stage import Play
from saver.problem.codec import portable
from saver.safety.ledger import Book, Ticket

OUT, TOLD, CUT, LOST, CANCELLED = "out", "told", "cut", "lost", "cancelled"
VETOED = "vetoed"  # cancelled by somebody who may have seen where it would start and what it would draw


@portable("certified-ticket")
@dataclass(frozen=True, eq=False)
class CertifiedTicket(Ticket):
    """What the argument needs of a designed trial, known before it runs.

    Attributes:
        low: V(b; lower ends of the box).
        proxy: scale^2 sum discount^2t over the steps that can happen.
        longest: sum discount^t over them.
        v: the proxy of X.
        centre: V(b; m).
        strays: how far X may be from V_c(b) by its path alone; of bounded ones, V(b; ceiling - m).
        depth: of bounded ones, how far X may be below V(b; m), in units of the range.
        moved: pairs whose midpoint is another than at the last ask, s * A + a.
        midpoints: of these.
    """

    low: float = 0.0
    proxy: float = 0.0
    longest: float = 0.0
    v: float = 0.0
    centre: float = 0.0
    strays: float = 0.0
    depth: float = 0.0
    moved: Any = None
    midpoints: Any = None


@portable("way")
@dataclass(frozen=True, eq=False)
class Way:
    """Where a policy may go.

    Attributes:
        pairs: s * A + a.
        weights: discounted visits expected there.
        visits: the same without discount, None where there is none.
        sure: it goes one way only.
    """

    pairs: Any
    weights: Any
    visits: Any
    sure: bool

    @classmethod
    def of(cls, play: Play) -> Way:
        """What `play` says."""
        pairs = np.flatnonzero(play.visits)
        weights = play.weights.ravel()[pairs]
        same = play.visits is play.weights
        return cls(pairs, weights, None if same else play.visits.ravel()[pairs], play.sure)

    @property
    def expected(self) -> Any:
        """Visits to the pairs."""
        return self.weights if self.visits is None else self.visits

    def same_as(self, other: Way) -> bool:
        """Whether both go there as often."""
        return np.array_equal(self.pairs, other.pairs) and np.array_equal(self.weights, other.weights)

    def worth(self, lower: Any) -> float:
        """V(b; lower), the ends as [pairs]."""
        return float(self.weights @ lower[self.pairs])


def in_order(book: Any) -> Iterator[Any]:
    """Take out of a book the lines before the first trial that is out."""
    while book.lines and next(iter(book.lines.values())).status != OUT:
        yield book.lines.pop(next(iter(book.lines)))


def forget(tables: dict[int, Any], asked_with: Iterable[int]) -> None:
    """Drop tables that no line was asked with, but for the latest."""
    if len(tables) > 1:
        needed = {*asked_with, max(tables)}
        for number in [number for number in tables if number not in needed]:
            del tables[number]


@portable("line")
@dataclass(eq=False)
class Line:
    """A trial in order of asking, from its ticket to what came of it."""

    ticket: Any
    order: int  # among designed trials, or among baseline trials
    low: float = 0.0  # the largest lower value so far
    box: int = 0  # which of the book's midpoints it was asked with
    status: str = OUT  # then TOLD, CUT, LOST, CANCELLED or VETOED
    episode: Any = None  # what the box learns
    gained: float = 0.0  # sum discount^t C
    proxy: float = 0.0  # scale^2 sum discount^2t over the steps seen
    tilt: float = 0.0  # of a return: see `bernstein`, R
    length: float = 0.0  # sum discount^t over them
    x: float = 0.0
    been: Any = None  # pairs, and discounted visits there
    kept: Any = None  # its way, once it is out no longer
    going: Any = field(default=None, init=False)  # the same while it is out: known from the trial

    @property
    def way(self) -> Way:
        """Where it may go."""
        found: Way = self.kept or self.going
        return found

    @property
    def designed(self) -> bool:
        """Whether it counts as what it earned."""
        return not self.ticket.baseline

    @property
    def earns(self) -> float:
        """Its lower value, if it is a designed trial that was told."""
        return self.low if self.designed and self.status in (TOLD, CUT) else 0.0


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


@portable("safe-tally")
@dataclass(eq=False)
class SafeTally:
    """Sums over baseline trials, where V0 is learned.

    Attributes:
        count: of those seen.
        gained, proxy, length: over their steps.
        tilt: of returns: see `bernstein`, R.
        realised: discounted visits, [S, A].
        whole: those that are hidden.
        sum_x, logs: where paths are random and observations bounded: see `capital`; `logs` has both sides.
        never: those that were cancelled.
        vetoed: of these, those whose path may have been seen.
        last: the place of the last hidden one among baseline trials.
    """

    count: int = 0
    gained: float = 0.0
    proxy: float = 0.0
    tilt: float = 0.0
    length: float = 0.0
    realised: Any = None
    sum_x: float = 0.0
    logs: Any = None
    whole: int = 0
    never: int = 0
    vetoed: int = 0
    last: int = 0


@portable("tally")
@dataclass(eq=False)
class Tally:
    """Sums over trials, [S, A] where it says by pair.

    Attributes:
        seen: constraints, by pair.
        awaited: visits expected of trials whose way was not known before, by pair.
        walked: how many of these were seen, by pair.
        missed: visits of hidden trials whose way is known, by pair.
        most: visits that the other hidden trials can have made, by pair.
        gained, proxy, length: over the steps seen of designed trials.
        tilt: of returns: see `bernstein`, R.
        expected, realised: discounted visits, for the paths; by pair, None where there is one.
        unseen: discounted visits after the cut of trials that go one way, or expected of the others, by pair.
        sum_x, sum_v: of X and its proxy, and `strays` of those that have no X: what their paths may hide.
            Where observations are bounded of V(b; m) and of y^2, and `logs` of log(1 + lambda y): `capital`.
        whole, cut: designed trials that are hidden, all of them or from some step on.
        whole_proxy, cut_proxy, rest_proxy: of these, and of the steps after the cut.
        hides: what these steps may have earned, where observations are bounded.
        cancelled: the proxy of trials that never ran.
        fresh: of this, what nobody can have known: all of it, or that of the noise alone.
        last: the place of the last hidden one.
        safe: the same of baseline trials, where V0 is learned.
    """

    seen: Any
    awaited: Any = None
    walked: Any = None
    missed: Any = None
    most: Any = None
    gained: float = 0.0
    proxy: float = 0.0
    tilt: float = 0.0
    length: float = 0.0
    expected: Any = None
    realised: Any = None
    unseen: Any = None
    sum_x: float = 0.0
    sum_v: float = 0.0
    strays: float = 0.0
    logs: Any = None
    whole: int = 0
    cut: int = 0
    whole_proxy: float = 0.0
    cut_proxy: float = 0.0
    rest_proxy: float = 0.0
    hides: float = 0.0
    cancelled: float = 0.0
    fresh: float = 0.0
    last: int = 0
    safe: Any = None

    def copy(self) -> Tally:
        """The same, to be changed alone."""
        return copy.deepcopy(self)

    def with_visits(self) -> Tally:
        """The same, of which visits that are awaited or hidden can be changed alone."""
        names = ("awaited", "walked", "missed", "most")
        return replace(self, **{name: copy.copy(getattr(self, name)) for name in names})


@portable("certified-book")
@dataclass(eq=False)
class CertifiedBook(Book):
    """The sums of the argument, and the trials that they do not hold yet.

    Attributes:
        first: over the trials before the first that is out.
        every: over all that are not out, where some of these are not in `first`, else None.
        lines: trials from the first that is out on.
        behind: how many of these are out no longer.
        lows: the lower values of those that were told.
        boxes: midpoints, [S, A], by number, or where observations are bounded m of `capital`: those that
            trials out were asked with, and the latest.
        ordered, safe_ordered: designed trials asked, and baseline trials.
        newest: the last trial asked.
        renews: the trial with which midpoints, which are means there, are made anew: see `capital`.
        started: the last trial that is known to have started.
        bound: of what the told designed trials are worth.
        gone: lost trials, by what they were to play.
        last_proxy, last_longest, last_low: of the last designed trial asked.
    """

    first: Any = None
    every: Any = None
    lines: dict[int, Any] = field(default_factory=dict)
    behind: int = 0
    lows: float = 0.0
    boxes: dict[int, Any] = field(default_factory=dict)
    ordered: int = 0
    safe_ordered: int = 0
    newest: int = 0
    renews: int = 0
    started: int = 0
    bound: float = 0.0
    gone: list[Any] = field(default_factory=list)
    last_proxy: float = 0.0
    last_longest: float = 0.0
    last_low: float = 0.0

    now: Any = field(default=None, init=False)  # the box: made when needed, never written
