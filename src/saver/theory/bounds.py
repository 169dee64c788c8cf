"""Theorem 1, Theorem 2 and the oracle's Proposition 2, term by term; how fast regret falls, measured.

Constants are those of the formal statements, and 1 where O(.) or Omega(.) hides them. n = K L samples, S the
states in which some behaviour can act, A the actions, eta the largest mean in magnitude. Theorem 2 and
Proposition 2 are for trees; on graphs M is Algorithm 2's B, and the numbers prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Collector
from saver.design import exact
from saver.engine import simulate
from saver.errors import InvalidProblem
from saver.problem import Scenario, checks
from saver.theory.hardness import Hardness, Nodewise, Number, Undefined

SMALLEST_DEVIATION = 1.0 / 16.0  # that Theorem 1 presumes
BUDGETS = (4000, 8000, 16000, 32000, 64000, 128000)
ROUNDING = 1e-12  # relative
AGAINST = ("safe", "unconstrained")


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

    @classmethod
    def of(cls, *terms: Term) -> Bound:
        return cls(terms, reduce(add, (term.value for term in terms)))


@dataclass(frozen=True)
class LowerBound:
    """Theorem 1: no safe algorithm has a smaller regret on every problem, up to a hidden constant."""

    bandit: Number  # max{A^(1/3), H1^2 A^(2/3)} / n^(3/2), no case of the other: exponents of A differ
    mdp: float  # max{sqrt(S A L^2), H1^2 S A L^2} / n^(3/2)
    presumes: dict[str, bool]  # what the theorem assumes, and whether it is so here


@dataclass(frozen=True)
class Bounds:
    """All bounds at one budget: Theorem 1, Theorem 2, Proposition 2; and from how many samples on.

    The last two are stated from the smallest n on with
    n / log(S A n (n + 1) / delta) >= 32 (L S A^2)^2 + S A / gap^2 + 1 / (4 H2^2).
    """

    lower: LowerBound
    saver_mse: Bound
    saver_violations: Bound  # episodes whose believed budget is below 0
    oracle_mse: Bound
    oracle_violations: Bound
    applies_from: Number
    exploration: Number  # n_x of Corollary 4, in samples


def bounds(
    at: Nodewise, hard: Hardness, delta: float, samples: int, variance: Floats, eta: float, tractable: bool
) -> Bounds:
    """Every bound with a budget of `samples`, from what the nodes and the hardness parameters say."""
    n, S, A, L = float(samples), len(np.unique(at.state)), at.mdp.actions, at.mdp.horizon
    two, gap, root, M = hard.two, hard.gap, at.root, float(at.spread.sum())
    size, means = L * S * A**2, 2.0 * eta + 4.0 * eta**2
    M_min = _least(at, at.spread, "M(s) is 0 in {}, from where on no reward varies")
    shares = np.where(at.target > 0, at.policy, np.inf).min(axis=1)
    b_min = _least(at, shares, "b_* never takes some action of the target in {}")

    def log(m: float) -> float:
        return math.log(S * A * m * (m + 1.0) / delta)

    mse = (
        Term("M(s1)^2 / n", root / n),
        Term("8 A M(s1)^2 / n^2", 8.0 * A * root / n**2),
        Term("16 A^2 M(s1)^2 / n^3", 16.0 * A**2 * root / n**3),
        Term("M(s1)^2 / n (32 M L S A^2 + H2)^2", root / n * (32.0 * M * L * S * A**2 + two) ** 2),
        Term("2 sum_t (2 eta + 4 eta^2) / n^2", 2.0 * means / n),
    )
    violations = (
        Term("H2 n / (2 M_min)", M_min if isinstance(M_min, Undefined) else two / 2.0 * n / M_min),
        Term("16 L S A^2", 16.0 * L * S * A**2),
    )
    form = "O((2 eta + 4 eta^2) (L S A^2)^2 H2^2 M^2 sqrt(log(S A n (n+1) / delta)) / (b_min^(3/2) n^({})))"
    unknown = means * size**2 * two**2 * M**2 * math.sqrt(log(n))  # the term of the unknown variances
    varies = Term(form.format("3/2"), unknown / (b_min**1.5 * n**1.5), hidden=True)
    varies_too = Term(form.format("1/2"), unknown / (b_min**1.5 * n**0.5), hidden=True)
    if two == 0.0:
        two = Undefined("H*(2) is 0: no action of the target differs from the baseline's in safety")
    return Bounds(
        lower=_lower(at, hard.one, n, variance, tractable),
        saver_mse=Bound.of(*mse, varies),
        saver_violations=Bound.of(*violations, varies_too),
        oracle_mse=Bound.of(*mse, Term("2 / n", 2.0 / n)),
        oracle_violations=Bound.of(*violations),
        applies_from=_first(32.0 * size**2 + S * A / gap**2 + 1.0 / (4.0 * two**2), log),
        exploration=S * A * log(n) / gap**2,
    )


def _lower(at: Nodewise, one: float, n: float, variance: Floats, tractable: bool) -> LowerBound:
    """Theorem 1, where H*(1) is `one`."""
    S, A, L = len(np.unique(at.state)), at.mdp.actions, at.mdp.horizon
    bandit: Number = Undefined("the model has more than one decision")
    if len(at.mdp.layers) == 1 and S == 1:
        bandit = max(A ** (1 / 3), one**2 * A ** (2 / 3)) / n**1.5
    even = at.allowed / at.allowed.sum(axis=1, keepdims=True)
    loud = np.sqrt(variance[at.state][at.allowed]) >= SMALLEST_DEVIATION
    presumes = {
        "the target takes every action alike": bool(np.allclose(at.target, even, atol=1e-9)),
        "every deviation is at least 1/16": bool(loud.all()),
        "the problem is tractable, as printed": tractable,
    }
    return LowerBound(bandit, max(math.sqrt(S * A * L**2), one**2 * (S * A * L**2)) / n**1.5, presumes)


def _least(at: Nodewise, values: Floats, because: str) -> Number:
    """The smallest of some node values, if it is positive."""
    node = int(np.argmin(values))
    return float(values[node]) if values[node] > 0.0 else Undefined(because.format(at.label(node)))


def _first(wanted: Number, log: Callable[[float], float]) -> Number:
    """The smallest n with n / log(n) >= wanted."""
    if isinstance(wanted, Undefined):
        return wanted
    high = 1.0
    while high < wanted * log(high):
        high *= 2.0
    low = high / 2.0
    while high - low > max(0.5, 1e-12 * high):
        middle = (low + high) / 2.0
        low, high = (low, middle) if middle >= wanted * log(middle) else (middle, high)
    return float(math.ceil(high))


# -- how fast the regret of a collector falls, measured --


@dataclass(frozen=True, eq=False)
class RegretRate:
    """regret ~ K^exponent.

    Attributes:
        exponent: of the fitted power law; `interval` is its confidence interval at `level`.
        budgets: the numbers of episodes, [B].
        regret: mean conditional_mse - limit / K, [B].
        stderr: of each regret, [B].
        limit: of the optimum that the regret is against, and `gap`, how far it may be from optimal.
        misfit: the mean squared residual in units of the standard errors; far above 1 the points do not lie
            on one power law. Where it is above 1 it widens the interval.
    """

    exponent: float
    interval: tuple[float, float]
    level: float
    budgets: Ints
    regret: Floats
    stderr: Floats
    limit: float
    gap: float
    misfit: float


def regret_rate(
    scenario: Scenario,
    collector: Collector | str = "saver-opt",
    *,
    budgets: Sequence[int] = BUDGETS,
    runs: int = 400,
    against: str = "safe",
    level: float = 0.95,
    seed: int | np.random.SeedSequence = 0,
    threads: int | None = None,
) -> RegretRate:
    """Simulate campaigns of each budget, apart from each other, and fit a line to log regret over log K.

    The regret is against the exact design, "safe" or "unconstrained". The fit weighs each budget by the
    inverse variance of its log regret; the interval is Student's with two degrees of freedom fewer than
    budgets. It is for the slope over these budgets: where terms of lower order still count, the slope there
    is not yet the one in the limit. n = K L, so that the exponent in samples is the same.
    """
    checks.kind("scenario", scenario, Scenario)
    checks.choice("against", against, AGAINST)
    level = checks.between("level", level, 0.0, 1.0, closed=(False, False))
    if not isinstance(budgets, Sequence | np.ndarray):
        raise InvalidProblem(f"budgets is {budgets!r}; it must be a list of numbers of episodes")
    sizes = np.unique([checks.whole("budgets", K, 1) for K in budgets]).astype(np.int64)
    if len(sizes) < 3:
        raise InvalidProblem(f"budgets holds {len(sizes)} different numbers; a fit needs at least 3")
    checks.whole("runs", runs, 2)
    mean = scenario.constraint_mean if against == "safe" else None
    best = exact(scenario.problem, scenario.world.reward.variance, mean)
    regret, stderr = np.zeros((2, len(sizes)))
    for i, K in enumerate(sizes):
        child = checks.child_seed(seed, i)
        found = simulate(
            scenario, collector, episodes=int(K), runs=runs, seed=child, checkpoints=[], threads=threads
        )
        errors = found.conditional_mse[:, -1]
        if np.isnan(errors).any():
            raise InvalidProblem(
                f"collector {collector!r} has no conditional mean squared error; use one with "
                "estimate='certainty'"
            )
        regret[i], stderr[i] = errors.mean() - best.limit / K, errors.std(ddof=1) / math.sqrt(runs)
    return _fit(sizes, regret, stderr, best.limit, best.gap, level)


def _fit(budgets: Ints, regret: Floats, stderr: Floats, limit: float, gap: float, level: float) -> RegretRate:
    from scipy.special import stdtrit

    noise = 2.0 * stderr + (gap + ROUNDING) * limit / budgets
    if len(lost := np.flatnonzero(regret <= noise)):
        i = int(lost[0])
        remedy = "give more runs or smaller budgets, unless it has none"
        if regret[i] < -noise[i]:
            remedy = (
                "the collector is not bound by safety (then use against='unconstrained') or has not seen "
                "every pair (then use larger budgets)"
            )
        raise InvalidProblem(
            f"the regret at {budgets[i]} episodes is {regret[i]:.3g} +- {stderr[i]:.1g}, not above 0 beyond "
            f"chance and rounding: {remedy}"
        )
    x, y, w = np.log(budgets), np.log(regret), (regret / np.maximum(stderr, 1e-300 + 1e-6 * regret)) ** 2
    centre, middle = np.average(x, weights=w), np.average(y, weights=w)
    spread = np.sum(w * (x - centre) ** 2)
    slope = float(np.sum(w * (x - centre) * y) / spread)
    left = y - middle - slope * (x - centre)
    free = len(x) - 2
    misfit = float(np.sum(w * left**2) / free)
    half = float(stdtrit(free, 0.5 + level / 2)) * math.sqrt(max(1.0, misfit) / spread)
    interval = (slope - half, slope + half)
    return RegretRate(slope, interval, level, budgets, regret, stderr, limit, gap, misfit)
