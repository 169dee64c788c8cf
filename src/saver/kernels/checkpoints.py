"""What is kept at a checkpoint: budgets, estimates, and the intervals at all times with their weights.

The last are `Anytime` for trials told at once. Weights change now and then only; in between, all that is
needed is what the moments have grown by. There is one row of weights for each answer. A weight depends on
nothing but its own pair and on how many episodes there were, so it is made when its pair is first met again:
most are not, where there are many.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.kernels.bounds.sequence import (
    Bands,
    Steering,
    noise_bound,
    renewed,
    reward_ends,
    side,
    spent,
    steered,
)
from saver.kernels.bounds.spread import larger, spread
from saver.kernels.candidates import nearest
from saver.kernels.entering import add_up, true_budget
from saver.kernels.forms import CERTAINTY, IMPORTANCE, NO_LEDGER, P_CEILING, P_FLOOR, P_VARIANCE, SAFE
from saver.kernels.keeping import COUNT, MEAN, SQUARES
from saver.kernels.ledgers import believed, budget_at

# Rows of `Scales.pairs`, of `Scales.each` and of `Scales.sums`
T, TOTAL, SQUARED, GUESS, MADE = range(5)
W, NEXT_W, V, Q, NEXT_V = range(5)
GAINED, NOISE, DRAWN = range(3)


@inner
def record(scene: Any, rules: Any, plays: Any, run: Any, g: Any, out: Any, general: Any) -> None:
    """Write one column of `out`; an estimate with estimated transitions is left to the caller."""
    now, at = run.now, run.now.point
    if rules.ledger == NO_LEDGER and rules.keeps_visits:
        add_up(plays.weights, run.visited, now, g)
    record_budgets(now, g, plays.visits[SAFE], out, general)
    out.common[at].baseline_share = now.baseline / now.done
    if rules.weighing.wanted:
        always(rules, run, out, at)
    if rules.estimate == CERTAINTY:
        for i in range(len(scene.asked)):
            found, scales = out.answers[i, at], run.scales
            answer(scene.asked[i], scene.promised, rules.bounded, run.seen, found)
            found.conditional_mse = conditional(scene.asked[i], scene.pairs, run.seen, rules.values[i])
            if rules.weighing.fair:
                fair(
                    scene.asked[i], run.seen, scales.each[V, i], scales.each[Q, i], scales.sums[DRAWN, i],
                    scene.promised, rules.bounded, found,
                )  # fmt: skip
    if rules.estimate == IMPORTANCE:
        found = out.answers[0, at]
        found.stderr = found.below = found.above = np.inf
        if now.weighted:
            found.estimates, found.below, found.above = now.weighted_mean, 0.0, 0.0
            if now.weighted_squares > 0.0:
                found.stderr = math.sqrt(now.weighted_squares / (now.weighted - 1) / now.weighted)
                found.freedom = now.weighted - 1.0


@inner
def record_budgets(now: Any, g: Any, safe: Any, out: Any, general: Any) -> None:
    """True and believed, of each and of that nearest to its line; `general` is None: one of known value."""
    at, least = now.point, np.inf
    for i in range(len(g.state)):
        budget, unit = true_budget(g, now, i), g.fixed[i].true_unit
        found = budget_at(g, now, i, g.fixed[i].low)
        if general is not None:
            found = believed(g, now, i, safe)
        out.rails[i, at].budgets, out.rails[i, at].ledgers = budget, found
        if i == 0 or budget / unit < least:
            least, out.common[at].budget = budget / unit, budget
        out.common[at].ledger = found
    if general is not None:
        out.common[at].ledger = nearest(now, g, safe)[1]


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
def answer(weights: Any, promised: Any, bounded: bool, seen: Any, found: Any) -> None:
    """`weighted`: the estimate, its noise, and what the ranges of pairs never seen add."""
    declared = len(promised) > 0
    size, fill, _, lost = fill_of(weights, seen)
    found.stderr, found.freedom = np.inf, np.nan
    found.below = found.above = np.inf
    if declared or size > 0.0:
        unseen(weights, promised, seen, fill, found)
    else:
        found.estimates = np.nan
    if declared or (size > 0.0 and not lost):
        found.stderr, found.freedom = uncertainty(weights, promised, bounded, seen)
    if not declared:  # the caller makes an interval of it
        found.anytime_low = fewest(weights, seen)


@inner
def fewest(weights: Any, seen: Any) -> float:
    """`fewest_of`: the fewest samples of a pair that has weight; 0 where all samples of one agree."""
    found = np.inf
    for p in range(len(weights)):
        if weights[p] != 0.0:
            found = min(found, seen[p, COUNT] if seen[p, SQUARES] > 0.0 else 0.0)
    return found if found < np.inf else 0.0


@inner
def unseen(weights: Any, promised: Any, seen: Any, fill: float, found: Any) -> None:
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
    found.estimates, found.below, found.above = value, below, above


@inner
def guess_of(promised: Any, fill: float, p: int) -> Any:
    """What stands for the mean of a pair never seen, and its range."""
    if not len(promised):
        return fill, -np.inf, np.inf
    floor, ceiling = promised[p, P_FLOOR], promised[p, P_CEILING]
    return (floor + ceiling) / 2.0 if np.isnan(fill) else min(max(fill, floor), ceiling), floor, ceiling


@inner
def fair(
    weights: Any, seen: Any, V_i: Any, Q_i: Any, drawn: float, promised: Any, bounded: bool, found: Any
) -> None:
    """`by_weights`: the estimate by the weights of asking, and its standard error."""
    found.fair, found.fair_stderr = found.estimates, found.stderr
    all_weighed, all_asked = 0.0, 0.0
    for p in range(len(weights)):
        all_weighed += abs(V_i[p])
        all_asked += abs(weights[p])
    if all_weighed == 0.0:
        return
    m, more, squares = all_weighed / all_asked, drawn, 0.0
    for p in range(len(weights)):
        n, v = seen[p, COUNT], V_i[p]
        if n > 0.0:
            rest = weights[p] - v / m
            more -= v * seen[p, MEAN]
            variance = spread(
                n, seen[p, MEAN], seen[p, SQUARES], promised[p, P_VARIANCE], promised[p, P_FLOOR],
                promised[p, P_CEILING], bounded, np.inf,
            )[0]  # fmt: skip
            share = Q_i[p] / m**2 + 2.0 * rest / n * v / m + rest**2 / n
            squares += variance * max(share, 0.0)
    found.fair += more / m
    found.fair_stderr = math.sqrt(squares)


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
            noise += c * c * pairs[p].true_variance / seen[p, COUNT]
            mean += c * pairs[p].true_mean
    return noise + (mean - value) ** 2


@inlined
def fold(rules: Any, run: Any) -> None:
    """Take in what was seen since the last time, by the weights of then."""
    own, pairs, each, sums = rules.weighing, run.scales.pairs, run.scales.each, run.scales.sums
    for p in range(len(run.seen)):
        n = run.seen[p, COUNT]
        more = n - pairs[T, p]
        if more == 0.0:
            continue  # nothing is added to any sum
        if pairs[MADE, p] != run.now.next_weights:
            remake(rules, run, p)
        mean = run.seen[p, MEAN]
        total, about = n * mean, own.numbers.scale[p] * own.numbers.scale[p] * more
        if own.bands.bounded:
            guess = pairs[GUESS, p]
            about = run.seen[p, SQUARES] + n * (mean - guess) ** 2
            if pairs[T, p] > 0.0:
                before = pairs[TOTAL, p] / pairs[T, p]
                about -= pairs[SQUARED, p] + pairs[T, p] * (before - guess) ** 2
            about, pairs[SQUARED, p] = max(about, 0.0), run.seen[p, SQUARES]
        added = total - pairs[TOTAL, p]
        pairs[T, p], pairs[TOTAL, p] = n, total
        for i in range(len(own.numbers.c)):
            w, v = each[NEXT_W, i, p], each[NEXT_V, i, p]
            each[W, i, p] += w * more
            sums[GAINED, i] += w * added
            sums[NOISE, i] += w * w * about
            each[V, i, p] += v * more
            each[Q, i, p] += v * v * more
            sums[DRAWN, i] += v * added


@inlined
def remake(rules: Any, run: Any, p: int) -> None:
    """The weights of a pair, from what was seen of it until they changed, which is what was taken in."""
    own, pairs, each, n = rules.weighing, run.scales.pairs, run.scales.each, run.now.weighed
    every = own.numbers
    for i in range(len(every.c)):
        numbers = Steering(every.c[i], every.usual, every.scale, every.span, every.cap[i])
        each[NEXT_W, i, p] = steered(n, pairs[T, p], each[W, i, p], numbers, p)
        if own.fair:
            each[NEXT_V, i, p] = spent(n, float(rules.episodes), pairs[T, p], each[V, i, p], numbers, p)
    if own.bands.bounded:
        middle = (own.floor[p] + own.ceiling[p]) / 2
        pairs[GUESS, p] = (pairs[TOTAL, p] + middle) / (pairs[T, p] + 1.0)
    pairs[MADE, p] = run.now.next_weights


@inlined
def weigh(rules: Any, run: Any, number: int) -> None:
    """New weights, from trial `number` on."""
    fold(rules, run)
    left_out = 0 if rules.learn_from_baseline else run.now.baseline
    run.now.weighed, run.now.next_weights = float(run.now.done - left_out), renewed(number)


@inner
def always(rules: Any, run: Any, out: Any, at: int) -> None:
    """The intervals at all times."""
    fold(rules, run)
    own, pairs, n = rules.weighing, run.scales.pairs, len(run.seen)
    lower, upper, every, b = np.empty(n), np.empty(n), own.numbers, own.bands
    for i in range(len(every.c)):
        c, W_i, gained = every.c[i], run.scales.each[W, i], run.scales.sums[GAINED, i]
        numbers = Steering(c, every.usual, every.scale, every.span, every.cap[i])
        bands = Bands(b.noise, b.rho[i], b.rates[i], b.costs[i], b.bounded, b.box, b.log_pairs)
        reward_ends(pairs[T], pairs[TOTAL], np.zeros(n), numbers, own.floor, own.ceiling, bands, lower, upper)
        u = noise_bound(run.scales.sums[NOISE, i], bands)
        out.answers[i, at].anytime_low = side(gained, u, c, W_i, lower, upper, 1.0)[0]
        out.answers[i, at].anytime_high = -side(gained, u, c, W_i, lower, upper, -1.0)[0]
