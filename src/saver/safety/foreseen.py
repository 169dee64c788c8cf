"""What the certified ledger will say of trials that nobody has asked yet: of sums as they are expected.

Forecasts are made with it. The argument is the ledger's own; in the place of a book stands a tally of what
one guardrail's designed trials, all of one policy, will have added to it.
"""

from __future__ import annotations

import math

import numpy as np

from saver._types import Floats
from saver.play.stage import Play
from saver.problem.moments import Moments
from saver.safety.certified import Certified
from saver.safety.entries import Tally
from saver.safety.ledger import Terms


class Foreseen:
    """A ledger of expected sums: nothing is asked of it, or told."""

    def __init__(self, terms: Terms) -> None:
        self._ledger, self._stage = Certified(terms), terms.stage
        self.bets = self._ledger.bets  # on returns, where paths are random and observations bounded
        self.crosses = self._ledger.crosses  # bounds noise and paths together too

    def box(
        self, visits: Floats, mean: Floats, asked: float, told: float, hidden: float
    ) -> tuple[Floats, Floats]:
        """Between which ends constraint means will lie, after so many trials of `visits` each.

        The share `told` of them is seen, the share `hidden` may have been lost because of its outcome.
        """
        seen, lost = np.floor(told * asked * visits), hidden * asked
        tally = Tally(Moments(seen, mean, np.zeros(mean.shape)))
        if lost and self._stage.deterministic:
            tally.missed = np.ceil(lost * visits)
        elif lost:
            tally.awaited, tally.walked = asked * visits, seen
            tally.most = math.ceil(lost) * np.where(visits > 0.0, self._stage.most, 0.0)
        return self._ledger.box_of(tally, ())

    def sums(self, play: Play, asked: float, seen: float, hidden: float, rate: float) -> Tally:
        """Of so many trials, `seen` of them told, and `hidden` a share; a discounted step earns `rate`."""
        proxy, lost = self._ledger.proxy_of(play), math.ceil(hidden * asked)
        tally = Tally(None, proxy=proxy * seen, length=play.length * seen, last=math.ceil(asked))
        tally.gained, tally.whole, tally.whole_proxy = rate * tally.length, lost, proxy * lost
        tally.hides = self._ledger.span * play.longest * lost
        return tally

    def by_noise(self, tally: Tally) -> float:
        """How much less than is true is believed: what noise may have added, and hides."""
        return tally.gained - self._ledger.seen_worth(tally)

    def by_paths(self, tally: Tally, strays: float, boxed: float) -> float:
        """The same by noise and paths together: `strays` of the hidden trials, a proxy `boxed` of the box."""
        tally.strays, tally.sum_v = strays, tally.proxy + tally.whole_proxy + boxed
        return -self._ledger.together(tally, ())

    def by_bets(self, tally: Tally, play: Play, mean: Floats, squares: float) -> float:
        """The same by bets on returns that vary by so much, `squares` in all, from what paths explain."""
        rates, span, promise = self._ledger.capital.rates, self._ledger.range, self._ledger.promise
        deepest = float(np.max(mean, where=play.weights > 0.0, initial=promise.floor)) - promise.floor
        lost = tally.whole * np.log1p(-rates * min(1.0, play.longest * deepest / span))
        tally.logs = lost - rates**2 / 2.0 * squares / span**2
        tally.strays = tally.whole * play.value(promise.ceiling - mean)
        return -self._ledger.together(tally, ())
