"""Weights of rewards and the interval at all times: `Anytime` for trials told at once, on plain arrays.

Weights change now and then only. In between, all that is needed is what the moments have grown by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.engine.kernel.memory import COUNT, MEAN, SQUARES
from saver.estimate.sequence import noise_bound, renewed, reward_ends, side, steer


@inlined
def fold(own: Any, now: Any, seen: Any, scales: Any) -> None:
    """Take in what was seen since the last time, by the weights of then."""
    weighed, noise = now.weighed, now.weighed_noise
    for p in range(len(seen)):
        T, mean = seen[p, COUNT], seen[p, MEAN]
        more = T - scales.T[p]
        if more > 0.0:
            w, total = scales.w[p], T * mean
            scales.W[p] += w * more
            weighed += w * (total - scales.total[p])
            if own.bands.bounded:
                guess = scales.guess[p]
                about = seen[p, SQUARES] + T * (mean - guess) ** 2
                if scales.T[p] > 0.0:
                    before = scales.total[p] / scales.T[p]
                    about -= scales.squares[p] + scales.T[p] * (before - guess) ** 2
                noise += w * w * max(about, 0.0)
                scales.squares[p] = seen[p, SQUARES]
            else:
                noise += (w * own.steering.scale[p]) ** 2 * more
            scales.T[p], scales.total[p] = T, total
    now.weighed, now.weighed_noise = weighed, noise


@inlined
def weigh(rules: Any, run: Any, number: int) -> None:
    """New weights, from trial `number` on."""
    own, now, scales = rules.weighing, run.now, run.scales
    fold(own, now, run.seen, scales)
    counted = now.done if rules.learn_from_baseline else now.done - now.baseline
    steer(float(counted), scales.T, scales.W, own.steering, scales.w)
    if own.bands.bounded:
        for p in range(len(scales.T)):
            middle = (own.floor[p] + own.ceiling[p]) / 2
            scales.guess[p] = (scales.total[p] + middle) / (scales.T[p] + 1.0)
    now.next_weights = renewed(number)


@inner
def always(own: Any, now: Any, seen: Any, scales: Any) -> Any:
    """The interval at all times."""
    fold(own, now, seen, scales)
    n = len(seen)
    c, lower, upper = own.steering.c, np.empty(n), np.empty(n)
    reward_ends(
        scales.T, scales.total, np.zeros(n), own.steering, own.floor, own.ceiling, own.bands, lower, upper
    )
    u = noise_bound(now.weighed_noise, own.bands)
    low = side(now.weighed, u, c, scales.W, lower, upper, 1.0)[0]
    return low, -side(now.weighed, u, c, scales.W, lower, upper, -1.0)[0]
