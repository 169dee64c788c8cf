"""The paper's hardness parameters, from their definitions.

H*(1) = (alpha V_c(pi_0) + D_0) / (alpha V_c(pi_0)) with D_0 = V_c(b_*) - V_c(pi_0) in the text of Theorem 1.
The formal statement has the absolute value, and the safe oracle's value in the place of V_c(b_*), which makes
it depend on the budget. Here it is the absolute value with b_*, and that is used in the bound.

H*(2)(s) is defined twice. Before Theorem 2 (eq. 9), which the bounds use,
    1 / (alpha mu_c(s,0)) sum over a != 0 of pi(a|s) sigma(s,a) min+{D(s,a), D(s,0) - D(s,a)},
in step 7 of its proof and of the oracle's
    sum over a of b_*(a|s) min+{D(s,a), D(s,0) - D(s,a)},
with D(s,a) = max_a' mu_c(s,a') - mu_c(s,a), min+{x, y} = |min{x, y}| and 0 the baseline's action.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saver._types import Floats
from saver.problem.guardrail import Rail
from saver.problem.statement import Problem
from saver.theory.nodewise import Nodewise, Number, Undefined, label, per_state


@dataclass(frozen=True, eq=False)
class Hardness:
    """Both parameters in both definitions.

    Attributes:
        one: H*(1) with |D_0|.
        one_signed: H*(1) with the signed D_0.
        two: H*(2) as defined before Theorem 2, summed; `two_per_state` its terms, NaN where not defined.
        two_proof: H*(2) as in the proof, summed; `two_proof_per_state` its terms.
        gap: the smallest |(1 - alpha) mu_c(s,0) - mu_c(s,a)| over actions that the target plays and the
            baseline does not: the gap of Theorem 2's budget. (The printed D(s,a) is 0 for the best action.)
    """

    one: float
    one_signed: float
    two: Number
    two_per_state: Floats
    two_proof: Number
    two_proof_per_state: Floats
    gap: Number


def hardness(
    problem: Problem, rail: Rail, variance: Floats, mean: Floats, at: Nodewise, earned: float
) -> Hardness:
    """The parameters of one guardrail; `mean` are its constraint means, `earned` is V_c(b_*)."""
    afford = rail.credit
    difference = earned - rail.value
    rows = np.arange(len(at.state))
    safe = np.argmax(at.baseline, axis=1)
    here = mean[at.state]
    top = np.where(at.allowed, here, -np.inf).max(axis=1)
    D = top[:, None] - here
    D_safe = D[rows, safe][:, None]
    least = np.where(at.allowed, np.abs(np.minimum(D, D_safe - D)), 0.0)
    others = at.allowed.copy()
    others[rows, safe] = False
    weighted = at.target * np.sqrt(variance[at.state]) * least * others
    level = here[rows, safe]
    drawn = at.baseline[rows, safe] < 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        two = np.where(drawn | (level <= 0), np.nan, weighted.sum(axis=1) / (rail.alpha * level))
    proof = np.where(drawn, np.nan, np.sum(at.policy * least, axis=1))
    gaps = np.abs((1.0 - rail.alpha) * level[:, None] - here)[others & (at.target > 0)]
    return Hardness(
        one=(afford + abs(difference)) / afford,
        one_signed=(afford + difference) / afford,
        two=_total(two, problem, at, drawn),
        two_per_state=per_state(problem, at, two),
        two_proof=_total(proof, problem, at, drawn),
        two_proof_per_state=per_state(problem, at, proof),
        gap=_smallest(gaps, bool(drawn.any())),
    )


def _total(values: Floats, problem: Problem, at: Nodewise, drawn: Floats) -> Number:
    bad = np.flatnonzero(np.isnan(values))
    if not len(bad):
        return float(values.sum())
    where = label(problem, at, int(bad[0]))
    if drawn[bad[0]]:
        return Undefined(f"the baseline is random in {where}, and the paper's has one action in each state")
    return Undefined(f"the baseline's action has no positive constraint mean in {where}")


def _smallest(gaps: Floats, drawn: bool) -> Number:
    if drawn:
        return Undefined("the baseline is random, and the paper's has one action in each state")
    if not len(gaps):
        return Undefined("the target plays only what the baseline plays")
    if gaps.min() == 0.0:
        return Undefined(
            "some action earns exactly (1 - alpha) of the baseline's, so that the smallest gap is 0"
        )
    return float(gaps.min())
