"""The first-order solver, compiled: from a start and a certificate to better ones.

It minimises, over behaviours b,

    f(b) = sum w(s,a) / N(s,a)   subject to   V_i(b) = sum_t discount^t x_t . c_i >= required_i for all i.

For any prices g >= 0 and any multipliers m_i >= 0, by Cauchy and Schwarz, every feasible flow has

    f >= (sum sqrt(w g))^2 / D,   D = max over all flows of (g . N + sum m_i V_i) - sum m_i required_i.

The prices w / N^2 of the optimum and its multipliers attain it. A pair (g, m) stays a certificate for
whatever w, c and required become, so the best one is kept and carried from solve to solve.

Where moves are learned apart, w, g and N have two halves (see `onward`), and all of this holds as it stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner, jit
from saver.design.multipliers import multiplier_for, multipliers_for
from saver.design.passes import backward, best, forward, magnitudes, objective, prices, roots
from saver.design.rows import tilt
from saver.design.search import (
    BEST,
    BEST_AT,
    BETA,
    BOUND,
    DONE,
    EARNED,
    GOING,
    HELD,
    ITERATION,
    LAST,
    LIMIT,
    MEAN_MULTIPLIER,
    MOMENTUM,
    MULTIPLIER,
    SCALE,
    SLACK,
    STEP,
    WORK,
)
from saver.design.several import combine, mixture, walk_columns, weigh
from saver.design.single import ROUNDING

LOOK, EARLY = 10, 3  # iterations between two looks, and one look before the first of them
NEAR = 10.0  # a limit so many times `settle` above the smallest may still fall below it
FADE = 0.9  # of the scale on which safety is at stake, from one iteration to the next


@jit
def descend(model: Any, search: Any, asked: Any, rules: Any) -> Any:
    """Improve `search` until it is DONE by the rules, or is still GOING at a pause.

    Accelerated multiplicative steps whose multipliers are chosen so that, to first order, the constraints
    hold after the step. The share of the safest behaviour that makes y feasible gives a limit at any time.
    """
    n = search.numbers
    began = n[ITERATION]
    while True:
        if n[WORK] > 0.0:
            move(model, search)
        measure(model, search, asked)
        k = n[ITERATION]
        enough = k >= rules.least
        spent = k >= rules.iterations or (n[WORK] >= rules.work and enough)
        if k % LOOK == 0 or k == EARLY or spent:
            before = n[LIMIT]
            look(model, search, asked, rules.tolerance)
            gap = n[LIMIT] / n[BOUND] - 1.0 if n[BOUND] > 0.0 else np.inf
            if gap < 0.99 * n[BEST]:
                n[BEST], n[BEST_AT] = gap, k
            settled = before - n[LIMIT] < rules.settle * n[LIMIT]
            if search.guards.shape[1] > 1:  # y may still be far from safe, and its limit say nothing
                settled = settled and n[LAST] <= (1.0 + NEAR * rules.settle) * n[LIMIT]
            stalled = k - n[BEST_AT] > rules.stall
            if spent or (enough and (settled or stalled or gap <= rules.tolerance)):
                return DONE
            if k - began >= rules.pause:
                return GOING


@inner
def move(model: Any, search: Any) -> None:
    """The step from y to b, and the momentum with which y will be extrapolated from it."""
    n, guards, multiplier = search.numbers, search.guards, 1.0
    if guards.shape[1] == 1:
        multiplier = guards[MULTIPLIER, 0]
    else:
        combine(search.table, search.stake, guards[MULTIPLIER], search.pull, model.actions)
    if tilt(search.y, search.b, search.push, search.pull, search.weight, multiplier, n[STEP], model.actions):
        n[MOMENTUM] = 1.0
    for i in range(guards.shape[1]):
        guards[SCALE, i] = max(guards[MULTIPLIER, i], FADE * guards[SCALE, i])
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * n[MOMENTUM] ** 2))
    n[BETA] = (n[MOMENTUM] - 1.0) / following
    n[MOMENTUM] = following
    n[ITERATION] += 1.0


@inner
def measure(model: Any, search: Any, asked: Any) -> None:
    """Follow y, price it, and choose the multipliers of its step."""
    n, guards = search.numbers, search.guards
    forward(model, search.b, search.push, n[BETA], search.y, search.mass, search.weight, search.N)
    prices(asked.w, search.N, search.g)
    if guards.shape[1] == 1:
        guards[EARNED, 0], drift, slope = backward(
            model, search.y, search.mass, search.weight, search.g, asked.c[0], guards[SCALE, 0], search.push,
            search.pull,
        )  # fmt: skip
        missing = (asked.aim[0] - guards[EARNED, 0]) / n[STEP] - drift
        guards[MULTIPLIER, 0] = multiplier_for(missing, slope)
    else:
        measure_several(model, search, asked)
    rate = 4.0 / (n[ITERATION] + 4.0)
    for p in range(len(search.g)):
        search.average[p] += rate * (search.g[p] - search.average[p])
    for i in range(guards.shape[1]):
        guards[MEAN_MULTIPLIER, i] += rate * (guards[MULTIPLIER, i] - guards[MEAN_MULTIPLIER, i])
    n[WORK] += model.work


@inner
def measure_several(model: Any, search: Any, asked: Any) -> None:
    """The advantages of y in the prices and all constraints, and the multipliers of its step."""
    guards, (m, columns) = search.guards, (search.guards.shape[1], search.table.shape[1])
    missing, scale, moves = np.empty(m), np.zeros(columns), np.zeros((m, columns))
    scale[1 : m + 1] = guards[SCALE]
    pairs = asked.c.shape[1]
    for p in range(len(search.g)):
        search.earn[p, 0] = search.g[p] if p < pairs else search.g[p] + search.g[p - pairs]
    walk_columns(
        model, search.y, search.mass, search.weight, search.earn, scale, search.table, search.stake,
        guards[EARNED],
    )  # fmt: skip
    weigh(search.y, search.weight, search.table, search.stake, search.push, moves, model.actions)
    for i in range(m):
        missing[i] = (asked.aim[i] - guards[EARNED, i]) / search.numbers[STEP] - moves[i, 0]
    multipliers_for(missing, moves[:, 1 : m + 1], guards[MULTIPLIER])


@inner
def look(model: Any, search: Any, asked: Any, tolerance: float) -> None:
    """The limit of y, kept if it is the smallest, and a better certificate if y or the average has one."""
    n, guards = search.numbers, search.guards
    sizes = magnitudes(asked.required, asked.c, search.N)
    if n[ITERATION] == 0.0 and n[SLACK] > 0.0:
        certify(model, search, asked, search.certificate, guards[HELD].copy(), sizes)
    share, safety = 0.0, 0.0
    for i in range(len(sizes)):
        missing = asked.required[i] - guards[EARNED, i]
        if missing > ROUNDING * sizes[i]:
            room = max(asked.safest_values[i] - guards[EARNED, i], missing)
            share = max(share, min(1.0, missing / room))
        safety = max(safety, guards[MULTIPLIER, i])
    limit = objective(asked.w, search.N, asked.safest, share)
    if n[ITERATION] > 0.0 and safety > 0.0:
        n[STEP] = min(1.0, 1.1 * n[STEP]) if limit <= n[LAST] else max(0.7 * n[STEP], 0.01)
    n[LAST] = limit
    if limit < n[LIMIT]:
        n[LIMIT] = limit
        search.kept[:] = search.y
    if n[LIMIT] > n[BOUND] * (1.0 + tolerance):
        certify(model, search, asked, search.g, guards[MULTIPLIER], sizes)
    if n[LIMIT] > n[BOUND] * (1.0 + tolerance):
        certify(model, search, asked, search.average, guards[MEAN_MULTIPLIER], sizes)


@inner
def certify(model: Any, search: Any, asked: Any, g: Any, multipliers: Any, sizes: Any) -> None:
    """Keep the bound of (g, multipliers), rounded down, if it is the largest."""
    n = search.numbers
    n[WORK] += model.bound_work
    owed, size = 0.0, 0.0
    for i in range(len(multipliers)):
        owed += multipliers[i] * asked.required[i]
        size += multipliers[i] * sizes[i]
    if len(multipliers) == 1:
        top = best(model, g, asked.c[0], multipliers[0], np.empty(0, dtype=np.uint64))
    else:
        mixed = np.zeros(asked.c.shape[1])
        mixture(asked.c, multipliers, mixed)
        top = best(model, g, mixed, 1.0, np.empty(0, dtype=np.uint64))
    slack = top - owed + ROUNDING * (abs(top) + size)
    root = roots(asked.w, g)
    if slack > 0.0 and root * root > n[BOUND] * slack:
        n[BOUND], n[SLACK] = root * root / slack, slack
        search.guards[HELD] = multipliers
        search.certificate[:] = g
