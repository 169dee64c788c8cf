"""What returns say beside what the model explains of them: a capital that bets on their rests.

A trial of policy b is asked with a table m(s,a) within the range of observations, which may depend on all
that was told before. B is the range of a return, and

    y = sum discount^t (C_t - m(s_t,a_t)) / B >= -1,        E y = (V(b) - V(b; m)) / B.

With L = sum log(1 + lambda y) for each of some fixed rates 0 < lambda < 1, at all times at once (step 6 of
docs/proof/bounded.md): sum V >= sum V(b; m) + B `fewest_gains`(L).

Of a hidden trial y >= -`depth` and V(b) <= V(b; ceiling): its factor is at least 1 - lambda depth, and
V(b; ceiling - m) is taken from the sum. With -y in the place of y it is the bound from above.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief
from saver._types import Floats
from saver.kernels.bounds.noise import FASTEST, LIKELY, RATES, ROUNDS, SLOWEST

CLOSE = 1e-12  # the log of the average at the root
RENEWED = 1.1  # m is made anew when the trials asked have grown by this factor
QUARTER = 0.25  # of an observation of coins: rests that agree are no certainty


class Capital(NamedTuple):
    """The numbers of `fewest_gains`, fixed before the first episode."""

    rates: Floats  # lambda
    weights: Floats  # logs, the level included

    @classmethod
    def of(cls, level: float, episodes: float, steps: float = 1.0) -> Capital:
        """Tightest after about so many episodes, of so many steps that are alike.

        The fastest rates are for steps that vary independently, which make a sum vary sqrt(steps) times less
        than its range; the slowest for steps that vary together.
        """
        apart = (FASTEST / SLOWEST) ** (1.0 / (RATES - 1))
        more = round(math.log(math.sqrt(steps)) / math.log(apart))
        unit = math.sqrt(2.0 * math.log(1.0 / level) / episodes)
        x = unit * np.geomspace(SLOWEST, FASTEST * math.sqrt(steps), RATES + more)
        likely = np.concatenate([np.ones(more), LIKELY])
        return cls(x / (1.0 + x), np.log(level * likely / np.sum(likely)))


@brief
def fewest_gains(logs: Any, rates: Any, weights: Any) -> float:
    """The root in E of "average over the rates of exp(L - lambda E) = 1 / level", from below.

    The log of the average is convex and falls in E: from the left Newton's steps never pass the root.
    """
    E = -np.inf
    for i in range(len(rates)):
        E = max(E, (logs[i] + weights[i]) / rates[i])
    for _ in range(ROUNDS):
        top, total, slope = -np.inf, 0.0, 0.0
        for i in range(len(rates)):
            top = max(top, weights[i] + logs[i] - rates[i] * E)
        for i in range(len(rates)):
            part = math.exp(weights[i] + logs[i] - rates[i] * E - top)
            total += part
            slope += part * rates[i]
        height = top + math.log(total)
        if height <= CLOSE:
            break
        E += height * total / slope
    return E


@brief
def bet(logs: Any, rates: Any, y: float) -> None:
    """Add log(1 + lambda y) of a trial."""
    for i in range(len(rates)):
        logs[i] += math.log1p(rates[i] * y)


@brief
def owe(logs: Any, rates: Any, Q: float, R: float) -> None:
    """Take off what rests cost that were compared with an average, not with a table: see `excess`."""
    for i in range(len(rates)):
        psi = -math.log1p(-rates[i]) - rates[i]
        logs[i] -= rates[i] * rates[i] / 2.0 * (Q - R) + psi * R


@brief
def spent(rates: Any, weights: Any, Q: float) -> float:
    """How far `fewest_gains` is below sum y if sum y^2 is Q, to second order."""
    return -fewest_gains(-rates * rates * Q / 2.0, rates, weights)


@brief
def control(counts: Any, mean: Any, squares: Any, low: float, high: float, usual: float, m: Any) -> None:
    """m, [pairs]: the mean of each pair, shrunk to that of all as far as pairs may not differ at all.

    All means are taken to [0, 1], where mu = (usual + sum C) / (1 + N) is the mean of all. Within pairs the
    variance is W, and between them tau^2 = (sum n (mean - C/N)^2 - (k - 1) W - W sqrt(2 (k - 1))) /
    (N - sum n^2 / N), k pairs seen: by one standard deviation less than what was seen of it. With kappa =
    W / tau^2 a pair with n samples has m = (n mean + kappa mu) / (n + kappa); mu where tau^2 is not above 0.
    """
    span = high - low
    N, total, within, free, alike, k = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(len(counts)):
        n = float(counts[p])
        if n > 0.0:
            N += n
            total += n * ((mean[p] - low) / span)
            within += squares[p] / (span * span)
            free += n - 1.0
            alike += n * n
            k += 1.0
    mu, kappa = (usual + total) / (1.0 + N), np.inf
    if k >= 2.0 and free >= 1.0:
        W, between = max(within, QUARTER) / free, 0.0
        for p in range(len(counts)):
            if counts[p] > 0:
                apart = (mean[p] - low) / span - total / N
                between += counts[p] * (apart * apart)
        rest = between - (k - 1.0) * W - W * math.sqrt(2.0 * (k - 1.0))
        kappa = W * (N - alike / N) / rest if rest > 0.0 else np.inf
    for p in range(len(counts)):
        n = float(counts[p])
        found = mu
        if n > 0.0 and kappa < np.inf:
            found = (n * ((mean[p] - low) / span) + kappa * mu) / (n + kappa)
        m[p] = low + span * min(max(found, 0.0), 1.0)
