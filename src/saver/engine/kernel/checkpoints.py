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
    WEIGHT,
)
from saver.engine.kernel.memory import COUNT, MEAN, SQUARES
from saver.engine.kernel.weighing import always
from saver.estimate.spread import larger, spread

ALMOST = math.nextafter(1.0, 0.0)


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
        out.anytime_low[at], out.anytime_high[at] = always(rules.weighing, run.now, run.seen, run.scales)
    if rules.estimate == CERTAINTY:
        answer(scene.pairs, scene.promised, rules.bounded, run.seen, out, at)
        out.conditional_mse[at] = conditional(scene.pairs, run.seen, rules.value)
    if rules.estimate == IMPORTANCE:
        out.stderr[at] = out.below[at] = out.above[at] = np.inf
    if rules.estimate == IMPORTANCE and now.weighted:
        out.estimates[at], out.below[at], out.above[at] = now.weighted_mean, 0.0, 0.0
        if now.weighted > 1:
            spread = now.weighted_squares / (now.weighted - 1) / now.weighted
            out.stderr[at] = math.sqrt(spread)
            out.freedom[at] = now.weighted - 1.0 if spread > 0.0 else np.inf


@inner
def share_seen(pairs: Any, seen: Any) -> Any:
    """`covered_share`."""
    total, found, missing = 0.0, 0.0, False
    for p in range(len(pairs)):
        total += pairs[p, WEIGHT]
        if seen[p, COUNT] > 0.0:
            found += pairs[p, WEIGHT]
        elif pairs[p, WEIGHT] != 0.0:
            missing = True
    return min(found / total, ALMOST) if missing else 1.0


@inner
def certain(pairs: Any, seen: Any, means: Any, column: int) -> Any:
    """sum c mean over the seen pairs, divided by the share of the weight they cover."""
    covered, total = share_seen(pairs, seen), 0.0
    if covered == 0.0:
        return np.nan
    for p in range(len(pairs)):
        if seen[p, COUNT] > 0.0:
            total += pairs[p, WEIGHT] / covered * means[p, column]
    return total


@inner
def answer(pairs: Any, promised: Any, bounded: bool, seen: Any, out: Any, at: int) -> None:
    """`certainty`: the estimate, its noise, and what the ranges of pairs never seen add."""
    declared, fill, size, lost = len(promised) > 0, 0.0, 0.0, False
    for p in range(len(pairs)):
        c = abs(pairs[p, WEIGHT])
        if seen[p, COUNT] > 0.0:
            size += c
            fill += c * seen[p, MEAN]
        elif c != 0.0:
            lost = True
    fill = fill / size if size > 0.0 else np.nan
    out.stderr[at], out.freedom[at], out.below[at], out.above[at] = np.inf, np.nan, np.inf, np.inf
    out.estimates[at] = fill if declared or size == 0.0 else certain(pairs, seen, seen, MEAN)
    if declared:
        unseen(pairs, promised, seen, fill, out, at)
    elif not lost:
        out.below[at] = out.above[at] = 0.0
    if declared or (size > 0.0 and not lost):
        out.stderr[at], out.freedom[at] = uncertainty(pairs, promised, bounded, seen)


@inner
def unseen(pairs: Any, promised: Any, seen: Any, fill: float, out: Any, at: int) -> None:
    """The estimate with a guess for each pair never seen, and how far its range reaches to either side."""
    value, below, above = 0.0, 0.0, 0.0
    for p in range(len(pairs)):
        c = pairs[p, WEIGHT]
        if seen[p, COUNT] > 0.0:
            value += c * seen[p, MEAN]
        elif c != 0.0:
            floor, ceiling = promised[p, P_FLOOR], promised[p, P_CEILING]
            guess = (floor + ceiling) / 2.0 if np.isnan(fill) else min(max(fill, floor), ceiling)
            value += c * guess
            below += max(c * (guess - floor), c * (guess - ceiling))
            above += max(c * (ceiling - guess), c * (floor - guess))
    out.estimates[at], out.below[at], out.above[at] = value, below, above


@inner
def uncertainty(pairs: Any, promised: Any, bounded: bool, seen: Any) -> Any:
    """The standard error and its degrees of freedom: see `from_parts`."""
    wide, floor, ceiling, known = 0.0, -np.inf, np.inf, np.inf
    if not len(promised):
        wide, known = -1.0, 1.0
        for p in range(len(pairs)):
            wide, known = larger(seen[p, COUNT], seen[p, SQUARES], wide, known)
        wide = wide if wide >= 0.0 else np.inf
    total, squares = 0.0, 0.0
    for p in range(len(pairs)):
        c, T = pairs[p, WEIGHT], seen[p, COUNT]
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
def conditional(pairs: Any, seen: Any, value: float) -> Any:
    """`Truth.conditional_mse`."""
    covered, noise = share_seen(pairs, seen), 0.0
    if covered == 0.0:
        return np.nan
    for p in range(len(pairs)):
        if seen[p, COUNT] > 0.0:
            c = pairs[p, WEIGHT] / covered
            noise += c * c * pairs[p, R_VARIANCE] / seen[p, COUNT]
    bias = certain(pairs, seen, pairs, R_MEAN) - value
    return noise + bias * bias
