"""The certified ledger: what was observed, minus what noise and paths may have added.

With probability at least 1 - delta, for all k at once, the true budget is at least the one believed here. The
argument is in order of asking, so it does not matter when, in which order or whether trials are told.

Steps are those of docs/proof.md and its pages. The sum of V_c over told trials is at least the largest of

- D, where a trial is one path (steps 3 and 4), or what D, the box now and the visits leave open (step 5);
- sum X - u(sum v), X = sum discount^t C_t - (sum discount^t m(s_t,a_t) - V(b; m)), v = scale^2 sum
  discount^2t + (sum discount^t) V(b; h^2), m and h middle and half-length of the box at asking; not where
  noise may depend on the next state. Bounded: what bets on X say, m what was seen of each pair (step 6,
  `capital`);
- any earlier bound plus the lower values V(b; lower ends) since (step 8).

What is not told may hide noise and visits (steps 9 and 10). With `losses="random"` nothing is hidden, and the
order is that of telling.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np

from saver._types import Floats
from saver.kernels.bounds.capital import RENEWED, control, spent
from saver.kernels.bounds.noise import missing
from saver.play.stage import Play
from saver.problem.episode import Episode
from saver.problem.history import BEFORE
from saver.problem.moments import Moments
from saver.safety.argument import Argument
from saver.safety.entries import CertifiedBook, CertifiedTicket, Line, Status, Tally, Way
from saver.safety.ledger import Seen, Ticket


class Certified(Argument):
    """The ledger of the promise."""

    certifies = True
    book_kind: type[CertifiedBook] = CertifiedBook

    def open(self) -> CertifiedBook:
        """Nothing asked; the first pace supposes a trial of full length."""
        proxy, longest, low = self.first
        book = self.book_kind(last_proxy=proxy, last_longest=longest, last_low=low)
        shape = self.problem.mdp.states, self.problem.mdp.actions
        book.first = Tally(Moments.empty(shape))
        if not self.deterministic:
            book.first.expected, book.first.realised = np.zeros(shape), np.zeros(shape)
            book.boxes = {0: self.middle(book)[0]}
        if self.bets:
            book.first.logs = np.zeros(len(self.capital.rates))
        return book

    def exact(self, play: Play) -> bool:
        """Whether a policy goes exactly where the baseline goes."""
        return play.goes_as(self.baseline)

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
        value = self.value(book)
        required, credit = self.rail.required_at(value), self.rail.credit_at(value)
        debt = required - book.last_low - baseline * credit - grows * self.gone_at(book, value)
        rate = required / self.length if tally.length == 0.0 else tally.gained / tally.length
        out = sum(line.designed for line in self.away(book))
        more = kept * (out + remaining)
        v, length = tally.proxy + more * book.last_proxy, tally.length + more * book.last_longest
        n = done - out + more
        hidden = grows * self.hides(tally, ())[0] + self.hidden_after(book, rate, v, length, n, baseline)
        if not (self.deterministic or self.bets):
            hidden += float(np.sum(np.abs(tally.realised - tally.expected) * self.middle(book)[1]))
        return float(required + (hidden + debt) / n)

    def hidden_after(self, book: Any, rate: float, v: float, length: float, n: float, baseline: int) -> float:
        """What noise may hide after n designed trials, of which so much was, or will be, seen."""
        if self.bets:  # by rests as they were, and at first as those of coins
            low, span = self.promise.floor, self.promise.ceiling - self.promise.floor
            x = min(max((rate - low) / span, 0.0), 1.0)
            tally, coins = book.every or book.first, x * (1.0 - x) / self.alike
            told = tally.length / self.length
            Q = (tally.sum_v + coins) * (length / self.length) / (told + 1.0)
            return float(self.range * spent(*self.capital, Q))
        return float(missing(rate, v, length, self.rule))

    def lower(self, book: CertifiedBook, play: Play) -> float:
        """V(b; lower ends), or of the worst that it can draw where the draws decide all."""
        lower = self.ends(book)[0]
        if self.stage.deterministic and not play.sure:
            return self.stage.least(play, lower)
        return max(self.floor_value(play), play.value(lower))

    def freeze(self, book: Any, play: Play, baseline: bool, believed: float | None = None) -> Ticket:
        """What is known of a trial before it runs."""
        if baseline or self.exact(play):
            return Ticket(baseline=True)
        low, proxy = self.lower(book, play), self.proxy_of(play)
        cost = self.at_risk(low, self.value(book))
        ticket = CertifiedTicket(cost=cost, low=low, proxy=proxy, longest=play.longest)
        if self.bets:
            return self.compared(book, play, ticket)
        if not self.crosses:
            return ticket
        m, h = self.middle(book)
        v, strays = proxy + play.longest * play.value(h**2), self.stage.widest(play, h) + play.value(h)
        return self._beside(book, play, m, replace(ticket, v=v, strays=strays))

    def compared(self, book: CertifiedBook, play: Play, ticket: CertifiedTicket) -> CertifiedTicket:
        """With what the model explains of what a trial will earn (step 6, bounded)."""
        m, (low, high) = self.control(book), (self.promise.floor, self.promise.ceiling)
        deepest = float(np.max(m, where=play.weights > 0.0, initial=low)) - low
        depth = min(1.0, deepest * play.longest / self.range)
        return self._beside(book, play, m, replace(ticket, strays=play.value(high - m), depth=depth))

    def _beside(self, book: Any, play: Play, m: Floats, ticket: CertifiedTicket) -> CertifiedTicket:
        """With a table, and where it is another than at the last ask."""
        moved = np.flatnonzero(m != book.boxes[max(book.boxes)])
        return replace(ticket, centre=play.value(m), moved=moved, midpoints=m.ravel()[moved])

    def control(self, book: CertifiedBook) -> Floats:
        """m of a trial asked now: see `capital.control`; made anew by and by."""
        latest: Floats = book.boxes[max(book.boxes)]
        if self.compared_so_far(book) + 1 < book.renews:
            return latest
        seen, (low, high) = (book.every or book.first).seen, (self.promise.floor, self.promise.ceiling)
        usual = BEFORE
        if not self.rail.learned:
            usual = min(max((self.value(book) / self.baseline.length - low) / (high - low), 0.0), 1.0)
        m = np.empty(latest.size)
        parts = (seen.counts.ravel().astype(np.float64), seen.mean.ravel(), seen.squares.ravel())
        control(*parts, float(low), float(high), usual, m)
        return m.reshape(latest.shape)

    def compared_so_far(self, book: CertifiedBook) -> int:
        """Trials asked that are compared with what the model explains."""
        return book.ordered

    def ask(self, book: CertifiedBook, number: int, ticket: Any, play: Play) -> None:
        """Give a trial its place in the order."""
        super().ask(book, number, Ticket(ticket.baseline, ticket.cost), play)
        book.newest = number
        latest = self._tabled(book, ticket)
        if not ticket.baseline:
            book.ordered += 1
            book.last_proxy, book.last_longest, book.last_low = ticket.proxy, ticket.longest, ticket.low
        book.safe_ordered += ticket.baseline
        low, order = (0.0, book.safe_ordered) if ticket.baseline else (ticket.low, book.ordered)
        book.lines[number] = Line(ticket, order, low=low, box=latest)
        self.resume(book, number, play)
        if book.every is not None:
            book.now = None  # one more is out
        book.forget()

    def _tabled(self, book: CertifiedBook, ticket: Any) -> int:
        """Which table a trial is asked with: the last, or a new one, which is kept."""
        latest, moved = max(book.boxes, default=0), getattr(ticket, "moved", None)
        if moved is None:
            return latest
        if len(moved):
            m = book.boxes[latest].copy()
            m.ravel()[moved] = ticket.midpoints
            latest += 1
            book.boxes[latest] = m
        n = self.compared_so_far(book) + 1
        if n >= book.renews:
            book.renews = max(n + 1, math.ceil(RENEWED * n))
        return latest

    def resume(self, book: CertifiedBook, number: int, play: Play) -> None:
        """Where a trial that is out may go."""
        book.lines[number].going = play.once(Way.of)

    def tell(self, book: Any, number: int, play: Play, episode: Seen, complete: bool = True) -> None:
        """Take in what a trial earned, or, where it was cut off, what was seen of it."""
        self.close(book, number, episode, complete)
        line = self._leave(book, number, Status.TOLD if complete else Status.CUT)
        line.episode = episode
        if line.designed or (self.rail.learned and episode is not None):
            assert episode is not None  # of a designed trial everything is learned
            gammas = self.measure(line, episode)
            if complete and (self.crosses if line.designed else self.bets):  # X, less what its path explains
                m = book.boxes[line.box]
                guess = float(np.sum(gammas * m[episode.states, episode.actions]))
                line.x = line.gained - (guess - line.ticket.centre)
        if line.designed:
            book.bound += line.low
        book.started = max(book.started, number)
        self._settle(book, number)

    def measure(self, line: Line, episode: Episode) -> Floats:
        """Sums over the steps seen, and where they were; the factors of the steps."""
        mdp = self.problem.mdp
        gammas: Floats = mdp.factors[: len(episode)]
        line.gained, line.length = self.gained(episode), float(np.add.reduce(gammas))
        line.proxy = self.promise.scale**2 * float(np.add.reduce(gammas**2))
        if not self.deterministic or line.status != Status.TOLD or not line.designed:
            cells, been = np.unique(episode.states * mdp.actions + episode.actions, return_inverse=True)
            line.been = cells, np.bincount(been, gammas)
        return gammas

    def abandon(self, book: CertifiedBook, number: int, play: Play, ran: bool) -> None:
        """What was not told may be hidden, and may have cost what it is worth at least."""
        del book.out[number]
        line = self._leave(book, number, Status.LOST)
        if ran:
            book.started = max(book.started, number)
        if line.designed or (self.order == "asked" and not ran):
            gone = self.group(book, line, 0 if ran or self.order == "any" else number)
            gone.low = max(gone.low, line.low)
            gone.ran, gone.may = gone.ran + ran, gone.may + (not ran)
        else:
            book.safe_ran, book.safe_may = book.safe_ran + ran, book.safe_may + (not ran)
        self._settle(book, number)

    def cancel(self, book: CertifiedBook, number: int, unseen: bool) -> None:
        """Forget the last trial asked, if nothing can have been chosen by it; else its place remains.

        Of an earlier one, because later ones followed; of one whose start or draws were seen, because its
        path was: what is dropped then chooses among paths.
        """
        super().cancel(book, number, unseen)
        fair = unseen or not self.hostile
        if number == book.newest and (fair or book.lines[number].way.sure):
            book.ordered -= book.lines[number].designed
            book.safe_ordered -= not book.lines[number].designed
            book.newest -= 1
            del book.lines[number]
            book.now = None
            return
        self._leave(book, number, Status.CANCELLED if fair else Status.VETOED)
        self._settle(book, number)

    def _leave(self, book: CertifiedBook, number: int, status: str) -> Line:
        """A trial is out no longer."""
        line: Line = book.lines[number]
        line.status, line.kept = status, line.going
        return line

    def _settle(self, book: CertifiedBook, number: int) -> None:
        """Take a trial that is no longer out into the sums, and see what they say now."""
        if self.hostile:
            self._fold(book, number)
        else:
            self.add(book.first, book.lines.pop(number))
        book.now = None
        self._look_again(book)
        self.look_at_value(book)
        ends = self.ends(book)
        found = self.worth(book.first, (), ends) + book.lows
        if book.every is not None:
            found = max(found, self.worth(book.every, self.away(book), ends))
        book.bound = max(book.bound, found)
        book.forget()

    def _fold(self, book: CertifiedBook, number: int) -> None:
        """Into the sums over all, and into those before the first that is out, with all that it held up."""
        line: Line = book.lines[number]
        book.behind, book.lows = book.behind + 1, book.lows + line.earns
        if book.every is not None:
            self.add(book.every, line)
        if number == next(iter(book.lines)):
            for settled in book.settled():
                self.add(book.first, settled)
                book.behind -= 1
            some = book.behind or not book.lines
            book.lows = sum(line.earns for line in book.lines.values()) if some else 0.0
        if not book.behind:
            book.every = None
        elif book.every is None:
            book.every = copy.deepcopy(book.first)
            for line in book.lines.values():
                if line.status != Status.OUT:
                    self.add(book.every, line)

    def _look_again(self, book: CertifiedBook) -> None:
        """Lower values by the box now, where they are larger."""
        lower, worths = self.ends(book)[0].ravel(), dict[Way, float]()
        for line in (*self.away(book), *book.gone):
            way = line.way
            if line.designed and (way.sure or not self.deterministic):
                if way not in worths:
                    worths[way] = float(way.weights @ lower[way.pairs])  # V(b; lower)
                line.low = max(line.low, worths[way])

    def look_at_value(self, book: Any) -> None:
        """What the sums say of V0: nothing, where it is known."""
        return

    def earned(self, book: CertifiedBook) -> float:
        """The bound on the told designed trials."""
        return float(book.bound)
