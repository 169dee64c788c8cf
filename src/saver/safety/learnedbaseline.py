"""The certified ledger where the baseline's value V0 is learned, from history and from baseline episodes.

Steps 13 and 14 of docs/proof/baseline.md. Of n0 baseline episodes Y0 is the sum of what they earned, M0 that
of the means where they went (`means_seen`). After n episodes, n_B of them baseline, with kappa = n_B - r1 n,

    budget = sum of V over designed trials - r0 n + kappa V0,

at least its least over the ends of an interval of V0 (`look_at_value`), and, by both sums at once (`joint`),
where all goes one way and noise is sub-Gaussian with H = `hides`, else by `joint_paths`,

    sum C + (kappa / n0) Y0 - r0 n - `joint_boundary`(kappa / n0) - H_D - |kappa / n0| H_0.

The larger counts. What lost baseline trials may hide is counted as for designed ones, on both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver.kernels.bounds.boundaries import best_rho, mixture
from saver.kernels.bounds.capital import Capital, bet, fewest_gains, owe
from saver.kernels.bounds.noise import EIGHT, Rule, log_sets, unseen
from saver.kernels.bounds.values import joint_boundary, joint_paths, means_between, paths_between
from saver.play.stage import Play
from saver.problem.codec import portable
from saver.problem.history import Logged
from saver.problem.promise import Bounded
from saver.safety.argument import NEVER, NOISE, RETURNS, value_shares
from saver.safety.certified import Certified
from saver.safety.entries import CertifiedBook, CertifiedTicket, Line, SafeTally, Status, Tally
from saver.safety.ledger import Seen, Terms

FEW, PART = 10.0, 20.0  # baseline episodes that the bounds are tuned to: so many, or one in so many


@portable("learned-book")
@dataclass(eq=False)
class LearnedBook(CertifiedBook):
    """Also between which ends the baseline's value lies."""

    value_low: float = -math.inf
    value_high: float = math.inf


class LearnedBaseline(Certified):
    """The ledger of the promise against a baseline that is measured."""

    hidden_part = 0.5
    returns_part = RETURNS
    book_kind = LearnedBook

    def __init__(self, terms: Terms) -> None:
        joint, self.designed_part, value = value_shares(
            terms.one_way, isinstance(terms.rail.promise, Bounded)
        )
        super().__init__(terms)
        self.joint_level, self.value_level = joint * self.levels.noise, value * self.levels.noise
        few = max(FEW, terms.episodes / PART)
        self.safe_proxy, self.safe_noise = self.proxy_of(self.baseline), self.noise_of(self.baseline)
        length = self.baseline.longest * few
        self.safe_rule = Rule.of(self.promise, self.value_level / 2, self.safe_proxy * few, length)
        if self.bets:
            level = (1.0 - self.returns_part) * self.levels.paths / 2
            self.safe_capital = Capital.of(level, few, self.alike)
        level = self.joint_level or self.value_level
        proxies = self.unit_proxy * terms.episodes / 2, self.safe_proxy * few
        self.rho = tuple(best_rho(v, level) if v > 0.0 else 1.0 for v in proxies)
        if self.levels.hidden > 0.0:
            part = (1.0 - self.hidden_part) / 2 * self.levels.hidden
            self.log_safe, self.never_safe = math.log(NOISE * part), NEVER * part

    def open(self) -> Any:
        """Nothing asked, and of V0 only what the promise says."""
        book: Any = super().open()
        book.value_low, book.value_high = self.rail.low, self.rail.high
        book.first.safe = SafeTally(realised=np.zeros(self.baseline.weights.shape))
        if self.bets:
            book.first.safe.logs = np.zeros((2, len(self.safe_capital.rates)))
        return book

    def freeze(self, book: Any, play: Play, baseline: bool, believed: float | None = None) -> Any:
        """Where returns are bet on, those of the baseline are too."""
        ticket = super().freeze(book, play, baseline, believed)
        if self.bets and ticket.baseline:
            return self.compared(book, self.baseline, CertifiedTicket(baseline=True))
        return ticket

    def compared_so_far(self, book: CertifiedBook) -> int:
        """Baseline trials are."""
        return book.ordered + book.safe_ordered

    # -- V0 ----------------------------------------------------------------------------------------------

    def values(self, book: Any) -> tuple[float, ...]:
        """The ends between which V0 lies."""
        return book.value_low, book.value_high

    def value(self, book: Any) -> float:
        """The average seen, within these ends."""
        seen = book.first.safe
        mean = seen.gained / seen.count if seen.count else (book.value_low + book.value_high) / 2
        return float(min(max(mean, book.value_low), book.value_high))

    def learn(self, book: Any, logged: Logged) -> None:
        """Logged baseline episodes say what it earns.

        They teach the box where V0 needs it: where paths are random. Elsewhere its lower ends say what may be
        tried next, and a baseline known too well would always seem the surest to earn.
        """
        self.note_logged(book.first.safe, logged)
        if not self.deterministic:
            book.first.seen.merge(logged.seen)
            book.now = None
        self.look_at_value(book)

    def note_logged(self, safe: SafeTally, logged: Logged) -> None:
        """`add_safe` of many."""
        safe.count, safe.gained = safe.count + logged.count, safe.gained + logged.gained
        safe.proxy += self.promise.scale**2 * logged.noise
        safe.length += logged.length
        safe.realised = safe.realised + logged.realised
        if self.bets:  # compared with their average: see `bernstein`
            safe.sum_x += logged.gained
            for i, part in enumerate((logged.guessed, logged.squares - logged.guessed)):
                owe(safe.logs[i], self.safe_capital.rates, logged.squares, part)

    def add_safe(self, tally: Tally, line: Line) -> None:
        """Where returns are bet on, those of the baseline are from both sides."""
        super().add_safe(tally, line)
        if self.bets and line.status == Status.TOLD and line.episode is not None:
            y = self.y(line)
            tally.safe.sum_x += line.ticket.centre
            for side, logs in zip((y, -y), tally.safe.logs, strict=True):
                bet(logs, self.safe_capital.rates, side)

    def note_safe(self, book: Any, episode: Seen) -> None:
        """Counted in order of asking: see `add_safe`."""
        return

    def look_at_value(self, book: Any) -> None:
        """The interval of V0 by what was seen now, within the one of before."""
        n = book.first.safe.count
        if not n:
            return
        below, above = self.means_seen(book.first.safe)
        if not self.deterministic:
            where = self.baseline.weights.ravel(), book.first.safe.realised.ravel()
            below, above = paths_between(below, above, float(n), *where, *map(np.ravel, self.ends(book)))
        if self.bets:
            least, most = self.bet_on_value(book.first.safe)
            below, above = max(below, least), min(above, most)
        book.value_low = max(book.value_low, below / n)
        book.value_high = max(book.value_low, min(book.value_high, above / n))

    def means_seen(self, safe: SafeTally) -> tuple[float, float]:
        """Between these is M0, the sum of discount^t mu over the baseline episodes seen."""
        hides, v = self.safe_hides(safe)
        below, above = means_between(
            safe.gained, hides, safe.proxy + v, safe.length, self.safe_rule, self.rho[1], self.value_level
        )
        return float(below), float(above)

    def bet_on_value(self, safe: SafeTally) -> tuple[float, float]:
        """Between these is n0 V0, by what returns say (step 6, bounded)."""
        (rates, weights), hidden = self.safe_capital, float(safe.whole + safe.never)
        lost = hidden * np.log1p(-rates)
        down, up = (float(fewest_gains(logs + lost, rates, weights)) - hidden for logs in safe.logs)
        return safe.sum_x + self.range * down, safe.sum_x - self.range * up

    def safe_hides(self, safe: SafeTally) -> tuple[float, float]:
        """`hides` of baseline trials, on either side."""
        if self.bounded:
            return self.span * self.baseline.longest * (safe.whole + safe.never), 0.0
        v, never = safe.whole * self.safe_proxy, safe.never * self.safe_proxy
        fresh = (safe.never - safe.vetoed) * self.safe_proxy + safe.vetoed * self.safe_noise
        noise = safe.vetoed * self.path_span
        if v > 0.0:
            sets = log_sets(float(safe.last), float(safe.whole))
            noise += float(unseen(v, self.safe_proxy / EIGHT, self.log_safe - sets))
        if fresh > 0.0:
            rho = best_rho(EIGHT * self.safe_proxy, self.never_safe)
            noise += float(mixture(fresh, rho, self.never_safe))
        return noise, v + never

    # -- budgets -----------------------------------------------------------------------------------------

    def budget(self, book: Any) -> float:
        """The believed budget, by the interval of V0 or by both sums."""
        found = super().budget(book)
        if self.order == "any":
            return max(found, self._any(book, 0.0, 0))
        lowest, low, runs, safe = math.inf, 0.0, 0, 0
        for number, line in sorted(self.maybe(book).items()):
            if number > book.started:
                lowest = min(lowest, self.joint(book, low, runs, safe))
            low, runs, safe = low + line.low * line.designed, runs + 1, safe + (not line.designed)
        return max(found, min(lowest, self.joint(book, low, runs, safe)))

    def after(self, book: Any, low: float) -> float:
        """The believed budget if one more trial runs that is worth at least `low`."""
        found = super().after(book, low)
        if found == -math.inf:
            return found
        if self.order == "any":
            return max(found, self._any(book, low, 1))
        maybe = self.maybe(book).values()
        low += sum(line.low for line in maybe if line.designed)
        return max(found, self.joint(book, low, len(maybe) + 1, sum(not line.designed for line in maybe)))

    def _any(self, book: Any, low: float, runs: int) -> float:
        """`joint` where each of the trials that are out or lost may have run: those that cost have.

        One of which it is open whether it costs counts apart, at its worst.
        """
        maybe = [(line.low, 1) for line in self.away(book) if line.designed]
        safe = len(book.out) - len(maybe) + book.safe_may
        worst = safe * min(0.0, *(self.rail.credit_at(value) for value in self.values(book)))
        for least_worth, count in (*maybe, *((gone.low, gone.may) for gone in book.gone)):
            adds = [least_worth - self.rail.required_at(value) for value in self.values(book)]
            if max(adds) <= 0.0:
                low, runs = low + count * least_worth, runs + count
            else:
                worst += count * min(0.0, *adds)
        return float(self.joint(book, low, runs, 0) + worst)

    def joint(self, book: Any, low: float, runs: int, safe: int) -> float:
        """The budget by both sums if `runs` more ran, `safe` of them baseline, the others worth `low`."""
        tally, seen = book.first, book.first.safe
        if not seen.count or (self.deterministic and self.bounded):
            return -math.inf
        (r0, r1), gone = self.rail.required_by, [gone for gone in book.gone if not gone.number]
        credited = book.baseline_told + book.safe_ran + safe
        n = credited + book.designed_told + sum(g.ran for g in gone) + runs - safe
        kappa = credited - r1 * n
        worth = book.lows + sum(g.ran * g.low for g in gone) + low - r0 * n
        if not self.deterministic:  # by the knapsack
            tables = tally.expected, tally.realised, self.baseline.weights, seen.realised, *self.ends(book)
            numbers = self.seen_worth(tally), kappa, float(seen.count), *self.means_seen(seen)
            return float(worth + float(joint_paths(*numbers, *map(np.ravel, tables))))
        hides, v = self.hides(tally, ())
        rest = 0.0 if tally.unseen is None else float(np.sum(tally.unseen * self.ends(book)[0]))
        safe_hides, safe_v = self.safe_hides(seen)
        part = kappa / seen.count
        found = tally.gained - hides + rest + part * seen.gained - abs(part) * safe_hides
        rho, safe_rho = self.rho
        off = joint_boundary(tally.proxy + v, seen.proxy + safe_v, part, rho, safe_rho, self.joint_level)
        return float(worth + found - off)

    def hidden_after(self, book: Any, rate: float, v: float, length: float, n: float, baseline: int) -> float:
        """What the noise of designed trials and of V0 may hide after n of them."""
        seen, found = book.first.safe, super().hidden_after(book, rate, v, length, n, baseline)
        kappa = baseline - self.rail.required_by[1] * (n + baseline)
        found += abs(kappa) * (book.value_high - book.value_low) / 2
        if not seen.count or not self.joint_level:
            return float(found)
        rho, safe_rho = self.rho
        other = joint_boundary(v, seen.proxy, kappa / seen.count, rho, safe_rho, self.joint_level)
        return float(min(found, other))
