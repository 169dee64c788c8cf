"""The certified ledger: what was observed, minus a time-uniform boundary.

With probability at least 1 - delta, for all k at once, the true budget is at least the one believed here. The
argument is in order of asking, so it does not matter when, in which order or whether trials are told.

1. Box: every constraint mean lies in [m - h, m + h] (`widths.Box`).
2. Control variate: X = sum discount^t C_t - (sum discount^t m(s_t,a_t) - V(b; m)) has mean V_c(b).
3. Proxy: v = scale^2 sum discount^2t + E_b[(sum discount^t h)^2].
4. Boundary u(sum v): normal mixture where everything is deterministic (then X = sum discount^t C_t and no box
   is needed), else stitched sub-gamma with scale span / 3, half of the level each for box and boundary.
   Both need each observation to be sub-Gaussian given everything before it.
5. sum of V_c over told trials >= sum of X - u(sum of v), and >= any earlier bound plus the lower values
   V(b; m - h) since, which hold as long as the box does.

A trial j that was abandoned stays in the sum of v and costs h_j = sqrt(2 v_j l) + scale' l,
l = log(j (j + 1) / delta_h): with probability 1 - delta_h no unseen X_j is further below its mean. A tenth of
delta is set aside for that in advance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saver._types import Floats
from saver.problem.codec import portable
from saver.problem.episode import Episode
from saver.problem.moments import Moments
from saver.safety.boundaries import best_rho, mixture, steepest, stitched
from saver.safety.ledger import Book, Ledger, Terms, Ticket
from saver.safety.plays import Play
from saver.safety.widths import Box

LOST_SHARE = 0.1  # of delta, for trials that are abandoned
OUT, TOLD, LOST = "out", "told", "lost"


@portable("certified-ticket")
@dataclass(frozen=True, eq=False)
class CertifiedTicket(Ticket):
    """What the argument needs of a designed trial, known before it runs.

    Attributes:
        v: the proxy of its sum.
        low: V(b; lower ends of the box).
        centre: V(b; m).
        moved: pairs whose midpoint is another than at the last ask, s * A + a.
        midpoints: of these.
    """

    v: float = 0.0
    low: float = 0.0
    centre: float = 0.0
    moved: Any = None
    midpoints: Any = None


@portable("line")
@dataclass(eq=False)
class Line:
    """A designed trial in order of asking, from its ticket to what came of it."""

    order: int
    v: float
    low: float
    centre: float
    box: int  # which of the book's midpoints it was asked with
    status: str = OUT  # then TOLD or LOST
    x: float = 0.0


@portable("certified-book")
@dataclass(eq=False)
class CertifiedBook(Book):
    """The sums of the argument, and the trials that they do not hold yet.

    Attributes:
        seen: constraints told before the first gap, for the box; None without one.
        boxes: midpoints, [S, A], by number: those that lines were asked with, and the latest.
        next_seen: the first trial that `seen` does not hold.
        early: episodes told after a gap.
        sealed: the first abandoned trial, 0 for none: the box learns from earlier ones only.
        lines: designed trials from the first gap on.
        ordered: designed trials asked.
        sum_x, sum_v, bound: over the designed trials before the first gap.
        last_v, last_low: of the last designed trial asked.
    """

    seen: Any = None
    boxes: dict[int, Any] = field(default_factory=dict)
    next_seen: int = 1
    early: dict[int, Any] = field(default_factory=dict)
    sealed: int = 0
    lines: dict[int, Any] = field(default_factory=dict)
    ordered: int = 0
    sum_x: float = 0.0
    sum_v: float = 0.0
    bound: float = 0.0
    last_v: float = 0.0
    last_low: float = 0.0

    now: Any = field(default=None, init=False)  # the box, from `seen`: made when needed, never written


class Certified(Ledger):
    """The ledger of the promise. `deterministic` says that no policy, start or transition is random."""

    certifies = True

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        problem, deterministic = terms.problem, terms.sure
        self.deterministic = deterministic
        mdp, promise = problem.mdp, problem.constraint
        gammas = mdp.discount ** np.arange(len(mdp.layers))
        span = (promise.ceiling - promise.floor) * float(gammas.sum())
        self.lost_level = LOST_SHARE * problem.delta
        level = problem.delta - self.lost_level
        noise = promise.scale**2 * float(np.sum(gammas**2))
        self.box = None if deterministic else Box(problem, terms.episodes, level / 2)
        self.level = level if deterministic else level / 2
        self.scale = 0.0 if deterministic else span / 3
        self.rho = best_rho(max(noise, 1e-300) * terms.episodes / 2, self.level)
        self.start = noise + (0.0 if deterministic else span**2 / 4)
        self.longest_low = float(promise.floor * gammas.sum())
        self.baseline = self.stage.play(problem.baseline)

    def open(self) -> CertifiedBook:
        """Nothing asked; the first pace supposes a trial of full length."""
        book = CertifiedBook(last_v=self.start, last_low=self.longest_low)
        if self.box is not None:
            book.seen = Moments.empty((self.problem.mdp.states, self.problem.mdp.actions))
            book.boxes = {0: self.interval(book)[0]}
        return book

    def exact(self, play: Play) -> bool:
        """Whether a policy goes exactly where the baseline goes."""
        return np.array_equal(play.flow, self.baseline.flow)

    def boundary(self, v: float) -> float:
        """u(v); 0 before the first trial."""
        if v == 0.0:
            return 0.0
        if self.deterministic:
            return mixture(v, self.rho, self.level)
        return stitched(v, self.start, self.scale, self.level)

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """The constants of the boundary: rho, level, start, scale."""
        return self.rho, self.level, self.start, self.scale

    def pace(self, book: CertifiedBook, done: int, baseline: int, remaining: int) -> float:
        """What designed episodes should earn on average so that the gate need turn none of them down.

        On average over the `done` ones and the `remaining`: the tracker makes up for the past. More than
        required while the boundary weighs, less when `baseline` episodes have paid for it. The certificate
        does not depend on it.
        """
        debt = self.required - book.last_low - baseline * self.credit
        boxed = self.box is not None
        return self.required + steepest(book.sum_v, book.last_v, done, debt, remaining, boxed, self.numbers)

    def interval(self, book: CertifiedBook) -> tuple[Floats, Floats]:
        """The box now."""
        assert self.box is not None
        if book.now is None:
            book.now = self.box.around(book.seen.counts, book.seen.mean)
        m, h = book.now
        return m, h

    def lower(self, book: CertifiedBook, play: Play) -> float:
        """V(b; lower ends of the box), which without a box are the floor."""
        if self.box is None:
            return self.floor_value(play)
        m, h = self.interval(book)
        return max(self.floor_value(play), float(np.sum(play.weights * (m - h))))

    def freeze(self, book: CertifiedBook, play: Play, baseline: bool) -> Ticket:
        """Midpoints, half-lengths and the proxy of a designed trial."""
        plain = super().freeze(book, play, baseline)
        if plain.baseline:
            return plain
        v, low, centre = self.problem.constraint.scale**2 * play.noise, self.lower(book, play), 0.0
        if self.box is None:
            return CertifiedTicket(cost=plain.cost, v=v, low=low)
        m, h = self.interval(book)
        v += self.stage.second_moment(play, h)
        centre = float(np.sum(play.weights * m))
        moved = np.flatnonzero(m != book.boxes[max(book.boxes)])
        return CertifiedTicket(
            cost=plain.cost, v=v, low=low, centre=centre, moved=moved, midpoints=m.ravel()[moved]
        )

    def ask(self, book: CertifiedBook, number: int, ticket: Any) -> None:
        """Give a designed trial its place in the order."""
        super().ask(book, number, Ticket(ticket.baseline, ticket.cost))
        if ticket.baseline:
            return
        latest = max(book.boxes, default=0)
        if ticket.moved is not None and len(ticket.moved):
            m = book.boxes[latest].copy()
            m.ravel()[ticket.moved] = ticket.midpoints
            latest += 1
            book.boxes[latest] = m
        book.ordered += 1
        book.last_v, book.last_low = ticket.v, ticket.low
        book.lines[number] = Line(book.ordered, ticket.v, ticket.low, ticket.centre, latest)
        self._forget(book)

    def tell(self, book: CertifiedBook, number: int, play: Play, episode: Episode | None) -> None:
        """Take in what a trial earned."""
        ticket = self.close(book, number)
        if not ticket.baseline:
            assert episode is not None  # of a designed trial everything is learned
            line = book.lines[number]
            gammas = self.problem.mdp.discount ** np.arange(len(episode))
            line.x, line.status = float(np.sum(gammas * episode.constraints)), TOLD
            if self.box is not None:
                m = book.boxes[line.box]
                guess = float(np.sum(gammas * m[episode.states, episode.actions]))
                line.x -= guess - line.centre
        if self.box is not None and not (book.sealed and number > book.sealed):
            book.early[number] = episode
        self._settle(book)

    def abandon(self, book: CertifiedBook, number: int) -> None:
        """Charge what an unseen outcome may hide; the box learns nothing more from here on."""
        super().abandon(book, number)
        if number in book.lines:
            line = book.lines[number]
            l = math.log(line.order * (line.order + 1) / self.lost_level)  # noqa: E741  (as in the proof)
            line.x = -(math.sqrt(2.0 * line.v * l) + self.scale * l)
            line.status, line.low = LOST, 0.0
        book.sealed = min(book.sealed or number, number)
        book.early = {n: told for n, told in book.early.items() if n < book.sealed}
        self._settle(book)

    def _settle(self, book: CertifiedBook) -> None:
        """Fold every trial before the first gap into the sums."""
        while book.lines:
            first = next(iter(book.lines))
            line = book.lines[first]
            if line.status == OUT:
                break
            del book.lines[first]
            book.sum_x += line.x
            book.sum_v += line.v
            book.bound = max(book.sum_x - self.boundary(book.sum_v), book.bound + line.low)
        while book.next_seen in book.early:
            told = book.early.pop(book.next_seen)
            if told is not None:
                book.seen.extend(told.states, told.actions, told.constraints)
            book.next_seen += 1
            book.now = None
        self._forget(book)

    def _forget(self, book: CertifiedBook) -> None:
        """Drop midpoints that no line was asked with, but for the latest."""
        latest = max(book.boxes, default=0)
        first = next((line.box for line in book.lines.values()), latest)  # lines have rising boxes
        for box in [box for box in book.boxes if box < min(first, latest)]:
            del book.boxes[box]

    def earned(self, book: CertifiedBook) -> float:
        """The bound on trials before the first gap, and lower values of those told after it."""
        return float(book.bound + sum(line.low for line in book.lines.values() if line.status == TOLD))
