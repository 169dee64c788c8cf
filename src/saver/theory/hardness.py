"""The paper's hardness parameters and its tractability condition (eq. 7); docs/paper.md compares its forms.

H*(1) = (alpha V_c(pi_0) + D_0) / (alpha V_c(pi_0)) with D_0 = V_c(b_*) - V_c(pi_0), or |D_0|.
H*(2)(s) before Theorem 2 (eq. 9), which the bounds use, and in its proof:
    1 / (alpha mu_c(s,0)) sum over a != 0 of pi(a|s) sigma(s,a) min+{D(s,a), D(s,0) - D(s,a)},
    sum over a of b_*(a|s) min+{D(s,a), D(s,0) - D(s,a)},
with D(s,a) = max_a' mu_c(s,a') - mu_c(s,a), min+{x, y} = |min{x, y}| and 0 the baseline's action.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.design import Design, dag, is_tree, tree
from saver.play.nodes import Nodes
from saver.problem import Mdp, Problem, minimising, weights
from saver.problem.bellman import by_step
from saver.problem.guardrail import Rail

NOTHING = 1e-12  # a share of the baseline's value that is rounding
ONE_ACTION = "and the paper's has one action in each state"


@dataclass(frozen=True)
class Undefined:
    """In the place of a number that has no meaning here, and of all that would be computed from it."""

    because: str

    def __str__(self) -> str:
        return f"not defined, because {self.because}"

    def __format__(self, spec: str) -> str:
        return str(self)

    def _still(self, other: object) -> Undefined:
        """Of two numbers without a meaning the first says why."""
        return self

    __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _still


Number = float | Undefined


class Nodewise(NamedTuple):
    """The paper's s_j^l: a state on a tree, a (step, state) that some behaviour can be in on a graph."""

    mdp: Mdp
    design: Design  # b_*
    step: Ints  # [nodes]
    state: Ints  # [nodes]
    spread: Floats  # M(s), B_t(s) of Algorithm 2 on a graph, [nodes]
    policy: Floats  # b_*(a|s), normalised, [nodes, A]
    target: Floats  # [nodes, A]
    baseline: Floats  # [nodes, A]
    allowed: Bools  # [nodes, A]
    tree: bool  # whether the model is one

    @property
    def root(self) -> float:
        """M(s_1)^2."""
        return float(np.sum(self.mdp.start[self.state] * self.spread**2 * (self.step == 0)))

    def table(self, values: Floats) -> Floats:
        """Node values as [S] on a tree, [L, S] on a graph; NaN where no behaviour can be."""
        table = np.full(self.mdp.states if self.tree else (self.mdp.horizon, self.mdp.states), np.nan)
        table[self.state if self.tree else (self.step, self.state)] = values
        return table

    def label(self, node: int) -> str:
        """How messages call a node."""
        name = self.mdp.state_label(int(self.state[node]))
        return name if self.tree else f"{name} at step {self.step[node]}"


def closed_design(problem: Problem, variance: Floats) -> Design:
    """b_* and M: those of a tree, or Algorithm 2's by step."""
    mdp, asked = problem.mdp, problem.question
    if is_tree(mdp):
        return tree(mdp, asked.reference, asked.factor * variance)
    return dag(mdp, asked.reference, asked.factor * variance, time_indexed=True)


def nodewise(problem: Problem, variance: Floats) -> Nodewise:
    """Everything at the nodes, from the design that the paper has for this kind of model."""
    mdp, nodes, design = problem.mdp, Nodes.of(problem.mdp), closed_design(problem, variance)
    here = nodes.step, nodes.state
    at = here[1:] if design.spread.ndim == 1 else here
    target, baseline = (by_step(mdp, pi)[here] for pi in (problem.question.reference, problem.baseline))
    spread, policy, allowed = design.spread[at], design.policy[at], mdp.available[nodes.state]
    return Nodewise(mdp, design, *here, spread, policy, target, baseline, allowed, len(at) == 1)


@dataclass(frozen=True, eq=False)
class Hardness:
    """Both parameters in both definitions; terms are NaN where they are not defined."""

    one: float  # H*(1) with |D_0|
    one_signed: float  # with the sign of D_0
    two: Number  # H*(2) as defined before Theorem 2, summed
    two_per_state: Floats  # its terms
    two_proof: Number  # H*(2) as in the proof, summed
    two_proof_per_state: Floats
    gap: Number  # the smallest |(1 - alpha) mu_c(s,0) - mu_c(s,a)| over what the target alone plays


def hardness(rail: Rail, variance: Floats, mean: Floats, at: Nodewise) -> Hardness:
    """The parameters of one guardrail; `mean` are its constraint means."""
    afford, difference = rail.credit, float(np.sum(weights(at.mdp, at.design.policy) * mean)) - rail.value
    safe = np.arange(len(at.state)), np.argmax(at.baseline, axis=1)
    here = mean[at.state]
    D = np.where(at.allowed, here, -np.inf).max(axis=1)[:, None] - here
    least = np.where(at.allowed, np.abs(np.minimum(D, D[safe][:, None] - D)), 0.0)
    others = at.allowed.copy()
    others[safe] = False
    weighted = at.target * np.sqrt(variance[at.state]) * least * others
    level, drawn = here[safe], at.baseline[safe] < 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        two = np.where(drawn | (level <= 0), np.nan, weighted.sum(axis=1) / (rail.alpha * level))
    proof = np.where(drawn, np.nan, np.sum(at.policy * least, axis=1))
    gaps = np.abs((1.0 - rail.alpha) * level[:, None] - here)[others & (at.target > 0)]
    gap: Number = float(gaps.min(initial=np.inf))
    if drawn.any():
        gap = Undefined(f"the baseline is random, {ONE_ACTION}")
    elif not len(gaps):
        gap = Undefined("the target plays only what the baseline plays")
    elif gap == 0.0:
        same = "some action earns exactly (1 - alpha) of the baseline's"
        gap = Undefined(f"{same}, so that the smallest gap is 0")
    return Hardness(
        one=(afford + abs(difference)) / afford, one_signed=(afford + difference) / afford,
        two=_total(two, at, drawn), two_per_state=at.table(two), two_proof=_total(proof, at, drawn),
        two_proof_per_state=at.table(proof), gap=gap,
    )  # fmt: skip


def _total(values: Floats, at: Nodewise, drawn: Floats) -> Number:
    bad = np.flatnonzero(np.isnan(values))
    if not len(bad):
        return float(values.sum())
    where = at.label(int(bad[0]))
    if drawn[bad[0]]:
        return Undefined(f"the baseline is random in {where}, {ONE_ACTION}")
    return Undefined(f"the baseline's action has no positive constraint mean in {where}")


@dataclass(frozen=True)
class Condition:
    """One form of the condition: n must be `sense` `samples`."""

    formula: str
    sense: str
    samples: Number
    holds: bool | Undefined  # at the budget asked about


@dataclass(frozen=True)
class Tractability:
    """The tractability condition, as printed and as derived.

    b- played for C_sigma (n - sqrt(n)) samples is affordable iff sqrt(n) (1 - x) + x >= 0: x <= 1 excludes no
    budget, x > 1 allows sqrt(n) <= x / (x - 1) only. As printed it is sqrt(n) >= (r / alpha) / (x - 1).
    """

    worst_value: float  # V_c(b-), the smallest constraint value that any behaviour has
    room: float  # r, the share of the baseline's value that the worst behaviour loses
    c_sigma: Number  # the largest b_*(a|s)
    x: Number  # C_sigma r / alpha
    printed: Condition
    derived: Condition


def tractability(rail: Rail, constraint_mean: Floats, at: Nodewise, samples: int) -> Tractability:
    """The condition of one guardrail with a budget of `samples` = K L."""
    worst = minimising(at.mdp, constraint_mean)[1]
    room = 1.0 - worst / rail.value if rail.value > 0.0 else math.nan
    varying = at.spread > 0
    if not varying.any() or rail.value <= 0.0:
        cost = "the paper's r is a share of a positive value, and the baseline's is not: a cost"
        none = Undefined(cost if rail.value <= 0.0 else "no reward varies, so that there is no b_*")
        void = Condition("x", "", none, none)
        return Tractability(worst, room, none, none, void, void)
    c_sigma = float(at.policy[varying].max())
    x = c_sigma * room / rail.alpha
    least: Number = Undefined(f"it presumes x > 1 and x is {x:.4g}")
    most: Number = Undefined("x <= 1 excludes no budget")
    if x > 1.0:
        least, most = (room / rail.alpha / (x - 1.0)) ** 2, (x / (x - 1.0)) ** 2
    if room <= NOTHING:
        worst_already = "the baseline is already the worst policy, so that r is 0"
        least = Undefined(f"{worst_already} and every behaviour is safe")
    meets = least if isinstance(least, Undefined) else samples >= least
    printed = Condition("sqrt(n) >= (r / alpha) / (x - 1)", "at least", least, meets)
    within = isinstance(most, Undefined) or samples <= most
    derived = Condition("sqrt(n) (1 - x) + x >= 0", "at most", most, within)
    return Tractability(worst, room, c_sigma, x, printed, derived)
