"""How often each pair will have been visited, by when: drawn in bulk, many campaigns at a time.

Episodes of the baseline, of the exploration and of what earns most come as predicted (`Spending.course`);
the others are designed. Where actions are drawn, or paths are random, the visits of m episodes are about
binomial. A tracker splits the visits of a state in the design's proportions, once every pair that has weight
has one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints

ROUNDS = 4  # of sharing out what first visits leave
ROUNDING = 1e-9  # of visits


class Part(NamedTuple):
    """Episodes of one policy: how many by when, and what one of them visits, [S, A]."""

    asked: Floats
    episodes: Floats  # among so many asked
    visits: Floats

    def by(self, n: float) -> int:
        """How many of the first n."""
        return round(float(np.interp(n, self.asked, self.episodes)))


class Turnout(NamedTuple):
    """What a campaign plays.

    Attributes:
        others: what is not designed.
        design: the visits of a designed episode, [S, A].
        explore: the first so many designed episodes are of `exploration` instead.
        exploration: the visits of one of them, [S, A].
        tracked: the design is followed by counts, not drawn.
        sure: every tracked episode goes one way.
        weighted: pairs that are taken first until they were seen, [S, A].
        told: the share of episodes that is told.
    """

    others: tuple[Part, ...]
    design: Floats
    explore: int
    exploration: Floats
    tracked: bool
    sure: bool
    weighted: Bools
    told: float


class Counts:
    """Visits of `draws` campaigns so far, T, [draws, S, A]."""

    def __init__(self, turnout: Turnout, draws: int, rng: np.random.Generator) -> None:
        self.turnout, self.rng, self.asked = turnout, rng, 0
        S, A = turnout.design.shape
        self.T, self.other, self.own = (np.zeros((draws, S, A)) for _ in range(3))
        self.spent = [0] * len(turnout.others)
        self.met = np.zeros((draws, S))  # by designed episodes
        self.up = 0.0 if turnout.sure else rng.random((draws, S, A))
        self.rank = np.cumsum(turnout.weighted, axis=1) - 1

    def until(self, n: int) -> None:
        """After n episodes."""
        t, now, own = self.turnout, self.asked, n - self.asked
        designed = now - sum(self.spent)
        for i, part in enumerate(t.others):
            more = min(max(0, part.by(n) - self.spent[i]), own)
            self.other += self._drawn(more, part.visits)
            self.spent[i] += more
            own -= more
        explored = min(designed, t.explore)
        exploring = min(t.explore - explored, own)
        if t.sure:
            grown = np.round(t.told * (explored + exploring) * t.exploration)
            self.other += grown - np.round(t.told * explored * t.exploration)
        else:
            self.other += self._drawn(exploring, t.exploration)
        if t.tracked:
            self._track(designed + own - explored - exploring, own - exploring)
        else:
            self.own += self._drawn(own - exploring, t.design)
            self.T = self.other + self.own
        self.asked = n

    def _drawn(self, episodes: int, visits: Floats) -> Ints:
        """Visits that so many episodes are told to have made, [draws, *visits.shape]."""
        most = np.ceil(np.maximum(visits, 1.0) - ROUNDING).astype(np.int64)
        chance = np.minimum(self.turnout.told * visits / most, 1.0)
        found: Ints = self.rng.binomial(episodes * most, chance, (len(self.T), *visits.shape))
        return found

    def _track(self, designed: int, more: int) -> None:
        """Share out the visits of designed episodes, `more` of which are new.

        Of n visits to a state a pair gets max(1, share (n - what others have beyond theirs)), rounded as
        `Setup.ahead` makes a tracker round: down where a model is deterministic, else either way.
        """
        t = self.turnout
        state = t.design.sum(axis=1)
        if t.sure:
            self.met = np.broadcast_to(np.round(t.told * designed * state), self.met.shape)
        else:
            self.met = self.met + self._drawn(more, state)
        share = t.design / np.where(state > 0.0, state, 1.0)[:, None]
        met = self.met[:, :, None]
        least = (t.weighted & (self.other == 0.0) & (self.rank < met)).astype(np.float64)
        left = met
        for _ in range(ROUNDS):
            beyond = np.sum(np.maximum(least - share * left, 0.0), axis=2, keepdims=True)
            rounded = np.sum(share * left >= 1.0, axis=2, keepdims=True) / 2 if t.sure else 0.0
            left = np.maximum(met - beyond + rounded, 0.0)
        self.own = np.maximum(self.own, np.maximum(least, np.floor(share * left + self.up)))
        self.T = self.other + self.own
