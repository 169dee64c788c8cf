"""Weights of rewards and the interval at all times: `Anytime` for trials told at once, on plain arrays.

Weights change now and then only. In between, all that is needed is what the moments have grown by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner
from saver.engine.kernel.memory import COUNT, MEAN, SQUARES
from saver.estimate.sequence import noise_bound, renewed, reward_ends, side, steer


@inner
def fold(rules: Any, run: Any) -> None:
    """Take in what was seen since the last time, by the weights of then."""
    now, seen, scales = run.now, run.seen, run.scales
    for p in range(len(seen)):
        T, mean, squares = seen[p, COUNT], seen[p, MEAN], seen[p, SQUARES]
        more = T - scales.T[p]
        if more > 0.0:
            w, total = scales.w[p], T * mean
            scales.W[p] += w * more
            now.weighed += w * (total - scales.total[p])
            if rules.weighing.bands.bounded:
                guess = scales.guess[p]
                about = squares + T * (mean - guess) ** 2
                if scales.T[p] > 0.0:
                    before = scales.total[p] / scales.T[p]
                    about -= scales.squares[p] + scales.T[p] * (before - guess) ** 2
                now.weighed_noise += w * w * max(about, 0.0)
            else:
                now.weighed_noise += (w * rules.weighing.steering.scale[p]) ** 2 * more
            scales.T[p], scales.total[p], scales.squares[p] = T, total, squares


@inner
def weigh(rules: Any, run: Any, number: int) -> None:
    """New weights, from trial `number` on."""
    fold(rules, run)
    now, scales = run.now, run.scales
    counted = now.done if rules.learn_from_baseline else now.done - now.baseline
    steer(float(counted), scales.T, scales.W, rules.weighing.steering, scales.w)
    if rules.weighing.bands.bounded:
        for p in range(len(scales.T)):
            middle = (rules.weighing.floor[p] + rules.weighing.ceiling[p]) / 2
            scales.guess[p] = (scales.total[p] + middle) / (scales.T[p] + 1.0)
    now.next_weights = renewed(number)


@inner
def always(rules: Any, run: Any) -> Any:
    """The interval at all times."""
    fold(rules, run)
    own, scales, n = rules.weighing, run.scales, len(run.seen)
    c, lower, upper = own.steering.c, np.empty(n), np.empty(n)
    reward_ends(
        scales.T, scales.total, np.zeros(n), own.steering, own.floor, own.ceiling, own.bands, lower, upper
    )
    u = noise_bound(run.now.weighed_noise, own.bands)
    low = side(run.now.weighed, u, c, scales.W, lower, upper, 1.0)[0]
    return low, -side(run.now.weighed, u, c, scales.W, lower, upper, -1.0)[0]
