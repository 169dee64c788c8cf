"""What each way of collecting will cost: predicted errors, and what the certificate takes of a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from saver._types import Floats
from saver.design.limits import check_variance, limit_of
from saver.problem import visits, weights
from saver.problem.world import Scenario
from saver.safety.certified import Certified
from saver.safety.ledger import Terms
from saver.safety.plays import Stage
from saver.theory.nodewise import Number, Undefined

MANY = 10**9  # episodes; what needs more is called out of reach
SLACK = 1e-5  # relative, of a standard error that is reached
COVERED = 0.02  # of the target's weight may stay unseen
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
    certificate: int
    episodes: Number


class Forecast:
    """Predicts ways for one scenario, from its truth, at a budget of `episodes`."""

    def __init__(self, scenario: Scenario, episodes: int) -> None:
        problem, world = scenario.problem, scenario.world
        self.problem, self.episodes = problem, episodes
        self.mean = np.array(world.constraint.mean)
        self.c = weights(problem.mdp, problem.target)
        self.cost = self.c**2 * np.array(check_variance(problem.mdp, world.reward.variance))
        average = np.sum(self.c * world.reward.mean) / self.c.sum()  # which stands for what was not seen
        self.missed = self.c * (average - np.array(world.reward.mean))
        self.stage = Stage(problem.mdp)
        self.baseline = visits(problem.mdp, problem.baseline)

    def way(self, policy: Floats, stderr: float | None, *, safe: bool, drawn: bool = False) -> Way:
        """One way; `drawn` if its actions are drawn at random and not tracked."""
        d, K = visits(self.problem.mdp, policy), self.episodes
        earned = float(np.sum(self.stage.play(policy).weights * self.mean))
        share = self._share(earned) if safe else 0.0
        spending = Spending(self, policy, earned, drawn) if safe else None
        spent = spending.baseline(K) if spending else 0.0
        way = Way(
            safe,
            earned,
            share,
            self._in_the_long_run(d, share),
            self._error(d, K, spent, drawn),
            math.ceil(max(0.0, spent - share * K) - 1e-6),
            Undefined("no standard error was asked for"),
        )
        return way if stderr is None else replace(way, episodes=self._needed(d, spending, drawn, stderr))

    def _share(self, earned: float) -> float:
        """q with q V_c(pi_0) + (1 - q) V_c(b) = (1 - alpha) V_c(pi_0); 0 if b is safe."""
        problem = self.problem
        if earned >= problem.required:
            return 0.0
        return (problem.required - earned) / (problem.baseline_value - earned)

    def _in_the_long_run(self, d: Floats, share: float) -> Number:
        """K * MSE of a share of baseline episodes and the rest of a behaviour with visits `d`."""
        found = limit_of(self.cost, share * self.baseline + (1.0 - share) * d)
        return Undefined("a pair that the target needs is never visited") if math.isinf(found) else found

    def _error(self, d: Floats, K: int, spent: float, drawn: bool) -> Number:
        """K * MSE at K episodes, `spent` of them baseline.

        A pair that is drawn N times on average stays unseen with probability of about exp(-N), and else has
        E[1 / T] of about (1 + 1 / N) / N. A tracker takes what it has not seen first. What is not seen leaves
        a bias; where it is more than a little of the target's weight there is no number.
        """
        N = spent * self.baseline + (K - spent) * d
        wanted = self.c > 0
        if drawn:
            unseen = np.exp(-N)
            more = np.maximum(N, 1.0)
            once = np.minimum(1.0, (1.0 + 1.0 / more) / more)
        else:
            share = N.sum(axis=1) / np.maximum(wanted.sum(axis=1), 1)
            unseen = np.repeat(np.maximum(0.0, 1.0 - share)[:, None], N.shape[1], axis=1)
            once = 1.0 / np.maximum(N, 1.0)
        lost = float(np.sum(unseen * self.c) / self.c.sum())
        if lost > COVERED:
            return Undefined(f"{K} episodes are expected to leave {lost:.0%} of the target's weight unseen")
        noise = float(np.sum((1.0 - unseen) * self.cost * once))
        bias = unseen * self.missed
        return K * (noise + float(np.sum(bias) ** 2 + np.sum((1.0 - unseen) * bias * self.missed)))

    def _needed(self, d: Floats, spending: Spending | None, drawn: bool, stderr: float) -> Number:
        def reached(K: int) -> bool:
            error = self._error(d, K, spending.baseline(K) if spending else 0.0, drawn)
            return not isinstance(error, Undefined) and error <= K * stderr**2 * (1.0 + SLACK)

        high = 1
        while not reached(high):
            if high == MANY:
                return Undefined(f"{MANY:,} episodes are not enough")
            high = min(2 * high, MANY)
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        return high


class Spending:
    """How many baseline episodes the certified ledger needs beside a behaviour.

    At episode k that is the smallest k_0 with
        k_0 alpha V_0 + (k - k_0) (V_c(b) - required) >= slack(k - k_0) + required - V(b; floor):
    the ledger believes less than is true by its slack, and the gate wants one more episode covered. The
    largest k_0 up to K is what a campaign spends. The slack is the smaller of the boundary u(v) and of what
    the box leaves open, the sum of V(b; m) - V(b; m - h). The variance proxy v grows by scale^2 sum
    discount^2t and by what the box is uncertain about, at the counts that b leads to.
    """

    def __init__(self, forecast: Forecast, policy: Floats, earned: float, drawn: bool) -> None:
        self.problem, self.stage, self.earned = forecast.problem, forecast.stage, earned
        self.sure = self.stage.deterministic and not drawn
        play, promise = self.stage.play(policy), self.problem.constraint
        self.ahead = max(0.0, self.problem.required - promise.floor * float(play.weights.sum()))
        self.unit = promise.scale**2 * play.noise
        self.grid = np.unique(np.round(np.geomspace(1, MANY, POINTS)))
        self.boxed = np.zeros(len(self.grid))
        self.open = np.full(len(self.grid), math.inf)
        if self.sure:
            return
        box = Certified(Terms(self.problem, forecast.episodes, self.stage, False)).box
        assert box is not None
        d = visits(self.problem.mdp, policy)
        counts = [np.floor((k - 1.0) * d).astype(np.int64) for k in self.grid]
        halves = [box.around(T, forecast.mean)[1] for T in counts]
        self.boxed = self._summed([self.stage.second_moment(play, h) for h in halves])
        self.open = self._summed([2.0 * float(np.sum(play.weights * h)) for h in halves])

    def _summed(self, values: list[float]) -> Floats:
        """The sum over episodes 1 to k, at each k of the grid."""
        found = np.array(values)
        steps = np.diff(self.grid) * (found[:-1] + found[1:]) / 2.0
        result: Floats = found[0] + np.concatenate([[0.0], np.cumsum(steps)])
        return result

    def baseline(self, K: int) -> float:
        """The baseline episodes among K; K if nothing else can be afforded."""
        ledger = Certified(Terms(self.problem, K, self.stage, self.sure))
        return max(self._at(float(k), ledger) for k in (*self.grid[self.grid < K], K))

    def _at(self, k: float, ledger: Certified) -> float:
        problem = self.problem
        gain, spare = problem.alpha * problem.baseline_value, self.earned - problem.required

        def affordable(first: float) -> bool:
            designed = k - first
            v = self.unit * designed + float(np.interp(designed, self.grid, self.boxed))
            slack = min(ledger.boundary(v), float(np.interp(designed, self.grid, self.open)))
            return first * gain + designed * spare >= slack + self.ahead

        low, high = 0.0, k
        if affordable(low):
            return 0.0
        while high - low > 1e-6 * k:
            middle = (low + high) / 2.0
            low, high = (low, middle) if affordable(middle) else (middle, high)
        return high
