"""What sums say: the certificate's bounds of what told trials are worth, and its box.

Steps 2 to 6 of docs/proof.md and its pages, and what is hidden of them, step 10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from saver._types import Floats
from saver.play.stage import Play
from saver.problem.promise import Bounded
from saver.safety.boundaries import best_rho, mixture, stitched
from saver.safety.capital import Capital, fewest_gains
from saver.safety.entries import Line, Tally
from saver.safety.hidden import EIGHT, log_choices, most_visits, unseen
from saver.safety.ledger import Ledger, Terms
from saver.safety.noise import Rule, least
from saver.safety.paths import path_bound
from saver.safety.shares import NEVER, NOISE, PAIRS, Shares, shares
from saver.safety.tallies import Bets, Sums
from saver.safety.widths import Box


class Argument(Ledger):
    """The numbers of the argument, fixed before the first episode, and what follows from a tally."""

    designed_part = 1.0  # of the level of noise: that of designed trials
    returns_part = 1.0  # of the level of what returns say: that of designed trials
    bets_kind = Bets
    path_span = 0.0  # how far what is summed may be off by the path of a trial, where that is not known
    hidden_part = 1.0  # of what noise and cancelled trials have of the hidden share: that of designed trials

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        problem, promise, mdp, level = terms.problem, self.promise, terms.problem.mdp, terms.rail.level
        self.deterministic, self.hostile = terms.one_way, terms.losses == "hostile"
        self.bounded = isinstance(promise, Bounded)
        parts = shares(self.deterministic, promise.next_state, terms.losses, self.bounded)
        self.levels = Shares(*(level * part for part in parts))
        self.box = Box(problem, terms.episodes, self.levels.box, self.deterministic, terms.rail)
        self.places = len(mdp.layers) - 1  # where an episode may be cut off
        gammas = mdp.discount ** np.arange(len(mdp.layers))
        self.length = float(np.sum(gammas))
        self.unit_proxy = promise.scale**2 * float(np.sum(gammas**2))
        half = terms.episodes / 2
        noise = self.designed_part * self.levels.noise
        self.rule = Rule.of(promise, noise, self.unit_proxy * half, self.length * half)
        self.span = promise.ceiling - promise.floor
        self.scale = self.span * self.length / 3
        self.start = self.unit_proxy + (self.span * self.length) ** 2 / 4
        self.baseline = self.stage.play(problem.baseline)
        self.sums = self._sums(terms, float(np.sum(gammas**2)))
        if self.hostile:
            hidden = self.levels.hidden
            each = PAIRS * hidden / 2 / self.box.pairs
            self.log_noise, self.log_visits = math.log(self.hidden_part * NOISE * hidden), math.log(each)
            self.log_pairs = math.log(each if self.deterministic else each / 2)

    def _sums(self, terms: Terms, squares: float) -> Sums:
        """How trials are added; `squares` is sum discount^2t of the longest."""
        if not self.bets:
            return Sums(terms)
        least, most = self.promise.of_episode(1.0, float(np.sum(terms.problem.mdp.factors)))
        self.range, self.bottom, self.alike = most - least, least, self.length**2 / squares
        level = self.returns_part * self.levels.paths
        self.capital = Capital.of(level, terms.episodes / 2, self.alike)
        return self.bets_kind(terms, self.range, self.capital)

    @property
    def bets(self) -> bool:
        """Whether paths are random and observations bounded: then returns are bet on (step 6)."""
        return self.bounded and not self.deterministic

    @property
    def first(self) -> tuple[float, float, float]:
        """Proxy, length and lower value that stand for the last trial before there is one."""
        return self.unit_proxy, self.length, self.promise.floor * self.length

    def proxy_of(self, play: Play) -> float:
        """Of the noise of an episode: scale^2 sum discount^2t over the steps that can happen."""
        return float(self.promise.scale**2 * play.noise)

    def noise_of(self, play: Play) -> float:
        """The same, of the noise alone: it stays fresh for whoever has seen the path."""
        return self.proxy_of(play)

    @property
    def crosses(self) -> bool:
        """Whether noise and paths are also bounded together (step 6)."""
        return self.levels.paths > 0.0

    def boundary(self, v: float) -> float:
        """u(v) of step 6; 0 before the first trial."""
        return stitched(v, self.start, self.scale, self.levels.paths) if v > 0.0 else 0.0

    def box_of(self, tally: Tally, away: Sequence[Line]) -> tuple[Floats, Floats]:
        """The box of these trials, those that are away hidden."""
        seen = tally.seen
        if away:
            tally = tally.with_visits()
            for line in away:
                self.sums.hide_visits(tally, line)
        if tally.missed is None and tally.most is None:
            return self.box.ends(seen.counts, seen.mean)
        hidden = np.zeros(seen.mean.shape) if tally.missed is None else tally.missed
        if tally.most is not None:
            left = most_visits(tally.awaited, self.stage.most, self.log_visits) - tally.walked
            hidden = hidden + np.maximum(0.0, np.minimum(tally.most, np.floor(left)))
        return self.box.hiding(seen.counts, seen.mean, hidden, self.log_pairs)

    def worth(self, tally: Tally, away: Sequence[Line], ends: tuple[Floats, Floats]) -> float:
        """What the told trials of a tally are worth at least, those that are away hidden."""
        lower, upper = ends
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
        return noise + self.never(tally.fresh), v + tally.cancelled

    def together(self, tally: Tally, away: Sequence[Line]) -> float:
        """sum X - u(sum v) of step 6: what has no X may have strayed, and a cut trial has none."""
        tickets = [line.ticket for line in away if line.designed]
        if self.bets:
            return self._bet_together(tally, tickets)
        v = tally.whole_proxy + tally.cut_proxy + sum(ticket.proxy for ticket in tickets)
        noise = self._noise(tally, away, tally.whole + tally.cut + len(tickets), 0, v)
        strays = tally.strays + sum(ticket.strays for ticket in tickets)
        sum_v = tally.sum_v + sum(ticket.v for ticket in tickets)
        slack = strays + noise + self.never(tally.fresh) + self.boundary(sum_v)
        return float(tally.sum_x - slack)

    def _bet_together(self, tally: Tally, tickets: Sequence[Any]) -> float:
        """The same for bounded observations: sum V(b; m) + B E."""
        logs, (rates, weights) = tally.logs, self.capital
        if tickets:
            logs = logs + np.sum([np.log1p(-rates * ticket.depth) for ticket in tickets], axis=0)
        strays = tally.strays + sum(ticket.strays for ticket in tickets)
        return float(tally.sum_x - strays + self.range * fewest_gains(logs, rates, weights))

    def _noise(self, tally: Tally, away: Sequence[Line], whole: int, cut: int, v: float) -> float:
        """H of these trials: at most this much their noise has taken."""
        if v <= 0.0:
            return 0.0
        n = max([tally.last, *(line.order for line in away if line.designed)])
        sets = log_choices(n, whole, cut, self.places)
        return float(unseen(v, self.unit_proxy / EIGHT, self.log_noise - sets))

    def never(self, v: float) -> float:
        """At most this much noise would have come of trials that were cancelled, in the order of that."""
        if v <= 0.0:
            return 0.0
        level = self.hidden_part * NEVER * self.levels.hidden
        return float(mixture(v, best_rho(EIGHT * self.unit_proxy, level), level))
