"""The certified ledger: what was observed, minus what noise and paths may have added.

With probability at least 1 - delta, for all k at once, the true budget is at least the one believed here. The
argument is in order of asking, so it does not matter when, in which order or whether trials are told.

1. Box: every constraint mean lies between its ends (`widths.Box`).
2. Noise: sum discount^t mu over the steps seen is at least D (`noise.least`). Where start and transitions
   leave nothing to chance a trial, its draws included, is one path, and D is what the trials are worth.
3. Paths: elsewhere the sum of V_c is at least what D, the box now and the visits W, T leave open
   (`paths.path_bound`), and also
4. at least sum X - u(sum v): X = sum discount^t C_t - (sum discount^t m(s_t,a_t) - V(b; m)) has mean V_c(b),
   m the middle of the box at asking and h half its length; its proxy v = scale^2 sum discount^2t +
   (sum discount^t) V(b; h^2) is at least scale^2 sum discount^2t + E_b[(sum discount^t h)^2], u stitched
   sub-gamma with scale span / 3. Not where noise may depend on the next state.
5. sum of V_c over told trials is at least the largest of these, and at least any earlier bound plus the lower
   values V(b; lower ends) since.

A trial j that was abandoned may hide noise: -noise_j <= h_j = sqrt(2 v_j l), l = log(j (j + 1) / delta_h),
for all j at once with probability 1 - delta_h. Its visits and observations are in no sum, its proxy is.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.problem.episode import Episode
from saver.problem.moments import Moments
from saver.problem.promise import Bounded
from saver.safety.boundaries import stitched
from saver.safety.entries import LOST, OUT, TOLD, CertifiedBook, CertifiedTicket, Line
from saver.safety.ledger import Ledger, Terms, Ticket
from saver.safety.noise import Rule, least, missing
from saver.safety.paths import path_bound
from saver.safety.plays import Play
from saver.safety.widths import Box


class Shares(NamedTuple):
    """How delta is split: abandoned trials, the box, noise, and noise with paths (step 4)."""

    hidden: float
    box: float
    noise: float
    paths: float


def shares(deterministic: bool, next_state: bool) -> Shares:
    """Fixed before the first episode; they add to 1."""
    if deterministic:
        return Shares(0.1, 0.15, 0.75, 0.0)
    return Shares(0.1, 0.45, 0.45, 0.0) if next_state else Shares(0.1, 0.45, 0.225, 0.225)


class Certified(Ledger):
    """The ledger of the promise."""

    certifies = True

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        problem, promise, mdp = terms.problem, terms.problem.constraint, terms.problem.mdp
        self.deterministic = terms.stage.deterministic
        self.levels = Shares(
            *(problem.delta * part for part in shares(self.deterministic, promise.next_state))
        )
        self.box = Box(problem, terms.episodes, self.levels.box, below=self.deterministic)
        gammas = mdp.discount ** np.arange(len(mdp.layers))
        self.length = float(np.sum(gammas))
        self.unit_proxy = promise.scale**2 * float(np.sum(gammas**2))
        half = terms.episodes / 2
        self.rule = Rule.of(promise, self.levels.noise, self.unit_proxy * half, self.length * half)
        self.span = promise.ceiling - promise.floor
        self.scale = self.span * self.length / 3
        self.start = self.unit_proxy + (self.span * self.length) ** 2 / 4
        self.baseline = self.stage.play(problem.baseline)

    @property
    def first(self) -> tuple[float, float, float]:
        """Proxy, length and lower value that stand for the last trial before there is one."""
        return self.unit_proxy, self.length, self.problem.constraint.floor * self.length

    @property
    def crosses(self) -> bool:
        """Whether noise and paths are also bounded together (step 4)."""
        return self.levels.paths > 0.0

    def open(self) -> CertifiedBook:
        """Nothing asked; the first pace supposes a trial of full length."""
        proxy, longest, low = self.first
        book = CertifiedBook(last_proxy=proxy, last_longest=longest, last_low=low)
        shape = self.problem.mdp.states, self.problem.mdp.actions
        book.seen = Moments.empty(shape)
        if not self.deterministic:
            book.expected, book.realised = np.zeros(shape), np.zeros(shape)
            book.boxes = {0: self.middle(book)[0]}
        return book

    def exact(self, play: Play) -> bool:
        """Whether a policy goes exactly where the baseline goes."""
        return play.goes_as(self.baseline)

    def boundary(self, v: float) -> float:
        """u(v) of step 4; 0 before the first trial."""
        return stitched(v, self.start, self.scale, self.levels.paths) if v > 0.0 else 0.0

    def pace(self, book: CertifiedBook, done: int, baseline: int, remaining: int) -> float:
        """What designed episodes should earn on average so that at the end the gate need turn none down.

        On average over the `done` ones and the `remaining`: the tracker makes up for the past. More than
        required by what noise and paths may hide then, less when `baseline` episodes have paid for it. The
        certificate does not depend on it.
        """
        debt = self.required - book.last_low - baseline * self.credit
        rate = self.required / self.length if book.length == 0.0 else book.gained / book.length
        v, length = book.proxy + remaining * book.last_proxy, book.length + remaining * book.last_longest
        hidden = book.hidden + missing(rate, v, length, self.rule)
        if not self.deterministic:
            hidden += float(np.sum(np.abs(book.realised - book.expected) * self.middle(book)[1]))
        return float(self.required + (hidden + debt) / (done + remaining))

    def ends(self, book: CertifiedBook) -> tuple[Floats, Floats]:
        """The box now: lower and upper ends."""
        if book.now is None:
            book.now = self.box.ends(book.seen.counts, book.seen.mean)
        lower, upper = book.now
        return lower, upper

    def middle(self, book: CertifiedBook) -> tuple[Floats, Floats]:
        """Midpoints and half-lengths of the box now."""
        lower, upper = self.ends(book)
        return (lower + upper) / 2, (upper - lower) / 2

    def lower(self, book: CertifiedBook, play: Play) -> float:
        """V(b; lower ends), or of the worst that it can draw where the draws decide all."""
        lower = self.ends(book)[0]
        if self.deterministic and not play.sure:
            return self.stage.least(play, lower)
        return max(self.floor_value(play), play.value(lower))

    def freeze(self, book: CertifiedBook, play: Play, baseline: bool) -> Ticket:
        """What is known of a trial before it runs."""
        if baseline or self.exact(play):
            return Ticket(baseline=True)
        low, proxy = self.lower(book, play), self.problem.constraint.scale**2 * play.noise
        ticket = CertifiedTicket(cost=self.at_risk(low), low=low, proxy=proxy, longest=play.longest)
        if not self.crosses:
            return ticket
        m, h = self.middle(book)
        moved = np.flatnonzero(m != book.boxes[max(book.boxes)])
        return replace(
            ticket,
            v=proxy + play.longest * play.value(h**2),
            centre=play.value(m),
            strays=self.stage.widest(play, h) + play.value(h),
            moved=moved,
            midpoints=m.ravel()[moved],
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
        book.last_proxy, book.last_longest, book.last_low = ticket.proxy, ticket.longest, ticket.low
        book.lines[number] = Line(
            book.ordered,
            ticket.low,
            ticket.proxy,
            ticket.longest,
            ticket.v,
            ticket.centre,
            ticket.strays,
            latest,
        )
        self._forget(book)

    def tell(self, book: CertifiedBook, number: int, play: Play, episode: Episode | None) -> None:
        """Take in what a trial earned."""
        ticket = self.close(book, number)
        if not ticket.baseline:
            assert episode is not None  # of a designed trial everything is learned
            self._fill(book, book.lines[number], play, episode)
        if not (book.sealed and number > book.sealed):
            book.early[number] = episode
        self._settle(book)

    def _fill(self, book: CertifiedBook, line: Line, play: Play, episode: Episode) -> None:
        """What came of a designed trial."""
        mdp = self.problem.mdp
        gammas = mdp.discount ** np.arange(len(episode))
        line.status, line.gained = TOLD, float(np.sum(gammas * episode.constraints))
        line.length, line.proxy = (
            float(np.sum(gammas)),
            self.problem.constraint.scale**2 * float(np.sum(gammas**2)),
        )
        if self.deterministic:
            return
        been = np.bincount(episode.states * mdp.actions + episode.actions, gammas, play.weights.size)
        line.pairs = np.flatnonzero((play.weights.ravel() > 0.0) | (been > 0.0))
        line.expected, line.realised = play.weights.ravel()[line.pairs], been[line.pairs]
        if self.crosses:
            m = book.boxes[line.box]
            guess = float(np.sum(gammas * m[episode.states, episode.actions]))
            line.x = line.gained - (guess - line.centre)

    def abandon(self, book: CertifiedBook, number: int) -> None:
        """Charge what an unseen outcome may hide; the box learns nothing more from here on."""
        super().abandon(book, number)
        if number in book.lines:
            line, promise = book.lines[number], self.problem.constraint
            l = math.log(line.order * (line.order + 1) / self.levels.hidden)  # noqa: E741  (as in the proof)
            noise = math.sqrt(2.0 * line.proxy * l)
            line.hides = self.span * line.longest if isinstance(promise, Bounded) else noise
            line.x = -(noise + line.strays)
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
            self._fold(book, line)
        while book.next_seen in book.early:
            told = book.early.pop(book.next_seen)
            if told is not None:
                book.seen.extend(told.states, told.actions, told.constraints)
            book.next_seen += 1
            book.now = None
        if not self.deterministic:
            lower, upper = self.ends(book)
            visits = book.expected.ravel(), book.realised.ravel()
            book.bound = max(
                book.bound, path_bound(self.seen_worth(book), *visits, lower.ravel(), upper.ravel())
            )
        self._forget(book)

    def _fold(self, book: CertifiedBook, line: Line) -> None:
        book.gained += line.gained
        book.proxy += line.proxy
        book.length += line.length
        book.hidden += line.hides
        book.bound += line.low
        if self.deterministic:
            book.bound = max(book.bound, self.seen_worth(book))
            return
        if line.pairs is not None:
            book.expected.ravel()[line.pairs] += line.expected
            book.realised.ravel()[line.pairs] += line.realised
        if self.crosses:
            book.sum_x += line.x
            book.sum_v += line.v
            book.bound = max(book.bound, book.sum_x - self.boundary(book.sum_v))

    def seen_worth(self, book: CertifiedBook) -> float:
        """D: at least this much are the means along the way worth."""
        return float(least(book.gained - book.hidden, book.proxy, book.length, self.rule))

    def _forget(self, book: CertifiedBook) -> None:
        """Drop midpoints that no line was asked with, but for the latest."""
        latest = max(book.boxes, default=0)
        first = next((line.box for line in book.lines.values()), latest)  # lines have rising boxes
        for box in [box for box in book.boxes if box < min(first, latest)]:
            del book.boxes[box]

    def earned(self, book: CertifiedBook) -> float:
        """The bound on trials before the first gap, and lower values of those told after it."""
        return float(book.bound + sum(line.low for line in book.lines.values() if line.status == TOLD))
