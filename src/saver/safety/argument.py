"""What sums say: the certificate's bounds of what told trials are worth, and its box; and what is not told.

Steps 2 to 6 of docs/proof.md and its pages, and what is hidden of them, step 10. Of trials that are out, or
lost, nobody knows whether they ran: each counts with min(0, low - required), low the largest lower value so
far. Where trials start in the order of asking, those out have run up to some one: the least over these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats, Ints
from saver.kernels.bounds.boundaries import best_rho, mixture, path_bound, stitched
from saver.kernels.bounds.capital import Capital, fewest_gains
from saver.kernels.bounds.noise import EIGHT, Numbers, Rule, all_ends, least, log_choices, unseen
from saver.play.stage import Play
from saver.problem.guardrail import Rail
from saver.problem.promise import Bounded, SubGaussian
from saver.problem.statement import Problem
from saver.safety.entries import CertifiedBook, Gone, Line, Tally
from saver.safety.ledger import Terms
from saver.safety.tallies import Tallying

ARGUMENT = 2  # grows when delta is split otherwise, or what is proved: where returns are bet on it was 1


class Shares(NamedTuple):
    """How delta is split: hidden trials, the box, noise, and noise with paths."""

    hidden: float
    box: float
    noise: float
    paths: float


def shares(deterministic: bool, next_state: bool, losses: str = "hostile", bounded: bool = False) -> Shares:
    """Fixed before the first episode; they add to 1."""
    hidden = 0.1 if losses == "hostile" else 0.0
    if deterministic:
        return Shares(hidden, 0.15, 0.85 - hidden, 0.0)
    if bounded:  # what returns say is nearly always the larger: `capital`
        return Shares(hidden / 10, 0.02, 0.01, 0.97 - hidden / 10)
    rest = (1.0 - hidden) / 2
    return Shares(hidden, rest, rest, 0.0) if next_state else Shares(hidden, rest, rest / 2, rest / 2)


def shares_of_returns(bounded: bool, losses: str = "hostile") -> Shares:
    """The same where transitions are unknown: there is no box, and what is hidden of coins needs no share."""
    hidden = 0.1 if losses == "hostile" and not bounded else 0.0
    return Shares(hidden, 0.0, 1.0 - hidden, 0.0)


RETURNS = 0.8  # of the level of what returns say, where V0 is learned: that of designed trials


def value_shares(deterministic: bool, bounded: bool) -> tuple[float, float, float]:
    """How the noise's part is split where V0 is learned: both sums at once, designed trials, V0.

    Fixed before the first episode; they add to 1.
    """
    if not deterministic:
        return 0.0, 2 / 3, 1 / 3
    return (0.0, 0.8, 0.2) if bounded else (0.5, 0.4, 0.1)


NOISE, PAIRS, NEVER = 0.4, 0.4, 0.2  # of the hidden share: of trials, of pairs, of cancelled trials


class Argument(Tallying):
    """The numbers of the argument, fixed before the first episode, and what follows from a tally."""

    designed_part = 1.0  # of the level of noise: that of designed trials
    returns_part = 1.0  # of the level of what returns say: that of designed trials
    path_span = 0.0  # how far what is summed may be off by the path of a trial, where that is not known
    hidden_part = 1.0  # of what noise and cancelled trials have of the hidden share: that of designed trials

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        problem, promise, mdp, level = terms.problem, self.promise, terms.problem.mdp, terms.rail.level
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
        if self.bets:
            least, most = promise.of_episode(1.0, float(np.sum(mdp.factors)))
            self.range, self.bottom = most - least, least
            self.alike = self.length**2 / float(np.sum(gammas**2))
            self.capital = Capital.of(self.returns_part * self.levels.paths, half, self.alike)
        if self.hostile:
            hidden = self.levels.hidden
            each = PAIRS * hidden / 2 / self.box.pairs
            self.log_noise, self.log_visits = math.log(self.hidden_part * NOISE * hidden), math.log(each)
            self.log_pairs = math.log(each if self.deterministic else each / 2)

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
                self.watch(tally, line)
        if tally.missed is None and tally.most is None:
            return self.box.ends(seen.counts, seen.mean)
        hidden = tally.unwatched(self.stage.most, self.log_visits)
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

    # -- trials that are out, or lost --------------------------------------------------------------------

    def away(self, book: CertifiedBook) -> list[Line]:
        """The trials that are out."""
        return [book.lines[number] for number in book.out]

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

    def middle(self, book: CertifiedBook) -> tuple[Floats, Floats]:
        """Midpoints and half-lengths of the box now."""
        lower, upper = self.ends(book)
        return (lower + upper) / 2, (upper - lower) / 2

    def group(self, book: CertifiedBook, line: Line, number: int) -> Gone:
        """Where lost trials of the same policy are counted."""
        alike = (gone for gone in book.gone if not gone.number and self.counts_as(gone, line))
        found: Gone | None = None if number else next(alike, None)
        if found is None:
            found = Gone(line.way, line.low, number=number, designed=line.designed)
            book.gone.append(found)
        return found

    def counts_as(self, gone: Gone, line: Line) -> bool:
        """Whether a trial is of the policy of others that are lost."""
        return gone.way.same_as(line.way)

    def gone_at(self, book: CertifiedBook, value: float) -> float:
        """What lost designed trials have added at least, if V0 is `value`."""
        required, counted = self.rail.required_at(value), [gone for gone in book.gone if not gone.number]
        return float(sum(g.may * self.at_risk(g.low, value) + g.ran * (g.low - required) for g in counted))

    def settled_at(self, book: CertifiedBook, value: float) -> float:
        """The part of the trials that are not out."""
        return super().settled_at(book, value) + self.gone_at(book, value)

    def budget_at(self, book: CertifiedBook, value: float) -> float:
        """The believed budget: the least over the sets of trials out that can have run."""
        if self.order == "any":
            away, credit = self.away(book), self.rail.credit_at(value)
            risks = [self.at_risk(line.low, value) if line.designed else min(0.0, credit) for line in away]
            return self.settled_at(book, value) + float(sum(risks))
        total, lowest = 0.0, math.inf
        for number, adds in self._chain(book, value):
            if number > book.started:
                lowest = min(lowest, total)
            total += adds
        return self.settled_at(book, value) + min(lowest, total)

    def spendable_at(self, book: CertifiedBook, value: float) -> float:
        """The same if one more trial runs: where they start in order, all before it have."""
        if self.order == "any":
            return self.budget_at(book, value)
        return self.settled_at(book, value) + sum(adds for _, adds in self._chain(book, value))

    def _chain(self, book: CertifiedBook, value: float) -> list[tuple[int, float]]:
        """Trials that may have run, in order, and what each adds if it did."""
        required, credit = self.rail.required_at(value), self.rail.credit_at(value)
        return [
            (number, line.low - required if line.designed else credit)
            for number, line in sorted(self.maybe(book).items())
        ]

    def maybe(self, book: CertifiedBook) -> dict[int, Any]:
        """Trials of which nobody knows whether they ran, where they start in order."""
        found: dict[int, Any] = {number: book.lines[number] for number in book.out}
        return found | {gone.number: gone for gone in book.gone if gone.number}


FEW, MORE = 4.0, 64.0  # samples; a few say nothing of a coin


def paper_width(problem: Problem, episodes: int, counts: Ints) -> Floats:
    """beta(s,a) = L sqrt(log(S A n (n + 1)) / T), n = K L, T at least 1; in units of the noise scale."""
    return first_width(problem, episodes) / np.sqrt(np.maximum(counts, 1))


def first_width(problem: Problem, episodes: int) -> float:
    """The paper's width after one sample."""
    mdp = problem.mdp
    n = float(episodes * mdp.horizon)
    return float(mdp.horizon) * math.sqrt(math.log(mdp.states * mdp.actions * n * (n + 1.0)))


def paper_lower(promise: SubGaussian | Bounded, width: Floats, counts: Ints, mean: Floats) -> Floats:
    """mean - scale width, never below the floor; the floor where nothing was seen."""
    floor: float = promise.floor
    lower: Floats = np.maximum(mean - promise.scale * width, floor)
    return np.where(counts > 0, lower, floor)


class Box:
    """An interval for every constraint mean, valid for all pairs and all times at once.

    Cut at floor and ceiling, which it is where nothing was seen. Pairs that can be met share the level. Where
    only lower ends are needed (`below`), those have all of it, and are tightest after a few samples already:
    there they say what may be tried next, not what was earned.
    """

    def __init__(
        self, problem: Problem, episodes: int, level: float, below: bool = False, rail: Rail | None = None
    ) -> None:
        mdp, promise = problem.mdp, (rail or problem.rails[0]).promise
        self.pairs = pairs = int(mdp.available[mdp.reachable].sum())
        bounded = isinstance(promise, Bounded)
        samples = max(10.0, episodes / pairs)
        if below:
            samples = MORE if bounded else FEW
        self.level, proxy = level / pairs, promise.scale**2 * samples
        rule = Rule.of(promise, self.level if below or not bounded else self.level / 2, proxy, samples)
        self.numbers = Numbers(promise.scale**2, float(promise.floor), float(promise.ceiling), below, rule)

    def ends(self, counts: Ints, mean: Floats) -> tuple[Floats, Floats]:
        """Lower and upper ends, [S, A]."""
        return self.hiding(counts, mean, np.zeros(mean.shape), 0.0)

    def hiding(self, counts: Ints, mean: Floats, hidden: Floats, log_level: float) -> tuple[Floats, Floats]:
        """The same where so many more were taken and not told, perhaps because of what they were."""
        lower, upper = np.empty(mean.shape), np.empty(mean.shape)
        all_ends(counts, mean, hidden, self.numbers, log_level, lower, upper)
        return lower, upper
