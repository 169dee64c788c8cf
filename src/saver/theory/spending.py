"""What the certificate takes of a budget: episodes that pay for what the ledger does not see."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.play.nodes import richest
from saver.play.stage import Play, Stage
from saver.problem import Problem, visits
from saver.problem.bellman import return_variance
from saver.problem.guardrail import Rail
from saver.problem.moments import Moments
from saver.safety.certified import Certified
from saver.safety.entries import Tally
from saver.safety.ledger import Terms
from saver.theory.delivery import AT_ONCE, Delivery, Worth, steps, tracked

MANY = 10**9  # episodes; what needs more is called out of reach
POINTS = 40  # at which the box is evaluated


class Spent(NamedTuple):
    """Episodes that a behaviour does not get: of the baseline, and of the policy that earns most."""

    baseline: float
    earner: float


class Look(NamedTuple):
    """A moment of a campaign: `asked` episodes, `done` of which are no longer out.

    `before` were spent at an earlier moment, and `part` of those spent since are done.
    """

    asked: float
    done: float
    before: Spent
    part: float

    def finished(self, spent: Spent) -> Spent:
        """Those done among the `spent`."""
        return Spent(
            *(min(s, b + self.part * max(0.0, s - b)) for s, b in zip(spent, self.before, strict=True))
        )


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
    The box is taken at the counts that b leads to.

    Of lost trials nothing is learned or credited: the sums above are over told ones, less what the lost may
    hide (`Certified.hides`), and each of the lost counts as what it adds at least (`Worth`). So does each
    that is out: the last out - 1.
    """

    def __init__(
        self,
        problem: Problem,
        rail: Rail,
        episodes: int,
        stage: Stage,
        mean: Floats,
        policy: Floats,
        *,
        drawn: bool,
        earns: bool,
        feedback: Delivery = AT_ONCE,
    ) -> None:
        self.problem, self.rail, self.mean = problem, rail, mean
        self.stage, self.play = stage, stage.play(policy)
        self.earned, self.same, self.feedback = self.play.value(mean), self._same(), feedback
        self._courses: dict[int, list[tuple[float, float, float]]] = {}
        self.grid = np.unique(np.round(np.geomspace(1, MANY, POINTS)))
        ledger, d = self._ledger(episodes), visits(problem.mdp, policy)
        boxes = [self._box(ledger, n - 1.0, d, mean) for n in self.grid]
        lowers = [lower for lower, _ in boxes]
        least = stage.least if stage.deterministic else Play.value
        self.ahead = np.array([max(0.0, rail.required - least(self.play, lower)) for lower in lowers])
        self.open = self._summed([self.earned - self.play.value(lower) for lower in lowers])
        self.paths, self.boxed, self.strays = (np.zeros(len(self.grid)) for _ in range(3))
        if not stage.deterministic:
            halves = [(upper - lower) / 2.0 for lower, upper in boxes]
            strays = np.sqrt(self._variance(drawn) * 2.0 / math.pi)
            self.paths = np.sqrt(feedback.told * self.grid) * [np.sum(strays * h) for h in halves]
            self.boxed = self._summed([self.play.longest * self.play.value(h**2) for h in halves])
            if feedback.hidden and not ledger.bets:
                self.strays = self._summed([stage.widest(self.play, h) + self.play.value(h) for h in halves])
        self.lost, self.away = np.zeros(len(self.grid)), np.zeros(len(self.grid))
        if not feedback.complete:
            self._find_worth(lowers, drawn)
        self.known, self.gain, self.richest, self.surely = math.inf, 0.0, d, np.zeros(len(self.grid))
        self.unsure = np.zeros(len(self.grid))
        if earns:
            self._find_earner(mean, lowers)

    def _box(self, ledger: Certified, n: float, d: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """The box after n episodes with visits `d` each, of which some are lost."""
        told, hidden = np.floor(self.feedback.told * n * d), self.feedback.hidden * n
        tally = Tally(Moments(told, mean, np.zeros(mean.shape)))
        if hidden and self.stage.deterministic:
            tally.missed = np.ceil(hidden * d)
        elif hidden:
            tally.awaited, tally.walked = n * d, told
            tally.most = math.ceil(hidden) * np.where(d > 0.0, self.stage.most, 0.0)
        return ledger.box_of(tally, ())

    def _find_worth(self, lowers: list[Floats], drawn: bool) -> None:
        """What a lost trial adds, and one that is out."""
        sampled = drawn and not self.stage.deterministic
        plays = [self.play] if sampled else tracked(self.stage, self.play)
        baseline = self.stage.play(self.problem.baseline)
        worth = Worth(plays, baseline, self.rail.value, self.rail.required)
        self.lost = np.array([worth.adds(lower, self.feedback.ran) for lower in lowers])
        self.away = np.array([worth.adds(lower, self.feedback.order == "asked") for lower in lowers])

    def _ledger(self, K: int) -> Certified:
        feedback = self.feedback
        return Certified(Terms(self.problem, K, self.stage, feedback.losses, feedback.order, self.rail))

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
        low, safe = np.array([play.value(lower) for lower in lowers]), self.rail.value
        passes = self.rail.required - low + self.rail.credit <= self.ahead
        enough = np.flatnonzero(((worth + low) / 2.0 >= safe) & passes)
        if len(enough) and worth > safe:
            self.known, self.gain = float(self.grid[enough[0]]), worth - self.rail.required
            self.richest, self.surely = self.stage.grid.by_state(play.flow), low - self.rail.required
            self.unsure = worth - low

    def _summed(self, values: list[float]) -> Floats:
        """The sum over episodes 1 to n, at each n of the grid."""
        found = np.array(values)
        steps = np.diff(self.grid) * (found[:-1] + found[1:]) / 2.0
        result: Floats = found[0] + np.concatenate([[0.0], np.cumsum(steps)])
        return result

    def episodes(self, K: int) -> Spent:
        """Those spent among K; all if nothing else can be afforded."""
        return Spent(*self.course(K)[-1][1:])

    def course(self, K: int) -> list[tuple[float, float, float]]:
        """How many are spent by when, of K: (asked, of the baseline, of the earner), from the first on."""
        if K not in self._courses:
            self._courses[K] = self._course(K)
        return self._courses[K]

    def _course(self, K: int) -> list[tuple[float, float, float]]:
        ledger, worst, earner = self._ledger(K), 0.0, 0.0
        past = [(0.0, 0.0, 0.0)]
        for k in self._looks(K):
            look = self._look(k, past)
            first = self._smallest(look, ledger, None)
            if look.done - look.finished(Spent(first, earner)).baseline < self.known:
                worst = max(worst, first)
            else:
                earner = max(earner, self._smallest(look, ledger, worst))
            past.append((float(k), worst, earner))
        return past

    def _looks(self, K: int) -> Floats:
        """When to look."""
        return np.unique([k for k in (*self.grid, *steps(self.feedback.out)) if k < K] + [float(K)])

    def _look(self, k: float, past: list[tuple[float, float, float]]) -> Look:
        """What is no longer out after k episodes; between two looks as many are spent in each."""
        out = self.feedback.out - 1
        done = max(0.0, k - out)
        if not out:
            return Look(k, k, Spent(0.0, 0.0), 1.0)
        asked, baseline, earner = np.transpose(past)
        before = Spent(float(np.interp(done, asked, baseline)), float(np.interp(done, asked, earner)))
        last = float(asked[-1])
        return Look(k, done, before, max(0.0, done - last) / (k - last))

    def _smallest(self, look: Look, ledger: Certified, worst: float | None) -> float:
        """The smallest number of episodes that pay for the others: of the baseline, or of the earner beside
        `worst` of the baseline.
        """

        def affordable(first: float) -> bool:
            spent = Spent(first, 0.0) if worst is None else Spent(worst, first)
            return self._left(look, spent, ledger) >= 0.0

        most = look.asked - (worst or 0.0)
        low, high = 0.0, most
        if affordable(low):
            return 0.0
        while high - low > 1e-6 * most:
            middle = (low + high) / 2.0
            low, high = (low, middle) if affordable(middle) else (middle, high)
        return high

    def _left(self, look: Look, spent: Spent, ledger: Certified) -> float:
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
        return believed - self._unseen(n, away, earner, ledger)

    def _unseen(self, n: float, away: float, earner: float, ledger: Certified) -> float:
        """The slack after n episodes, and what the gate wants covered."""
        if (1.0 - self.same) * (n + away) <= 0.0:
            return 0.0
        return (self._slack(n, earner, ledger) if n > 0.0 else 0.0) + self._at(n, self.ahead)

    def _slack(self, n: float, earner: float, ledger: Certified) -> float:
        """What noise and paths of n episodes may have added, with what lost ones hide."""
        feedback, weight = self.feedback, float(self.play.weights.sum())
        new = (1.0 - self.same) * n
        seen = feedback.told * (new + earner if feedback.hidden else new)
        rate = (self.earned - self.same * self.rail.value) / ((1.0 - self.same) * weight)
        unit = self.rail.promise.scale**2 * self.play.noise
        tally = Tally(None, proxy=unit * seen, length=weight * seen)
        tally.gained = rate * tally.length
        tally.last = math.ceil(new + earner)
        tally.whole = math.ceil(feedback.hidden * (new + earner))
        tally.whole_proxy = unit * tally.whole
        tally.hides = ledger.span * self.play.longest * tally.whole
        slack = min(
            tally.gained - ledger.seen_worth(tally) + self._at(n, self.paths),
            feedback.told * self._at(n, self.open) + (seen - feedback.told * new) * self._at(n, self.unsure),
        )
        if ledger.bets:
            slack = min(slack, self._bet(n, seen, tally, ledger))
        elif ledger.crosses:
            tally.strays = feedback.hidden * self._at(n, self.strays)
            kept = feedback.told + feedback.hidden
            tally.sum_v = tally.proxy + tally.whole_proxy + kept * self._at(n, self.boxed)
            slack = min(slack, -ledger.together(tally, ()))
        return slack

    def _bet(self, n: float, seen: float, tally: Tally, ledger: Certified) -> float:
        """What bets on returns lose to rests, and to what is hidden."""
        rates, unit, (each, error, apart) = ledger.capital.rates, ledger.range**2, self.rests
        known = max(1.0, error / apart) if apart > 0.0 else 1.0  # from then on pairs are told apart
        rests = min(n * apart, min(n, known) * apart + error * math.log(max(1.0, n / known)))
        low, high = self.rail.promise.floor, self.rail.promise.ceiling
        deepest = float(np.max(self.mean, where=self.play.weights > 0.0, initial=low)) - low
        lost = tally.whole * np.log1p(-rates * min(1.0, self.play.longest * deepest / ledger.range))
        tally.logs = lost - rates**2 / 2.0 * (seen * each + rests) / unit
        tally.strays = tally.whole * self.play.value(high - self.mean)
        return -ledger.together(tally, ())

    @cached_property
    def rests(self) -> tuple[float, float, float]:
        """Of an episode: the noise of coins, that of one sample of each pair, and what its path changes."""
        low, high = self.rail.promise.floor, self.rail.promise.ceiling
        coins = (self.mean - low) * (high - self.mean)
        squares = self.problem.mdp.discount ** (2.0 * self.stage.nodes.step)[:, None] * self.play.flow
        each = float(np.sum(self.stage.grid.by_state(squares) * coins))
        apart = return_variance(self.problem.mdp, self._by_step(), self.mean, np.zeros(self.mean.shape))
        return each, float(np.sum(coins[self.play.weights > 0.0])), apart

    def _by_step(self) -> Floats:
        """The policy as a table, [L, S, A]."""
        nodes, mdp = self.stage.nodes, self.problem.mdp
        table = np.array(np.broadcast_to(mdp.uniform, (mdp.horizon, mdp.states, mdp.actions)))
        table[nodes.step, nodes.state] = self.play.behaviour
        return table

    def _at(self, n: float, values: Floats) -> float:
        """np.interp(n, self.grid, values), in a third of its time."""
        points = self._points
        i = bisect_right(points, n) - 1
        if i < 0 or i >= len(points) - 1:
            return float(values[0 if i < 0 else -1])
        low = float(values[i])
        return (float(values[i + 1]) - low) / (points[i + 1] - points[i]) * (n - points[i]) + low

    @cached_property
    def _points(self) -> list[float]:
        found: list[float] = self.grid.tolist()
        return found
