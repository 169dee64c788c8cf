"""What is kept at a checkpoint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import inner
from saver.engine.kernel.earning import add_up, budget_of
from saver.engine.kernel.forms import CERTAINTY, CERTIFIED, IMPORTANCE, NO_LEDGER, R_MEAN, R_VARIANCE, WEIGHT
from saver.engine.kernel.memory import COUNT, MEAN, SQUARES
from saver.engine.kernel.weighing import always

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
        out.anytime_low[at], out.anytime_high[at] = always(rules, run)
    if rules.estimate == CERTAINTY:
        out.estimates[at] = certain(scene.pairs, run.seen, run.seen, MEAN)
        out.stderr[at], out.freedom[at] = uncertainty(scene.pairs, run.seen)
        out.conditional_mse[at] = conditional(scene.pairs, run.seen, rules.value)
    if rules.estimate == IMPORTANCE:
        out.stderr[at] = np.inf
    if rules.estimate == IMPORTANCE and now.weighted:
        out.estimates[at] = now.weighted_mean
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
        elif pairs[p, WEIGHT] > 0.0:
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
def uncertainty(pairs: Any, seen: Any) -> Any:
    """The standard error and its degrees of freedom: see `from_parts`; no bound while a pair is unseen."""
    if share_seen(pairs, seen) < 1.0:
        return np.inf, np.nan
    total, squares = 0.0, 0.0
    for p in range(len(pairs)):
        c, T = pairs[p, WEIGHT], seen[p, COUNT]
        if c > 0.0:
            if T < 2.0:
                return np.inf, np.nan
            part = c * c * (seen[p, SQUARES] / (T - 1.0)) / T
            total += part
            squares += part * part / (T - 1.0)
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
