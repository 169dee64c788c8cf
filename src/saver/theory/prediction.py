"""What each way of collecting will cost: predicted errors, and what the certificate takes of a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from saver.design.parts import limit_of
from saver.problem import visits
from saver.problem.checks import Floats
from saver.problem.statement import Problem
from saver.safety.certified import Certified
from saver.safety.plays import Stage
from saver.theory.parts import Number, Undefined

MANY = 10**9  # episodes; what needs more is called out of reach
SLACK = 1e-5  # relative, of a standard error that is reached
POINTS = 40  # at which the growth of the certificate's variance proxy is evaluated


@dataclass(frozen=True)
class Way:
    """One way of collecting.

    Attributes:
        safe: whether it keeps the promise, with baseline episodes where it must.
        constraint_value: V_c of its behaviour without baseline episodes.
        baseline_share: of baseline episodes in the long run.
        limit: K * MSE in the long run.
        at_budget: K * MSE at the budget asked about, the certificate's cost included.
        certificate: baseline episodes that the certificate takes at that budget, beyond the share above.
        episodes: what it needs for the standard error asked for.
    """

    safe: bool
    constraint_value: float
    baseline_share: float
    limit: Number
    at_budget: Number
    certificate: float
    episodes: Number


class Forecast:
    """Predicts ways for one problem, given the truth; `cost` is c^2 variance."""

    def __init__(self, problem: Problem, cost: Floats, constraint_mean: Floats, episodes: int) -> None:
        self.problem, self.cost, self.mean = problem, cost, constraint_mean
        self.episodes = episodes
        self.stage = Stage(problem.mdp)
        self.baseline = visits(problem.mdp, problem.baseline)

    def way(self, policy: Floats, stderr: float | None, *, safe: bool, drawn: bool = False) -> Way:
        """One way; `drawn` if its actions are drawn at random and not tracked."""
        d, K = visits(self.problem.mdp, policy), self.episodes
        earned = float(np.sum(self.stage.play(policy).weights * self.mean))
        limit, never = self._error(d, 0.0), Undefined("no standard error was asked for")
        way = Way(safe, earned, 0.0, limit, limit, 0.0, never)
        spending = None
        if safe:
            share = self._share(earned)
            spending = Spending(self, policy, earned, drawn)
            spent = spending.baseline(K)
            way = replace(
                way,
                baseline_share=share,
                limit=self._error(d, share),
                at_budget=self._error(d, spent / K),
                certificate=max(0.0, spent - share * K),
            )
        return way if stderr is None else replace(way, episodes=self._needed(d, spending, stderr))

    def _share(self, earned: float) -> float:
        """q with q V_c(pi_0) + (1 - q) V_c(b) = (1 - alpha) V_c(pi_0); 0 if b is safe."""
        problem = self.problem
        if earned >= problem.required:
            return 0.0
        return (problem.required - earned) / (problem.baseline_value - earned)

    def _error(self, d: Floats, share: float) -> Number:
        """K * MSE of a share of baseline episodes and the rest of a behaviour with visits `d`."""
        found = limit_of(self.cost, share * self.baseline + (1.0 - share) * d)
        if math.isinf(found):
            return Undefined("a pair that the target needs is never visited")
        return found

    def _needed(self, d: Floats, spending: Spending | None, stderr: float) -> Number:
        def reached(K: int) -> bool:
            error = self._error(d, spending.baseline(K) / K if spending else 0.0)
            return not isinstance(error, Undefined) and error <= K * stderr**2 * (1.0 + SLACK)

        high = 1
        while not reached(high):
            high *= 2
            if high > MANY:
                return Undefined(f"{MANY:,} episodes are not enough")
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        return float(high)


class Spending:
    """How many baseline episodes the certified ledger needs beside a behaviour.

    At episode k that is the smallest k_0 with
        k_0 alpha V_0 + (k - k_0) (V_c(b) - required) >= u(v of k - k_0) + required - V(b; floor):
    the ledger believes less than is true by the boundary u, and the gate wants one more episode covered. The
    largest k_0 up to K is what a campaign spends. The variance proxy v grows by scale^2 sum discount^2t and
    by what the box is uncertain about, at the counts that b leads to.
    """

    def __init__(self, forecast: Forecast, policy: Floats, earned: float, drawn: bool) -> None:
        self.problem, self.stage, self.earned = forecast.problem, forecast.stage, earned
        self.sure = self.stage.deterministic and not drawn
        play, promise = self.stage.play(policy), self.problem.constraint
        self.ahead = max(0.0, self.problem.required - promise.floor * float(play.weights.sum()))
        self.unit = promise.scale**2 * play.noise
        self.grid = np.unique(np.round(np.geomspace(1, MANY, POINTS)))
        self.boxed = np.zeros(len(self.grid))
        if self.sure:
            return
        box = Certified(self.problem, forecast.episodes, self.stage, False).box
        assert box is not None
        d = visits(self.problem.mdp, policy)
        counts = [np.floor((k - 1.0) * d).astype(np.int64) for k in self.grid]
        moments = np.array([self.stage.second_moment(play, box.around(T, forecast.mean)[1]) for T in counts])
        steps = np.diff(self.grid) * (moments[:-1] + moments[1:]) / 2.0
        self.boxed = moments[0] + np.concatenate([[0.0], np.cumsum(steps)])

    def baseline(self, K: int) -> float:
        """The baseline episodes among K; K if nothing else can be afforded."""
        ledger = Certified(self.problem, K, self.stage, self.sure)
        return max(self._at(float(k), ledger) for k in (*self.grid[self.grid < K], K))

    def _at(self, k: float, ledger: Certified) -> float:
        problem = self.problem
        gain, spare = problem.alpha * problem.baseline_value, self.earned - problem.required

        def affordable(first: float) -> bool:
            designed = k - first
            v = self.unit * designed + float(np.interp(designed, self.grid, self.boxed))
            return first * gain + designed * spare >= ledger.boundary(v) + self.ahead

        low, high = 0.0, k
        if affordable(low):
            return 0.0
        while high - low > 1e-6 * k:
            middle = (low + high) / 2.0
            low, high = (low, middle) if affordable(middle) else (middle, high)
        return high
