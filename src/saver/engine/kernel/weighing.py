"""Weights of rewards and the interval at all times: `Anytime` for trials told at once, on plain arrays.

Weights change now and then only. In between, all that is needed is what the moments have grown by. There is
one row of weights for each answer. A weight depends on nothing but its own pair and on how many episodes
there were, so it is made when its pair is first met again: most are not, where there are many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.engine.kernel.keeping import COUNT, MEAN, SQUARES
from saver.estimate.sequence import Bands, Steering, noise_bound, renewed, reward_ends, side, spent, steered


@inlined
def fold(rules: Any, run: Any) -> None:
    """Take in what was seen since the last time, by the weights of then."""
    own, scales = rules.weighing, run.scales
    for p in range(len(run.seen)):
        T = run.seen[p, COUNT]
        more = T - scales.T[p]
        if more == 0.0:
            continue  # nothing is added to any sum
        if scales.made[p] != run.now.next_weights:
            remake(rules, run, p)
        mean = run.seen[p, MEAN]
        total, about = T * mean, own.scale[p] * own.scale[p] * more
        if own.bounded:
            guess = scales.guess[p]
            about = run.seen[p, SQUARES] + T * (mean - guess) ** 2
            if scales.T[p] > 0.0:
                before = scales.total[p] / scales.T[p]
                about -= scales.squares[p] + scales.T[p] * (before - guess) ** 2
            about, scales.squares[p] = max(about, 0.0), run.seen[p, SQUARES]
        added = total - scales.total[p]
        scales.T[p], scales.total[p] = T, total
        for i in range(len(own.c)):
            w = scales.w[i, p]
            scales.W[i, p] += w * more
            scales.gained[i] += w * added
            scales.noise[i] += w * w * about
        for i in range(len(scales.V)):
            v = scales.v[i, p]
            scales.V[i, p] += v * more
            scales.Q[i, p] += v * v * more
            scales.drawn[i] += v * added


@inlined
def remake(rules: Any, run: Any, p: int) -> None:
    """The weights of a pair, from what was seen of it until they changed, which is what was taken in."""
    own, scales, n = rules.weighing, run.scales, run.now.weighed
    for i in range(len(own.c)):
        numbers = Steering(own.c[i], own.usual, own.scale, own.span, own.cap[i])
        scales.w[i, p] = steered(n, scales.T[p], scales.W[i, p], numbers, p)
        if own.fair:
            scales.v[i, p] = spent(n, float(rules.episodes), scales.T[p], scales.V[i, p], numbers, p)
    if own.bounded:
        middle = (own.floor[p] + own.ceiling[p]) / 2
        scales.guess[p] = (scales.total[p] + middle) / (scales.T[p] + 1.0)
    scales.made[p] = run.now.next_weights


@inlined
def weigh(rules: Any, run: Any, number: int) -> None:
    """New weights, from trial `number` on."""
    fold(rules, run)
    run.now.weighed, run.now.next_weights = counted(rules, run), renewed(number)


@inlined
def counted(rules: Any, run: Any) -> Any:
    """Episodes that the estimate counts."""
    return float(run.now.done if rules.learn_from_baseline else run.now.done - run.now.baseline)


@inner
def always(rules: Any, run: Any, out: Any, at: int) -> None:
    """The intervals at all times."""
    fold(rules, run)
    own, scales, n = rules.weighing, run.scales, len(run.seen)
    lower, upper = np.empty(n), np.empty(n)
    for i in range(len(own.c)):
        c, W, gained = own.c[i], scales.W[i], scales.gained[i]
        numbers = Steering(c, own.usual, own.scale, own.span, own.cap[i])
        bands = Bands(own.level, own.rho[i], own.rates[i], own.costs[i], own.bounded, own.box, own.log_pairs)
        reward_ends(scales.T, scales.total, np.zeros(n), numbers, own.floor, own.ceiling, bands, lower, upper)
        u = noise_bound(scales.noise[i], bands)
        out.anytime_low[i, at] = side(gained, u, c, W, lower, upper, 1.0)[0]
        out.anytime_high[i, at] = -side(gained, u, c, W, lower, upper, -1.0)[0]
