"""The certified ledger of each guardrail in compiled form: `Certified` and `Learned`, told at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import inlined, inner, jit
from saver.engine.kernel.memory import COUNT
from saver.engine.kernel.rails import BOX, DESIGNED, SAFE
from saver.safety.boundaries import mixture_two_sided, stitched
from saver.safety.noise import Rule, least, missing
from saver.safety.paths import path_bound
from saver.safety.widths import Numbers, ends


@inlined
def rule_of(rails: Any, which: int, i: int) -> Any:
    """A rule of a guardrail."""
    n = rails.numbers
    return Rule(
        n[which, i, 0] > 0.0, n[which, i, 1], n[which, i, 2], n[which, i, 3], n[which, i, 4],
        rails.rates[which, i], rails.growth[which, i], rails.weights[which, i],
    )  # fmt: skip


@inner
def box_pair(g: Any, i: int, p: int) -> None:
    """The box of one pair."""
    c = g.rails.fixed[i]
    numbers = Numbers(c.proxy, c.floor, c.ceiling, c.paths == 0, rule_of(g.rails, BOX, i))
    low, high = ends(g.T[i, p], g.seen[i, p], numbers)
    g.lower[i, p], g.upper[i, p] = low, high
    g.middle[i, p], g.half[i, p] = (low + high) / 2, (high - low) / 2


# -- V0 --------------------------------------------------------------------------------------------------


@inlined
def value_of(g: Any, i: int) -> Any:
    """`Ledger.value`: V0 as believed."""
    s = g.state[i]
    if s.count == 0.0:
        return (s.value_low + s.value_high) / 2
    mean = s.safe_gained / s.count
    return min(max(mean, s.value_low), s.value_high) if g.rails.certified else mean


@inlined
def values_of(g: Any, i: int) -> Any:
    """`Ledger.values`: the ends between which V0 lies."""
    s = g.state[i]
    if s.count > 0.0 and not g.rails.certified:
        mean = s.safe_gained / s.count
        return mean, mean
    return s.value_low, s.value_high


@inlined
def required_at(g: Any, i: int, value: float) -> Any:
    """`Rail.required_at`."""
    return g.rails.fixed[i].r0 + g.rails.fixed[i].r1 * value


@inlined
def credit_at(g: Any, i: int, value: float) -> Any:
    """`Rail.credit_at`."""
    return g.rails.fixed[i].c0 + g.rails.fixed[i].c1 * value


@inner
def means_seen(g: Any, i: int) -> Any:
    """`Learned.means_seen`."""
    c, s, rule = g.rails.fixed[i], g.state[i], rule_of(g.rails, SAFE, i)
    if c.bounded == 1:
        twice = (c.floor + c.ceiling) * s.safe_length
        below = least(s.safe_gained, 0.0, s.safe_length, rule)
        return below, twice - least(twice - s.safe_gained, 0.0, s.safe_length, rule)
    u = 0.0
    if s.safe_proxy > 0.0:
        u = mixture_two_sided(s.safe_proxy, c.safe_rho, c.value_level)
    return s.safe_gained - u, s.safe_gained + u


@inner
def look_at_value(g: Any, i: int, safe: Any) -> None:
    """`Learned.look_at_value`; `safe` are the visits that the baseline is expected to make, [pairs]."""
    s = g.state[i]
    if s.count == 0.0:
        return
    below, above = means_seen(g, i)
    if g.rails.fixed[i].paths == 1:
        for p in range(len(safe)):
            g.mixed[p] = s.count * safe[p]
        below = path_bound(below, g.mixed, g.safe_realised, g.lower[i], g.upper[i])
        above = -path_bound(-above, g.mixed, g.safe_realised, -g.upper[i], -g.lower[i])
    s.value_low = max(s.value_low, below / s.count)
    s.value_high = max(s.value_low, min(s.value_high, above / s.count))


# -- budgets ---------------------------------------------------------------------------------------------


@inlined
def budget_at(g: Any, now: Any, i: int, value: float) -> Any:
    """`Ledger.settled_at`, where nothing is out or lost."""
    safe = now.exact * credit_at(g, i, value)
    return safe + g.state[i].bound - now.designed * required_at(g, i, value)


@inner
def believed(g: Any, now: Any, i: int, safe: Any) -> Any:
    """`Ledger.budget`."""
    low, high = values_of(g, i)
    found = min(budget_at(g, now, i, low), budget_at(g, now, i, high))
    return max(found, joint(g, now, i, 0.0, 0, safe))


@inner
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


@inner
def joint(g: Any, now: Any, i: int, low: float, runs: int, safe: Any) -> Any:
    """`Learned.joint`: the budget by both sums, if `runs` more ran that are worth `low`."""
    c, s = g.rails.fixed[i], g.state[i]
    if s.count == 0.0 or not g.rails.certified or (c.paths == 0 and c.bounded == 1):
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
    c, safe = g.rails.fixed[i], g.state[i].safe_proxy
    beta = 2.0 * math.log(1.0 / c.joint_level) + math.log((1.0 + v / c.rho) * (1.0 + safe / c.safe_rho))
    return math.sqrt(beta * (v + c.rho + part**2 * (safe + c.safe_rho)))


@inner
def by_paths(g: Any, i: int, kappa: float, safe: Any) -> Any:
    """`Learned._by_paths`."""
    s, best = g.state[i], -np.inf
    D = least(s.gained, s.proxy, s.length, rule_of(g.rails, DESIGNED, i))
    below, above = means_seen(g, i)
    for phi in (kappa / s.count, 0.0):
        for p in range(len(safe)):
            g.mixed[p] = g.expected[p] + kappa * safe[p] - phi * g.safe_realised[p]
        found = path_bound(D, g.mixed, g.realised, g.lower[i], g.upper[i])
        best = max(best, found + phi * (below if phi >= 0.0 else above))
    return best


@inner
def renew_bound(g: Any, i: int) -> None:
    """What the designed trials are worth at least, by their sums: `Argument.worth`."""
    c, s = g.rails.fixed[i], g.state[i]
    found = least(s.gained, s.proxy, s.length, rule_of(g.rails, DESIGNED, i))
    if c.paths == 1:
        found = path_bound(found, g.expected, g.realised, g.lower[i], g.upper[i])
        if c.crosses == 1:
            u = stitched(s.sum_v, c.start, c.scale, c.level) if s.sum_v > 0.0 else 0.0
            found = max(found, s.sum_x - u)
    s.bound = max(s.bound, found)


# -- designs ---------------------------------------------------------------------------------------------


@inlined
def likely_mean(g: Any, seen: Any, i: int, p: int) -> Any:
    """`Statistics.constraint_mean`, as the argument reads it."""
    if len(g.rails.known) > 0:
        return g.rails.known[i, p]
    return g.mean[i, p] if seen[p, COUNT] > 0.0 else g.rails.fixed[i].floor


@jit
def required_of(g: Any, i: int) -> Any:
    """`decide.required`, of one guardrail."""
    return required_at(g, i, value_of(g, i))


@jit
def pace_of(rules: Any, g: Any, now: Any, i: int, remaining: int) -> Any:
    """`decide.pace`, of one guardrail."""
    c, s, value = g.rails.fixed[i], g.state[i], value_of(g, i)
    required = required_at(g, i, value)
    if not rules.paced:
        return required
    n, base = now.done - now.baseline + remaining, now.baseline
    debt = required - s.last_low - base * credit_at(g, i, value)
    rate = required / c.length if s.length == 0.0 else s.gained / s.length
    v, length = s.proxy + remaining * s.last_proxy, s.length + remaining * s.last_longest
    hidden = missing(rate, v, length, rule_of(g.rails, DESIGNED, i))
    if c.learned == 1:
        kappa = base - c.r1 * (n + base)
        hidden += abs(kappa) * (s.value_high - s.value_low) / 2
        if s.count > 0.0 and c.joint_level > 0.0:
            hidden = min(hidden, cloud(g, i, v, kappa / s.count))
    if c.paths == 1:
        for p in range(len(g.expected)):
            hidden += abs(g.realised[p] - g.expected[p]) * g.half[i, p]
    return required + (hidden + debt) / n
