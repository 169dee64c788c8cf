"""The certified ledger of each guardrail in compiled form: `Certified` and `Learned`, told at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import inlined, inner, jit
from saver.engine.kernel.keeping import COUNT
from saver.engine.kernel.rails import (
    BOX,
    COUNTED,
    DESIGNED,
    DOWN,
    EXPECTED,
    HALF,
    KNOWN,
    LOWER,
    MEAN,
    MIDDLE,
    NOISE,
    REALISED,
    ROOM,
    SAFELY,
    SEEN,
    SQUARED,
    UP,
    UPPER,
    VALUE,
)
from saver.problem.history import BEFORE
from saver.safety.boundaries import mixture, mixture_two_sided, stitched
from saver.safety.capital import RENEWED, bet, control, fewest_gains, owe, spent
from saver.safety.noise import Rule, least
from saver.safety.paths import path_bound
from saver.safety.widths import Numbers, ends


@inlined
def worth_of(
    g: Any, i: int, which: int, total: float, v: float, length: float, rho: float, level: float
) -> Any:
    """`noise.least` by one of the guardrail's rules."""
    c = g.fixed[i]
    if c.bounded == 1:
        return bounded_worth(total, length, level, c.floor, c.ceiling, g.rates[which, i])
    return total - mixture(v, rho, level) if v > 0.0 else total


@inner
def bounded_worth(total: float, length: float, level: float, low: float, high: float, rates: Any) -> Any:
    """The same where observations are bounded."""
    return least(total, 0.0, length, Rule(True, 1.0, level, low, high, rates[0], rates[1], rates[2]))


@inlined
def designed_worth(g: Any, i: int) -> Any:
    """D: at least this much are the means along the way of designed trials worth."""
    c, s = g.fixed[i], g.state[i]
    return worth_of(g, i, NOISE, s.gained, s.proxy, s.length, c.noise_rho, c.noise_level)


@inner
def box_pair(g: Any, i: int, p: int) -> None:
    """The box of one pair."""
    c, table, rates = g.fixed[i], g.tables[i], g.rates[BOX, i]
    rule = Rule(c.bounded == 1, c.box_rho, c.box_level, c.floor, c.ceiling, rates[0], rates[1], rates[2])
    numbers = Numbers(c.proxy, c.floor, c.ceiling, c.paths == 0, rule)
    low, high = ends(table[COUNTED, p], table[SEEN, p], numbers)
    table[LOWER, p], table[UPPER, p], table[HALF, p] = low, high, (high - low) / 2
    if c.bets == 0:
        table[MIDDLE, p] = (low + high) / 2


# -- bets on returns: `capital` --------------------------------------------------------------------------


@inlined
def compared(g: Any, now: Any, i: int) -> Any:
    """`Certified.compared_so_far`: trials that were asked with what the model explains."""
    return now.designed + (now.exact if g.fixed[i].learned == 1 else 0)


@inner
def renew_control(g: Any, now: Any, length: float) -> None:
    """`Certified.control`: m, where it is to be made anew; `length` is that of a baseline episode."""
    for i in range(len(g.state)):
        c, table = g.fixed[i], g.tables[i]
        if c.bets == 1 and compared(g, now, i) + 1 >= g.state[i].renews:
            usual = (value_of(g, i) / length - c.floor) / (c.ceiling - c.floor)
            usual = BEFORE if c.learned == 1 else min(max(usual, 0.0), 1.0)
            control(table[COUNTED], table[SEEN], table[SQUARED], c.floor, c.ceiling, usual, table[MIDDLE])


@inlined
def renewed_control(g: Any, now: Any, i: int, credited: bool) -> None:
    """A trial was asked with it."""
    n = compared(g, now, i) + 1
    if g.fixed[i].bets == 1 and (not credited or g.fixed[i].learned == 1) and n >= g.state[i].renews:
        g.state[i].renews = max(n + 1, math.ceil(RENEWED * n))


@inlined
def bet_on(g: Any, i: int, centre: float) -> Any:
    """`Bets.y` of the episode: what is bet on."""
    c, s = g.fixed[i], g.state[i]
    return (s.total - (s.guess - centre) - centre) / c.range


@inner
def bet_safely(g: Any, i: int, past: bool, safe: Any) -> None:
    """`LearnedBets.bet_on`, or what `Learned.note_logged` says of an episode of the past."""
    c, s, rates = g.fixed[i], g.state[i], g.bets[1, i, 0]
    if past:
        guess = (BEFORE + (s.safe_gained - c.bottom * s.count) / c.range) / (1.0 + s.count)
        Q = ((s.total - c.bottom) / c.range - guess) ** 2
        s.safe_x += s.total
        owe(g.logs[DOWN, i], rates, Q, guess * Q)
        owe(g.logs[UP, i], rates, Q, Q - guess * Q)
        return
    centre = 0.0
    for p in range(len(safe)):
        centre += safe[p] * g.tables[i, MIDDLE, p]
    y = bet_on(g, i, centre)
    s.safe_x += centre
    bet(g.logs[DOWN, i], rates, y)
    bet(g.logs[UP, i], rates, -y)


@inlined
def bets_won(g: Any, i: int, which: int, side: int) -> Any:
    """B E, of designed trials or of baseline trials from one side."""
    rates, weights = g.bets[which, i, 0], g.bets[which, i, 1]
    return g.fixed[i].range * fewest_gains(g.logs[side, i], rates, weights)


# -- V0 --------------------------------------------------------------------------------------------------


@inlined
def value_of(g: Any, i: int) -> Any:
    """`Ledger.value`: V0 as believed."""
    s = g.state[i]
    if s.count == 0.0:
        return (s.value_low + s.value_high) / 2
    mean = s.safe_gained / s.count
    return min(max(mean, s.value_low), s.value_high) if g.certified else mean


@inlined
def values_of(g: Any, i: int) -> Any:
    """`Ledger.values`: the ends between which V0 lies."""
    s = g.state[i]
    if s.count > 0.0 and not g.certified:
        mean = s.safe_gained / s.count
        return mean, mean
    return s.value_low, s.value_high


@inlined
def required_at(g: Any, i: int, value: float) -> Any:
    """`Rail.required_at`."""
    return g.fixed[i].r0 + g.fixed[i].r1 * value


@inlined
def credit_at(g: Any, i: int, value: float) -> Any:
    """`Rail.credit_at`."""
    return g.fixed[i].c0 + g.fixed[i].c1 * value


@inner
def means_seen(g: Any, i: int) -> Any:
    """`Learned.means_seen`."""
    c, s = g.fixed[i], g.state[i]
    if c.bounded == 1:
        rates, length = g.rates[VALUE, i], s.safe_length
        twice = (c.floor + c.ceiling) * length
        below = bounded_worth(s.safe_gained, length, c.value_level, c.floor, c.ceiling, rates)
        other = bounded_worth(twice - s.safe_gained, length, c.value_level, c.floor, c.ceiling, rates)
        return below, twice - other
    u = 0.0
    if s.safe_proxy > 0.0:
        u = mixture_two_sided(s.safe_proxy, c.safe_rho, c.seen_level)
    return s.safe_gained - u, s.safe_gained + u


@inner
def look_at_value(g: Any, i: int, safe: Any) -> None:
    """`Learned.look_at_value`; `safe` are the visits that the baseline is expected to make, [pairs]."""
    s = g.state[i]
    if s.count == 0.0:
        return
    below, above = means_seen(g, i)
    if g.fixed[i].paths == 1:
        W, T, lower, upper = g.visits[ROOM], g.visits[SAFELY], g.tables[i, LOWER], g.tables[i, UPPER]
        for p in range(len(safe)):
            W[p] = s.count * safe[p]
        below = path_bound(below, W, T, lower, upper)
        above = -path_bound(-above, W, T, -upper, -lower)
    if g.fixed[i].bets == 1:
        below = max(below, s.safe_x + bets_won(g, i, 1, DOWN))
        above = min(above, s.safe_x - bets_won(g, i, 1, UP))
    s.value_low = max(s.value_low, below / s.count)
    s.value_high = max(s.value_low, min(s.value_high, above / s.count))


# -- budgets ---------------------------------------------------------------------------------------------


@inlined
def budget_at(g: Any, now: Any, i: int, value: float) -> Any:
    """`Ledger.settled_at`, where nothing is out or lost."""
    safe = now.exact * credit_at(g, i, value)
    return safe + g.state[i].bound - now.designed * required_at(g, i, value)


@inlined
def believed(g: Any, now: Any, i: int, safe: Any) -> Any:
    """`Ledger.budget`."""
    low, high = values_of(g, i)
    found = min(budget_at(g, now, i, low), budget_at(g, now, i, high))
    return max(found, joint(g, now, i, 0.0, 0, safe))


@inlined
def after(g: Any, now: Any, i: int, safe: Any) -> Any:
    """`Ledger.after`: the budget if the candidate runs."""
    low, high = values_of(g, i)
    if min(credit_at(g, i, low), credit_at(g, i, high)) <= 0.0:
        return -np.inf
    worth = g.state[i].low
    found = min(
        budget_at(g, now, i, low) + worth - required_at(g, i, low),
        budget_at(g, now, i, high) + worth - required_at(g, i, high),
    )
    return max(found, joint(g, now, i, worth, 1, safe))


@inlined
def joint(g: Any, now: Any, i: int, low: float, runs: int, safe: Any) -> Any:
    """`Learned.joint`: the budget by both sums, if `runs` more ran that are worth `low`."""
    c, s = g.fixed[i], g.state[i]
    if s.count == 0.0 or not g.certified or (c.paths == 0 and c.bounded == 1):
        return -np.inf
    n = now.exact + now.designed + runs
    kappa = now.exact - c.r1 * n
    worth, part = low - c.r0 * n, kappa / s.count
    if c.paths == 1:
        return worth + by_paths(g, i, kappa, safe)
    found = s.gained + part * s.safe_gained
    return worth + found - cloud(g, i, s.proxy, part)


@inlined
def cloud(g: Any, i: int, v: float, part: float) -> Any:
    """`Learned.cloud`."""
    c, safe = g.fixed[i], g.state[i].safe_proxy
    beta = 2.0 * math.log(1.0 / c.joint_level) + math.log((1.0 + v / c.rho) * (1.0 + safe / c.safe_rho))
    return math.sqrt(beta * (v + c.rho + part**2 * (safe + c.safe_rho)))


@inner
def by_paths(g: Any, i: int, kappa: float, safe: Any) -> Any:
    """`Learned._by_paths`."""
    s, best, W, D = g.state[i], -np.inf, g.visits[ROOM], designed_worth(g, i)
    below, above = means_seen(g, i)
    for phi in (kappa / s.count, 0.0):
        for p in range(len(safe)):
            W[p] = g.visits[EXPECTED, p] + kappa * safe[p] - phi * g.visits[SAFELY, p]
        found = path_bound(D, W, g.visits[REALISED], g.tables[i, LOWER], g.tables[i, UPPER])
        best = max(best, found + phi * (below if phi >= 0.0 else above))
    return best


@inner
def renew_bound(g: Any, i: int) -> None:
    """What the designed trials are worth at least, by their sums: `Argument.worth`."""
    c, s = g.fixed[i], g.state[i]
    found = designed_worth(g, i)
    if c.paths == 1:
        visits, table = g.visits, g.tables[i]
        found = path_bound(found, visits[EXPECTED], visits[REALISED], table[LOWER], table[UPPER])
        if c.bets == 1:
            found = max(found, s.sum_x + bets_won(g, i, 0, DESIGNED))
        elif c.crosses == 1:
            u = stitched(s.sum_v, c.start, c.scale, c.level) if s.sum_v > 0.0 else 0.0
            found = max(found, s.sum_x - u)
    s.bound = max(s.bound, found)


# -- designs ---------------------------------------------------------------------------------------------


@inlined
def likely_mean(g: Any, seen: Any, i: int, p: int) -> Any:
    """`Statistics.constraint_mean`, as the argument reads it."""
    if g.knows:
        return g.tables[i, KNOWN, p]
    return g.tables[i, MEAN, p] if seen[p, COUNT] > 0.0 else g.fixed[i].floor


@jit
def required_of(g: Any, i: int) -> Any:
    """`decide.required`, of one guardrail."""
    return required_at(g, i, value_of(g, i))


@jit
def pace_of(rules: Any, g: Any, now: Any, i: int, remaining: int) -> Any:
    """`decide.pace`, of one guardrail."""
    c, s, value = g.fixed[i], g.state[i], value_of(g, i)
    required = required_at(g, i, value)
    if not rules.paced:
        return required
    n, base = now.done - now.baseline + remaining, now.baseline
    debt = required - s.last_low - base * credit_at(g, i, value)
    rate = required / c.length if s.length == 0.0 else s.gained / s.length
    v, length = s.proxy + remaining * s.last_proxy, s.length + remaining * s.last_longest
    hidden = rate * length - worth_of(g, i, NOISE, rate * length, v, length, c.noise_rho, c.noise_level)
    if c.bets == 1:
        x = min(max((rate - c.floor) / (c.ceiling - c.floor), 0.0), 1.0)
        Q = (s.sum_v + x * (1.0 - x) / c.alike) * (length / c.length) / (s.length / c.length + 1.0)
        hidden = c.range * spent(g.bets[0, i, 0], g.bets[0, i, 1], Q)
    if c.learned == 1:
        kappa = base - c.r1 * (n + base)
        hidden += abs(kappa) * (s.value_high - s.value_low) / 2
        if s.count > 0.0 and c.joint_level > 0.0:
            hidden = min(hidden, cloud(g, i, v, kappa / s.count))
    if c.paths == 1 and c.bets == 0:
        for p in range(g.visits.shape[1]):
            hidden += abs(g.visits[REALISED, p] - g.visits[EXPECTED, p]) * g.tables[i, HALF, p]
    return required + (hidden + debt) / n
