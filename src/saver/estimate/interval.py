"""The answer: a value, its standard error, an interval, and how much of the question the data cover."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.problem import checks

LEVEL = 0.95  # of what engines record
ONCE, ALWAYS, IN_THE_LIMIT = "at one time", "at all times", "at all times, in the limit"
DECLARE = (
    "say Problem(reward=saver.Bounded(low, high)) if every reward lies in [low, high], or "
    "saver.SubGaussian(scale, floor, ceiling) if its noise is at most as wide as normal noise of that scale "
    "and means lie in [floor, ceiling]; saver.data.fit proposes one from a log (Fitted.proposed_reward)"
)


@dataclass(frozen=True)
class Estimate:
    """An estimated value of the target.

    Attributes:
        value: the best guess; NaN before the first sample, unless rewards are declared.
        stderr: of the noise of what was seen, as the interval believes it: see `saver.kernels.bounds.spread`.
        interval: (value - below - half, value + above + half), half being Student's for `stderr`; for one
            look at a moment chosen beforehand. Unbounded where a pair that has weight was never seen and
            nothing is declared about rewards, because nothing bounds its mean. How often it holds is measured
            in docs/estimate.md. For importance weights, which are heavy-tailed, it is often too short.
        covered: the share of the total weight whose pairs have at least one sample.
        freedom: the degrees of freedom of `half`; infinite where nothing varied, NaN where `stderr` is
            infinite.
        below: how far the value may be too high because of what was never seen, by the declared ranges.
        above: how far it may be too low.
        unseen: the pairs (state, action) that have weight and were never seen.
        reasons: why the interval is as wide as it is, one sentence each.
        holds: "at one time"; "at all times"; or "at all times, in the limit" of many episodes.
        fewest: the fewest samples of a pair that has weight; 0 where all samples of one agree.
    """

    value: float
    stderr: float
    interval: tuple[float, float]
    covered: float
    freedom: float = math.nan
    below: float = 0.0
    above: float = 0.0
    unseen: tuple[tuple[int, int], ...] = ()
    reasons: tuple[str, ...] = ()
    holds: str = ONCE
    fewest: int = 0

    def stretched(self, factor: float) -> Estimate:
        """The same at all times, right in the limit: so many times as wide."""
        low, high = (self.value + factor * (end - self.value) for end in self.interval)
        reasons = (*self.reasons, f"for all looks, in the limit: {factor:.3g} times as wide as for one")
        return replace(self, interval=(low, high), holds=IN_THE_LIMIT, reasons=reasons)

    def unstarted(self, reason: str) -> Estimate:
        """The same before there is an interval at all times."""
        return replace(self, interval=(-math.inf, math.inf), holds=IN_THE_LIMIT, reasons=(reason,))

    def always(self, low: float, high: float, noise: float, mismatch: float, unseen: float) -> Estimate:
        """The same with an interval for all times, in which the value is moved if it is not."""
        halves = {
            "noise, at all times": noise,
            "plan mismatch, left to what is known of each pair": mismatch,
            "pairs never seen, by their declared ranges": unseen,
        }
        reasons = tuple(f"{why}: {half:.3g} to either side" for why, half in halves.items() if half > 0.0)
        value = min(max(self.value, low), high)
        return replace(self, value=value, interval=(low, high), holds=ALWAYS, reasons=reasons)


class Missing(NamedTuple):
    """What the pairs never seen may add to an interval, and other reasons for its width."""

    below: float = 0.0
    above: float = 0.0
    unseen: tuple[tuple[int, int], ...] = ()
    reasons: tuple[str, ...] = ()
    fewest: int = 0


SEEN = Missing()  # nothing is


def from_parts(
    value: float, parts: Floats, freedom: Floats, covered: float, level: float, missing: Missing = SEEN
) -> Estimate:
    """An estimate whose variance is a sum of independent `parts`, each with its degrees of freedom.

    Half of the interval is Student's with the degrees of freedom of Welch and Satterthwaite,
    (sum v)^2 / sum(v^2 / freedom).
    """
    level = checks.between("level", level, 0.0, 1.0, closed=(False, False))
    total = float(np.sum(parts))
    stderr, degrees = math.sqrt(total), _degrees(total, parts, freedom)
    half = float(student(np.array(stderr), np.array(degrees), level))
    interval = (value - missing.below - half, value + missing.above + half)
    if not math.isfinite(interval[1] - interval[0]):
        interval = (-math.inf, math.inf)
    noise = f"noise of what was seen: {half:.3g} to either side"
    reasons = (noise, *missing.reasons) if math.isfinite(half) else missing.reasons
    return Estimate(
        value, stderr, interval, covered, degrees, missing.below, missing.above, missing.unseen, reasons,
        fewest=missing.fewest,
    )  # fmt: skip


def nothing_seen(level: float, unseen: tuple[tuple[int, int], ...] = ()) -> Estimate:
    """The estimate before the first sample."""
    missing = Missing(math.inf, math.inf, unseen, ("nothing that has weight was seen",))
    return from_parts(math.nan, np.array([math.inf]), np.ones(1), 0.0, level, missing)


def student(stderr: Floats, freedom: Floats, level: float) -> Floats:
    """Half the length of Student's interval; 0 where nothing varied, infinite where `stderr` is."""
    from scipy.special import ndtri, stdtrit

    bounded, sure = np.isfinite(stderr), np.isinf(freedom)
    degrees = np.where(bounded & ~sure, freedom, 1.0)
    quantile = np.where(sure, ndtri(0.5 + level / 2), stdtrit(degrees, 0.5 + level / 2))
    return np.where(bounded, np.where(bounded, stderr, 0.0) * quantile, math.inf)


def _degrees(total: float, parts: Floats, freedom: Floats) -> float:
    """Welch and Satterthwaite's."""
    if not math.isfinite(total):
        return math.nan
    if total == 0.0:
        return math.inf
    share = parts / total
    known = share > 0
    rate = float(np.sum(share[known] ** 2 / freedom[known]))
    return 1.0 / rate if rate > 0.0 else math.inf
