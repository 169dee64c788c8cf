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
    TOTAL,
    WEIGHTED,
    WEIGHTED_MEAN,
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
        out.conditional_mse[at] = conditional(scene.pairs, run.seen, rules.value)
    if rules.estimate == IMPORTANCE and n[WEIGHTED]:
        out.estimates[at] = f[WEIGHTED_MEAN]


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
