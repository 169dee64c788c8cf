"""What the certificate takes of a budget: episodes that pay for what the ledger does not see."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.collect.decide import follow_design
from saver.play import Play, Stage
from saver.play.nodes import richest
from saver.problem import Problem, return_variance, visits
from saver.problem.guardrail import Rail
from saver.safety import Terms
from saver.safety.foreseen import Foreseen
from saver.theory.believed import AT_ONCE, Delivery

MANY = 10**9  # episodes; what needs more is called out of reach
POINTS = 40  # at which the box is evaluated
TRACKED = 100  # episodes that say how often which policy is played


def tracked(stage: Stage, play: Play) -> list[Play]:
    """What is asked of a campaign that tracks a behaviour, episode by episode; every visit is as expected."""
    shape = play.behaviour.shape
    counts = np.ones(shape) if stage.deterministic else np.random.default_rng(1).random(shape)
    first, found = np.zeros(shape, dtype=bool), []
    for _ in range(TRACKED):
        rows = follow_design(play.behaviour, counts, first)
        found.append(stage.evaluate(stage.grid.choices(True, rows)))
        counts = counts + found[-1].flow
    return found


class Spent(NamedTuple):
    """Episodes that a behaviour does not get: of the baseline, and of the policy that earns most."""

    baseline: float
    earner: float


class Look(NamedTuple):
    """A moment of a campaign."""

    asked: float  # episodes
    done: float  # of these, no longer out
    before: Spent  # at an earlier moment
    part: float  # of those spent since, still out

    def finished(self, spent: Spent) -> Spent:
        """Those done among the `spent`."""
        return Spent(*(s - self.part * max(0.0, s - b) for s, b in zip(spent, self.before, strict=True)))


class Spending:
    """How many other episodes the certified ledger of one guardrail needs beside a behaviour.

    At episode k that is the smallest k_0 with
        k_0 alpha V_0 + (k - k_0) (V_c(b) - required) >= slack(k - k_0) + required - low(k - k_0):
    the ledger believes less than is true by its slack, and the gate wants one more episode covered, of which
    it knows V(b; lower ends). The largest k_0 up to K is what a campaign spends. From when the richest policy
    is known to earn more than the baseline does, a campaign that falls back to it spends its episodes.

    The slack of n episodes is the smallest of
    - `missing`, what noise may hide, and where paths are random sum |T - W| h: visits differ from those
      expected by sqrt(n variance 2 / pi) on average;
    - where paths are random, the boundary u(v) of both; or, where observations are bounded, what bets on
      returns lose to the rests that the model does not explain: noise as of coins, and where episodes went
      until it is known what pairs are worth;
    - the sum of V(b; means) - V(b; lower ends).
    The box is taken at the counts that b leads to. These sums are over told trials, less what lost ones may
    hide (`Certified.hides`); each that is lost, or is out, counts as what it adds at least.
    """

    def __init__(
        self, problem: Problem, rail: Rail, episodes: int, stage: Stage, mean: Floats, policy: Floats, *,
        drawn: bool, earns: bool, feedback: Delivery = AT_ONCE,
    ) -> None:  # fmt: skip
        self.problem, self.rail, self.mean, self.policy, self.feedback = problem, rail, mean, policy, feedback
        self.stage, self.play, self.baseline = stage, stage.play(policy), stage.play(problem.baseline)
        self.earned, sure = self.play.value(mean), stage.deterministic and self.baseline.sure
        # the share of trials that go where the baseline goes, and are counted as such
        self.same = float(np.min(self.play.flow[self.baseline.flow > 0.0])) if sure else 0.0
        self._courses: dict[int, list[tuple[float, float, float]]] = {}
        self.grid = np.unique(np.round(np.geomspace(1, MANY, POINTS)))
        self._points: list[float] = self.grid.tolist()
        ledger, d = self._ledger(episodes), visits(problem.mdp, policy)
        boxes = [ledger.box(d, mean, n - 1.0, feedback.told, feedback.hidden) for n in self.grid]
        lowers = [lower for lower, _ in boxes]
        least = stage.least if stage.deterministic else Play.value
        self.short = np.array([max(0.0, rail.required - least(self.play, lower)) for lower in lowers])
        self.open = self._summed([self.earned - self.play.value(lower) for lower in lowers])
        self.paths = self.boxed = self.strays = self.lost = self.away = np.zeros(len(self.grid))
        self.surely = self.unsure = self.paths
        if not stage.deterministic:
            halves = [(upper - lower) / 2.0 for lower, upper in boxes]
            strays = np.sqrt(self._variance(drawn) * 2.0 / math.pi)
            self.paths = np.sqrt(feedback.told * self.grid) * [np.sum(strays * h) for h in halves]
            self.boxed = self._summed([self.play.longest * self.play.value(h**2) for h in halves])
            if feedback.hidden and not ledger.bets:
                self.strays = self._summed([stage.widest(self.play, h) + self.play.value(h) for h in halves])
        if not feedback.complete:
            self._find_worth(lowers, drawn)
        self.known, self.gain, self.richest = math.inf, 0.0, d
        if earns:
            self._find_earner(lowers)

    def _ledger(self, K: int) -> Foreseen:
        feedback = self.feedback
        return Foreseen(Terms(self.problem, K, self.stage, feedback.losses, feedback.order, self.rail))

    def _variance(self, drawn: bool) -> Floats:
        """Of the discounted visits of an episode, about, [S, A]; a tracker leaves only states to chance."""
        flow, b = self.play.flow, self.play.behaviour
        there = np.minimum(1.0, flow if drawn else flow.sum(axis=1, keepdims=True))
        return self.stage.grid.by_state(self._squares * there * (1.0 - there) * (1.0 if drawn else b))

    @cached_property
    def _squares(self) -> Floats:
        """discount^2t at each node, [nodes, 1]."""
        return self.problem.mdp.discount ** (2.0 * self.stage.nodes.step)[:, None]

    def _find_worth(self, lowers: list[Floats], drawn: bool) -> None:
        """What a lost trial adds to the budget at least, and one that is out, on average.

        One that ran adds low - required, one that may have run min(0, low - required). What goes where the
        baseline goes is known to be worth as much.
        """
        sampled = drawn and not self.stage.deterministic
        plays = [self.play] if sampled else tracked(self.stage, self.play)
        weights = np.array([play.weights.ravel() for play in plays])
        same = np.array([play.goes_as(self.baseline) for play in plays])
        low = np.array([np.where(same, self.rail.value, weights @ lower.ravel()) for lower in lowers])
        adds = low - self.rail.required
        ran, may = np.mean(adds, axis=1), np.mean(np.minimum(0.0, adds), axis=1)
        self.lost = ran if self.feedback.ran else may
        self.away = ran if self.feedback.order == "asked" else may

    @cached_property
    def top(self) -> tuple[Play, float]:
        """The richest policy, and what it earns."""
        rows = np.zeros(len(self.stage.nodes.state), dtype=np.int64)
        worth, _ = richest(self.stage.nodes, self.mean, self.mean, rows)
        return self.stage.evaluate(self.stage.grid.choices(True, rows)), worth

    def _find_earner(self, lowers: list[Floats]) -> None:
        """After how many episodes the richest policy is known for it, and passes the gate earlier."""
        (play, worth), safe, required = self.top, self.rail.value, self.rail.required
        low = np.array([play.value(lower) for lower in lowers])
        passes = required - low + self.rail.credit <= self.short
        enough = np.flatnonzero(((worth + low) / 2.0 >= safe) & passes)
        if len(enough) and worth > safe:
            self.known, self.gain = float(self.grid[enough[0]]), worth - required
            self.richest, self.surely = self.stage.grid.by_state(play.flow), low - required
            self.unsure = worth - low

    def _summed(self, values: list[float]) -> Floats:
        """The sum over episodes 1 to n, at each n of the grid."""
        found = np.array(values)
        steps = np.diff(self.grid) * (found[:-1] + found[1:]) / 2.0
        return found[0] + np.concatenate([[0.0], np.cumsum(steps)])

    def episodes(self, K: int) -> Spent:
        """Those spent among K; all if nothing else can be afforded."""
        return Spent(*self.course(K)[-1][1:])

    def course(self, K: int) -> list[tuple[float, float, float]]:
        """How many are spent by when, of K: (asked, of the baseline, of the earner), from the first on."""
        if K not in self._courses:
            ledger, out, spent, past = self._ledger(K), self.feedback.out, Spent(0.0, 0.0), [(0.0, 0.0, 0.0)]
            early = np.arange(1.0, 33.0) * math.ceil(out / 4.0) if out > 1 else ()  # there it changes fast
            for k in np.unique([k for k in (*self.grid, *early) if k < K] + [float(K)]).tolist():
                spent = self._more(self._look(k, past), spent, ledger)
                past.append((k, *spent))
            self._courses[K] = past
        return self._courses[K]

    def _look(self, k: float, past: list[tuple[float, float, float]]) -> Look:
        """What is no longer out after k episodes; between two looks as many are spent in each."""
        done, (asked, *spent) = max(0.0, k - (self.feedback.out - 1)), np.transpose(past)
        last = float(asked[-1])
        before = Spent(*(float(np.interp(done, asked, part)) for part in spent))
        return Look(k, done, before, 1.0 - max(0.0, done - last) / (k - last))

    def _more(self, look: Look, spent: Spent, ledger: Foreseen) -> Spent:
        """What is spent by now: baseline episodes, or, once it is known, of the earner beside those."""
        worst, earner = spent
        first = _smallest(lambda n: self._left(look, Spent(n, 0.0), ledger) >= 0.0, look.asked)
        if look.done - look.finished(Spent(first, earner)).baseline < self.known:
            return Spent(max(worst, first), earner)
        beside = _smallest(lambda n: self._left(look, Spent(worst, n), ledger) >= 0.0, look.asked - worst)
        return Spent(worst, max(earner, beside))

    def _left(self, look: Look, spent: Spent, ledger: Foreseen) -> float:
        """What is believed to be left after the next episode."""
        feedback = self.feedback
        baseline, earner = look.finished(spent)
        n = look.done - baseline - earner
        away = look.asked - spent.baseline - spent.earner - n
        credit = self.rail.credit * (1.0 if feedback.ran else feedback.told)
        surely = self._at(n, self.surely)
        gain = feedback.told * self.gain + feedback.lost * (surely if feedback.ran else min(0.0, surely))
        spare = feedback.told * (self.earned - self.rail.required) + feedback.lost * self._at(n, self.lost)
        believed = baseline * credit + earner * gain + n * spare + away * self._at(n, self.away)
        if feedback.order == "asked":
            believed += (spent.baseline - baseline) * self.rail.credit + (spent.earner - earner) * surely
        if (1.0 - self.same) * (n + away) <= 0.0:
            return believed
        slack = self._slack(n, earner, ledger) if n > 0.0 else 0.0
        return believed - (slack + self._at(n, self.short))

    def _slack(self, n: float, earner: float, ledger: Foreseen) -> float:
        """What noise and paths of n episodes may have added, with what lost ones hide."""
        told, hidden = self.feedback.told, self.feedback.hidden
        new = (1.0 - self.same) * n
        seen = told * (new + earner if hidden else new)
        rate = (self.earned - self.same * self.rail.value) / ((1.0 - self.same) * self.play.length)
        sums = ledger.sums(self.play, new + earner, seen, hidden, rate)
        slack = min(
            ledger.by_noise(sums) + self._at(n, self.paths),
            told * self._at(n, self.open) + (seen - told * new) * self._at(n, self.unsure),
        )
        if ledger.bets:
            each, error, apart = self.rests
            known = max(1.0, error / apart) if apart > 0.0 else 1.0  # from then on pairs are told apart
            rests = min(n * apart, min(n, known) * apart + error * math.log(max(1.0, n / known)))
            slack = min(slack, ledger.by_bets(sums, self.play, self.mean, seen * each + rests))
        elif ledger.crosses:
            boxed = (told + hidden) * self._at(n, self.boxed)
            slack = min(slack, ledger.by_paths(sums, hidden * self._at(n, self.strays), boxed))
        return slack

    @cached_property
    def rests(self) -> tuple[float, float, float]:
        """Of an episode: the noise of coins, that of one sample of each pair, and what its path changes."""
        low, high = self.rail.promise.floor, self.rail.promise.ceiling
        coins = (self.mean - low) * (high - self.mean)
        each = float(np.sum(self.stage.grid.by_state(self._squares * self.play.flow) * coins))
        apart = return_variance(self.problem.mdp, self.policy, self.mean, np.zeros(self.mean.shape))
        return each, float(np.sum(coins[self.play.weights > 0.0])), apart

    def _at(self, n: float, values: Floats) -> float:
        """np.interp(n, self.grid, values), in a third of its time."""
        points = self._points
        i = bisect_right(points, n) - 1
        if i < 0 or i >= len(points) - 1:
            return float(values[0 if i < 0 else -1])
        low = float(values[i])
        return (float(values[i + 1]) - low) / (points[i + 1] - points[i]) * (n - points[i]) + low


def _smallest(affordable: Callable[[float], bool], most: float) -> float:
    """The smallest number of episodes, at most so many, that can be afforded; all if none can."""
    low, high = 0.0, most
    if affordable(low):
        return 0.0
    while high - low > 1e-6 * most:
        middle = (low + high) / 2.0
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return high
