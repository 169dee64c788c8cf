"""Theorem 1, Theorem 2 and the oracle's Proposition 2, term by term.

Constants are those of the formal statements. Where a bound is of the form O(.) or Omega(.), its constant is
hidden: the number shown is for a constant of 1 and says how a term scales, not how large it is. n = K L
samples, S the states in which some behaviour can act, A the actions, eta the largest mean in magnitude.
The fourth term of Theorem 2 is printed with L S A and derived, for both bounds, with L S A^2: that is used.
The first term, M(s1)^2 / n, divides by samples what holds per episode: no behaviour has below M(s1)^2 / K.
Theorem 2 and Proposition 2 are for trees; on graphs M is Algorithm 2's B, and the numbers prove nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saver.problem.statement import Problem
from saver.theory.hardness import Hardness
from saver.theory.nodewise import Nodewise, Number, Undefined, label

SMALLEST_DEVIATION = 1.0 / 16.0  # that Theorem 1 presumes


@dataclass(frozen=True)
class Term:
    """One term of a bound; `hidden` if its constant is not given."""

    formula: str
    value: Number
    hidden: bool = False


@dataclass(frozen=True)
class Bound:
    """A sum of terms."""

    terms: tuple[Term, ...]
    total: Number


@dataclass(frozen=True)
class LowerBound:
    """Theorem 1: no safe algorithm has a smaller regret on every problem, up to a hidden constant.

    Attributes:
        bandit: max{A^(1/3), H1^2 A^(2/3)} / n^(3/2).
        mdp: max{sqrt(S A L^2), H1^2 S A L^2} / n^(3/2); with one state and step its exponents of A are larger
            than the bandit's, so that the bandit form is not a case of it.
        presumes: what the theorem assumes and whether it is so here.
    """

    bandit: Number
    mdp: float
    presumes: dict[str, bool]


@dataclass(frozen=True)
class Bounds:
    """All bounds at one budget.

    Attributes:
        lower: Theorem 1.
        saver_mse, saver_violations: Theorem 2; violations are episodes whose believed budget is below 0.
        oracle_mse, oracle_violations: Proposition 2.
        applies_from: the number of samples above which Theorem 2 and Proposition 2 are stated.
        exploration: n_x of Corollary 4, in samples.
    """

    lower: LowerBound
    saver_mse: Bound
    saver_violations: Bound
    oracle_mse: Bound
    oracle_violations: Bound
    applies_from: Number
    exploration: Number


class Sizes(NamedTuple):
    """The numbers that all bounds share."""

    n: float
    S: int
    A: int
    L: int
    root: float  # M(s_1)^2
    M: float
    M_min: Number
    b_min: Number  # the smallest share of b_* for an action of the target
    eta: float
    log: float  # log(S A n (n + 1) / delta)


def bounds(problem: Problem, at: Nodewise, hard: Hardness, sizes: Sizes, presumes: dict[str, bool]) -> Bounds:
    """Every bound for this problem."""
    terms, unknown = _mse_terms(sizes, hard.two), _unknown(sizes, hard.two, 1.5)
    violations = _violation_terms(sizes, hard.two)
    rest = Term("2 / n", 2.0 / sizes.n)
    return Bounds(
        lower=_lower(problem, sizes, hard.one, presumes),
        saver_mse=_sum(*terms, unknown),
        saver_violations=_sum(*violations, _unknown(sizes, hard.two, 0.5)),
        oracle_mse=_sum(*terms, rest),
        oracle_violations=_sum(*violations),
        applies_from=_applies_from(problem, sizes, hard),
        exploration=_over_gap(sizes.S * sizes.A * sizes.log, hard.gap),
    )


def sizes_of(problem: Problem, at: Nodewise, samples: int, root: float, eta: float) -> Sizes:
    """The shared numbers."""
    S, A = len(np.unique(at.state)), problem.mdp.actions
    n = float(samples)
    lowest = int(np.argmin(at.spread))
    played = np.where(at.target > 0, at.policy, np.inf).min(axis=1)
    rarest = int(np.argmin(played))
    M_min: Number = float(at.spread[lowest])
    b_min: Number = float(played[rarest])
    if at.spread[lowest] <= 0.0:
        M_min = Undefined(f"M(s) is 0 in {label(problem, at, lowest)}, from where on no reward varies")
    if played[rarest] <= 0.0:
        b_min = Undefined(f"b_* never takes some action of the target in {label(problem, at, rarest)}")
    log = math.log(S * A * n * (n + 1.0) / problem.delta)
    return Sizes(n, S, A, problem.mdp.horizon, root, float(at.spread.sum()), M_min, b_min, eta, log)


def _lower(problem: Problem, at: Sizes, one: float, presumes: dict[str, bool]) -> LowerBound:
    bandit: Number = Undefined("the model has more than one decision")
    if len(problem.mdp.layers) == 1 and at.S == 1:
        bandit = max(at.A ** (1 / 3), one**2 * at.A ** (2 / 3)) / at.n**1.5
    size = at.S * at.A * at.L**2
    return LowerBound(bandit, max(math.sqrt(size), one**2 * size) / at.n**1.5, presumes)


def _mse_terms(at: Sizes, two: Number) -> list[Term]:
    unsafe: Number = two
    if not isinstance(two, Undefined):
        unsafe = at.root / at.n * (32.0 * at.M * at.L * at.S * at.A**2 + two) ** 2
    return [
        Term("M(s1)^2 / n", at.root / at.n),
        Term("8 A M(s1)^2 / n^2", 8.0 * at.A * at.root / at.n**2),
        Term("16 A^2 M(s1)^2 / n^3", 16.0 * at.A**2 * at.root / at.n**3),
        Term("M(s1)^2 / n (32 M L S A^2 + H2)^2", unsafe),
        Term("2 sum_t (2 eta + 4 eta^2) / n^2", 2.0 * (2.0 * at.eta + 4.0 * at.eta**2) / at.n),
    ]


def _violation_terms(at: Sizes, two: Number) -> list[Term]:
    share: Number = two
    if isinstance(at.M_min, Undefined):
        share = at.M_min
    elif not isinstance(two, Undefined):
        share = two / 2.0 * at.n / at.M_min
    return [Term("H2 n / (2 M_min)", share), Term("16 L S A^2", 16.0 * at.L * at.S * at.A**2)]


def _unknown(at: Sizes, two: Number, power: float) -> Term:
    """The term in which the unknown variances enter."""
    formula = (
        "O((2 eta + 4 eta^2) (L S A^2)^2 H2^2 M^2 sqrt(log(S A n (n+1) / delta)) / "
        f"(b_min^(3/2) n^({'3/2' if power == 1.5 else '1/2'})))"
    )
    for cause in (two, at.b_min):
        if isinstance(cause, Undefined):
            return Term(formula, cause, hidden=True)
    assert not isinstance(two, Undefined)
    assert not isinstance(at.b_min, Undefined)
    top = (2.0 * at.eta + 4.0 * at.eta**2) * (at.L * at.S * at.A**2) ** 2 * two**2 * at.M**2
    return Term(formula, top * math.sqrt(at.log) / (at.b_min**1.5 * at.n**power), hidden=True)


def _sum(*terms: Term) -> Bound:
    total: Number = 0.0
    for term in terms:
        if isinstance(term.value, Undefined):
            return Bound(terms, term.value)
        assert not isinstance(total, Undefined)
        total += term.value
    return Bound(terms, total)


def _over_gap(top: float, gap: Number) -> Number:
    return gap if isinstance(gap, Undefined) else top / gap**2


def _applies_from(problem: Problem, at: Sizes, hard: Hardness) -> Number:
    """The smallest n with n / log(S A n (n+1) / delta) >= 32 (L S A^2)^2 + S A / gap^2 + 1 / (4 H2^2)."""
    spread = _over_gap(float(at.S * at.A), hard.gap)
    if isinstance(spread, Undefined):
        return spread
    if isinstance(hard.two, Undefined):
        return hard.two
    if hard.two == 0.0:
        return Undefined("H*(2) is 0: no action of the target differs from the baseline's in safety")
    wanted = 32.0 * (at.L * at.S * at.A**2) ** 2 + spread + 1.0 / (4.0 * hard.two**2)

    def reaches(n: float) -> bool:
        return n >= wanted * math.log(at.S * at.A * n * (n + 1.0) / problem.delta)

    high = 1.0
    while not reaches(high):
        high *= 2.0
    low = high / 2.0
    while high - low > max(0.5, 1e-12 * high):
        middle = (low + high) / 2.0
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return float(math.ceil(high))
