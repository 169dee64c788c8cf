"""The world as the log of a problem shows it, or one drawn from what the log leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from saver._types import Floats
from saver.errors import InvalidProblem
from saver.estimate.log import seen_moves
from saver.estimate.recursion import Moves
from saver.problem import checks
from saver.problem.guardrail import negated
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments
from saver.problem.promise import Bounded, SubGaussian
from saver.problem.statement import Problem
from saver.problem.world import Bernoulli, Gaussian, Law, Scenario, World

HALF = 0.5  # observations: what is believed of each outcome before any was seen (Jeffreys)
EPISODES = 1000  # of a scenario made of a log, by default
CLOSE = 1e-9  # relative: of sums of squares


def world_of(problem: Problem, rng: np.random.Generator | None = None) -> World:
    """The world as the log of a problem shows it; with `rng`, one drawn from what the log leaves open.

    As the log shows it: moves, ends, starts and means are the frequencies and averages that were seen.

    Drawn: the moves of a pair, and the start, come from a Dirichlet posterior, with 1/2 before the log for
    each outcome that was seen there. Another half stands for an end, where the pair was seen to end; where it
    was not, no more than the share of all outcomes that were ends. Means of what was always 0 or 1 come from
    a Beta posterior, with 1/2 for each before the log. Other means are normal, with the sample variance / n,
    and cut off at what is promised. A pair that was never seen is like the average of the others, which is
    worth one observation: in a drawn world it can be nearly anything.

    Laws: coins; where a promise bounds observations, two values of the mean and variance within the bounds;
    else normal ones. Rewards and what is guarded are drawn apart from each other, and from the next state.
    Transitions that the problem knows stay.
    """
    checks.kind("problem", problem, Problem)
    history = problem.history
    if history is None or not history.episodes:
        raise InvalidProblem(
            "the problem has no history, and no world can be made of it: fit it from a log (saver fit, or "
            "saver.data.problem), give history=saver.History.of(problem, episodes), or simulate a "
            "saver.Scenario"
        )
    model = problem.mdp
    if not model.known:
        model = believed(model, seen_moves(model, history.sums), rng)
    reward, laws = law_of(history.sums.rewards, problem.reward, rng), {}
    for rail in problem.rails:
        promise = negated(rail.promise) if rail.sign < 0.0 else rail.promise
        laws[rail.name] = law_of(history.rails[rail.name].seen.times(rail.sign), promise, rng)
    return World(model, reward, laws if len(laws) > 1 else next(iter(laws.values())))


def scenario_of(
    problem: Problem, rng: np.random.Generator | None = None, episodes: int = EPISODES, name: str = "log"
) -> Scenario:
    """The problem asked in such a world, its history as it was."""
    return Scenario(name, world_of(problem, rng), problem, episodes)


# -- moves ---------------------------------------------------------------------------------------------------


def believed(model: Any, seen: Moves, rng: np.random.Generator | None) -> Mdp:
    """The model of moves that were seen; what a row lacks to 1 ends the episode."""
    counts, ends, starts = seen.counts, np.asarray(seen.ends, dtype=np.float64), seen.starts
    outcomes = np.asarray(seen.outcomes, dtype=np.float64)
    before, over = np.zeros(counts.nnz), np.zeros(len(ends))
    if total := float(outcomes.sum()):
        over = np.where(ends > 0, HALF, min(float(ends.sum()) / total, HALF))
        before = np.full(counts.nnz, HALF)
        new = np.flatnonzero((outcomes == 0.0) & model.available.ravel())
        onward = np.asarray(counts.sum(axis=0)).ravel() / total
        to = np.flatnonzero(onward)
        rows, columns = np.repeat(new, len(to)), np.tile(to, len(new))
        counts = counts + sparse.csr_array((onward[columns], (rows, columns)), shape=counts.shape)
        ends = ends.copy()
        ends[new], over[outcomes == 0.0] = float(ends.sum()) / total, 0.0
        before = np.where(np.repeat(outcomes > 0.0, np.diff(counts.indptr)), HALF, 0.0)
    if rng is None:
        return model.believed(counts, ends, starts)
    drawn = sparse.csr_array(
        (rng.standard_gamma(counts.data + before), counts.indices, counts.indptr), shape=counts.shape
    )
    drawn_ends = rng.standard_gamma(ends + over)
    size = np.asarray(drawn.sum(axis=1)).ravel() + drawn_ends
    part = np.divide(1.0, size, out=np.zeros(len(size)), where=size > 0.0)
    drawn.data *= np.repeat(part, np.diff(drawn.indptr))
    begins = rng.standard_gamma(starts + HALF * (starts > 0))
    return model.believed(drawn, drawn_ends * part, begins)


# -- what is observed ----------------------------------------------------------------------------------------


def law_of(seen: Moments, promise: SubGaussian | Bounded | None, rng: np.random.Generator | None) -> Law:
    """The law of what was observed in each pair, with the means seen, or drawn: see `world_of`."""
    n, often = seen.counts, seen.counts > 1
    mean = np.where(n > 0, seen.mean, float(np.sum(n * seen.mean)) / max(int(n.sum()), 1))
    if is_coin(seen, promise):
        if rng is not None:
            heads = np.maximum(n, 1) * mean
            mean = rng.beta(heads + HALF, np.maximum(np.maximum(n, 1) - heads, 0.0) + HALF)
        return Bernoulli(np.clip(mean, 0.0, 1.0))
    middle = float(seen.squares[often].sum() / (n[often] - 1).sum()) if often.any() else 1.0
    spread = np.where(often, seen.variance, middle)
    if rng is not None:
        mean = mean + rng.standard_normal(mean.shape) * np.sqrt(spread / np.maximum(n, 1))
    if promise is None:
        return Gaussian(mean, spread)
    mean = np.clip(mean, promise.floor, promise.ceiling)
    if isinstance(promise, Bounded):
        return TwoValues.of(mean, spread, promise.low, promise.high)
    return Gaussian(mean, np.minimum(spread, np.asarray(promise.scale) ** 2))


def is_coin(seen: Moments, promise: SubGaussian | Bounded | None) -> bool:
    """Whether all observations were 0 or 1, and others are not expected.

    Then the sum of x (1 - x) is 0 in each pair. Only 0 says so where nothing else is promised to be possible.
    """
    n, mean = seen.counts, seen.mean
    apart = np.abs(n * mean * (1.0 - mean) - seen.squares)
    inside = (mean >= 0.0) & (mean <= 1.0)
    if not np.all(inside & (apart <= CLOSE * np.maximum(n, 1))) or not n.any():
        return False
    if promise is None:
        return bool(np.any(mean > 0.0))
    low, high = promise.bounds
    ends = (
        isinstance(promise, Bounded) and bool(np.all(promise.low == 0.0)) and bool(np.all(promise.high == 1))
    )
    return ends or bool(np.all(low <= 0.0) and np.all(high >= 1.0) and np.any(mean > 0.0))


@dataclass(frozen=True, eq=False)
class TwoValues(checks.Frozen):
    """Observations with two values: `upper` with probability `chance`, else `lower`, [S, A] each."""

    lower: Any
    upper: Any
    chance: Any

    @classmethod
    def of(cls, mean: Floats, variance: Floats, low: Any, high: Any) -> TwoValues:
        """A mean and a variance within bounds, as near to a fair coin as they allow.

        With odds o = chance / (1 - chance) the values are mean - d sqrt(o) and mean + d / sqrt(o), d the
        deviation: o is from variance / (high - mean)^2 to (mean - low)^2 / variance.
        """
        down, up = np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0)
        square = np.minimum(variance, down * up)
        d, varies = np.sqrt(square), square > 0.0
        least = np.divide(d, up, out=np.ones(mean.shape), where=varies)
        most = np.divide(down, d, out=np.ones(mean.shape), where=varies)
        root = np.clip(1.0, least, most)  # of the odds
        lower, upper = np.maximum(mean - d * root, low), np.minimum(mean + d / root, high)
        return cls(*map(checks.frozen, (lower, upper, root**2 / (1.0 + root**2))))

    @property
    def mean(self) -> Floats:
        """[S, A]."""
        return self.lower + self.chance * (self.upper - self.lower)

    @property
    def variance(self) -> Floats:
        """[S, A]."""
        return self.chance * (1.0 - self.chance) * (self.upper - self.lower) ** 2

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation."""
        values = self.upper if rng.random() < self.chance[state, action] else self.lower
        return float(values[state, action])
