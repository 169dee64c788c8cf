"""From what was seen to what is believed, and to what a plan is asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import jit, loop
from saver.kernels.solve.interior import one_decision
from saver.kernels.solve.onestate import under_one

SMALLEST_VARIANCE = 1e-6  # of the largest
TRUSTED = 4  # samples; two that happen to agree would starve a pair for thousands of episodes
HALF = 0.5
LOWEST_QUANTILE = 0.2  # cubed: no variance is raised by more than 125 times


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


GAP, SETTLED = 0.002, 0.0005  # a replan stops at such a gap, or when ten iterations improve it by less
QUOTA = 2e6  # flow updates of a replan, about 40 ms
NEVER = 2.0**60  # the number of an episode that does not come
QUARTER = 0.25
UNNEEDED = 3  # of `needed_pairs`: never
NEGLIGIBLE = 0.01  # share of the mean squared error
ROOM = 1e-3  # kept below the best value that is believed attainable


@jit
def need(c: Any, episodes: int, needed: Any) -> None:
    """`needed_pairs`, the lightest first."""
    most, total = NEGLIGIBLE * np.sum(c) / episodes, 0.0
    for p in np.argsort(c, kind="mergesort"):
        total += c[p]
        half = 2 if total * total <= most else 1
        needed[p] = half if c[p] > 0 else UNNEEDED


@jit
def next_plan(number: int, replan: float) -> int:
    """The episode at which the plan of episode `number` is replaced."""
    return max(number + 1, math.ceil(min(number * replan, NEVER)))


@jit
def attainable(required: float, paced: float, top: float) -> float:
    """What to ask of a design: the pace, or what is required if the pace would cost too much.

    A pace that takes more than a quarter of what the best behaviour could earn above the requirement is left
    to baseline episodes. Always a little below the best that is believed attainable.
    """
    wanted = paced if paced <= required + QUARTER * max(top - required, 0.0) else required
    return min(wanted, top - ROOM * abs(top))


@jit
def one_row(w: Any, means: Any, allowed: Any, required: Any, paced: Any, several: Any) -> Any:
    """The exact design of the only decision, [A]; means are [rails, A].

    `several` is None or True: one guardrail alone takes a sixth of the time to compile.
    """
    wanted = np.empty(len(required))
    for i in range(len(required)):
        wanted[i] = attainable(required[i], paced[i], highest(means[i], allowed))
    if several is None:
        return under_one(w, means[0], allowed, wanted[0])
    return one_decision(w, means, allowed, wanted)


@jit
def highest(mean: Any, allowed: Any) -> float:
    """The most that an allowed action earns."""
    top = -np.inf
    for a in range(len(mean)):
        if allowed[a]:
            top = max(top, mean[a])
    return top


HOPE = 8.0  # visits after which hardly more is hoped of a constraint mean than was seen
CREDIBLE = 8.0  # visits after which half of what is believed of a pair is its own
LEAST_PRICE = 1e-6  # of a price, in units of what a pair of as many visits has


@jit
def average(mean: Any, counts: Any, size: Any) -> Any:
    """The average reward of the seen, by weight: what stands for a pair never seen."""
    total, earned = 0.0, 0.0
    for s in range(size.shape[0]):
        for a in range(size.shape[1]):
            if counts[s, a] > 0:
                total += size[s, a]
                earned += size[s, a] * mean[s, a]
    return earned / total if total > 0.0 else 0.0


@jit
def hope(mean: Any, counts: Any, floor: float, ceiling: float) -> Any:
    """`hoped`, of one guardrail."""
    found = np.empty(mean.shape)
    for s in range(mean.shape[0]):
        for a in range(mean.shape[1]):
            share = HOPE / (counts[s, a] + HOPE)
            seen = mean[s, a] if counts[s, a] > 0 else ceiling
            found[s, a] = min(seen + (ceiling - floor) / 2.0 * (share * share), ceiling)
    return found


@jit
def tried(policy: Any, usual: Any, counts: Any) -> None:
    """Follow what is usual, [L, S, A], where a pair was seen seldom: less with every visit, up to CREDIBLE.

    A plan may put all of a pair's visits into steps that few episodes reach, in truth fewer than it believes.
    """
    for t in range(policy.shape[0]):
        for s in range(policy.shape[1]):
            total = 0.0
            for a in range(policy.shape[2]):
                share = max(1.0 - counts[s, a] / CREDIBLE, 0.0)
                policy[t, s, a] = (1.0 - share) * policy[t, s, a] + share * usual[t, s, a]
                total += policy[t, s, a]
            for a in range(policy.shape[2] if total > 0.0 else 0):
                policy[t, s, a] /= total


@jit
def shrunk(price: Any, usual: Any, counts: Any) -> Any:
    """Prices of pairs seen seldom, drawn to those at which the target's own visits are the best.

    Visits x are the best for prices that are proportional to x^2. So each price over x^2 is averaged with the
    mean of all, which counts as CREDIBLE visits: the design leaves the target as it learns why.
    """
    own, found, total, weighed = np.zeros(price.shape), np.zeros(price.shape), 0.0, 0.0
    for s in range(price.shape[0]):
        for a in range(price.shape[1]):
            if usual[s, a] > 0.0:
                own[s, a] = price[s, a] / (usual[s, a] * usual[s, a])
                total += counts[s, a]
                weighed += counts[s, a] * own[s, a]
    common = max(weighed / total, 0.0) if total > 0.0 else 1.0
    for s in range(price.shape[0]):
        for a in range(price.shape[1]):
            believed = (counts[s, a] * own[s, a] + CREDIBLE * common) / (counts[s, a] + CREDIBLE)
            found[s, a] = usual[s, a] * usual[s, a] * max(believed, LEAST_PRICE * common)
    return found


@loop
def spread_over(
    nodes: Any, states: Any, pi: Any, variance: Any, factor: Any, beyond: Any, spread: Any, policy: Any
) -> None:
    """For each of `states`, in this order, the terms pi sqrt(factor variance + discount^2 sum P beyond^2).

    Their sum goes to `spread`, their shares to `policy`: the target's row where all are 0. On a tree `beyond`
    is `spread` itself, and children come before their parents.
    """
    A = pi.shape[1]
    for s in states:
        total = 0.0
        for a in range(A):
            ahead = 0.0
            for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                ahead += nodes.data[e] * (beyond[nodes.indices[e]] * beyond[nodes.indices[e]])
            policy[s, a] = pi[s, a] * np.sqrt(
                variance[s, a] * factor[s, a] + nodes.discount * nodes.discount * ahead
            )
            total += policy[s, a]
        spread[s] = total
        for a in range(A):
            policy[s, a] = policy[s, a] / total if total > 0.0 else pi[s, a]
