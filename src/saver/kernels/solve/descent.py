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
from saver.kernels.solve.columns import combine, walk_columns, weigh
from saver.kernels.solve.mixing import missing_share, sizes_of
from saver.kernels.solve.onestate import ROUNDING
from saver.kernels.solve.passes import (
    backward_nodes,
    best,
    forward_nodes,
    magnitudes,
    mirror_step,
    objective,
    prices,
    roots,
)
from saver.kernels.solve.phases import backward_phases, forward_phases
from saver.kernels.solve.search import DONE, EARNED, GOING, HELD, MEAN_MULTIPLIER, MULTIPLIER, SCALE, Program

LARGEST_MULTIPLIER = 1e30  # where only the safest behaviour will do
RIDGE = 1e-3  # of the diagonal, around the multipliers of the last step
SWEEPS = 300  # most steps settle in a few
SETTLED = 1e-6  # a change that is too small to matter, of the largest


@inner
def multiplier_for(missing: float, slope: float) -> float:
    """The smallest m >= 0 with slope m >= missing."""
    if missing <= 0.0 or slope <= 0.0:
        return 0.0
    return min(missing / slope, LARGEST_MULTIPLIER)


@jit
def multipliers_for(missing: Any, slope: Any, found: Any) -> None:
    """Nonnegative least squares: found >= 0, slope found >= missing, equal where found > 0.

    Coordinate by coordinate from the last step's multipliers, and with a ridge around them: nearly parallel
    guardrails share what is missing as they did before, instead of pulling against each other without end;
    where the multipliers rest the ridge changes nothing.
    """
    m = len(found)
    last = found.copy()
    for _ in range(SWEEPS):
        change, size = 0.0, 0.0
        for i in range(m):
            if slope[i, i] <= 0.0:
                found[i] = 0.0
                continue
            rest = missing[i] + RIDGE * slope[i, i] * last[i]
            for k in range(m):
                if k != i:
                    rest -= slope[i, k] * found[k]
            new = min(max(rest / ((1.0 + RIDGE) * slope[i, i]), 0.0), LARGEST_MULTIPLIER)
            root = np.sqrt(slope[i, i])
            change, size = max(change, root * abs(new - found[i])), max(size, root * new)
            found[i] = new
        if change <= SETTLED * size:
            break


@jit
def forward(model: Any, b: Any, ratio: Any, beta: float, y: Any, mass: Any, weight: Any, N: Any) -> None:
    """Extrapolate b into y and follow y: fill the mass of nodes, the weight of rows and the visits N."""
    if len(model.phase) > 1:
        forward_phases(model, b, ratio, beta, y, mass, weight, N)
    else:
        forward_nodes(model, b, ratio, beta, y, mass, N)
        weight[:] = mass


@jit
def backward(
    model: Any, y: Any, mass: Any, weight: Any, g: Any, c: Any, scale: float, push: Any, pull: Any
) -> Any:
    """Fill the advantages of g and c under y, in each row's unit (see `advantages`).

    Return V_c and how it moves, to first order, in the step of `mirror_step`: by the gains, and per unit of
    multiplier.
    """
    if len(model.phase) > 1:
        return backward_phases(model, y, mass, weight, g, c, scale, push, pull)
    return backward_nodes(model, y, mass, g, c, scale, push, pull)


LOOK, EARLY = 10, 3  # iterations between two looks, and one look before the first of them
NEAR = 10.0  # a limit so many times `settle` above the smallest may still fall below it
FADE = 0.9  # of the scale on which safety is at stake, from one iteration to the next


@jit
def descend(model: Any, search: Any, posed: Any, rules: Any) -> Any:
    """Improve `search` until it is DONE by the rules, or is still GOING at a pause.

    Accelerated multiplicative steps whose multipliers are chosen so that, to first order, the constraints
    hold after the step. The share of the safest behaviour that makes y feasible gives a limit at any time.
    """
    n, asked = search.numbers[0], program_of(posed)
    began = n.iteration
    while True:
        if n.work > 0.0:
            move(model, search)
        measure(model, search, asked)
        k = n.iteration
        enough = k >= rules.least
        spent = k >= rules.iterations or (n.work >= rules.work and enough)
        if k % LOOK == 0 or k == EARLY or spent:
            before = n.limit
            look(model, search, asked, rules.tolerance)
            gap = n.limit / n.bound - 1.0 if n.bound > 0.0 else np.inf
            if gap < 0.99 * n.best:
                n.best, n.best_at = gap, k
            settled = before - n.limit < rules.settle * n.limit
            if search.rails.shape[1] > 1:  # y may still be far from safe, and its limit say nothing
                settled = settled and n.last <= (1.0 + NEAR * rules.settle) * n.limit
            stalled = k - n.best_at > rules.stall
            if spent or (enough and (settled or stalled or gap <= rules.tolerance)):
                return DONE
            if k - began >= rules.pause:
                return GOING


@inner
def program_of(asked: Any) -> Any:
    """`Posed` as a search reads it; steps aim a little lower than what is required, by mere rounding."""
    aim = asked.required - ROUNDING * sizes_of(asked, asked.safest_visits)
    w, c = asked.w.ravel() / asked.w.max(), asked.steer.reshape((len(asked.steer), -1))
    return Program(w, c, asked.required, aim, asked.safest_visits.ravel(), asked.safest_values)


@inner
def move(model: Any, search: Any) -> None:
    """The step from y to b, and the momentum with which y will be extrapolated from it."""
    n, rails, multiplier = search.numbers[0], search.rails, 1.0
    if search.table.size == 0:
        multiplier = rails[MULTIPLIER, 0]
    else:
        combine(search.table, search.stake, rails[MULTIPLIER], search.pull, model.actions)
    if mirror_step(
        search.y, search.b, search.push, search.pull, search.weight, multiplier, n.step, model.actions
    ):
        n.momentum = 1.0
    for i in range(rails.shape[1]):
        rails[SCALE, i] = max(rails[MULTIPLIER, i], FADE * rails[SCALE, i])
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * n.momentum**2))
    n.beta = (n.momentum - 1.0) / following
    n.momentum = following
    n.iteration += 1.0


@inner
def measure(model: Any, search: Any, asked: Any) -> None:
    """Follow y, price it, and choose the multipliers of its step."""
    n, rails = search.numbers[0], search.rails
    forward(model, search.b, search.push, n.beta, search.y, search.mass, search.weight, search.N)
    prices(asked.w, search.N, search.g)
    if search.table.size == 0:
        rails[EARNED, 0], drift, slope = backward(
            model, search.y, search.mass, search.weight, search.g, asked.c[0], rails[SCALE, 0], search.push,
            search.pull,
        )  # fmt: skip
        missing = (asked.aim[0] - rails[EARNED, 0]) / n.step - drift
        rails[MULTIPLIER, 0] = multiplier_for(missing, slope)
    else:
        measure_several(model, search, asked)
    rate = 4.0 / (n.iteration + 4.0)
    for p in range(len(search.g)):
        search.average[p] += rate * (search.g[p] - search.average[p])
    for i in range(rails.shape[1]):
        rails[MEAN_MULTIPLIER, i] += rate * (rails[MULTIPLIER, i] - rails[MEAN_MULTIPLIER, i])
    n.work += model.work


@inner
def measure_several(model: Any, search: Any, asked: Any) -> None:
    """The advantages of y in the prices and all constraints, and the multipliers of its step."""
    rails, (m, columns) = search.rails, (search.rails.shape[1], search.table.shape[1])
    missing, scale, moves = np.empty(m), np.zeros(columns), np.zeros((m, columns))
    scale[1 : m + 1] = rails[SCALE]
    pairs = asked.c.shape[1]
    for p in range(len(search.g)):
        search.earn[p, 0] = search.g[p] if p < pairs else search.g[p] + search.g[p - pairs]
    walk_columns(
        model, search.y, search.mass, search.weight, search.earn, scale, search.table, search.stake,
        rails[EARNED],
    )  # fmt: skip
    weigh(search.y, search.weight, search.table, search.stake, search.push, moves, model.actions)
    for i in range(m):
        missing[i] = (asked.aim[i] - rails[EARNED, i]) / search.numbers[0].step - moves[i, 0]
    multipliers_for(missing, moves[:, 1 : m + 1], rails[MULTIPLIER])


@inner
def look(model: Any, search: Any, asked: Any, tolerance: float) -> None:
    """The limit of y, kept if it is the smallest, and a better certificate if y or the average has one."""
    n, rails = search.numbers[0], search.rails
    sizes = magnitudes(asked.required, asked.c, search.N)
    if n.iteration == 0.0 and n.slack > 0.0:
        certify(model, search, asked, search.certificate, rails[HELD].copy(), sizes)
    share, safety = missing_share(asked, rails[EARNED], ROUNDING * sizes), 0.0
    for i in range(len(sizes)):
        safety = max(safety, rails[MULTIPLIER, i])
    limit = objective(asked.w, search.N, asked.safest, share)
    if n.iteration > 0.0 and safety > 0.0:
        n.step = min(1.0, 1.1 * n.step) if limit <= n.last else max(0.7 * n.step, 0.01)
    n.last = limit
    if limit < n.limit:
        n.limit = limit
        search.kept[:] = search.y
    if n.limit > n.bound * (1.0 + tolerance):
        certify(model, search, asked, search.g, rails[MULTIPLIER], sizes)
    if n.limit > n.bound * (1.0 + tolerance):
        certify(model, search, asked, search.average, rails[MEAN_MULTIPLIER], sizes)


@inner
def certify(model: Any, search: Any, asked: Any, g: Any, multipliers: Any, sizes: Any) -> None:
    """Keep the bound of (g, multipliers), rounded down, if it is the largest."""
    n = search.numbers[0]
    n.work += model.bound_work
    owed, size = 0.0, 0.0
    for i in range(len(multipliers)):
        owed += multipliers[i] * asked.required[i]
        size += multipliers[i] * sizes[i]
    if len(multipliers) == 1:
        top = best(model, g, asked.c[0], multipliers[0], np.empty(0, dtype=np.uint64))
    else:
        mixed = np.zeros(asked.c.shape[1])
        for i in range(len(multipliers)):
            for p in range(len(mixed)):
                mixed[p] += multipliers[i] * asked.c[i, p]
        top = best(model, g, mixed, 1.0, np.empty(0, dtype=np.uint64))
    slack = top - owed + ROUNDING * (abs(top) + size)
    root = roots(asked.w, g)
    if slack > 0.0 and root * root > n.bound * slack:
        n.bound, n.slack = root * root / slack, slack
        search.rails[HELD] = multipliers
        search.certificate[:] = g
