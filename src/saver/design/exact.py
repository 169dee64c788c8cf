"""The exact design: one convex program over state-action flows, with or without the safety constraint.

    minimise sum c^2 variance / N,  N = sum_t x_t,  over flows x_t(s,a) >= 0 of the model,
    subject to sum_t discount^t x_t . constraint_mean >= required, for every guardrail.

The paper says that no closed form exists for graphs and for the safe optimum. There is none, but no safe
behaviour has a smaller limit than the value of this program.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.design.closed import Design, check_variance, dag
from saver.design.planner import TOLERANCE, Planner
from saver.kernels.solve.onestate import ROUNDING
from saver.problem import checks
from saver.problem.bellman import value
from saver.problem.mdp import Mdp
from saver.problem.statement import Problem

SMALL_GAP = 1e-3  # up to which two limits can be called equal
COVERAGE_WORK = 1e8  # flow updates, about two seconds


@dataclass(frozen=True, eq=False)
class ExactDesign:
    """The optimum of the program, certified by a dual feasible point.

    Attributes:
        policy: [L, S, A], a distribution in every state at every step.
        occupancy: x_t(s,a) of the policy, [L, S, A].
        limit: sum c^2 variance / N of this policy, and what is onward, in units of one episode.
        price: the limit over that of the unconstrained optimum; 1 exactly where the two cannot be told
            apart within their gaps, if these are at most 1e-3.
        gap: the limit is at most 1 + gap times the smallest possible one.
        multipliers: how fast the limit rises with what each guardrail requires, by name.
    """

    policy: Floats
    occupancy: Floats
    limit: float
    price: float
    gap: float
    multipliers: dict[str, float] = field(default_factory=dict)


def exact(
    problem: Problem,
    variance: ArrayLike,
    constraint_mean: Any = None,
    *,
    onward: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
    seconds: float = 60.0,
) -> ExactDesign:
    """The best behaviour for these variances; safe for these constraint means if they are given.

    Means are [S, A], or {name: [S, A]} of several guardrails. Where a baseline value is not known it is that
    of these means. `onward`, [S, A], adds sum onward / N^-, N^- the visits before step L - 1: the price of
    learning moves where the state after the last action is not told.

    Stops at a relative gap of `tolerance` or after about `seconds` of solving, whichever comes first; `gap`
    says what was reached. Raises `Infeasible`, with the names of guardrails that no behaviour meets together
    and the best that can be attained.
    """
    return exact_pair(
        problem, variance, constraint_mean, onward=onward, tolerance=tolerance, seconds=seconds
    )[1]


def exact_pair(
    problem: Problem,
    variance: ArrayLike,
    constraint_mean: Any = None,
    *,
    onward: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
    seconds: float = 60.0,
    raised: ArrayLike = 0.0,
) -> tuple[ExactDesign, ExactDesign]:
    """The unconstrained optimum and the safe one, from one pair of solves: see `exact`.

    `raised` is added to what is required, of each guardrail.
    """
    began = time.monotonic()
    checks.kind("problem", problem, Problem)
    means, required, names = None, np.zeros(0), [rail.name for rail in problem.rails]
    if constraint_mean is not None:
        means = problem.means(constraint_mean)
        required = required_by(problem, means) + np.asarray(raised)
    seconds = checks.between("seconds", seconds, 0.0, math.inf, closed=(True, False))
    mdp, planner = problem.mdp, Planner(problem.mdp)
    asked, variance = problem.question, check_variance(mdp, variance)
    w = asked.size**2 * variance
    hint = dag(mdp, asked.reference, asked.factor * variance, time_indexed=True).policy
    free = plan = planner.solve(w, onward=onward, hint=hint, tolerance=tolerance, seconds=seconds / 2)
    if means is not None and not planner.is_safe(free, means, required):
        left = max(0.0, seconds - (time.monotonic() - began))
        plan = planner.solve(
            w, means, required, onward=onward, anchor=problem.baseline, names=names, tolerance=tolerance,
            seconds=left,
        )  # fmt: skip
    price = max(1.0, plan.limit / free.limit) if free.limit > 0 else 1.0  # below 1 only if `free` was stopped
    equal = price <= (1.0 + plan.gap) * (1.0 + free.gap) * (1.0 + ROUNDING)
    if equal and max(plan.gap, free.gap) <= SMALL_GAP:
        price = 1.0
    first = ExactDesign(*planner.unroll(free), free.limit, 1.0, free.gap)
    costs = np.zeros(len(names)) if plan is free else plan.multipliers
    multipliers = dict(zip(names, map(float, costs), strict=True))
    return first, ExactDesign(*planner.unroll(plan), plan.limit, price, plan.gap, multipliers)


def required_by(problem: Problem, means: Floats) -> Floats:
    """What each guardrail requires, [m]; a baseline value that is not known is that of these means."""
    values = [value(problem.mdp, problem.baseline, mean) for mean in means]
    return np.array(
        [
            rail.required if rail.exact else rail.required_at(found)
            for rail, found in zip(problem.rails, values, strict=True)
        ]
    )


def coverage(mdp: Mdp, *, tolerance: float = 1e-3, work: float = COVERAGE_WORK) -> Design:
    """The behaviour that minimises sum 1 / N over every reachable pair: it explores what uniform play misses.

    Solved to a relative gap of `tolerance`, with at most about `work` flow updates: the same on any machine.
    Its spread is the expected number of visits to each state, by which its flow is normalised.
    """
    planner = Planner(mdp)
    w = (mdp.available & mdp.reachable[:, None]).astype(float)
    policy, occupancy = planner.unroll(planner.solve(w, tolerance=tolerance, work=work))
    return Design(policy, occupancy.sum(axis=(0, 2)))
