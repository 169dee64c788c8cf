"""Weights of rewards and the interval at all times: `Anytime` for trials told at once, on plain arrays.

Weights change now and then only. In between, all that is needed is what the moments have grown by. There is
one row of weights for each answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.engine.kernel.memory import COUNT, MEAN, SQUARES
from saver.estimate.sequence import Bands, Steering, noise_bound, renewed, reward_ends, side, spend, steer


@inlined
def fold(own: Any, seen: Any, scales: Any) -> None:
    """Take in what was seen since the last time, by the weights of then."""
    for p in range(len(seen)):
        T, mean = seen[p, COUNT], seen[p, MEAN]
        more, total = T - scales.T[p], T * mean
        about = own.scale[p] * own.scale[p] * more
        if own.bounded and more > 0.0:
            guess = scales.guess[p]
            about = seen[p, SQUARES] + T * (mean - guess) ** 2
            if scales.T[p] > 0.0:
                before = scales.total[p] / scales.T[p]
                about -= scales.squares[p] + scales.T[p] * (before - guess) ** 2
            about, scales.squares[p] = max(about, 0.0), seen[p, SQUARES]
        scales.more[p], scales.added[p], scales.about[p] = more, total - scales.total[p], about
        scales.T[p], scales.total[p] = T, total
    for i in range(len(own.c)):
        gained, noise = scales.gained[i], scales.noise[i]
        for p in range(len(seen)):
            w = scales.w[i, p]
            scales.W[i, p] += w * scales.more[p]
            gained += w * scales.added[p]
            noise += w * w * scales.about[p]
        scales.gained[i], scales.noise[i] = gained, noise
    for i in range(len(scales.V)):
        for p in range(len(seen)):
            v = scales.v[i, p]
            scales.V[i, p] += v * scales.more[p]
            scales.Q[i, p] += v * v * scales.more[p]
            scales.drawn[i] += v * scales.added[p]


@inlined
def weigh(rules: Any, run: Any, number: int) -> None:
    """New weights, from trial `number` on."""
    own, scales = rules.weighing, run.scales
    fold(own, run.seen, scales)
    for i in range(len(own.c)):
        numbers = Steering(own.c[i], own.usual, own.scale, own.span, own.cap[i])
        steer(counted(rules, run), scales.T, scales.W[i], numbers, scales.w[i])
        if own.fair:
            spend(counted(rules, run), float(rules.episodes), scales.T, scales.V[i], numbers, scales.v[i])
    if own.bounded:
        for p in range(len(scales.T)):
            middle = (own.floor[p] + own.ceiling[p]) / 2
            scales.guess[p] = (scales.total[p] + middle) / (scales.T[p] + 1.0)
    run.now.next_weights = renewed(number)


@inlined
def counted(rules: Any, run: Any) -> Any:
    """Episodes that the estimate counts."""
    return float(run.now.done if rules.learn_from_baseline else run.now.done - run.now.baseline)


@inner
def always(own: Any, seen: Any, scales: Any, out: Any, at: int) -> None:
    """The intervals at all times."""
    fold(own, seen, scales)
    n = len(seen)
    lower, upper = np.empty(n), np.empty(n)
    for i in range(len(own.c)):
        c, W, gained = own.c[i], scales.W[i], scales.gained[i]
        numbers = Steering(c, own.usual, own.scale, own.span, own.cap[i])
        bands = Bands(own.level, own.rho[i], own.rates[i], own.costs[i], own.bounded, own.box, own.log_pairs)
        reward_ends(scales.T, scales.total, np.zeros(n), numbers, own.floor, own.ceiling, bands, lower, upper)
        u = noise_bound(scales.noise[i], bands)
        out.anytime_low[i, at] = side(gained, u, c, W, lower, upper, 1.0)[0]
        out.anytime_high[i, at] = -side(gained, u, c, W, lower, upper, -1.0)[0]
