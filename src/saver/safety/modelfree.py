"""Ledgers where transitions are unknown: a trial is one observation of what its policy is worth.

Step 15 of docs/proof/unknown.md. X = sum discount^t C_t has mean V(b), which is in [a, z]; span = z - a. The
told designed trials are worth at least

- sum X - u(sum v), where noise is sub-Gaussian: v = scale^2 sum discount^2t + span^2 / 4, or
  (scale sum discount^t + span / 2)^2 with `next_state=True`;
- sum X - span excess(Q, R), where observations are bounded: Q = sum (X - guess)^2 with X taken to [0, 1], the
  guess made when the trial was asked (`noise.guessed`). What is hidden takes 1 from the sum and adds 1 to
  Q and R.

Order of asking, trials that are out, lost or cancelled, the gate and a learned V0 are those of `Certified`
and `LearnedBaseline` for trials that go one way. A trial that was cut off is lost, and ran.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._types import Floats
from saver.kernels.bounds.noise import Bernstein, Rule, excess, guessed
from saver.kernels.bounds.values import returns_between
from saver.play.stage import Play
from saver.problem.codec import portable
from saver.problem.episode import Episode
from saver.problem.history import Logged
from saver.problem.moments import Moments
from saver.safety.argument import NOISE, Shares, shares_of_returns
from saver.safety.certified import Certified
from saver.safety.entries import CertifiedBook, CertifiedTicket, Gone, Line, SafeTally, Status, Tally
from saver.safety.learnedbaseline import FEW, PART, LearnedBaseline
from saver.safety.ledger import Book, Ledger, Seen, Terms
from saver.safety.tallies import Tallying


@portable("returns-ticket")
@dataclass(frozen=True, eq=False)
class ReturnsTicket(CertifiedTicket):
    """Also what a trial is believed to earn, taken to [0, 1]; as one observation it has the length 1."""

    guess: float = 0.0


@portable("returns-book")
@dataclass(eq=False)
class ReturnsBook(Book):
    """Also what the told designed trials have earned."""

    gained: float = 0.0


LOG = 0.15  # of the level of a guardrail, where a log shows something: that of what it shows


class ModelFree(Certified):
    """The ledger of the promise without a model."""

    def __init__(self, terms: Terms) -> None:
        Tallying.__init__(self, terms)
        promise, level = self.promise, terms.rail.level
        self.declared = Ledger.ends(self, None)
        self.least, self.most = promise.of_episode(1.0, self.baseline.longest)
        self.span, self.length, self.places = self.most - self.least, 1.0, 0
        self.path_span = 0.0 if self.bounded else self.span
        self.levels = Shares(*(level * part for part in shares_of_returns(self.bounded, terms.losses)))
        self.floors = floors_of(terms)
        self.unit_proxy, half = self.proxy_of(self.baseline), terms.episodes / 2
        noise = self.designed_part * self.levels.noise
        self.rule: Any = Rule.of(promise, noise, self.unit_proxy * half, half)
        if self.bounded:
            self.rule = Bernstein.of(noise, half)
        if self.levels.hidden > 0.0:
            self.log_noise = math.log(self.hidden_part * NOISE * self.levels.hidden)

    def add(self, tally: Tally, line: Line) -> None:
        """One trial more, told or hidden: known by what it earned alone."""
        if not line.designed:
            if self.rail.learned:
                self.add_safe(tally, line)
        elif line.status == Status.TOLD:
            tally.earn(line)
        elif self.hostile:
            self._hide(tally, line)
            tally.strays += self.path_span * (line.status == Status.VETOED)

    def fresh(self, line: Line) -> float:
        """The noise; and where the path went, if nobody has seen it begin."""
        return self.noise_of(self.baseline) if line.status == Status.VETOED else super().fresh(line)

    @property
    def first(self) -> tuple[float, float, float]:
        """Proxy, length and lower value of any trial."""
        return self.unit_proxy, self.length, self.least

    def proxy_of(self, play: Play) -> float:
        """Of what an episode earns: noise, and where it went."""
        half = self.span / 2
        if self.promise.next_state:
            return float((self.promise.scale * play.longest + half) ** 2)
        return float(self.noise_of(play) + half**2)

    def noise_of(self, play: Play) -> float:
        """Of the noise alone."""
        scale = self.promise.scale
        return float((scale * play.longest) ** 2 if self.promise.next_state else scale**2 * play.noise)

    def open(self) -> Any:
        """Nothing asked; there is no box."""
        book = super().open()
        book.first.seen = Moments.empty((0, 0))
        return book

    def ends(self, book: Any) -> tuple[Floats, Floats]:
        """Nothing is learned of single pairs."""
        return self.declared

    def floor_value(self, play: Play) -> float:
        """What any policy is worth at least."""
        return self.least

    def lower(self, book: Any, play: Play) -> float:
        """The same, or what a log shows: nothing else is learned of single policies."""
        shown = self.shown(play)
        if shown is None:
            return self.least
        return max(self.least, shown + min(self.rail.required_at(value) for value in self.values(book)))

    def shown(self, play: Play) -> float | None:
        """What a log shows, of the policies that it shows."""
        return self.floors.get(play.once(as_key)) if self.floors else None

    def freeze(self, book: Any, play: Play, baseline: bool, believed: float | None = None) -> ReturnsTicket:
        """What is known of a trial before it runs."""
        if baseline or self.exact(play):
            return ReturnsTicket(baseline=True, guess=self.guess(book, True))
        low = self.lower(book, play)
        cost = self.at_risk(low, self.value(book))
        proxy, longest, _ = self.first
        guess = self.guess(book, False, believed)
        return ReturnsTicket(cost=cost, low=low, proxy=proxy, longest=longest, guess=guess)

    def counts_as(self, gone: Gone, line: Line) -> bool:
        """Nothing is known of where policies go: trials are alike that are worth the same at least."""
        return gone.low == line.low

    def guess(self, book: CertifiedBook, baseline: bool, believed: float | None = None) -> float:
        """What a trial will earn, in [0, 1]; 0 where no guess is needed."""
        if not self.bounded or (baseline and not self.rail.learned):
            return 0.0
        tally = book.every or book.first
        total, n = (tally.safe.gained, tally.safe.count) if baseline else (tally.gained, tally.length)
        own = math.nan if believed is None else self.part(believed, 1.0)
        return float(guessed(n, self.part(total, n), own))

    def part(self, total: float, n: float) -> float:
        """What n trials have earned, each taken to [0, 1]."""
        return float((total - self.least * n) / self.span)

    def tell(self, book: Any, number: int, play: Play, episode: Seen, complete: bool = True) -> None:
        """Take in what a trial earned; of one that was cut off nobody knows."""
        if complete:
            super().tell(book, number, play, episode)
        else:
            self.abandon(book, number, play, True)

    def measure(self, line: Line, episode: Episode) -> Floats:
        """What a trial has earned, and what it adds to v or Q."""
        line.gained, line.length = self.gained(episode), self.length
        x = self.part(line.gained, 1.0)
        line.proxy = (x - line.ticket.guess) ** 2 if self.bounded else self.unit_proxy
        line.guessed = line.ticket.guess * line.proxy
        return np.zeros(0)

    def worth(self, tally: Tally, away: Sequence[Line], ends: Any) -> float:
        """What the told trials of a tally are worth at least, those that are away hidden."""
        return self.seen_worth(tally, away)

    def hides(self, tally: Tally, away: Sequence[Line]) -> tuple[float, float]:
        """Also what was chosen by paths: of a trial cancelled by one who saw it begin."""
        found, v = super().hides(tally, away)
        return found + tally.strays, v

    def seen_worth(self, tally: Tally, away: Sequence[Line] = ()) -> float:
        """sum X - u(v), or sum X - span excess(Q, R), less what is hidden."""
        if not self.bounded:
            return super().seen_worth(tally, away)
        hides = self.hides(tally, away)[0]
        hidden = hides / self.span
        return float(tally.gained - hides - self.excess(tally.proxy + hidden, tally.guessed + hidden))

    def excess(self, Q: float, R: float) -> float:
        """At most this much more than they are worth trials have earned."""
        return float(self.span * excess(Q, R, self.rule))

    def hidden_after(self, book: Any, rate: float, v: float, length: float, n: float, baseline: int) -> float:
        """What chance may hide after n designed trials; Q, R grow as they did, and at first as of coins."""
        if not self.bounded:
            return super().hidden_after(book, rate, v, length, n, baseline)
        tally, x = book.every or book.first, min(max(self.part(rate, 1.0), 0.0), 1.0)
        coins, grows = x * (1.0 - x), length / (tally.length + 1.0)
        return self.excess((tally.proxy + coins) * grows, (tally.guessed + x * coins) * grows)


def as_key(play: Play) -> bytes:
    """What a policy would do everywhere."""
    return hashlib.blake2b(play.flow.tobytes(), digest_size=16).digest()


def floors_of(terms: Terms) -> dict[bytes, float]:
    """What a log shows of policies, by `as_key`."""
    if terms.shown is None:
        return {}
    plays = (terms.stage.play(policy) for policy in terms.shown.policies)
    return {
        as_key(play): float(floor)
        for play, floor in zip(plays, terms.shown.floors[terms.rail.name], strict=True)
    }


class LearnedModelFree(LearnedBaseline, ModelFree):
    """The same against a baseline that is measured."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        if self.bounded:
            self.safe_rule: Any = Bernstein.of(self.value_level / 2, max(FEW, terms.episodes / PART))

    def open(self) -> Any:
        """Nothing asked."""
        book = super().open()
        book.first.safe = SafeTally()
        return book

    def note_logged(self, safe: SafeTally, logged: Logged) -> None:
        """What logged episodes earned, and what they add to v or Q."""
        safe.count, safe.gained = safe.count + logged.count, safe.gained + logged.gained
        safe.proxy += logged.squares if self.bounded else self.unit_proxy * logged.count
        safe.guessed += logged.guessed
        safe.length += self.length * logged.count

    def means_seen(self, safe: SafeTally) -> tuple[float, float]:
        """Between these is n0 V0, n0 the baseline episodes seen."""
        if not self.bounded:
            return super().means_seen(safe)
        hidden = float(safe.whole + safe.never)
        below, above = returns_between(
            safe.gained, hidden, safe.proxy, safe.guessed, self.span, self.safe_rule
        )
        return float(below), float(above)


class PluginModelFree(Ledger):
    """What told designed trials have earned, for what they are worth. It promises nothing."""

    def open(self) -> Book:
        """Nothing seen."""
        return ReturnsBook()

    def floor_value(self, play: Play) -> float:
        """What any policy is worth at least."""
        return float(self.promise.of_episode(1.0, play.longest)[0])

    def tell(self, book: Any, number: int, play: Play, episode: Seen, complete: bool = True) -> None:
        """Add what a designed trial earned; of one that was cut off nobody knows."""
        if not complete:
            self.abandon(book, number, play, True)
        elif not self.close(book, number, episode).baseline:
            assert episode is not None  # of a designed trial everything is learned
            book.gained += self.gained(episode)

    def earned(self, book: Any) -> float:
        """The sum."""
        return float(book.gained)
