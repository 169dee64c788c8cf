"""How a trial enters the sums of the certified ledger: what was told, and what may be hidden."""

from __future__ import annotations

import numpy as np

from saver.kernels.bounds.capital import Capital, bet
from saver.problem.promise import Bounded
from saver.safety.entries import Line, Status, Tally
from saver.safety.ledger import Ledger, Terms


class Tallying(Ledger):
    """Adds trials to the tallies of the certified ledger; with losses at random nothing is hidden."""

    span: float  # of what is hidden in a step
    range: float  # of what bets are on
    capital: Capital

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self.deterministic, self.hostile = terms.one_way, terms.losses == "hostile"
        self.bounded = isinstance(self.promise, Bounded)
        self.baseline = self.stage.play(terms.problem.baseline)

    @property
    def bets(self) -> bool:
        """Whether paths are random and observations bounded: then returns are bet on (step 6)."""
        return self.bounded and not self.deterministic

    def add(self, tally: Tally, line: Line) -> None:
        """One trial more, told or hidden."""
        episode = line.episode
        if episode is not None:
            tally.seen.extend(episode.states, episode.actions, episode.constraints)
        if self.hostile and (line.status != Status.TOLD or (episode is not None and not line.way.sure)):
            self.watch(tally, line)
        if not line.designed:
            if self.rail.learned:
                self.add_safe(tally, line)
            return
        if line.status in (Status.TOLD, Status.CUT):
            tally.earn(line)
            if not self.deterministic:
                tally.expected.ravel()[line.way.pairs] += line.way.weights
        if line.status == Status.TOLD:
            self.compare(tally, line)
        elif line.status == Status.CUT:
            self._rest(tally, line)
        if self.hostile and line.status != Status.TOLD:
            self._hide(tally, line)

    def watch(self, tally: Tally, line: Line) -> None:
        """Where a trial was, or can have been, unseen."""
        episode, stage = line.episode, self.stage
        been = None if episode is None else episode.states * stage.mdp.actions + episode.actions
        tally.watch(line.way, stage, been, line.status == Status.TOLD, tally.seen.mean.shape)

    def compare(self, tally: Tally, line: Line) -> None:
        """What a trial earned beside what its path explains; or bet on it."""
        if not self.bets:
            tally.sum_x += line.x
            tally.sum_v += line.ticket.v
            return
        y = self.y(line)
        tally.sum_x += line.ticket.centre
        tally.sum_v += y * y
        bet(tally.logs, self.capital.rates, y)

    def y(self, line: Line) -> float:
        """What a trial earned more than expected and than its path explains, in units of the range."""
        return float((line.x - line.ticket.centre) / self.range)

    def add_safe(self, tally: Tally, line: Line) -> None:
        """A baseline trial, where V0 is learned: one that was cut off counts as hidden."""
        safe = tally.safe
        if line.status == Status.TOLD and line.episode is not None:
            safe.count += 1
            safe.earn(line)
        elif self.hostile and line.status in (Status.CANCELLED, Status.VETOED):
            safe.never += 1
            safe.vetoed += line.status == Status.VETOED
        elif self.hostile:
            safe.whole, safe.last = safe.whole + 1, max(safe.last, line.order)

    def fresh(self, line: Line) -> float:
        """Of the proxy of a cancelled trial, that of what nobody can have known: its noise."""
        return float(line.ticket.proxy)

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
        if self.bets:  # which may all have been lost
            bet(tally.logs, self.capital.rates, -ticket.depth)
        else:
            tally.sum_v += ticket.v
        if line.status in (Status.CANCELLED, Status.VETOED):
            tally.cancelled += ticket.proxy
            tally.fresh += self.fresh(line)
            return
        tally.last = max(tally.last, line.order)
        if line.status == Status.CUT:
            tally.cut += 1
            tally.cut_proxy += ticket.proxy
            tally.rest_proxy += ticket.proxy - line.proxy
        else:
            tally.whole += 1
            tally.whole_proxy += ticket.proxy
