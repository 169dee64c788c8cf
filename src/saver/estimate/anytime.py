"""Keeps, trial by trial, what the interval at all times needs (`sequence`, docs/anytime.md).

Weights are frozen when a trial is asked. Where who chooses what is told may know the outcomes
(losses="hostile") sums run in the order of asking, and what is not told is hidden. Two intervals hold, of the
trials before the first that is out, and of all, with those out hidden; the answer is what they share. Where
chance chooses, all that is told counts, in the order of telling.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.estimate.importance import by_weights
from saver.estimate.interval import Estimate
from saver.kernels.bounds import sequence
from saver.kernels.bounds.noise import EIGHT, log_sets, unseen
from saver.kernels.bounds.sequence import Bands
from saver.play.stage import Play, farthest
from saver.problem.bellman import visits
from saver.problem.codec import portable
from saver.problem.moments import Moments, Sums
from saver.problem.promise import Bounded
from saver.safety.entries import Ordered, Status, Visits, Way, forget
from saver.safety.ledger import Seen, Terms

TINY = 1e-300


@portable("weights")
@dataclass(frozen=True, eq=False)
class Weights:
    """Of samples of the trials from one on, and what their rewards are guessed to be, [pairs] each."""

    until: int  # the trial from which on others are made
    w: Any
    guess: Any
    v: Any = None  # for a fair estimate


@portable("entry")
@dataclass(eq=False)
class Entry:
    """A trial in order of asking."""

    version: int
    most: float = 0.0  # the largest sum of w^2 scale^2 of any way that it can go
    status: str = Status.OUT
    pairs: Any = None
    rewards: Any = None
    play: Any = field(default=None, init=False)  # its way: known from the trial
    kept: Any = None  # once it is out no longer: pairs, visits, sure


@portable("reward-tally")
@dataclass(eq=False)
class RewardTally(Visits):
    """Sums over trials, [pairs] where it says by pair."""

    T: Any  # samples, by pair
    total: Any  # their sum, by pair
    W: Any  # the weights of the samples, by pair
    V: Any  # those for a fair estimate, by pair
    Q: Any  # their squares, by pair
    episodes: int = 0  # that were told
    gained: float = 0.0  # sum of w R
    drawn: float = 0.0  # sum of v R
    noise: float = 0.0  # sum of w^2 scale^2, or of w^2 (R - guess)^2 where rewards are bounded
    asked: int = 0  # trials in all
    hidden: int = 0  # of these, those of which nothing is told
    hidden_noise: float = 0.0  # their largest sum of w^2 scale^2


@portable("reward-book")
@dataclass(eq=False)
class RewardBook(Ordered):
    """What is written down."""

    versions: dict[int, Any] = field(default_factory=dict)  # weights these were asked with, and the latest
    asked: int = 0  # trials in all


class Sides(NamedTuple):
    """An interval and why it is as wide as it is: halves by noise, the box of seen and of unseen pairs."""

    low: float
    high: float
    noise: float
    mismatch: float
    unseen: float


class Anytime:
    """The rules; what changes is in the book. Events reach it as they reach a ledger."""

    def __init__(self, terms: Terms, name: str | None = None) -> None:
        problem, mdp = terms.problem, terms.problem.mdp
        self.terms, self.stage, self.hostile = terms, terms.stage, terms.losses == "hostile"
        self.bounded = isinstance(problem.reward, Bounded)
        assert problem.reward is not None  # else there is no such interval
        tables = problem.reward.tables(mdp)
        self.floor, self.ceiling = (np.array(part).ravel() for part in (tables.floor, tables.ceiling))
        asked = problem.question
        usual = (visits(mdp, asked.reference) + visits(mdp, mdp.uniform)) / 2
        samples = terms.episodes * float(usual.sum())
        c = asked.first if name is None else asked.weights[name]
        self.numbers = sequence.steering(c, usual, tables, self.bounded, samples)
        self.pairs = int(mdp.available[mdp.reachable].sum())
        self.most = np.broadcast_to(self.stage.most, (mdp.states, mdp.actions)).ravel()
        self.unit = sequence.variance_of(self.numbers)
        self._bands: dict[float, Bands] = {}
        self._steps = self.stage.nodes.changed(discount=1.0)

    def bands(self, level: float) -> Bands:
        """What an interval at this level needs."""
        if level not in self._bands:
            split, episodes = sequence.levels(level, self.terms.losses), self.terms.episodes
            self._bands[level] = sequence.bands(self.numbers, split, episodes, self.pairs, self.bounded)
        return self._bands[level]

    # -- events ------------------------------------------------------------------------------------------

    def open(self) -> RewardBook:
        """Nothing asked."""
        T, total, W, V, Q = (np.zeros(len(self.numbers.c)) for _ in range(5))
        return RewardBook(first=RewardTally(T, total, W, V, Q))

    def freeze(
        self, book: RewardBook, play: Play, baseline: bool, believed: float | None = None
    ) -> Weights | None:
        """New weights, if it is time for them; changes nothing."""
        number = book.asked + 1
        if book.versions and number < book.versions[max(book.versions)].until:
            return None
        now = self.told(book)
        w = np.empty(len(self.numbers.c))
        v, n = np.empty(len(w)), float(now.episodes)
        sequence.steer(n, now.T, now.W, self.numbers, w)
        sequence.spend(n, float(self.terms.episodes), now.T, now.V, self.numbers, v)
        middle = (self.floor + self.ceiling) / 2
        guess = (now.total + middle) / (now.T + 1.0) if self.bounded else None
        return Weights(int(sequence.renewed(number)), w, guess, v)

    def ask(self, book: RewardBook, number: int, ticket: Weights | None, play: Play) -> None:
        """A trial goes out."""
        book.asked += 1
        if ticket is not None:
            book.versions[max(book.versions, default=0) + 1] = ticket
            forget(book.versions, (entry.version for entry in book.lines.values()))
        version = max(book.versions)
        entry = book.lines[number] = Entry(version)
        if self.hostile:
            entry.most = play.once(self._most, book.versions[version])
        self.resume(book, number, play)

    def _most(self, play: Play, weights: Weights) -> float:
        return self.loudest(play, ((weights.w * self.numbers.scale) ** 2).reshape(play.visits.shape))

    def loudest(self, play: Play, squares: Floats) -> float:
        """The largest sum of these along any way that a trial can go."""
        if play.sure:
            return float(np.sum(play.visits * squares))
        return float(farthest(self._steps, play.behaviour, squares, 1.0))

    def resume(self, book: RewardBook, number: int, play: Play) -> None:
        """Where a trial that is out may go."""
        book.lines[number].play = play.once(Way.of)

    def tell(self, book: RewardBook, number: int, play: Play, episode: Seen, complete: bool = True) -> None:
        """Take rewards in; of an episode that was cut off nothing, unless chance has cut it."""
        entry = book.lines[number]
        if episode is not None and (complete or not self.hostile):
            entry.pairs = episode.states * self.stage.mdp.actions + episode.actions
            entry.rewards = np.array(episode.rewards)
        status = Status.HIDDEN if entry.pairs is None else Status.TOLD
        self._settle(book, number, status, counts=episode is not None)

    def abandon(self, book: RewardBook, number: int, play: Play, ran: bool) -> None:
        """What was not told may be hidden."""
        self._settle(book, number, Status.HIDDEN, counts=self.hostile)

    def cancel(self, book: RewardBook, number: int, unseen: bool) -> None:
        """What never started has no rewards; but whoever says so may know what they would have been."""
        self.abandon(book, number, None, False)  # type: ignore[arg-type]

    def learn(self, book: RewardBook, logged: Sums) -> None:
        """An episode of the past teaches the box."""
        counts = logged.rewards.counts.ravel().astype(np.float64)
        book.first.T += counts
        book.first.total += counts * logged.rewards.mean.ravel()

    def _settle(self, book: RewardBook, number: int, status: str, counts: bool) -> None:
        """Into the sums before the first that is out, with all that it held up."""
        entry = book.lines[number]
        entry.status, entry.kept = status, (entry.play.pairs, entry.play.expected, entry.play.sure)
        if not (counts and self.hostile):
            del book.lines[number]
            if counts:
                self._add(book, book.first, entry)
        for settled in book.settled():
            self._add(book, book.first, settled)
        forget(book.versions, (entry.version for entry in book.lines.values()))

    def _add(self, book: RewardBook, tally: RewardTally, entry: Entry) -> None:
        """One trial more, told or hidden."""
        tally.asked += 1
        if self.hostile:
            if tally.awaited is None:
                tally.awaited, tally.walked, tally.missed, tally.most = np.zeros((4, len(tally.T)))
            way = entry.play or Way(entry.kept[0], entry.kept[1], None, entry.kept[2])
            tally.watch(way, self.stage, entry.pairs, entry.status == Status.TOLD, tally.T.shape)
        if entry.status != Status.TOLD:
            tally.hidden += 1
            tally.hidden_noise += entry.most
            return
        version, pairs = book.versions[entry.version], entry.pairs
        w = version.w[pairs]
        tally.episodes += 1
        v = version.v[pairs]
        sequence.weigh(pairs, entry.rewards, w, v, tally.T, tally.total, tally.W, tally.V, tally.Q)
        tally.drawn += float(v @ entry.rewards)
        tally.gained += float(w @ entry.rewards)
        spread = entry.rewards - version.guess[pairs] if self.bounded else self.numbers.scale[pairs]
        tally.noise += float(np.add.reduce((w * spread) ** 2))

    # -- answers -----------------------------------------------------------------------------------------

    def told(self, book: RewardBook, hiding: bool = False) -> RewardTally:
        """All that was told; those that are out are left aside, or hidden."""
        more = [entry for entry in book.lines.values() if hiding or entry.status == Status.TOLD]
        every: RewardTally = copy.deepcopy(book.first) if more else book.first
        for entry in more:
            self._add(book, every, entry)
        return every

    def interval(self, book: RewardBook, level: float, c: Floats | None = None) -> Sides:
        """At this level, at all times at once; of sum c mean, for other c than the weights are made for."""
        numbers = self.bands(level)
        found = self.sides(book.first, numbers, level, c)
        if any(entry.status != Status.OUT for entry in book.lines.values()):
            other = self.sides(self.told(book, hiding=True), numbers, level, c)
            low, high = max(found.low, other.low), min(found.high, other.high)
            narrower = min(found, other, key=lambda one: one.high - one.low)
            return Sides(low, high, *narrower[2:])
        return found

    def sides(self, tally: RewardTally, numbers: Bands, level: float, c: Floats | None = None) -> Sides:
        """From these sums alone."""
        c, hidden = self.numbers.c if c is None else c.ravel(), self._hidden(tally, numbers)
        lower, upper = np.empty(len(c)), np.empty(len(c))
        sequence.reward_ends(
            tally.T, tally.total, hidden, self.numbers, self.floor, self.ceiling, numbers, lower, upper
        )
        more = tally.hidden_noise * (4.0 if self.bounded else 1.0)
        u = sequence.noise_bound(tally.noise + more, numbers) + self._hides(tally, level)
        low, by_noise, slack = sequence.side(tally.gained, u, c, tally.W, lower, upper, 1.0)
        high, above, more_slack = sequence.side(tally.gained, u, c, tally.W, lower, upper, -1.0)
        never = float(np.sum((np.abs(c) * (self.ceiling - self.floor))[tally.T == 0.0]))
        parts = np.maximum([by_noise + above, slack + more_slack - never, never], 0.0)
        noise, mismatch, unseen_part = parts * (-high - low) / 2 / max(float(np.sum(parts)), TINY)
        return Sides(low, -high, float(noise), float(mismatch), float(unseen_part))

    def fair(self, book: RewardBook, rewards: Moments, level: float) -> Estimate:
        """The estimate by the weights that samples had when their trials were asked."""
        c = self.numbers.c.reshape(rewards.mean.shape)
        return by_weights(self.stage.mdp, c, self.told(book), rewards, level, self.terms.problem.reward)

    def _hides(self, tally: RewardTally, level: float) -> float:
        """At most this much noise is hidden, of either sign."""
        if tally.hidden_noise == 0.0:
            return 0.0
        each = sequence.levels(level, self.terms.losses).hidden_noise / 2
        sets = log_sets(float(tally.asked), float(tally.hidden))
        return float(unseen(tally.hidden_noise, self.unit / EIGHT, math.log(each) - sets))

    def _hidden(self, tally: RewardTally, numbers: Bands) -> Floats:
        """At most so often hidden trials have met each pair."""
        if not tally.hidden:
            return np.zeros(len(tally.T))
        return tally.unwatched(self.most, numbers.log_pairs)
