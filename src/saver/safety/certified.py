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

What is not told may hide noise and visits (`hidden`): all told trials, with all others hidden, give one bound
and one box; those before the first that is out, with the lost ones among them hidden, another. The better
counts. With `losses="random"` nothing is hidden, and the order is that of telling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.problem.episode import Episode
from saver.problem.moments import Moments
from saver.problem.promise import Bounded
from saver.safety.boundaries import best_rho, mixture, stitched
from saver.safety.entries import (
    CANCELLED,
    CUT,
    LOST,
    OUT,
    TOLD,
    CertifiedBook,
    CertifiedTicket,
    Gone,
    Line,
    Tally,
    Way,
)
from saver.safety.hidden import EIGHT, log_choices, most_visits, unseen
from saver.safety.ledger import Ledger, Terms, Ticket
from saver.safety.noise import Rule, least, missing
from saver.safety.paths import path_bound
from saver.safety.plays import Play
from saver.safety.widths import Box


class Shares(NamedTuple):
    """How delta is split: hidden trials, the box, noise, and noise with paths (step 4)."""

    hidden: float
    box: float
    noise: float
    paths: float


def shares(deterministic: bool, next_state: bool, losses: str = "hostile") -> Shares:
    """Fixed before the first episode; they add to 1."""
    hidden = 0.1 if losses == "hostile" else 0.0
    if deterministic:
        return Shares(hidden, 0.15, 0.85 - hidden, 0.0)
    rest = (1.0 - hidden) / 2
    return Shares(hidden, rest, rest, 0.0) if next_state else Shares(hidden, rest, rest / 2, rest / 2)


NOISE, PAIRS, NEVER = 0.4, 0.4, 0.2  # of the hidden share: of trials, of pairs, of cancelled trials


class Certified(Ledger):
    """The ledger of the promise."""

    certifies = True

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        problem, promise, mdp = terms.problem, terms.problem.constraint, terms.problem.mdp
        self.deterministic, self.hostile = terms.stage.deterministic, terms.losses == "hostile"
        self.levels = Shares(
            *(problem.delta * part for part in shares(self.deterministic, promise.next_state, terms.losses))
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
        self.bounded, self.baseline_teaches = isinstance(promise, Bounded), terms.baseline_teaches
        if self.hostile:
            hidden = self.levels.hidden
            each = PAIRS * hidden / 2 / self.box.pairs
            self.log_noise, self.log_visits = math.log(NOISE * hidden), math.log(each)
            self.log_pairs = math.log(each if self.deterministic else each / 2)

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
        book.first = Tally(Moments.empty(shape))
        if not self.deterministic:
            book.first.expected, book.first.realised = np.zeros(shape), np.zeros(shape)
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

        On average over the `done` ones, out or told, and the `remaining`: the tracker makes up for the past.
        More than required by what noise, paths and losses may hide then, less when `baseline` episodes have
        paid for it. The certificate does not depend on it.
        """
        told, tally = book.designed_told, book.every or book.first
        lost = sum(gone.ran + gone.may for gone in book.gone)
        grows = (done + lost + remaining) / (told + lost) if lost else 1.0
        kept = told / (told + lost) if lost and told else 1.0
        debt = self.required - book.last_low - baseline * self.credit - grows * self.gone(book)
        rate = self.required / self.length if tally.length == 0.0 else tally.gained / tally.length
        out = sum(line.designed for line in self.away(book))
        more = kept * (out + remaining)
        v, length = tally.proxy + more * book.last_proxy, tally.length + more * book.last_longest
        hidden = grows * self.hides(tally, ())[0] + missing(rate, v, length, self.rule)
        if not self.deterministic:
            hidden += float(np.sum(np.abs(tally.realised - tally.expected) * self.middle(book)[1]))
        return float(self.required + (hidden + debt) / (done - out + more))

    def ends(self, book: CertifiedBook) -> tuple[Floats, Floats]:
        """The box now: lower and upper ends."""
        if book.now is None:
            book.now = self.box_of(book.first, ())
            if book.every is not None:
                (low, high), (other, above) = book.now, self.box_of(book.every, self.away(book))
                lower = np.maximum(low, other)
                book.now = lower, np.maximum(lower, np.minimum(high, above))
        lower, upper = book.now
        return lower, upper

    def box_of(self, tally: Tally, away: Sequence[Line]) -> tuple[Floats, Floats]:
        """The box of these trials, those that are away hidden."""
        seen = tally.seen
        if away:
            tally = tally.copy()
            for line in away:
                self._hide_visits(tally, line)
        if tally.missed is None and tally.most is None:
            return self.box.ends(seen.counts, seen.mean)
        hidden = np.zeros(seen.mean.shape) if tally.missed is None else tally.missed
        if tally.most is not None:
            left = most_visits(tally.awaited, self.stage.most, self.log_visits) - tally.walked
            hidden = hidden + np.maximum(0.0, np.minimum(tally.most, np.floor(left)))
        return self.box.hiding(seen.counts, seen.mean, hidden, self.log_pairs)

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

    def ask(self, book: CertifiedBook, number: int, ticket: Any, play: Play) -> None:
        """Give a trial its place in the order."""
        super().ask(book, number, Ticket(ticket.baseline, ticket.cost), play)
        book.newest = number
        latest = max(book.boxes, default=0)
        if not ticket.baseline:
            if ticket.moved is not None and len(ticket.moved):
                m = book.boxes[latest].copy()
                m.ravel()[ticket.moved] = ticket.midpoints
                latest += 1
                book.boxes[latest] = m
            book.ordered += 1
            book.last_proxy, book.last_longest, book.last_low = ticket.proxy, ticket.longest, ticket.low
        low = 0.0 if ticket.baseline else ticket.low
        book.lines[number] = Line(ticket, book.ordered, low=low, box=latest)
        self.resume(book, number, play)
        if book.every is not None:
            book.now = None  # one more is out
        self._forget(book)

    def resume(self, book: CertifiedBook, number: int, play: Play) -> None:
        """Where a trial that is out may go."""
        book.lines[number].going = Way.of(play)

    def tell(
        self, book: CertifiedBook, number: int, play: Play, episode: Episode | None, complete: bool = True
    ) -> None:
        """Take in what a trial earned, or, where it was cut off, what was seen of it."""
        self.close(book, number)
        line = self._leave(book, number, TOLD if complete else CUT)
        line.episode = episode
        if line.designed:
            assert episode is not None  # of a designed trial everything is learned
            self._fill(book, line, episode)
            book.bound += line.low
        book.started = max(book.started, number)
        self._settle(book, number)

    def _fill(self, book: CertifiedBook, line: Line, episode: Episode) -> None:
        """What came of a designed trial."""
        mdp = self.problem.mdp
        gammas = mdp.discount ** np.arange(len(episode))
        line.gained, line.length = float(np.sum(gammas * episode.constraints)), float(np.sum(gammas))
        line.proxy = self.problem.constraint.scale**2 * float(np.sum(gammas**2))
        if self.deterministic and line.status == TOLD:
            return
        cells, been = np.unique(episode.states * mdp.actions + episode.actions, return_inverse=True)
        line.been = cells, np.bincount(been, gammas)
        if self.crosses and line.status == TOLD:
            m = book.boxes[line.box]
            guess = float(np.sum(gammas * m[episode.states, episode.actions]))
            line.x = line.gained - (guess - line.ticket.centre)

    def abandon(self, book: CertifiedBook, number: int, play: Play, ran: bool) -> None:
        """What was not told may be hidden, and may have cost what it is worth at least."""
        del book.out[number]
        line = self._leave(book, number, LOST)
        if ran:
            book.started = max(book.started, number)
        if line.designed or (self.order == "asked" and not ran):
            gone = self._group(book, line, 0 if ran or self.order == "any" else number)
            gone.low = max(gone.low, line.low)
            gone.ran, gone.may = gone.ran + ran, gone.may + (not ran)
        elif ran:
            book.lost += self.credit
        self._settle(book, number)

    def _group(self, book: CertifiedBook, line: Line, number: int) -> Gone:
        """Where lost trials of the same policy are counted."""
        for gone in book.gone:
            pairs, weights = gone.way.pairs, gone.way.weights
            same = np.array_equal(pairs, line.way.pairs) and np.array_equal(weights, line.way.weights)
            if same and not gone.number and not number:
                return gone  # type: ignore[no-any-return]
        book.gone.append(Gone(line.way, line.low, number=number, designed=line.designed))
        return book.gone[-1]  # type: ignore[no-any-return]

    def cancel(self, book: CertifiedBook, number: int) -> None:
        """Forget the last trial asked; of an earlier one its place remains, because later ones followed."""
        super().cancel(book, number)
        if number == book.newest:
            book.ordered -= book.lines[number].designed
            book.newest -= 1
            del book.lines[number]
            book.now = None
            return
        self._leave(book, number, CANCELLED)
        self._settle(book, number)

    def _leave(self, book: CertifiedBook, number: int, status: str) -> Line:
        """A trial is out no longer."""
        line: Line = book.lines[number]
        line.status, line.kept = status, line.going
        return line

    def _settle(self, book: CertifiedBook, number: int) -> None:
        """Take a trial that is no longer out into the sums, and see what they say now."""
        if not self.hostile:
            self._add(book.first, book.lines.pop(number))
        else:
            if book.every is not None:
                self._add(book.every, book.lines[number])
            while book.lines:
                place, line = next(iter(book.lines.items()))
                if line.status == OUT:
                    break
                self._add(book.first, book.lines.pop(place))
            after = [line for line in book.lines.values() if line.status != OUT]
            if after and book.every is None:
                book.every = book.first.copy()
                for line in after:
                    self._add(book.every, line)
            if not after:
                book.every = None
        book.now = None
        self._look_again(book)
        found = self.worth(book, book.first, ()) + sum(
            line.low for line in book.lines.values() if line.designed and line.status in (TOLD, CUT)
        )
        if book.every is not None:
            found = max(found, self.worth(book, book.every, self.away(book)))
        book.bound = max(book.bound, found)
        self._forget(book)

    def _look_again(self, book: CertifiedBook) -> None:
        """Lower values by the box now, where they are larger."""
        lower = self.ends(book)[0].ravel()
        for line in (*self.away(book), *book.gone):
            if line.designed and (line.way.sure or not self.deterministic):
                line.low = max(line.low, line.way.worth(lower))

    def _add(self, tally: Tally, line: Line) -> None:
        """One trial more, told or hidden."""
        if line.episode is not None:
            self._see(tally, line)
        if self.hostile and line.status != TOLD:
            self._hide_visits(tally, line)
        if not line.designed:
            return
        seen = line.status in (TOLD, CUT)
        if seen:
            tally.gained += line.gained
            tally.proxy += line.proxy
            tally.length += line.length
            if not self.deterministic:
                cells, been = line.been
                tally.expected.ravel()[line.way.pairs] += line.way.weights
                tally.realised.ravel()[cells] += been
        if line.status == TOLD:
            tally.sum_x += line.x
            tally.sum_v += line.ticket.v
        elif line.status == CUT:
            self._rest(tally, line)
        if self.hostile and line.status != TOLD:
            self._hide(tally, line)

    def _see(self, tally: Tally, line: Line) -> None:
        """What the box learns."""
        episode = line.episode
        tally.seen.extend(episode.states, episode.actions, episode.constraints)
        if self.hostile and not line.way.sure:
            self._await(tally, line)
            np.add.at(tally.walked, (episode.states, episode.actions), 1.0)

    def _await(self, tally: Tally, line: Line) -> None:
        if tally.awaited is None:
            tally.awaited, tally.walked = np.zeros(tally.seen.mean.shape), np.zeros(tally.seen.mean.shape)
        tally.awaited.ravel()[line.way.pairs] += line.way.expected

    def _hide_visits(self, tally: Tally, line: Line) -> None:
        """Where a trial has been unseen, or can have been."""
        if not line.designed and not self.baseline_teaches:
            return
        shape, episode, way = tally.seen.mean.shape, line.episode, line.way
        if way.sure:
            tally.missed = np.zeros(shape) if tally.missed is None else tally.missed
            hidden, by = tally.missed, way.expected
        else:
            if episode is None:
                self._await(tally, line)
            tally.most = np.zeros(shape) if tally.most is None else tally.most
            hidden, by = tally.most, np.broadcast_to(self.stage.most, shape).ravel()[way.pairs]
        hidden.ravel()[way.pairs] += by
        if episode is not None:
            np.add.at(hidden, (episode.states, episode.actions), -1.0)

    def _rest(self, tally: Tally, line: Line) -> None:
        """What is known of a trial after its cut: where it goes, and what that is worth at least."""
        if tally.unseen is None:
            tally.unseen = np.zeros(tally.seen.mean.shape)
        tally.unseen.ravel()[line.way.pairs] += line.way.weights
        if self.deterministic:
            cells, been = line.been
            tally.unseen.ravel()[cells] -= been

    def _hide(self, tally: Tally, line: Line) -> None:
        """What a designed trial may hide."""
        ticket = line.ticket
        tally.hides += self.span * (ticket.longest - line.length)
        tally.strays += ticket.strays
        tally.sum_v += ticket.v
        if line.status == CANCELLED:
            tally.cancelled += ticket.proxy
            return
        tally.last = max(tally.last, line.order)
        if line.status == CUT:
            tally.cut += 1
            tally.cut_proxy += ticket.proxy
            tally.rest_proxy += ticket.proxy - line.proxy
        else:
            tally.whole += 1
            tally.whole_proxy += ticket.proxy

    def worth(self, book: CertifiedBook, tally: Tally, away: Sequence[Line]) -> float:
        """What the told trials of a tally are worth at least, those that are away hidden."""
        lower, upper = self.ends(book)
        D = self.seen_worth(tally, away)
        rest = 0.0 if tally.unseen is None else float(np.sum(tally.unseen * lower))
        if self.deterministic:
            return D + rest
        visits = tally.expected.ravel(), tally.realised.ravel()
        found = float(path_bound(D, *visits, lower.ravel(), upper.ravel()))
        return max(found, rest + self.together(tally, away)) if self.crosses else found

    def seen_worth(self, tally: Tally, away: Sequence[Line] = ()) -> float:
        """D: at least this much are the means along the way worth."""
        hides, v = self.hides(tally, away)
        return float(least(tally.gained - hides, tally.proxy + v, tally.length, self.rule))

    def hides(self, tally: Tally, away: Sequence[Line]) -> tuple[float, float]:
        """What may be hidden of the noise, and the proxy of what is hidden."""
        tickets = [line.ticket for line in away if line.designed]
        v = tally.whole_proxy + sum(ticket.proxy for ticket in tickets) + tally.rest_proxy
        if self.bounded:
            return tally.hides + self.span * sum(ticket.longest for ticket in tickets), 0.0
        noise = self._noise(tally, away, tally.whole + len(tickets), tally.cut, v)
        return noise + self.never(tally.cancelled), v + tally.cancelled

    def together(self, tally: Tally, away: Sequence[Line]) -> float:
        """sum X - u(sum v) of step 4: what has no X may have strayed, and a cut trial has none."""
        tickets = [line.ticket for line in away if line.designed]
        v = tally.whole_proxy + tally.cut_proxy + sum(ticket.proxy for ticket in tickets)
        noise = self._noise(tally, away, tally.whole + tally.cut + len(tickets), 0, v)
        strays = tally.strays + sum(ticket.strays for ticket in tickets)
        sum_v = tally.sum_v + sum(ticket.v for ticket in tickets)
        slack = strays + noise + self.never(tally.cancelled) + self.boundary(sum_v)
        return float(tally.sum_x - slack)

    def _noise(self, tally: Tally, away: Sequence[Line], whole: int, cut: int, v: float) -> float:
        """H of these trials: at most this much their noise has taken."""
        if v <= 0.0:
            return 0.0
        n = max([tally.last, *(line.order for line in away if line.designed)])
        sets = log_choices(n, whole, cut, len(self.problem.mdp.layers) - 1)
        return float(unseen(v, self.unit_proxy / EIGHT, self.log_noise - sets))

    def never(self, v: float) -> float:
        """At most this much noise would have come of trials that were cancelled, in the order of that."""
        if v <= 0.0:
            return 0.0
        level = NEVER * self.levels.hidden
        return float(mixture(v, best_rho(EIGHT * self.unit_proxy, level), level))

    def away(self, book: CertifiedBook) -> list[Line]:
        """The trials that are out."""
        return [book.lines[number] for number in book.out]

    def _forget(self, book: CertifiedBook) -> None:
        """Drop midpoints that no trial out was asked with, but for the latest."""
        if len(book.boxes) > 1:
            needed = {book.lines[number].box for number in book.out} | {max(book.boxes)}
            for box in [box for box in book.boxes if box not in needed]:
                del book.boxes[box]

    def earned(self, book: CertifiedBook) -> float:
        """The bound on the told designed trials."""
        return float(book.bound)

    def gone(self, book: CertifiedBook) -> float:
        """What lost designed trials have added at least."""
        counted = [gone for gone in book.gone if not gone.number]
        return float(sum(g.may * self.at_risk(g.low) + g.ran * (g.low - self.required) for g in counted))

    def settled(self, book: CertifiedBook) -> float:
        """The part of the trials that are not out."""
        return super().settled(book) + self.gone(book)

    def budget(self, book: CertifiedBook) -> float:
        """The believed budget: the least over the sets of trials out that can have run."""
        if self.order == "any":
            risks = [self.at_risk(line.low) for line in self.away(book) if line.designed]
            return self.settled(book) + float(sum(risks))
        total, lowest = 0.0, math.inf
        for number, adds in self._chain(book):
            if number > book.started:
                lowest = min(lowest, total)
            total += adds
        return self.settled(book) + min(lowest, total)

    def spendable(self, book: CertifiedBook) -> float:
        """The same if one more trial runs: where they start in order, all before it have."""
        if self.order == "any":
            return self.budget(book)
        return self.settled(book) + sum(adds for _, adds in self._chain(book))

    def _chain(self, book: CertifiedBook) -> list[tuple[int, float]]:
        """Trials that may have run, in order, and what each adds if it did."""
        maybe = {number: book.lines[number] for number in book.out}
        maybe |= {gone.number: gone for gone in book.gone if gone.number}
        return [
            (number, line.low - self.required if line.designed else self.credit)
            for number, line in sorted(maybe.items())
        ]
