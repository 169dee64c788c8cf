"""What each way of collecting will cost: predicted errors, and what the certificate takes of a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from saver._types import Floats
from saver.design.limits import check_variance, limit_of
from saver.play.nodes import richest
from saver.play.policy import Policy
from saver.play.stage import Stage
from saver.problem import visits
from saver.problem.world import Scenario
from saver.theory.delivery import AT_ONCE, Delivery
from saver.theory.nodewise import Number, Undefined
from saver.theory.reporting import Report, Reporting
from saver.theory.spending import MANY, Spending
from saver.theory.turnout import Part, Turnout

SLACK = 1e-5  # relative, of a standard error that is reached
PARTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # of the richest policy, beside a design
COVERED = 0.02  # of the target's weight may stay unseen


@dataclass(frozen=True)
class Way:
    """One way of collecting.

    Attributes:
        safe: whether it keeps the promise, with baseline episodes where it must.
        guardrail: the one that its behaviour is nearest to breaking, or breaks most.
        constraint_value: V_c of that, of its behaviour without baseline episodes; costs are negative.
        baseline_share: of baseline episodes in the long run.
        limit: K * MSE in the long run, if nothing is lost.
        at_budget: K * MSE at the budget asked about, with what the certificate costs, and lost and late
            feedback.
        certificate: baseline episodes that the certificate takes at that budget, beyond the share above; what
            goes where the baseline goes counts as such.
        episodes: what it needs for the standard error asked for.
        half_width: half the length of the interval at level .95 at that budget, at one time.
        anytime_half_width: the same of the interval at all times.
        bounded: how likely both are bounded. They are where rewards are declared; elsewhere if every pair
            that the target needs was seen, and half-widths are means over such campaigns.
    """

    safe: bool
    guardrail: str
    constraint_value: float
    baseline_share: float
    limit: Number
    at_budget: Number
    certificate: int
    episodes: Number
    half_width: float
    anytime_half_width: float
    bounded: float


def behaviour(stage: Stage, flow: Floats) -> Floats:
    """The policy that leads to this flow, [L, S, A]; where nothing flows, the first allowed action."""
    mass = flow.sum(axis=1, keepdims=True)
    allowed = stage.mdp.available[stage.nodes.state]
    other = np.eye(flow.shape[1])[np.argmax(allowed, axis=1)]
    rows = np.where(mass > 0.0, flow / np.where(mass > 0.0, mass, 1.0), other)
    return Policy(stage.grid, True, rows).table()


class Forecast:
    """Predicts ways for one scenario, from its truth, at a budget of `episodes`."""

    def __init__(
        self,
        scenario: Scenario,
        episodes: int,
        feedback: Delivery = AT_ONCE,
        promised: bool = False,
        logged: int = 0,
    ) -> None:
        """A twin does not say itself whether rewards are `promised`, and how many episodes were logged."""
        problem, world = scenario.problem, scenario.world
        self.feedback = feedback
        self.problem, self.episodes = problem, episodes
        self.rails, self.means = scenario.rails, scenario.means
        self.c = problem.question.size
        self.cost = self.c**2 * np.array(check_variance(problem.mdp, world.reward.variance))
        average = np.sum(self.c * world.reward.mean) / self.c.sum()  # which stands for what was not seen
        self.missed = problem.question.first * (average - np.array(world.reward.mean))
        self.stage = Stage(problem.mdp)
        self.baseline = visits(problem.mdp, problem.baseline)
        self.reporting = Reporting(scenario, episodes, self.stage, feedback, promised, logged)
        self._mixed: dict[bytes, tuple[Floats, Spending]] = {}
        self._reports: dict[tuple[bytes, bool, bool, bool, bool], Report] = {}

    def way(
        self,
        policy: Floats,
        stderr: float | None,
        *,
        safe: bool,
        drawn: bool = False,
        earns: bool = False,
        explores: bool = False,
    ) -> Way:
        """One way; `drawn` if its actions are drawn at random and not tracked, `earns` if it falls back to
        what surely earns most, `explores` if it plays at random for sqrt(K) episodes first.
        """
        K, share, spending = self.episodes, 0.0, None
        d, play = visits(self.problem.mdp, policy), self.stage.play(policy)
        earned = [play.value(mean) for mean in self.means]
        near = self._nearest(earned)
        limit = self._in_the_long_run(d, self._share(earned) if safe else 0.0)
        if safe:
            share, spending = self._share(earned), self._spending(policy, drawn, earns)
            if earns and not self.feedback.complete:
                d, spending = self._paced(policy, d, spending)
        spent = spending.episodes(K).baseline if spending else 0.0
        key = policy.tobytes(), safe, drawn, earns, explores
        if key not in self._reports:
            self._reports[key] = self._report(policy, d, spending, drawn, explores)
        way = Way(
            safe,
            self.rails[near].name,
            earned[near],
            share,
            limit,
            self._error(d, K, spending, drawn),
            math.ceil(max(0.0, spent - share * K) - 1e-6),
            Undefined("no standard error was asked for"),
            *self._reports[key],
        )
        return way if stderr is None else replace(way, episodes=self._needed(d, spending, drawn, stderr))

    def _report(
        self, policy: Floats, d: Floats, spending: Spending | None, drawn: bool, explores: bool
    ) -> Report:
        """What will be reported."""
        mdp, play = self.problem.mdp, self.stage.play(policy)
        others: tuple[Part, ...] = ()
        if spending is not None:
            asked, baseline, earner = np.transpose(spending.course(self.episodes))
            others = (Part(asked, baseline, self.baseline), Part(asked, earner, spending.richest))
            play = spending.play
        turnout = Turnout(
            others,
            d,
            math.isqrt(self.episodes) if explores else 0,
            visits(mdp, mdp.uniform),
            tracked=not drawn,
            sure=self.stage.deterministic and not drawn,
            weighted=self.c != 0.0,
            told=self.feedback.told,
        )
        return self.reporting.report(turnout, play)

    def _spending(self, policy: Floats, drawn: bool, earns: bool) -> Spending:
        """By the guardrail that takes most."""
        found = [
            Spending(
                self.problem,
                rail,
                self.episodes,
                self.stage,
                mean,
                policy,
                drawn=drawn,
                earns=earns,
                feedback=self.feedback,
            )
            for rail, mean in zip(self.rails, self.means, strict=True)
        ]
        return (
            max(found, key=lambda one: one.episodes(self.episodes).baseline) if len(found) > 1 else found[0]
        )

    def _nearest(self, earned: list[float]) -> int:
        """The place of the guardrail that a behaviour spends most of, of what may be given up."""
        spare = [(one - rail.required) / rail.credit for one, rail in zip(earned, self.rails, strict=True)]
        return int(np.argmin(spare))

    def _paced(self, policy: Floats, d: Floats, spending: Spending) -> tuple[Floats, Spending]:
        """The mixture with the richest policy that has the smallest error: a campaign paces its design so."""
        key = policy.tobytes()
        if key not in self._mixed:
            self._mixed[key] = self._least(policy, d, spending)
        return self._mixed[key]

    def _least(self, policy: Floats, d: Floats, spending: Spending) -> tuple[Floats, Spending]:
        """Tries larger and larger parts, until the error grows."""
        least, best = self._error(d, self.episodes, spending, drawn=False), (d, spending)
        rows = np.zeros(len(self.stage.nodes.state), dtype=np.int64)
        richest(self.stage.nodes, spending.mean, spending.mean, rows)
        own, other = (
            self.stage.play(policy).flow,
            self.stage.evaluate(self.stage.grid.choices(True, rows)).flow,
        )
        for part in PARTS:
            mixed = behaviour(self.stage, (1.0 - part) * own + part * other)
            found = visits(self.problem.mdp, mixed), self._spending(mixed, False, True)
            error = self._error(found[0], self.episodes, found[1], drawn=False)
            if isinstance(least, Undefined):
                least, best = error, found
            elif isinstance(error, Undefined) or error >= least:
                break
            else:
                least, best = error, found
        return best

    def _share(self, earned: list[float]) -> float:
        """q with q V_c(pi_0) + (1 - q) V_c(b) = required; 0 if b is safe, the largest of all guardrails."""
        found = [
            0.0 if one >= rail.required else (rail.required - one) / (rail.value - one)
            for one, rail in zip(earned, self.rails, strict=True)
        ]
        return max(found)

    def _in_the_long_run(self, d: Floats, share: float) -> Number:
        """K * MSE of a share of baseline episodes and the rest of a behaviour with visits `d`."""
        found = limit_of(self.cost, share * self.baseline + (1.0 - share) * d)
        return Undefined("a pair that the target needs is never visited") if math.isinf(found) else found

    def _error(self, d: Floats, K: int, spending: Spending | None, drawn: bool) -> Number:
        """K * MSE at K episodes, some of them spent.

        A pair that is drawn N times on average stays unseen with probability of about exp(-N), and else has
        E[1 / T] of about (1 + 1 / N) / N. A tracker takes what it has not seen first. What is not seen leaves
        a bias; where it is more than a little of the target's weight there is no number.
        """
        N = K * d
        if spending is not None:
            spent = spending.episodes(K)
            N = spent.baseline * self.baseline + spent.earner * spending.richest + (K - sum(spent)) * d
        N = self.feedback.told * N
        wanted = self.c > 0
        if drawn:
            unseen = np.exp(-N)
            more = np.maximum(N, 1.0)
            once = np.minimum(1.0, (1.0 + 1.0 / more) / more)
        else:
            share = N.sum(axis=1) / np.maximum(wanted.sum(axis=1), 1)
            unseen = np.repeat(np.maximum(0.0, 1.0 - share)[:, None], N.shape[1], axis=1)
            more = np.maximum(N, 1.0)
            once = np.minimum(1.0, (1.0 + self.feedback.lost / more) / more)
        lost = float(np.sum(unseen * self.c) / self.c.sum())
        if lost > COVERED:
            return Undefined(f"{K} episodes are expected to leave {lost:.0%} of the target's weight unseen")
        noise = float(np.sum((1.0 - unseen) * self.cost * once))
        bias = unseen * self.missed
        return K * (noise + float(np.sum(bias) ** 2 + np.sum((1.0 - unseen) * bias * self.missed)))

    def _needed(self, d: Floats, spending: Spending | None, drawn: bool, stderr: float) -> Number:
        def reached(K: int) -> bool:
            error = self._error(d, K, spending, drawn)
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
