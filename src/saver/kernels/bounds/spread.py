"""The variance of a pair's rewards that an interval at one time believes.

For a pair with T samples of variance s^2

    variance = (T s^2 + 4 d^2) / (T + 3),

as if four more rewards had been seen, each as far from the mean as may be declared of one:

- `SubGaussian`: d = scale, but no more than the samples allow: d^2 <= s^2 / q(T), where q is the quantile of
  chi^2 / (T - 1) two standard deviations below the median, after Wilson and Hilferty (1931). Equal samples
  are not normal and allow what is declared.
- `Bounded`: two of the four at either end, 2 d^2 = (mean - low)^2 + (high - mean)^2, as Agresti and Coull
  (1998) do for a coin: equal samples of a rare event then do not look like certainty.
- nothing declared: the largest sample variance among the pairs seen twice or more stands in for scale^2, and
  likewise. Where all samples of every pair agree there is none: 0 is no variance, and nothing is known.

A pair seen once has s = 0, and what is declared counts alone (scale^2, also where rewards are bounded). Why
is said in docs/estimate.md.

The degrees of freedom are Satterthwaite's for the sum of T s^2, which has T - 1, and 4 d^2, which has as many
as were used to find d: none limit what is declared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import inner, jit
from saver._types import Floats
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments
from saver.problem.promise import Bounded, SubGaussian

Promised = SubGaussian | Bounded | None  # of rewards
ADDED = 4.0  # observations
ERRORS = 2.0  # standard errors by which a sample variance may be too low
LOWEST = 0.2  # the cube root of a quantile below which samples allow any variance


class Declared(NamedTuple):
    """What is promised about the rewards of each pair, [S, A] each; `freedom` is that of `variance`.

    Where nothing is promised the range is infinite and the variance, else scale^2, the largest that was seen.
    """

    variance: Floats
    floor: Floats
    ceiling: Floats
    bounded: bool
    freedom: float
    promised: bool

    @classmethod
    def of(cls, mdp: Mdp, reward: Promised, rewards: Moments) -> Declared:
        """What a promise says, or, without one, what was seen."""
        if reward is not None:
            tables = reward.tables(mdp)
            bounded = isinstance(reward, Bounded)
            return cls(tables.scale**2, tables.floor, tables.ceiling, bounded, np.inf, True)
        shape = rewards.mean.shape
        counts, squares = rewards.counts.ravel().astype(float), rewards.squares.ravel()
        variance, freedom = stand_in(counts, squares)
        far = np.full(shape, np.inf)
        return cls(np.full(shape, variance), -far, far, False, freedom, False)


@jit
def stand_in(counts: Any, squares: Any) -> Any:
    """The largest sample variance of pairs seen twice or more, and its freedom; infinite if it is 0."""
    top, freedom = 0.0, 1.0
    for p in range(len(counts)):
        top, freedom = larger(counts[p], squares[p], top, freedom)
    return top if top > 0.0 else np.inf, freedom


@inner
def larger(T: float, squares: float, top: float, freedom: float) -> Any:
    """The larger of a sample variance and `top`, with its freedom."""
    if T >= 2.0 and squares / (T - 1.0) > top:
        return squares / (T - 1.0), T - 1.0
    return top, freedom


@jit
def spread(
    T: float, mean: float, squares: float, wide: float, floor: float, ceiling: float, bounded: bool,
    freedom: float,
) -> Any:  # fmt: skip
    """The believed variance of a pair with T >= 1 samples, and its degrees of freedom; `wide` is scale^2."""
    if T < 2.0:
        return wide, freedom
    own = squares / (T - 1.0)
    if bounded:
        wide = ((mean - floor) * (mean - floor) + (ceiling - mean) * (ceiling - mean)) / 2.0
    else:
        ninth = 2.0 / (9.0 * (T - 1.0))
        root = 1.0 - ninth - ERRORS * np.sqrt(ninth)
        most = own / (root * root * root)
        if root > LOWEST and most <= wide and own > 0.0:
            wide, freedom = most, 0.0  # all of it is from these samples
        elif own >= wide and freedom != np.inf:
            freedom = 0.0
    seen, added = T * own, ADDED * wide
    variance = (seen + added) / (T + ADDED - 1.0)
    if not np.isfinite(variance):
        return variance, freedom
    if freedom == 0.0:
        return variance, T - 1.0
    noise = seen * seen / (T - 1.0) + added * added / freedom
    return variance, (seen + added) * (seen + added) / noise if noise > 0.0 else np.inf


@jit
def spreads(
    counts: Any, mean: Any, squares: Any, wide: Any, floor: Any, ceiling: Any, bounded: bool,
    freedom: float, variances: Any, freedoms: Any,
) -> None:  # fmt: skip
    """`spread` of many pairs that were seen, written to the last two."""
    for p in range(len(counts)):
        variances[p], freedoms[p] = spread(
            counts[p], mean[p], squares[p], wide[p], floor[p], ceiling[p], bounded, freedom
        )
