"""What is kept at a checkpoint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import inner
from saver.engine.kernel.earning import add_up, budget_of
from saver.engine.kernel.forms import (
    CERTAINTY,
    CERTIFIED,
    IMPORTANCE,
    NO_LEDGER,
    P_CEILING,
    P_FLOOR,
    P_VARIANCE,
    R_MEAN,
    R_VARIANCE,
)
from saver.engine.kernel.keeping import COUNT, MEAN, SQUARES
from saver.engine.kernel.weighing import always
from saver.estimate.spread import larger, spread


@inner
def record(scene: Any, rules: Any, sheets: Any, run: Any, out: Any, budget: float) -> None:
    """Write one column of `out`; an estimate with estimated transitions is left to the caller."""
    now, at = run.now, run.now.point
    if rules.ledger == NO_LEDGER:
        add_up(rules, sheets, run)
    out.budget[at] = budget
    earned = now.bound if rules.ledger == CERTIFIED else now.total
    out.ledger[at] = budget_of(rules, now.exact, now.designed, earned)
    out.baseline_share[at] = now.baseline / now.done
    if rules.weighing.wanted:
        always(rules, run, out, at)
    if rules.estimate == CERTAINTY:
        for i in range(len(scene.asked)):
            answer(scene.asked[i], scene.promised, rules.bounded, run.seen, out, i, at)
            out.conditional_mse[i, at] = conditional(scene.asked[i], scene.pairs, run.seen, rules.values[i])
            if rules.weighing.fair:
                fair(scene.asked[i], run.seen, run.scales, scene.promised, rules.bounded, out, i, at)
    if rules.estimate == IMPORTANCE:
        out.stderr[0, at] = out.below[0, at] = out.above[0, at] = np.inf
    if rules.estimate == IMPORTANCE and now.weighted:
        out.estimates[0, at], out.below[0, at], out.above[0, at] = now.weighted_mean, 0.0, 0.0
        if now.weighted_squares > 0.0:
            out.stderr[0, at] = math.sqrt(now.weighted_squares / (now.weighted - 1) / now.weighted)
            out.freedom[0, at] = now.weighted - 1.0


@inner
def fill_of(weights: Any, seen: Any) -> Any:
    """The sum of |c| over the seen pairs, their average, and the sum of c over the others; whether any is."""
    size, total, left, lost = 0.0, 0.0, 0.0, False
    for p in range(len(weights)):
        c = abs(weights[p])
        if seen[p, COUNT] > 0.0:
            size += c
            total += c * seen[p, MEAN]
        elif c != 0.0:
            left += weights[p]
            lost = True
    return size, total / size if size > 0.0 else np.nan, left, lost


@inner
def answer(weights: Any, promised: Any, bounded: bool, seen: Any, out: Any, i: int, at: int) -> None:
    """`weighted`: the estimate, its noise, and what the ranges of pairs never seen add."""
    declared = len(promised) > 0
    size, fill, _, lost = fill_of(weights, seen)
    out.stderr[i, at], out.freedom[i, at] = np.inf, np.nan
    out.below[i, at] = out.above[i, at] = np.inf
    if declared or size > 0.0:
        unseen(weights, promised, seen, fill, out, i, at)
    else:
        out.estimates[i, at] = np.nan
    if declared or (size > 0.0 and not lost):
        out.stderr[i, at], out.freedom[i, at] = uncertainty(weights, promised, bounded, seen)
    if not declared:  # the caller makes an interval of it
        out.anytime_low[i, at] = fewest(weights, seen)


@inner
def fewest(weights: Any, seen: Any) -> float:
    """`fewest_of`: the fewest samples of a pair that has weight; 0 where all samples of one agree."""
    found = np.inf
    for p in range(len(weights)):
        if weights[p] != 0.0:
            found = min(found, seen[p, COUNT] if seen[p, SQUARES] > 0.0 else 0.0)
    return found if found < np.inf else 0.0


@inner
def unseen(weights: Any, promised: Any, seen: Any, fill: float, out: Any, i: int, at: int) -> None:
    """The estimate with a guess for each pair never seen, and how far its range reaches to either side."""
    value, below, above = 0.0, 0.0, 0.0
    for p in range(len(weights)):
        c = weights[p]
        if seen[p, COUNT] > 0.0:
            value += c * seen[p, MEAN]
        elif c != 0.0:
            guess, floor, ceiling = guess_of(promised, fill, p)
            value += c * guess
            below += max(c * (guess - floor), c * (guess - ceiling))
            above += max(c * (ceiling - guess), c * (floor - guess))
    out.estimates[i, at], out.below[i, at], out.above[i, at] = value, below, above


@inner
def guess_of(promised: Any, fill: float, p: int) -> Any:
    """What stands for the mean of a pair never seen, and its range."""
    if not len(promised):
        return fill, -np.inf, np.inf
    floor, ceiling = promised[p, P_FLOOR], promised[p, P_CEILING]
    return (floor + ceiling) / 2.0 if np.isnan(fill) else min(max(fill, floor), ceiling), floor, ceiling


@inner
def fair(
    weights: Any, seen: Any, scales: Any, promised: Any, bounded: bool, out: Any, i: int, at: int
) -> None:
    """`by_weights`: the estimate by the weights of asking, and its standard error."""
    out.fair[i, at], out.fair_stderr[i, at] = out.estimates[i, at], out.stderr[i, at]
    all_weighed, all_asked = 0.0, 0.0
    for p in range(len(weights)):
        all_weighed += abs(scales.V[i, p])
        all_asked += abs(weights[p])
    if all_weighed == 0.0:
        return
    m, more, squares = all_weighed / all_asked, scales.drawn[i], 0.0
    for p in range(len(weights)):
        T, V = seen[p, COUNT], scales.V[i, p]
        if T > 0.0:
            rest = weights[p] - V / m
            more -= V * seen[p, MEAN]
            variance = spread(
                T, seen[p, MEAN], seen[p, SQUARES], promised[p, P_VARIANCE], promised[p, P_FLOOR],
                promised[p, P_CEILING], bounded, np.inf,
            )[0]  # fmt: skip
            share = scales.Q[i, p] / m**2 + 2.0 * rest / T * V / m + rest**2 / T
            squares += variance * max(share, 0.0)
    out.fair[i, at] += more / m
    out.fair_stderr[i, at] = math.sqrt(squares)


@inner
def uncertainty(weights: Any, promised: Any, bounded: bool, seen: Any) -> Any:
    """The standard error and its degrees of freedom: see `from_parts`."""
    wide, floor, ceiling, known = 0.0, -np.inf, np.inf, np.inf
    if not len(promised):
        wide, known = 0.0, 1.0
        for p in range(len(weights)):
            wide, known = larger(seen[p, COUNT], seen[p, SQUARES], wide, known)
        wide = wide if wide > 0.0 else np.inf
    total, squares = 0.0, 0.0
    for p in range(len(weights)):
        c, T = weights[p], seen[p, COUNT]
        if c != 0.0 and T > 0.0:
            if len(promised):
                wide, floor, ceiling = promised[p, P_VARIANCE], promised[p, P_FLOOR], promised[p, P_CEILING]
            variance, freedom = spread(
                T, seen[p, MEAN], seen[p, SQUARES], wide, floor, ceiling, bounded, known
            )
            part = c * c * variance / T
            total += part
            squares += part * part / freedom
    if not np.isfinite(total):
        return np.inf, np.nan
    return math.sqrt(total), total * total / squares if squares > 0.0 else np.inf


@inner
def conditional(weights: Any, pairs: Any, seen: Any, value: float) -> Any:
    """`Truth.conditional_mse`."""
    size, _, left, _ = fill_of(weights, seen)
    if size == 0.0:
        return np.nan
    noise, mean = 0.0, 0.0
    for p in range(len(weights)):
        if seen[p, COUNT] > 0.0:
            c = weights[p] + left * abs(weights[p]) / size
            noise += c * c * pairs[p, R_VARIANCE] / seen[p, COUNT]
            mean += c * pairs[p, R_MEAN]
    return noise + (mean - value) ** 2
