"""What is believed about reward variances while they are being learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import jit
from saver._types import Floats
from saver.collect.collectors import Collector
from saver.collect.knowledge import Knowledge
from saver.problem.moments import Moments
from saver.problem.statement import Problem
from saver.safety.widths import first_width

SMALLEST_VARIANCE = 1e-6  # of the largest
TRUSTED = 4  # samples; two that happen to agree would starve a pair for thousands of episodes
HALF = 0.5
LOWEST_QUANTILE = 0.2  # cubed: no variance is raised by more than 125 times


def believed_variance(
    problem: Problem, collector: Collector, known: Knowledge, episodes: int, rewards: Moments
) -> Floats:
    """(sample deviation + bonus width)^2, or the truth where it is known; floored."""
    if known.variance is not None:
        return floored(known.variance)
    believed, caution = np.empty(rewards.mean.shape), float(collector.caution)
    believe(rewards.counts, rewards.squares, extra(problem, collector, episodes), caution, believed)
    return floored(believed)


def extra(problem: Problem, collector: Collector, episodes: int) -> float:
    """What is added to a sample deviation after one sample: bonus widths, half a `reward_scale` of caution.

    The second keeps alive a pair whose samples were all equal, as those of a rare event are.
    """
    widths = collector.bonus * first_width(problem, episodes)
    return float((widths + HALF * collector.caution) * problem.reward_scale)


@jit
def believe(counts: Any, squares: Any, extra: float, caution: float, out: Any) -> None:
    """The believed variance of every pair, before flooring."""
    top = 0.0
    for s in range(out.shape[0]):
        for a in range(out.shape[1]):
            out[s, a] = spread_believed(counts[s, a], squares[s, a], extra, caution)
            if counts[s, a] >= TRUSTED:
                top = max(top, out[s, a])
    if caution > 0.0:
        for s in range(out.shape[0]):
            for a in range(out.shape[1]):
                if counts[s, a] < TRUSTED:
                    out[s, a] = max(out[s, a], top)


@jit
def spread_believed(T: float, squares: float, extra: float, caution: float) -> Any:
    """(sample deviation + extra / sqrt(T))^2, the sample variance first raised by `caution`.

    It is divided by the quantile of chi^2 / (T - 1) that many standard deviations below the median, after
    Wilson and Hilferty (1931): (1 - 2/(9 (T-1)) - caution sqrt(2/(9 (T-1))))^3.
    """
    variance = squares / max(T - 1.0, 1.0)
    if caution > 0.0 and T >= 2.0:
        ninth = 2.0 / (9.0 * (T - 1.0))
        quantile = max(1.0 - ninth - caution * np.sqrt(ninth), LOWEST_QUANTILE)
        variance /= quantile * quantile * quantile
    d = np.sqrt(variance) + extra / np.sqrt(max(T, 1.0))
    return d * d


def floored(variance: Floats) -> Floats:
    """No variance below a millionth of the largest."""
    result: Floats = np.maximum(variance, SMALLEST_VARIANCE * variance.max())
    return result
