"""What each way of collecting will cost: predicted errors, and what the certificate takes of a budget."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np

from saver._types import Floats
from saver.design.closed import check_variance, limit_of
from saver.design.exact import ExactDesign
from saver.play import Policy, Stage
from saver.problem import Scenario, visits
from saver.theory.believed import AT_ONCE, Delivery
from saver.theory.hardness import Number, Undefined
from saver.theory.reporting import Part, Reporting, Turnout
from saver.theory.spending import MANY, Spending

SLACK = 1e-5  # relative, of a standard error that is reached
PARTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)  # of the richest policy, beside a design
COVERED = 0.02  # of the target's weight may stay unseen


@dataclass(frozen=True)
class Way:
    """One way of collecting: in the long run, and at the budget asked about.

    Half-widths, of intervals at level .95, are means over campaigns where they are bounded. They are where
    rewards are declared; elsewhere if every pair that the target needs was seen.
    """

    safe: bool  # it keeps the promise, with baseline episodes where it must
    guardrail: str  # the one that its behaviour is nearest to breaking, or breaks most
    constraint_value: float  # V_c of that, of its behaviour without baseline episodes; costs are negative
    baseline_share: float  # of baseline episodes in the long run
    limit: Number  # K * MSE in the long run, if nothing is lost
    at_budget: Number  # K * MSE with what the certificate costs, and lost and late feedback
    certificate: int  # episodes that go where the baseline goes, beyond the share above
    episodes: Number  # what it needs for the standard error asked for
    half_width: float  # at one time
    anytime_half_width: float
    bounded: float  # how likely both are bounded


class Forecast:
    """Predicts ways for one scenario, from its truth, at a budget of `episodes`."""

    def __init__(
        self, made: Scenario, episodes: int, feedback: Delivery = AT_ONCE, promised: bool = False,
        logged: int = 0,
    ) -> None:  # fmt: skip
        problem, reward = made.problem, made.world.reward
        self.problem, self.episodes, self.feedback, self.promised = problem, episodes, feedback, promised
        self.rails, self.means = made.rails, made.means
        self.c = problem.question.size
        self.cost = self.c**2 * np.array(check_variance(problem.mdp, reward.variance))
        average = np.sum(self.c * reward.mean) / self.c.sum()  # which stands for what was not seen
        self.missed = problem.question.first * (average - np.array(reward.mean))
        self.stage = Stage(problem.mdp)
        self.baseline, self.even = (visits(problem.mdp, b) for b in (problem.baseline, problem.mdp.uniform))
        self.reporting = Reporting(made, episodes, self.stage, feedback, promised, logged)

    def ways(
        self, paper: Floats, free: ExactDesign, safe: ExactDesign | Undefined, stderr: float | None
    ) -> tuple[dict[str, Way], Number]:
        """The ways by name, and the standard error that their episodes are for.

        Where none is asked for, that is what the exact safe design reaches at this budget.
        """
        target = self.problem.question.reference
        plans = {
            "on-policy": self.plan(target, safe=False, drawn=True),
            "unconstrained": self.plan(free.policy, safe=False),
        }
        if not isinstance(safe, Undefined):
            plans["safe-on-policy"] = self.plan(target, drawn=True)
            plans["paper"] = self.plan(paper, explore=math.isqrt(self.episodes))
            plans["exact"] = self.paced(safe.policy)
        found = {name: self.way(plan) for name, plan in plans.items()}
        wanted: Number = Undefined("there is no safe design to take it from")
        if stderr is not None:
            wanted = stderr
        elif "exact" in found:
            error = found["exact"].at_budget
            wanted = error if isinstance(error, Undefined) else math.sqrt(error / self.episodes)
        if not isinstance(wanted, Undefined) and wanted > 0.0:
            for name, plan in plans.items():
                found[name] = replace(found[name], episodes=self.needed(plan, wanted))
        return found, wanted

    def plan(
        self, policy: Floats, safe: bool = True, drawn: bool = False, earns: bool = False, explore: int = 0
    ) -> Turnout:
        """A policy, after `explore` episodes at random; `drawn` if its actions are, and are not tracked.

        `safe` with what the certificate takes, by the guardrail that takes most. It falls back to the
        baseline, or, if it `earns`, to what surely earns most.
        """
        problem, K, feedback = self.problem, self.episodes, self.feedback
        others: tuple[Part, ...] = ()
        found = [
            Spending(problem, rail, K, self.stage, mean, policy, drawn=drawn, earns=earns, feedback=feedback)
            for rail, mean in zip(self.rails, self.means, strict=True)
            if safe
        ]
        most = max(found, key=lambda one: one.episodes(K).baseline, default=None)
        if most is not None:
            asked, baseline, earner = np.transpose(most.course(K))
            others = Part(asked, baseline, self.baseline), Part(asked, earner, most.richest)
        d, needed, sure = visits(problem.mdp, policy), self.c != 0.0, self.stage.deterministic and not drawn
        return Turnout(others, d, explore, self.even, not drawn, sure, needed, feedback.told, policy, most)

    def paced(self, policy: Floats) -> Turnout:
        """What earns most is fallen back to, and, where feedback is lost or late, paces the design.

        Then that mixture of both is played whose error is smallest: larger parts are tried until it grows.
        """
        best = self.plan(policy, earns=True)
        if self.feedback.complete:
            return best
        assert best.spending is not None
        own, richest = self.stage.play(policy).flow, best.spending.top[0].flow
        least = self.error(best, self.episodes)
        for part in PARTS:
            mixed = behaviour(self.stage, (1.0 - part) * own + part * richest)
            tried = self.plan(mixed, earns=True)
            error = self.error(tried, self.episodes)
            if not isinstance(least, Undefined) and (isinstance(error, Undefined) or error >= least):
                break
            least, best = error, tried
        return Turnout(*best[:-2], policy, best.spending)

    def way(self, plan: Turnout) -> Way:
        """What it will cost."""
        K, spending, play = self.episodes, plan.spending, self.stage.play(plan.policy)
        earned = [play.value(mean) for mean in self.means]
        spare = [(one - rail.required) / rail.credit for one, rail in zip(earned, self.rails, strict=True)]
        near = int(np.argmin(spare))  # the guardrail that spends most of what may be given up
        share, limit = self.long_run(plan.policy, safe=spending is not None)
        spent = spending.episodes(K).baseline if spending else 0.0
        certificate = math.ceil(max(0.0, spent - share * K) - 1e-6)
        return Way(
            spending is not None, self.rails[near].name, earned[near], share, limit, self.error(plan, K),
            certificate, Undefined("no standard error was asked for"),
            *self.reporting.report(plan, spending.play if spending else play),
        )  # fmt: skip

    def long_run(self, policy: Floats, safe: bool = True) -> tuple[float, Number]:
        """A share of baseline episodes, if it must be `safe`, and K * MSE with that and the rest of a policy.

        q with q V_c(pi_0) + (1 - q) V_c(b) = required; 0 if b is safe, the largest of all guardrails.
        """
        shares, play = [0.0], self.stage.play(policy)
        for rail, mean in zip(self.rails, self.means, strict=True):
            if safe and (earned := play.value(mean)) < rail.required:
                shares.append((rail.required - earned) / (rail.value - earned))
        q = max(shares)
        found = limit_of(self.cost, q * self.baseline + (1.0 - q) * visits(self.problem.mdp, policy))
        return q, Undefined("a pair that the target needs is never visited") if math.isinf(found) else found

    def needed(self, plan: Turnout, stderr: float) -> Number:
        """Episodes for a standard error."""

        def reached(K: int) -> bool:
            error = self.error(plan, K)
            return not isinstance(error, Undefined) and error <= K * stderr**2 * (1.0 + SLACK)

        high = 1
        while not reached(high):
            if high == MANY:
                return Undefined(f"{MANY:,} episodes are not enough")
            high = min(2 * high, MANY)
        between = range(high // 2 + 1, high)
        return high // 2 + 1 + bisect_left(between, True, key=reached)

    def error(self, plan: Turnout, K: int) -> Number:
        """K * MSE at K episodes, some of them spent.

        A pair that is drawn N times on average stays unseen with probability of about exp(-N), and else has
        E[1 / T] of about (1 + 1 / N) / N. A tracker takes what it has not seen first. What is not seen leaves
        a bias; where it is more than a little of the target's weight there is no number.
        """
        d, spending = plan.design, plan.spending
        N = K * d
        if spending is not None:
            spent = spending.episodes(K)
            N = spent.baseline * self.baseline + spent.earner * spending.richest + (K - sum(spent)) * d
        N = self.feedback.told * N
        more, unseen, lost = np.maximum(N, 1.0), np.exp(-N), 1.0
        if plan.tracked:
            share = N.sum(axis=1) / np.maximum(np.sum(self.c > 0, axis=1), 1)
            unseen, lost = np.maximum(0.0, 1.0 - share)[:, None], self.feedback.lost
        once = np.minimum(1.0, (1.0 + lost / more) / more)
        lost = float(np.sum(unseen * self.c) / self.c.sum())
        if lost > COVERED:
            return Undefined(f"{K} episodes are expected to leave {lost:.0%} of the target's weight unseen")
        noise = float(np.sum((1.0 - unseen) * self.cost * once))
        bias = unseen * self.missed
        return K * (noise + float(np.sum(bias) ** 2 + np.sum((1.0 - unseen) * bias * self.missed)))


def behaviour(stage: Stage, flow: Floats) -> Floats:
    """The policy that leads to this flow, [L, S, A]; where nothing flows, the first allowed action."""
    mass = flow.sum(axis=1, keepdims=True)
    rows = np.eye(flow.shape[1])[np.argmax(stage.mdp.available[stage.nodes.state], axis=1)]
    np.divide(flow, mass, out=rows, where=mass > 0.0)
    return Policy(stage.grid, True, rows).table()
