"""What the certified ledger writes down: tickets, lines in order of asking, and its book."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from saver.problem.codec import portable
from saver.safety.ledger import Book, Ticket

OUT, TOLD, LOST = "out", "told", "lost"


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
        strays: how far X may be from V_c(b) by its path alone.
        moved: pairs whose midpoint is another than at the last ask, s * A + a.
        midpoints: of these.
    """

    low: float = 0.0
    proxy: float = 0.0
    longest: float = 0.0
    v: float = 0.0
    centre: float = 0.0
    strays: float = 0.0
    moved: Any = None
    midpoints: Any = None


@portable("line")
@dataclass(eq=False)
class Line:
    """A designed trial in order of asking, from its ticket to what came of it."""

    order: int
    low: float
    proxy: float
    longest: float
    v: float
    centre: float
    strays: float
    box: int  # which of the book's midpoints it was asked with
    status: str = OUT  # then TOLD or LOST
    gained: float = 0.0  # sum discount^t C
    length: float = 0.0  # sum discount^t
    hides: float = 0.0  # what may be hidden, if it is lost
    x: float = 0.0
    pairs: Any = None  # where it may have been, s * A + a
    expected: Any = None  # discounted visits there
    realised: Any = None


@portable("certified-book")
@dataclass(eq=False)
class CertifiedBook(Book):
    """The sums of the argument, and the trials that they do not hold yet.

    Attributes:
        seen: constraints told before the first gap, for the box.
        next_seen: the first trial that `seen` does not hold.
        early: episodes told after a gap.
        sealed: the first abandoned trial, 0 for none: the box learns from earlier ones only.
        boxes: midpoints, [S, A], by number: those that lines were asked with, and the latest.
        lines: designed trials from the first gap on.
        ordered: designed trials asked.
        bound: of what the designed trials before the first gap are worth.
        gained, proxy, length, hidden: over these, for the noise.
        expected, realised: discounted visits, [S, A], for the paths; None where there is one.
        sum_x, sum_v: of X and its proxy.
        last_proxy, last_longest, last_low: of the last designed trial asked.
    """

    seen: Any = None
    next_seen: int = 1
    early: dict[int, Any] = field(default_factory=dict)
    sealed: int = 0
    boxes: dict[int, Any] = field(default_factory=dict)
    lines: dict[int, Any] = field(default_factory=dict)
    ordered: int = 0
    bound: float = 0.0
    gained: float = 0.0
    proxy: float = 0.0
    length: float = 0.0
    hidden: float = 0.0
    expected: Any = None
    realised: Any = None
    sum_x: float = 0.0
    sum_v: float = 0.0
    last_proxy: float = 0.0
    last_longest: float = 0.0
    last_low: float = 0.0

    now: Any = field(default=None, init=False)  # the box, from `seen`: made when needed, never written
