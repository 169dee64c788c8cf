"""The tractability condition (eq. 7), as printed and as derived.

With r = 1 - V_c(b-) / V_c(pi_0), C_sigma = max b_*(a|s) and x = C_sigma r / alpha, b- played for
C_sigma (n - sqrt(n)) samples is affordable iff sqrt(n) (1 - x) + x >= 0. So x <= 1 excludes no budget, and
x > 1 allows sqrt(n) <= x / (x - 1) only: an upper bound. The printed condition drops C_sigma from the second
term and divides by 1 - x, negative when x > 1, without turning the inequality:
sqrt(n) >= (r / alpha) / (x - 1). (The printed C_sigma divides b_* by M(s) once more, which is not scale-free;
here b_* is normalised.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from saver._types import Floats
from saver.problem import minimising
from saver.problem.guardrail import Rail
from saver.problem.statement import Problem
from saver.theory.nodewise import Nodewise, Number, Undefined

NOTHING = 1e-12  # a share of the baseline's value that is rounding


@dataclass(frozen=True)
class Condition:
    """One form of the condition: n must be `sense` `samples`; `holds` at the budget asked about."""

    formula: str
    sense: str
    samples: Number
    holds: bool | Undefined


@dataclass(frozen=True)
class Tractability:
    """Everything that enters the condition.

    Attributes:
        worst_value: V_c(b-), the smallest constraint value that any behaviour has.
        room: r, the share of the baseline's value that the worst behaviour loses.
        c_sigma: the largest b_*(a|s).
        x: C_sigma r / alpha.
    """

    worst_value: float
    room: float
    c_sigma: Number
    x: Number
    printed: Condition
    derived: Condition


def tractability(
    problem: Problem, rail: Rail, constraint_mean: Floats, at: Nodewise, samples: int
) -> Tractability:
    """The condition of one guardrail with a budget of `samples` = K L."""
    worst = minimising(problem.mdp, constraint_mean)[1]
    room = 1.0 - worst / rail.value if rail.value > 0.0 else math.nan
    varying = at.spread > 0
    if not varying.any() or rail.value <= 0.0:
        none = Undefined("no reward varies, so that there is no b_*")
        if rail.value <= 0.0:
            none = Undefined(
                "the paper's r is a share of a positive value, and the baseline's is not: a cost"
            )
        void = Condition("x", "", none, none)
        return Tractability(worst, room, none, none, void, void)
    c_sigma = float(at.policy[varying].max())
    x = c_sigma * room / rail.alpha
    printed, derived = _printed(room, rail.alpha, x, samples), _derived(x, samples)
    return Tractability(worst, room, c_sigma, x, printed, derived)


def _printed(room: float, alpha: float, x: float, samples: int) -> Condition:
    formula, sense = "sqrt(n) >= (r / alpha) / (x - 1)", "at least"
    if room <= NOTHING:
        none = Undefined(
            "the baseline is already the worst policy, so that r is 0 and every behaviour is safe"
        )
        return Condition(formula, sense, none, none)
    if x <= 1.0:
        none = Undefined(f"it presumes x > 1 and x is {x:.4g}")
        return Condition(formula, sense, none, none)
    bound = (room / alpha / (x - 1.0)) ** 2
    return Condition(formula, sense, bound, samples >= bound)


def _derived(x: float, samples: int) -> Condition:
    formula, sense = "sqrt(n) (1 - x) + x >= 0", "at most"
    if x <= 1.0:
        return Condition(formula, sense, Undefined("x <= 1 excludes no budget"), True)
    bound = (x / (x - 1.0)) ** 2
    return Condition(formula, sense, bound, samples <= bound)
