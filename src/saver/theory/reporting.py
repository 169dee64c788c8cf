"""What will be reported: how wide intervals will be, at one time and at all times, and whether bounded.

Sums of a few campaigns are drawn, epoch by epoch of the weights, and given to the functions that answer:
`certainty` at one time, `Anytime` at all times. No episode is played.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.design.limits import check_variance
from saver.estimate.anytime import Anytime, RewardTally
from saver.estimate.asymptotic import start, stretched
from saver.estimate.certainty import weighted
from saver.estimate.interval import LEVEL
from saver.estimate.sequence import Steering, renewed, steer
from saver.play.stage import Play, Stage
from saver.problem.moments import Moments
from saver.problem.world import Scenario
from saver.safety.ledger import Terms
from saver.theory.delivery import TRACKED, Delivery, tracked
from saver.theory.turnout import Counts, Turnout

DRAWS, NUMBERS = 100, 30_000  # campaigns, as far as they have no more pairs in all
PLAYS = 5  # that stand for a tracked design


class Report(NamedTuple):
    """What is expected after all episodes, at level .95.

    Attributes:
        half_width: half the length of the interval at one time; the mean over campaigns where it is bounded,
            infinite if there are none.
        anytime_half_width: the same of the interval at all times.
        bounded: how likely they are bounded.
    """

    half_width: float
    anytime_half_width: float
    bounded: float


class Reporting:
    """Predicts what campaigns of one scenario report after so many episodes."""

    def __init__(
        self,
        scenario: Scenario,
        episodes: int,
        stage: Stage,
        feedback: Delivery,
        promised: bool = False,
        logged: int = 0,
    ) -> None:
        self.promised, self.logged = promised, logged
        self.problem, self.episodes, self.stage, self.feedback = scenario.problem, episodes, stage, feedback
        mdp, reward = scenario.problem.mdp, scenario.world.reward
        self.mean = np.array(reward.mean).ravel()
        self.variance = np.array(check_variance(mdp, reward.variance)).ravel()
        self.keeper: Anytime | None = None
        if self.problem.reward is not None:
            self.keeper = Anytime(Terms(self.problem, episodes, stage, feedback.losses, feedback.order))

    def report(self, turnout: Turnout, play: Play) -> Report:
        """Of campaigns that go so; `play` is what they track or draw from."""
        draws, rng = min(max(NUMBERS // self.mean.size, 1), DRAWS), np.random.default_rng(0)
        counts, sums = Counts(turnout, draws, rng), Sums(self.mean, self.variance, self.keeper, draws)
        plays = self._lost(play, turnout.tracked) if self.feedback.hidden else []
        number = 1
        while number <= self.episodes:
            following = min(int(renewed(number)), self.episodes + 1)
            sums.weigh(turnout.told * (number - 1))
            sums.lose(plays, self.feedback.hidden * (following - number))
            counts.until(following - 1)
            sums.add(counts.T.reshape(draws, -1), rng)
            number = following
        every = list(sums.moments(play.visits.shape, rng))
        once = [self._half(moments) for moments in every]
        if self.keeper is None:
            told = turnout.told * self.episodes
            factor = float(stretched(told, self.episodes, LEVEL))
            pairs = zip(once, every, strict=True)
            always = [factor * half if self._begun(told, one) else math.inf for half, one in pairs]
        else:
            bands = self.keeper.bands(LEVEL)
            ends = [self.keeper.sides(tally, bands, LEVEL) for tally in self._tallies(sums, plays)]
            always = [(end.high - end.low) / 2 for end in ends]
        return Report(_mean(once), _mean(always), float(np.mean(np.isfinite(once))))

    def _half(self, moments: Moments) -> float:
        """Of the interval at one time."""
        problem = self.problem
        low, high = weighted(problem.mdp, problem.question.first, moments, LEVEL, problem.reward).interval
        return (high - low) / 2

    def _begun(self, told: float, moments: Moments) -> bool:
        """Whether there is an interval at all times in the limit: see `saver.estimate.asymptotic`."""
        if self.promised:
            return told + self.logged >= start(LEVEL)
        fewest = moments.counts[self.problem.question.first != 0].min(initial=told)
        return min(told, float(fewest)) >= start(LEVEL)

    def _lost(self, play: Play, follows: bool) -> list[Play]:
        """What stands for lost trials."""
        return tracked(self.stage, play)[:: TRACKED // PLAYS] if follows else [play]

    def _tallies(self, sums: Sums, plays: list[Play]) -> Iterator[RewardTally]:
        """The sums of each campaign; lost trials hide noise, and visits."""
        K, hidden = self.episodes, math.ceil(self.feedback.hidden * self.episodes)
        sure, none = all(one.sure for one in plays), np.zeros(self.mean.size)
        most = np.repeat(self.stage.most.ravel(), self.problem.mdp.actions)
        for i in range(len(sums.T)):
            tally = RewardTally(sums.T[i], sums.total[i], sums.W[i], none, none)
            tally.episodes, tally.asked, tally.hidden, tally.hidden_noise = K - hidden, K, hidden, sums.hides
            tally.gained, tally.noise = float(sums.gained[i]), float(sums.noise[i])
            if hidden:
                each = tally.T / (K - hidden)
                met = np.mean([one.visits.ravel() > 0.0 for one in plays], axis=0)
                tally.missed = np.ceil(hidden * each) if sure else none
                tally.most = none if sure else hidden * met * most
                tally.awaited, tally.walked = (none, none) if sure else (K * each, tally.T)
            yield tally


class Sums:
    """Of some campaigns, by pair: [draws, pairs], or [draws]."""

    def __init__(self, mean: Floats, variance: Floats, keeper: Anytime | None, draws: int) -> None:
        self.mean, self.variance, self.keeper = mean, variance, keeper
        self.T, self.total, self.W, self.w, self.guess = (np.zeros((draws, mean.size)) for _ in range(5))
        self.gained, self.noise, self.hides = np.zeros(draws), np.zeros(draws), 0.0
        if keeper is not None:
            c, usual, scale, span = (np.tile(part, draws) for part in keeper.numbers[:4])
            self.steering = Steering(c, usual, scale, span, keeper.numbers.cap)

    def weigh(self, episodes: float) -> None:
        """New weights, and new guesses of rewards."""
        if self.keeper is not None:
            steer(episodes, self.T.ravel(), self.W.ravel(), self.steering, self.w.ravel())
            self.guess = (self.total + (self.keeper.floor + self.keeper.ceiling) / 2) / (self.T + 1.0)

    def lose(self, plays: list[Play], trials: float) -> None:
        """So many trials are lost, and `plays` stand for them alike."""
        if self.keeper is not None and plays:
            squares = np.mean((self.w * self.keeper.numbers.scale) ** 2, axis=0).reshape(
                plays[0].visits.shape
            )
            self.hides += trials * float(np.mean([self.keeper.loudest(play, squares) for play in plays]))

    def add(self, T: Floats, rng: np.random.Generator) -> None:
        """Samples that bring the counts to T; their sums are normal."""
        more = T - self.T
        sums = more * self.mean + np.sqrt(more * self.variance) * rng.standard_normal(T.shape)
        self.T, self.total = T, self.total + sums
        if self.keeper is not None:
            spread = self.keeper.numbers.scale**2
            if self.keeper.bounded:
                spread = self.variance + (self.mean - self.guess) ** 2
            self.W += self.w * more
            self.gained += np.sum(self.w * sums, axis=1)
            self.noise += np.sum(self.w**2 * more * spread, axis=1)

    def moments(self, shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[Moments]:
        """As a campaign keeps them; squares are drawn as those of normal rewards."""
        mean = self.total / np.maximum(self.T, 1.0)
        squares = self.variance * 2.0 * rng.standard_gamma(np.maximum(self.T - 1.0, 0.0) / 2.0)
        for row in zip(self.T, mean, squares, strict=True):
            yield Moments(*(part.reshape(shape) for part in row))


def _mean(halves: list[float]) -> float:
    """Over those that are finite."""
    finite = [half for half in halves if math.isfinite(half)]
    return float(np.mean(finite)) if finite else math.inf
