"""The first-order solver, compiled: from a start and a certificate to better ones.

It minimises, over behaviours b,

    f(b) = sum w(s,a) / N(s,a)   subject to   V_c(b) = sum_t discount^t x_t . c >= required.

For any prices g >= 0 and any multiplier m >= 0, by Cauchy and Schwarz, every feasible flow has

    f >= (sum sqrt(w g))^2 / D,   D = max over all flows of (g . N + m V_c) - m required.

The prices w / N^2 of the optimum and its multiplier attain it. A pair (g, m) stays a certificate for whatever
w, c and required become, so the best one is kept and carried from solve to solve.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import inner, jit
from saver._types import Floats
from saver.design.onestate import ROUNDING
from saver.design.passes import backward, best, forward, objective, prices, roots
from saver.design.rows import tilt
from saver.design.unrolled import Unrolled

LOOK, EARLY = 10, 3  # iterations between two looks, and one look before the first of them
LARGEST_MULTIPLIER = 1e30  # where only the safest behaviour will do
FADE = 0.9  # of the scale on which safety is at stake, from one iteration to the next


class Program(NamedTuple):
    """One program: the objective, the constraint, and the visits and the value of the safest behaviour."""

    w: Floats  # [S * A]
    c: Floats  # [S * A]
    required: float
    aim: float  # required, less what is mere rounding: what steps steer for
    safest: Floats  # [S * A]
    safest_value: float


class Search(NamedTuple):
    """What one call of `descend` hands to the next; `numbers` holds the scalars below."""

    b: Floats  # [rows * A], the last plain step
    y: Floats  # the extrapolated point
    push: Floats  # its advantages in the prices; between steps the growth of b
    pull: Floats  # its advantages in the constraint
    kept: Floats  # the y of the smallest limit
    mass: Floats  # [nodes]
    weight: Floats  # [rows]
    N: Floats  # [S * A]
    g: Floats  # prices of y
    average: Floats  # prices, averaged over iterations
    certificate: Floats  # prices of the largest bound
    numbers: Floats

    @classmethod
    def of(cls, model: Unrolled, b: Floats, pairs: int) -> Search:
        """A search that starts at b."""
        numbers = np.zeros(NUMBERS)
        numbers[[MOMENTUM, STEP]], numbers[[LIMIT, LAST, BEST]] = 1.0, np.inf
        b, mass, weight = b.ravel(), np.zeros(len(model.state)), np.zeros(len(model.row_state))
        rows = b.copy(), b.copy(), np.ones(b.size), np.zeros(b.size), b.copy()
        g, average, certificate, N = (np.zeros(pairs) for _ in range(4))
        return cls(*rows, mass, weight, N, g, average, certificate, numbers)


(
    ITERATION,  # how many there were; the next two are of the step to come
    MOMENTUM,
    BETA,
    STEP,
    SCALE,  # the multiplier by which safety at stake is measured
    MULTIPLIER,  # of y
    MEAN_MULTIPLIER,  # averaged like the prices
    EARNED,  # V_c of y
    LAST,  # the limit at the last look
    LIMIT,  # the smallest limit
    BOUND,  # the largest bound, and with its certificate
    HELD,  # its multiplier and
    SLACK,  # its D
    BEST,  # gap that counted as progress, and
    BEST_AT,  # when
    WORK,  # flow updates
    NUMBERS,
) = range(17)

GOING, DONE = 0, 1


class Rules(NamedTuple):
    """When to stop."""

    tolerance: float  # a relative gap
    settle: float  # an improvement of the limit from look to look
    iterations: int
    least: int  # iterations before anything else ends it
    work: float  # flow updates
    stall: int  # iterations in which the gap does not shrink by a hundredth
    pause: int  # iterations after which to hand back, to be called again

    def left(self, iterations: int, work: float, stall: int) -> Rules:
        """What is left of the effort after so much of it."""
        return self._replace(iterations=self.iterations - iterations, work=self.work - work, stall=stall)

    def pausing(self, pause: int) -> Rules:
        """The same with another pause."""
        return self._replace(pause=pause)


@jit
def descend(model: Any, search: Any, asked: Any, rules: Any) -> Any:
    """Improve `search` until it is DONE by the rules, or is still GOING at a pause.

    Accelerated multiplicative steps whose multiplier is chosen so that, to first order, the constraint holds
    after the step. The share of the safest behaviour that makes y feasible gives a limit at any time.
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
            stalled = k - n[BEST_AT] > rules.stall
            if spent or (enough and (settled or stalled or gap <= rules.tolerance)):
                return DONE
            if k - began >= rules.pause:
                return GOING


@inner
def move(model: Any, search: Any) -> None:
    """The step from y to b, and the momentum with which y will be extrapolated from it."""
    n = search.numbers
    if tilt(
        search.y, search.b, search.push, search.pull, search.weight, n[MULTIPLIER], n[STEP], model.actions
    ):
        n[MOMENTUM] = 1.0
    n[SCALE] = max(n[MULTIPLIER], FADE * n[SCALE])
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * n[MOMENTUM] ** 2))
    n[BETA] = (n[MOMENTUM] - 1.0) / following
    n[MOMENTUM] = following
    n[ITERATION] += 1.0


@inner
def measure(model: Any, search: Any, asked: Any) -> None:
    """Follow y, price it, and choose the multiplier of its step."""
    n = search.numbers
    forward(model, search.b, search.push, n[BETA], search.y, search.mass, search.weight, search.N)
    prices(asked.w, search.N, search.g)
    n[EARNED], drift, slope = backward(
        model, search.y, search.mass, search.weight, search.g, asked.c, n[SCALE], search.push, search.pull
    )
    n[MULTIPLIER] = multiplier_for((asked.aim - n[EARNED]) / n[STEP] - drift, slope)
    rate = 4.0 / (n[ITERATION] + 4.0)
    for p in range(len(search.g)):
        search.average[p] += rate * (search.g[p] - search.average[p])
    n[MEAN_MULTIPLIER] += rate * (n[MULTIPLIER] - n[MEAN_MULTIPLIER])
    n[WORK] += model.work


@inner
def multiplier_for(missing: float, slope: float) -> float:
    """The smallest m >= 0 with slope m >= missing."""
    if missing <= 0.0 or slope <= 0.0:
        return 0.0
    return min(missing / slope, LARGEST_MULTIPLIER)


@inner
def look(model: Any, search: Any, asked: Any, tolerance: float) -> None:
    """The limit of y, kept if it is the smallest, and a better certificate if y or the average has one."""
    n = search.numbers
    size = magnitude(asked, search.N)
    if n[ITERATION] == 0.0 and n[SLACK] > 0.0:
        certify(model, search, asked, search.certificate, n[HELD], size)
    missing, share = asked.required - n[EARNED], 0.0
    if missing > ROUNDING * size:
        share = min(1.0, missing / max(asked.safest_value - n[EARNED], missing))
    limit = objective(asked.w, search.N, asked.safest, share)
    if n[ITERATION] > 0.0 and n[MULTIPLIER] > 0.0:
        n[STEP] = min(1.0, 1.1 * n[STEP]) if limit <= n[LAST] else max(0.7 * n[STEP], 0.01)
    n[LAST] = limit
    if limit < n[LIMIT]:
        n[LIMIT] = limit
        search.kept[:] = search.y
    if n[LIMIT] > n[BOUND] * (1.0 + tolerance):
        certify(model, search, asked, search.g, n[MULTIPLIER], size)
    if n[LIMIT] > n[BOUND] * (1.0 + tolerance):
        certify(model, search, asked, search.average, n[MEAN_MULTIPLIER], size)


@inner
def magnitude(asked: Any, N: Any) -> Any:
    """The size of the numbers whose difference the constraint is."""
    total = abs(asked.required)
    for p in range(len(N)):
        total += N[p] * abs(asked.c[p])
    return total


@inner
def certify(model: Any, search: Any, asked: Any, g: Any, multiplier: float, size: float) -> None:
    """Keep the bound of (g, multiplier), rounded down, if it is the largest."""
    n = search.numbers
    n[WORK] += model.bound_work
    top = best(model, g, asked.c, multiplier, np.empty(0, dtype=np.uint64))
    slack = top - multiplier * asked.required + ROUNDING * (abs(top) + multiplier * size)
    root = roots(asked.w, g)
    if slack > 0.0 and root * root > n[BOUND] * slack:
        n[BOUND], n[HELD], n[SLACK] = root * root / slack, multiplier, slack
        search.certificate[:] = g
