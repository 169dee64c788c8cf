"""The answer: a value, its standard error, an interval, and how much of the question the data cover."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from saver._types import Floats
from saver.problem import checks

LEVEL = 0.95  # of what engines record
ONCE, ALWAYS, IN_THE_LIMIT = "at one time", "at all times", "at all times, in the limit"


@dataclass(frozen=True)
class Estimate:
    """An estimated value of the target.

    Attributes:
        value: NaN before the first sample.
        stderr: of the noise alone; infinite until every seen pair with weight has two samples, because one
            says nothing of its variance.
        interval: at the level asked for; unbounded while `covered` is below 1, because no data bound the
            mean of a pair that was never seen. Student's, for one look, and approximate. For rewards far from
            normal: ten equal observations of a rare event look like certainty. Under adaptive sampling even
            for normal rewards: visits follow sample variances, so that a pair whose first samples happened to
            agree is left, and believed. At level .95 `saver-opt` covers .91 after 100 and 200 episodes of the
            bandit, .94 after 500, .95 after 5,000 (docs/estimate.md). In groups of at least 100 intervals of
            `saver audit --full`: .92 to .97 for certainty equivalence; down to .44 for importance weights,
            which are heavy-tailed.
        covered: the share of the total weight whose pairs have at least one sample.
        freedom: the degrees of freedom of the interval; infinite where nothing varied, NaN where `stderr` is
            infinite.
        holds: "at one time"; "at all times"; or "at all times, in the limit" of many episodes.
        because: the half-length of the interval by cause: "noise"; "unseen" pairs; at all times also
            "mismatch", where samples were taken in other proportions than their weights were made for.
    """

    value: float
    stderr: float
    interval: tuple[float, float]
    covered: float
    freedom: float = math.nan
    holds: str = ONCE
    because: dict[str, float] = field(default_factory=dict)

    def stretched(self, factor: float) -> Estimate:
        """The same at all times, right in the limit: so many times as wide."""
        low, high = (self.value + factor * (end - self.value) for end in self.interval)
        because = {name: factor * part for name, part in self.because.items()}
        return replace(self, interval=(low, high), holds=IN_THE_LIMIT, because=because)

    def within(self, low: float, high: float, because: dict[str, float]) -> Estimate:
        """The same with an interval that holds at all times; the value is moved into it if it must be."""
        value = min(max(self.value, low), high)
        return replace(self, value=value, interval=(low, high), holds=ALWAYS, because=because)


def from_parts(value: float, parts: Floats, freedom: Floats, covered: float, level: float) -> Estimate:
    """An estimate whose variance is a sum of independent `parts`, each with its degrees of freedom.

    The interval is Student's with the degrees of freedom of Welch and Satterthwaite,
    (sum v)^2 / sum(v^2 / freedom).
    """
    level = checks.between("level", level, 0.0, 1.0, closed=(False, False))
    total = float(np.sum(parts))
    stderr, degrees = math.sqrt(total), _degrees(total, parts, freedom)
    if covered < 1.0 or not math.isfinite(stderr):
        return Estimate(value, stderr, (-math.inf, math.inf), covered, degrees)
    half = float(student(np.array(stderr), np.array(degrees), level))
    return Estimate(value, stderr, (value - half, value + half), covered, degrees)


def nothing_seen(level: float) -> Estimate:
    """The estimate before the first sample."""
    return from_parts(math.nan, np.array([math.inf]), np.ones(1), 0.0, level)


def student(stderr: Floats, freedom: Floats, level: float) -> Floats:
    """Half the length of Student's interval; 0 where nothing varied, infinite where `stderr` is."""
    from scipy.special import ndtri, stdtrit

    bounded, sure = np.isfinite(stderr), np.isinf(freedom)
    degrees = np.where(bounded & ~sure, freedom, 1.0)
    quantile = np.where(sure, ndtri(0.5 + level / 2), stdtrit(degrees, 0.5 + level / 2))
    result: Floats = np.where(bounded, np.where(bounded, stderr, 0.0) * quantile, math.inf)
    return result


def _degrees(total: float, parts: Floats, freedom: Floats) -> float:
    """Welch and Satterthwaite's."""
    if not math.isfinite(total):
        return math.nan
    if total == 0.0:
        return math.inf
    share = parts / total
    known = share > 0
    return 1.0 / float(np.sum(share[known] ** 2 / freedom[known]))
