"""How fast the regret of a collector falls, measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Collector
from saver.design import exact
from saver.engine import simulate
from saver.errors import InvalidProblem
from saver.problem import checks
from saver.problem.seeds import child_seed
from saver.problem.world import Scenario

BUDGETS = (4000, 8000, 16000, 32000, 64000, 128000)
ROUNDING = 1e-12  # relative
AGAINST = ("safe", "unconstrained")


@dataclass(frozen=True, eq=False)
class RegretRate:
    """regret ~ K^exponent.

    Attributes:
        exponent: of the fitted power law.
        interval: its confidence interval at `level`.
        level: of the interval.
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
    if against not in AGAINST:
        raise InvalidProblem(f"against is {against!r}; it must be one of {', '.join(AGAINST)}")
    level = checks.between("level", level, 0.0, 1.0, closed=(False, False))
    if not isinstance(budgets, Sequence | np.ndarray):
        raise InvalidProblem(f"budgets is {budgets!r}; it must be a list of numbers of episodes")
    sizes = np.unique([checks.whole("budgets", K, 1) for K in budgets]).astype(np.int64)
    if len(sizes) < 3:
        raise InvalidProblem(f"budgets holds {len(sizes)} different numbers; a fit needs at least 3")
    checks.whole("runs", runs, 2)
    world = scenario.world
    mean = scenario.constraint_mean if against == "safe" else None
    best = exact(scenario.problem, world.reward.variance, mean)
    regret, stderr = np.zeros(len(sizes)), np.zeros(len(sizes))
    for i, K in enumerate(sizes):
        found = simulate(
            scenario,
            collector,
            episodes=int(K),
            runs=runs,
            seed=child_seed(seed, i),
            checkpoints=[],
            threads=threads,
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
    centre = np.sum(w * x) / np.sum(w)
    spread = np.sum(w * (x - centre) ** 2)
    slope = float(np.sum(w * (x - centre) * y) / spread)
    left = y - np.sum(w * y) / np.sum(w) - slope * (x - centre)
    free = len(x) - 2
    misfit = float(np.sum(w * left**2) / free)
    half = float(stdtrit(free, 0.5 + level / 2)) * math.sqrt(max(1.0, misfit) / spread)
    interval = (slope - half, slope + half)
    return RegretRate(slope, interval, level, budgets, regret, stderr, limit, gap, misfit)
