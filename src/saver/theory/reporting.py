"""What will be reported: how wide intervals will be, at one time and at all times, and whether bounded.

Sums of a few campaigns are drawn, epoch by epoch of the weights, and given to the functions that answer:
`certainty` at one time, `Anytime` at all times. No episode is played: visits are drawn in bulk, those not
designed as predicted (`Spending.course`). Where actions are drawn, or paths are random, the visits of m
episodes are about binomial. A tracker splits those of a state in the design's proportions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.design.closed import check_variance
from saver.estimate.anytime import Anytime, RewardTally
from saver.estimate.asymptotic import start, stretched
from saver.estimate.certainty import weighted
from saver.estimate.interval import LEVEL
from saver.kernels.bounds.sequence import Steering, renewed, steer
from saver.play import Play, Stage
from saver.problem import Scenario
from saver.problem.moments import Moments
from saver.safety import Terms
from saver.theory.believed import Delivery
from saver.theory.spending import TRACKED, Spending, tracked

DRAWS, NUMBERS = 100, 30_000  # campaigns, as far as they have no more pairs in all
PLAYS = 5  # that stand for a tracked design
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
    """What a campaign plays."""

    others: tuple[Part, ...]  # what is not designed
    design: Floats  # the visits of a designed episode, [S, A]
    explore: int  # the first so many designed episodes are of `exploration` instead
    exploration: Floats  # the visits of one of them, [S, A]
    tracked: bool  # the design is followed by counts, not drawn
    sure: bool  # every tracked episode goes one way
    weighted: Bools  # pairs that are taken first until they were seen, [S, A]
    told: float  # the share of episodes that is told
    policy: Any = None  # what was to be designed; `design` may be a mixture of it with what earns most
    spending: Spending | None = None  # how many episodes are not designed; None where nothing is guarded


class Counts:
    """Visits of `draws` campaigns so far, T, [draws, S, A]."""

    def __init__(self, turnout: Turnout, draws: int, rng: np.random.Generator) -> None:
        self.turnout, self.rng, self.asked = turnout, rng, 0
        S, A = turnout.design.shape
        self.T, self.other, self.own = np.zeros((3, draws, S, A))
        self.spent = [0] * len(turnout.others)
        self.met = np.zeros((draws, S))  # by designed episodes
        self.up = 0.0 if turnout.sure else rng.random((draws, S, A))
        self.rank = np.cumsum(turnout.weighted, axis=1) - 1

    def until(self, n: int) -> None:
        """After n episodes."""
        t, own = self.turnout, n - self.asked
        designed = self.asked - sum(self.spent)
        for i, part in enumerate(t.others):
            more = min(max(0, part.by(n) - self.spent[i]), own)
            self.other += self._drawn(more, part.visits)
            self.spent[i] += more
            own -= more
        explored = min(designed, t.explore)
        exploring = min(t.explore - explored, own)
        self.other += self._come(explored, exploring, t.exploration)
        if t.tracked:
            self._track(designed - explored, own - exploring)
        else:
            self.own += self._drawn(own - exploring, t.design)
        self.T, self.asked = self.other + self.own, n

    def _come(self, before: int, more: int, visits: Floats) -> Floats | Ints:
        """Visits of so many episodes of the design, or of its exploration, after others."""
        if not self.turnout.sure:
            return self._drawn(more, visits)
        all_told = np.round(self.turnout.told * (before + more) * visits)
        return all_told - np.round(self.turnout.told * before * visits)

    def _drawn(self, episodes: int, visits: Floats) -> Ints:
        """Visits that so many episodes are told to have made, [draws, *visits.shape]."""
        most = np.ceil(np.maximum(visits, 1.0) - ROUNDING).astype(np.int64)
        chance = np.minimum(self.turnout.told * visits / most, 1.0)
        return self.rng.binomial(episodes * most, chance, (len(self.T), *visits.shape))

    def _track(self, designed: int, more: int) -> None:
        """Share out the visits of `designed` episodes and of so many `more`.

        Of n visits to a state a pair gets max(1, share (n - what others have beyond theirs)), rounded as
        `Setup.head_start` makes a tracker round: down where a model is deterministic, else either way.
        """
        t = self.turnout
        state = t.design.sum(axis=1)
        self.met = self.met + self._come(designed, more, state)
        share = t.design / np.where(state > 0.0, state, 1.0)[:, None]
        left = met = self.met[:, :, None]
        least = (t.weighted & (self.other == 0.0) & (self.rank < met)).astype(np.float64)
        for _ in range(ROUNDS):
            beyond = np.sum(np.maximum(least - share * left, 0.0), axis=2, keepdims=True)
            rounded = np.sum(share * left >= 1.0, axis=2, keepdims=True) / 2 if t.sure else 0.0
            left = np.maximum(met - beyond + rounded, 0.0)
        self.own = np.maximum(self.own, np.maximum(least, np.floor(share * left + self.up)))


class Reporting:
    """Predicts what campaigns of one scenario report after so many episodes.

    A known twin does not say itself whether rewards were `promised`, and how many episodes were `logged`.
    """

    def __init__(
        self, made: Scenario, episodes: int, stage: Stage, feedback: Delivery, promised: bool, logged: int
    ) -> None:
        self.problem, self.episodes, self.stage, self.feedback = made.problem, episodes, stage, feedback
        self.promised, self.logged, reward = promised, logged, made.world.reward
        self.mean, self.variance = np.ravel(reward.mean), check_variance(stage.mdp, reward.variance).ravel()
        self.keeper: Anytime | None = None
        if self.problem.reward is not None:
            self.keeper = Anytime(Terms(self.problem, episodes, stage, feedback.losses, feedback.order))

    def report(self, turnout: Turnout, play: Play) -> tuple[float, float, float]:
        """Of campaigns that go so; `play` is what they track or draw from.

        Half the length at level .95 of the interval at one time and of that at all times: means over the
        campaigns where they are bounded, infinite if there are none. And how likely they are bounded.
        """
        problem, feedback, rng = self.problem, self.feedback, np.random.default_rng(0)
        draws = min(max(NUMBERS // self.mean.size, 1), DRAWS)
        counts, sums = Counts(turnout, draws, rng), Sums(self.mean, self.variance, self.keeper, draws)
        plays = [play] if feedback.hidden else []  # what stands for lost trials
        if plays and turnout.tracked:
            plays = tracked(self.stage, play)[:: TRACKED // PLAYS]
        number = 1
        while number <= self.episodes:
            following = min(int(renewed(number)), self.episodes + 1)
            sums.weigh(turnout.told * (number - 1), plays, feedback.hidden * (following - number))
            counts.until(following - 1)
            sums.add(counts.T.reshape(draws, -1), rng)
            number = following
        every = list(sums.moments(play.visits.shape, rng))
        c = problem.question.first
        ends = np.array([weighted(problem.mdp, c, one, LEVEL, problem.reward).interval for one in every])
        once = (ends[:, 1] - ends[:, 0]) / 2
        if self.keeper is None:
            told = turnout.told * self.episodes
            factor = float(stretched(told, self.episodes, LEVEL))
            always = np.where([self._begun(told, one) for one in every], factor * once, math.inf)
        else:
            bands = self.keeper.bands(LEVEL)
            sides = [self.keeper.sides(tally, bands, LEVEL) for tally in self._tallies(sums, plays)]
            always = np.array([(side.high - side.low) / 2 for side in sides])
        return _mean(once), _mean(always), float(np.mean(np.isfinite(once)))

    def _begun(self, told: float, moments: Moments) -> bool:
        """Whether there is an interval at all times in the limit: see `saver.estimate.asymptotic`."""
        if self.promised:
            return told + self.logged >= start(LEVEL)
        fewest = moments.counts[self.problem.question.first != 0].min(initial=told)
        return min(told, float(fewest)) >= start(LEVEL)

    def _tallies(self, sums: Sums, plays: list[Play]) -> Iterator[RewardTally]:
        """The sums of each campaign; lost trials hide noise, and visits."""
        K, hidden = self.episodes, math.ceil(self.feedback.hidden * self.episodes)
        none, sure = np.zeros(self.mean.size), all(one.sure for one in plays)
        most = np.repeat(self.stage.most.ravel(), self.problem.mdp.actions)
        for i, (T, total, W) in enumerate(zip(sums.T, sums.total, sums.W, strict=True)):
            tally = RewardTally(T, total, W, none, none, K - hidden, asked=K, hidden=hidden)
            tally.gained, tally.noise = float(sums.gained[i]), float(sums.noise[i])
            tally.hidden_noise = sums.hides
            tally.missed = tally.most = tally.awaited = tally.walked = none
            if hidden and sure:
                tally.missed = np.ceil(hidden * (T / (K - hidden)))
            elif hidden:
                tally.most = hidden * np.mean([one.visits.ravel() > 0.0 for one in plays], axis=0) * most
                tally.awaited, tally.walked = K * (T / (K - hidden)), T
            yield tally


class Sums:
    """Of some campaigns, by pair: [draws, pairs], or [draws]."""

    def __init__(self, mean: Floats, variance: Floats, keeper: Anytime | None, draws: int) -> None:
        self.mean, self.variance, self.keeper = mean, variance, keeper
        self.T, self.total, self.W, self.w, self.guess = np.zeros((5, draws, mean.size))
        self.gained, self.noise, self.hides = np.zeros(draws), np.zeros(draws), 0.0
        if keeper is not None:
            c, usual, scale, span = (np.tile(part, draws) for part in keeper.numbers[:4])
            self.steering = Steering(c, usual, scale, span, keeper.numbers.cap)

    def weigh(self, episodes: float, plays: list[Play], lost: float) -> None:
        """New weights, and guesses of rewards; `lost` trials will have them, for which `plays` stand."""
        if self.keeper is None:
            return
        steer(episodes, self.T.ravel(), self.W.ravel(), self.steering, self.w.ravel())
        self.guess = (self.total + (self.keeper.floor + self.keeper.ceiling) / 2) / (self.T + 1.0)
        if plays:
            squares = np.mean((self.w * self.keeper.numbers.scale) ** 2, axis=0)
            squares = squares.reshape(plays[0].visits.shape)
            self.hides += lost * float(np.mean([self.keeper.loudest(play, squares) for play in plays]))

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


def _mean(halves: Floats) -> float:
    """Over those that are finite."""
    finite = halves[np.isfinite(halves)]
    return float(np.mean(finite)) if len(finite) else math.inf
