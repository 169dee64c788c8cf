"""What the certificate takes of a budget: episodes that pay for what the ledger does not see."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.design.flows import richest
from saver.problem import Problem, visits
from saver.safety.certified import Certified
from saver.safety.ledger import Terms
from saver.safety.noise import missing
from saver.safety.plays import Play, Stage

MANY = 10**9  # episodes; what needs more is called out of reach
POINTS = 40  # at which the box is evaluated


class Spent(NamedTuple):
    """Episodes that a behaviour does not get: of the baseline, and of the policy that earns most."""

    baseline: float
    earner: float


class Spending:
    """How many other episodes the certified ledger needs beside a behaviour.

    At episode k that is the smallest k_0 with
        k_0 alpha V_0 + (k - k_0) (V_c(b) - required) >= slack(k - k_0) + required - low(k - k_0):
    the ledger believes less than is true by its slack, and the gate wants one more episode covered, of which
    it knows V(b; lower ends). The largest k_0 up to K is what a campaign spends. From when the richest policy
    is known to earn more than the baseline does, a campaign that falls back to it spends its episodes.

    The slack of n episodes is the smallest of
    - `missing`, what noise may hide, and where paths are random sum |T - W| h: visits differ from those
      expected by sqrt(n variance 2 / pi) on average;
    - where paths are random, the boundary u(v) of both;
    - the sum of V(b; means) - V(b; lower ends).
    The box is taken at the counts that b leads to.
    """

    def __init__(
        self,
        problem: Problem,
        episodes: int,
        stage: Stage,
        mean: Floats,
        policy: Floats,
        *,
        drawn: bool,
        earns: bool,
    ) -> None:
        self.problem, self.stage, self.play = problem, stage, stage.play(policy)
        self.earned, self.same = self.play.value(mean), self._same()
        self.grid = np.unique(np.round(np.geomspace(1, MANY, POINTS)))
        ledger, d = self._ledger(episodes), visits(problem.mdp, policy)
        boxes = [ledger.box.ends(np.floor((n - 1.0) * d), mean) for n in self.grid]
        least = stage.least if stage.deterministic else Play.value
        self.ahead = np.array([max(0.0, problem.required - least(self.play, lower)) for lower, _ in boxes])
        self.open = self._summed([self.earned - self.play.value(lower) for lower, _ in boxes])
        self.paths, self.boxed = np.zeros(len(self.grid)), np.zeros(len(self.grid))
        if not stage.deterministic:
            halves = [(upper - lower) / 2.0 for lower, upper in boxes]
            strays = np.sqrt(self._variance(drawn) * 2.0 / math.pi)
            self.paths = np.sqrt(self.grid) * [np.sum(strays * h) for h in halves]
            self.boxed = self._summed([self.play.longest * self.play.value(h**2) for h in halves])
        self.known, self.gain, self.richest = math.inf, 0.0, d
        if earns:
            self._find_earner(mean, [lower for lower, _ in boxes])

    def _ledger(self, K: int) -> Certified:
        return Certified(Terms(self.problem, K, self.stage))

    def _same(self) -> float:
        """The share of trials that go where the baseline goes, and are counted as such."""
        baseline = self.stage.play(self.problem.baseline)
        if not (self.stage.deterministic and baseline.sure):
            return 0.0
        return float(np.min(self.play.flow[baseline.flow > 0.0]))

    def _variance(self, drawn: bool) -> Floats:
        """Of the discounted visits of an episode, about, [S, A]; a tracker leaves only states to chance."""
        flow, b = self.play.flow, self.play.behaviour
        there = np.minimum(1.0, flow if drawn else flow.sum(axis=1, keepdims=True))
        factors = self.problem.mdp.discount ** (2.0 * self.stage.nodes.step)
        return self.stage.grid.by_state(factors[:, None] * there * (1.0 - there) * (1.0 if drawn else b))

    def _find_earner(self, mean: Floats, lowers: list[Floats]) -> None:
        """The richest policy, and after how many episodes it is known for it and passes the gate earlier."""
        rows = np.zeros(len(self.stage.nodes.state), dtype=np.int64)
        worth, _ = richest(self.stage.nodes, mean, mean, rows)
        play = self.stage.evaluate(self.stage.grid.choices(True, rows))
        low, safe = np.array([play.value(lower) for lower in lowers]), self.problem.baseline_value
        passes = self.problem.required - low + self.problem.alpha * safe <= self.ahead
        enough = np.flatnonzero(((worth + low) / 2.0 >= safe) & passes)
        if len(enough) and worth > safe:
            self.known, self.gain = float(self.grid[enough[0]]), worth - self.problem.required
            self.richest = self.stage.grid.by_state(play.flow)

    def _summed(self, values: list[float]) -> Floats:
        """The sum over episodes 1 to n, at each n of the grid."""
        found = np.array(values)
        steps = np.diff(self.grid) * (found[:-1] + found[1:]) / 2.0
        result: Floats = found[0] + np.concatenate([[0.0], np.cumsum(steps)])
        return result

    def episodes(self, K: int) -> Spent:
        """Those spent among K; all if nothing else can be afforded."""
        ledger, worst, earner = self._ledger(K), 0.0, 0.0
        for k in (*self.grid[self.grid < K], float(K)):
            first = self._smallest(k, ledger, 0.0, ledger.credit)
            if k - first < self.known:
                worst = max(worst, first)
            else:
                paid = worst * ledger.credit
                earner = max(earner, self._smallest(k - worst, ledger, paid, self.gain))
        return Spent(worst, earner)

    def _smallest(self, k: float, ledger: Certified, paid: float, gain: float) -> float:
        """The smallest number of episodes among k that pay for the others, `gain` each."""
        spare = self.earned - self.problem.required

        def affordable(first: float) -> bool:
            n = k - first
            return paid + first * gain + n * spare >= self._unseen(n, ledger)

        low, high = 0.0, k
        if affordable(low):
            return 0.0
        while high - low > 1e-6 * k:
            middle = (low + high) / 2.0
            low, high = (low, middle) if affordable(middle) else (middle, high)
        return high

    def _unseen(self, n: float, ledger: Certified) -> float:
        """The slack after n episodes, and what the gate wants covered."""
        new, weight = (1.0 - self.same) * n, float(self.play.weights.sum())
        if new <= 0.0:
            return 0.0
        rate = (self.earned - self.same * self.problem.baseline_value) / ((1.0 - self.same) * weight)
        proxy = self.problem.constraint.scale**2 * self.play.noise * new
        noise: float = missing(rate, proxy, weight * new, ledger.rule)
        slack = min(noise + self._at(n, self.paths), self._at(n, self.open))
        if ledger.crosses:
            slack = min(slack, ledger.boundary(proxy + self._at(n, self.boxed)))
        return float(slack + self._at(n, self.ahead))

    def _at(self, n: float, values: Floats) -> float:
        return float(np.interp(n, self.grid, values))
