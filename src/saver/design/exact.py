"""The exact design: one convex program over state-action flows, with or without the safety constraint.

    minimise sum c^2 variance / N,  N = sum_t x_t,  over flows x_t(s,a) >= 0 of the model,
    subject to sum_t discount^t x_t . constraint_mean >= (1 - alpha) baseline_value.

The paper says that no closed form exists for graphs and for the safe optimum. There is none, but no safe
behaviour has a smaller limit than the value of this program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from saver._types import Floats
from saver.design.closed import dag
from saver.design.limits import Design, check_variance
from saver.design.planner import TOLERANCE, Planner
from saver.design.single import ROUNDING
from saver.problem import checks
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
        limit: sum c^2 variance / N of this policy, in units of one episode.
        price: the limit over that of the unconstrained optimum; 1 exactly where the two cannot be told
            apart within their gaps, if these are at most 1e-3.
        gap: the limit is at most 1 + gap times the smallest possible one.
    """

    policy: Floats
    occupancy: Floats
    limit: float
    price: float
    gap: float


def exact(
    problem: Problem,
    variance: ArrayLike,
    constraint_mean: ArrayLike | None = None,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 60.0,
) -> ExactDesign:
    """The best behaviour for these variances; safe for these constraint means if they are given.

    Stops at a relative gap of `tolerance` or after about `seconds` of solving, whichever comes first; `gap`
    says what was reached. Raises `Infeasible` if no behaviour earns (1 - alpha) baseline_value.
    """
    return exact_pair(problem, variance, constraint_mean, tolerance=tolerance, seconds=seconds)[1]


def exact_pair(
    problem: Problem,
    variance: ArrayLike,
    constraint_mean: ArrayLike | None = None,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 60.0,
) -> tuple[ExactDesign, ExactDesign]:
    """The unconstrained optimum and the safe one, from one pair of solves: see `exact`."""
    checks.kind("problem", problem, Problem)
    if constraint_mean is not None:
        shape = (problem.mdp.states, problem.mdp.actions)
        constraint_mean = checks.shaped("constraint_mean", constraint_mean, shape)
    return _pair(problem, variance, constraint_mean, problem.required, tolerance=tolerance, seconds=seconds)


def _pair(
    problem: Problem,
    variance: ArrayLike,
    means: Floats | None,
    required: float | Floats,
    *,
    tolerance: float,
    seconds: float,
    names: Sequence[str] | None = None,
) -> tuple[ExactDesign, ExactDesign]:
    """`exact_pair` for constraint means [S, A] and a number, or [m, S, A] and `required` [m]."""
    began = time.monotonic()
    seconds = checks.between("seconds", seconds, 0.0, math.inf, closed=(True, False))
    mdp, planner = problem.mdp, Planner(problem.mdp)
    asked, variance = problem.question, check_variance(mdp, variance)
    w = asked.size**2 * variance
    hint = dag(mdp, asked.reference, asked.factor * variance, time_indexed=True).policy
    free = plan = planner.solve(w, hint=hint, tolerance=tolerance, seconds=seconds / 2)
    if means is not None and not planner.is_safe(free, means, required):
        left = max(0.0, seconds - (time.monotonic() - began))
        plan = planner.solve(
            w, means, required, anchor=problem.baseline, names=names, tolerance=tolerance, seconds=left
        )
    price = max(1.0, plan.limit / free.limit) if free.limit > 0 else 1.0  # below 1 only if `free` was stopped
    equal = price <= (1.0 + plan.gap) * (1.0 + free.gap) * (1.0 + ROUNDING)
    if equal and max(plan.gap, free.gap) <= SMALL_GAP:
        price = 1.0
    first = ExactDesign(*planner.unroll(free), free.limit, 1.0, free.gap)
    return first, ExactDesign(*planner.unroll(plan), plan.limit, price, plan.gap)


def coverage(mdp: Mdp, *, tolerance: float = 1e-3, work: float = COVERAGE_WORK) -> Design:
    """The behaviour that minimises sum 1 / N over every reachable pair: it explores what uniform play misses.

    Solved to a relative gap of `tolerance`, with at most about `work` flow updates: the same on any machine.
    Its spread is the expected number of visits to each state, by which its flow is normalised.
    """
    planner = Planner(mdp)
    w = (mdp.available & mdp.reachable[:, None]).astype(float)
    policy, occupancy = planner.unroll(planner.solve(w, tolerance=tolerance, work=work))
    return Design(policy, occupancy.sum(axis=(0, 2)))
