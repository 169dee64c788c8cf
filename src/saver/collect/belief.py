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
UNLIKE = 60.0  # a squared distance that counts nothing
LOWEST_QUANTILE = 0.2  # cubed: no variance is raised by more than 125 times


def believed_variance(
    problem: Problem, collector: Collector, known: Knowledge, episodes: int, rewards: Moments
) -> Floats:
    """(sample deviation + bonus width)^2, or the truth where it is known; floored."""
    if known.variance is not None:
        return floored(known.variance)
    believed, caution = np.empty(rewards.mean.shape), float(collector.caution)
    more = extra(problem, collector, episodes)
    believe(rewards.counts, rewards.squares, more, caution, collector.pool, believed)
    return floored(believed)


def extra(problem: Problem, collector: Collector, episodes: int) -> float:
    """What is added to a sample deviation after one sample: bonus widths, half a `reward_scale` of caution.

    The second keeps alive a pair whose samples were all equal, as those of a rare event are.
    """
    widths = collector.bonus * first_width(problem, episodes)
    return float((widths + HALF * collector.caution) * problem.reward_scale)


@jit
def believe(counts: Any, squares: Any, extra: float, caution: float, pool: bool, out: Any) -> None:
    """The believed variance of every pair, before flooring."""
    freedom, top = np.zeros(out.shape), 0.0
    for s in range(out.shape[0]):
        for a in range(out.shape[1]):
            freedom[s, a] = max(counts[s, a] - 1.0, 1.0)
            out[s, a] = squares[s, a] / freedom[s, a]
    if pool:
        average_alike(counts, freedom, out)
    for s in range(out.shape[0]):
        for a in range(out.shape[1]):
            out[s, a] = spread_believed(counts[s, a], out[s, a], freedom[s, a], extra, caution)
            if counts[s, a] >= TRUSTED:
                top = max(top, out[s, a])
    if caution > 0.0:
        for s in range(out.shape[0]):
            for a in range(out.shape[1]):
                if counts[s, a] < TRUSTED:
                    out[s, a] = max(out[s, a], top)


@jit
def average_alike(counts: Any, freedom: Any, variance: Any) -> None:
    """Average each sample variance with those that look alike, and add up their degrees of freedom d.

    Logs of two sample variances of the same variance differ by about sqrt(2/d + 2/d'); z in these units
    counts exp(-z^2 / 4). With many samples only what is alike indeed is averaged. Pairs with fewer than
    TRUSTED samples, or samples that are all equal, stay out of it.
    """
    n, known = 0, np.empty((3, variance.size))
    for s in range(variance.shape[0]):
        for a in range(variance.shape[1]):
            if counts[s, a] >= TRUSTED and variance[s, a] > 0.0:
                known[0, n], known[1, n] = np.log(variance[s, a]), freedom[s, a]
                known[2, n] = freedom[s, a] * variance[s, a]
                n += 1
    for s in range(variance.shape[0]):
        for a in range(variance.shape[1]):
            if counts[s, a] >= TRUSTED and variance[s, a] > 0.0:
                log, own, total, weight = np.log(variance[s, a]), 2.0 / freedom[s, a], 0.0, 0.0
                for i in range(n):
                    apart = (log - known[0, i]) ** 2 / (own + 2.0 / known[1, i])
                    if apart < UNLIKE:
                        share = np.exp(-apart / 4.0)
                        total += share * known[2, i]
                        weight += share * known[1, i]
                variance[s, a], freedom[s, a] = total / weight, weight


@jit
def spread_believed(T: float, variance: float, freedom: float, extra: float, caution: float) -> Any:
    """(sample deviation + extra / sqrt(T))^2, the sample variance first raised by `caution`.

    It is divided by the quantile of chi^2 / d that many standard deviations below the median, d its degrees
    of freedom, after Wilson and Hilferty (1931): (1 - 2/(9 d) - caution sqrt(2/(9 d)))^3.
    """
    if caution > 0.0 and T >= 2.0:
        ninth = 2.0 / (9.0 * freedom)
        quantile = max(1.0 - ninth - caution * np.sqrt(ninth), LOWEST_QUANTILE)
        variance /= quantile * quantile * quantile
    d = np.sqrt(variance) + extra / np.sqrt(max(T, 1.0))
    return d * d


def floored(variance: Floats) -> Floats:
    """No variance below a millionth of the largest."""
    result: Floats = np.maximum(variance, SMALLEST_VARIANCE * variance.max())
    return result
