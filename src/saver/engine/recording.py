"""What is kept at a checkpoint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import inner
from saver.engine.earning import add_up, budget_of
from saver.engine.layout import CERTAINTY, CERTIFIED, IMPORTANCE, NO_LEDGER, R_MEAN, R_VARIANCE, WEIGHT
from saver.engine.state import (
    BASELINE,
    BOUND,
    COUNT,
    DESIGNED,
    DONE,
    EXACT,
    MEAN,
    POINT,
    SQUARES,
    TOTAL,
    WEIGHTED,
    WEIGHTED_MEAN,
    WEIGHTED_SQUARES,
)

ALMOST = math.nextafter(1.0, 0.0)


@inner
def record(scene: Any, rules: Any, sheets: Any, run: Any, out: Any, budget: float) -> None:
    """Write one column of `out`; an estimate with estimated transitions is left to the caller."""
    n, f, at = run.n, run.f, run.n[POINT]
    if rules.ledger == NO_LEDGER:
        add_up(rules, sheets, run)
    out.budget[at] = budget
    earned = f[BOUND] if rules.ledger == CERTIFIED else f[TOTAL]
    out.ledger[at] = budget_of(rules, n[EXACT], n[DESIGNED], earned)
    out.baseline_share[at] = n[BASELINE] / n[DONE]
    if rules.estimate == CERTAINTY:
        out.estimates[at] = certain(scene.pairs, run.seen, run.seen, MEAN)
        out.stderr[at], out.freedom[at] = uncertainty(scene.pairs, run.seen)
        out.conditional_mse[at] = conditional(scene.pairs, run.seen, rules.value)
    if rules.estimate == IMPORTANCE:
        out.stderr[at] = np.inf
    if rules.estimate == IMPORTANCE and n[WEIGHTED]:
        out.estimates[at] = f[WEIGHTED_MEAN]
        if n[WEIGHTED] > 1:
            spread = f[WEIGHTED_SQUARES] / (n[WEIGHTED] - 1) / n[WEIGHTED]
            out.stderr[at] = math.sqrt(spread)
            out.freedom[at] = n[WEIGHTED] - 1.0 if spread > 0.0 else np.inf


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
