"""What the ledgers of all guardrails believe: `saver.safety` for trials told at once, on arrays.

The formulas are those that `saver.safety` calls: bounds of sums (`saver.kernels.bounds`). Here they are put
together for trials in the order of asking that are neither out nor lost, so that nothing is hidden. Where
transitions are not known a trial is known by its return alone (`returns`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._jit import bare, inlined, inner, jit
from saver.kernels import rails
from saver.kernels.bounds.boundaries import path_bound, stitched
from saver.kernels.bounds.capital import RENEWED, bet, control, fewest_gains, owe, spent
from saver.kernels.bounds.noise import Bernstein, Numbers, Rule, ends, excess, guessed, least, missing
from saver.kernels.bounds.values import (
    joint_boundary,
    joint_paths,
    means_between,
    paths_between,
    returns_between,
)
from saver.kernels.keeping import COUNT
from saver.problem.history import BEFORE


@inlined
def rule_of(g: Any, i: int, which: int) -> Any:
    """A guardrail's rule for designed trials, the box, or V0."""
    c, level, rates = g.fixed[i], g.levels[which, i], g.rates[which, i]
    return Rule(c.bounded == 1, level[0], level[1], c.floor, c.ceiling, rates[0], rates[1], rates[2])


@inlined
def returns_rule(g: Any, i: int, which: int) -> Any:
    """The same where returns are all that is known of trials, and bounded."""
    rates = g.rates[which, i]
    return Bernstein(rates[0], rates[1], rates[2])


@bare
def designed_worth(g: Any, i: int) -> Any:
    """D: at least this much are designed trials worth by noise alone, or, of returns, in all."""
    c, s = g.fixed[i], g.state[i]
    if c.model_free == 1 and c.bounded == 1:
        return s.gained - c.span * excess(s.proxy, s.guessed, returns_rule(g, i, rails.NOISE))
    return least(s.gained, s.proxy, s.length, rule_of(g, i, rails.NOISE))


@bare
def box_pair(g: Any, i: int, p: int) -> None:
    """The box of one pair."""
    c, table = g.fixed[i], g.tables[i]
    numbers = Numbers(c.proxy, c.floor, c.ceiling, c.paths == 0, rule_of(g, i, rails.BOX))
    low, high = ends(table[rails.COUNTED, p], table[rails.SEEN, p], numbers)
    table[rails.LOWER, p], table[rails.UPPER, p], table[rails.HALF, p] = low, high, (high - low) / 2
    if c.bets == 0:
        table[rails.MIDDLE, p] = (low + high) / 2


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
            control(
                table[rails.COUNTED],
                table[rails.SEEN],
                table[rails.SQUARED],
                c.floor,
                c.ceiling,
                usual,
                table[rails.MIDDLE],
            )


@inlined
def renewed_control(g: Any, now: Any, i: int, credited: bool) -> None:
    """A trial was asked with it."""
    n = compared(g, now, i) + 1
    if g.fixed[i].bets == 1 and (not credited or g.fixed[i].learned == 1) and n >= g.state[i].renews:
        g.state[i].renews = max(n + 1, math.ceil(RENEWED * n))


@inlined
def bet_on(g: Any, i: int, centre: float) -> Any:
    """`Tallying.y` of the episode: what is bet on."""
    c, s = g.fixed[i], g.state[i]
    return (s.total - (s.guess - centre) - centre) / c.range


@inner
def bet_safely(g: Any, i: int, past: bool, safe: Any) -> None:
    """`LearnedBaseline.add_safe`, or what `LearnedBaseline.note_logged` says of an episode of the past."""
    c, s, rates = g.fixed[i], g.state[i], g.bets[1, i, 0]
    if past:
        guess = (BEFORE + (s.safe_gained - c.bottom * s.count) / c.range) / (1.0 + s.count)
        Q = ((s.total - c.bottom) / c.range - guess) ** 2
        s.safe_x += s.total
        owe(g.logs[rails.DOWN, i], rates, Q, guess * Q)
        owe(g.logs[rails.UP, i], rates, Q, Q - guess * Q)
        return
    centre = 0.0
    for p in range(len(safe)):
        centre += safe[p] * g.tables[i, rails.MIDDLE, p]
    y = bet_on(g, i, centre)
    s.safe_x += centre
    bet(g.logs[rails.DOWN, i], rates, y)
    bet(g.logs[rails.UP, i], rates, -y)


@inlined
def bets_won(g: Any, i: int, which: int, side: int) -> Any:
    """B E, of designed trials or of baseline trials from one side."""
    rates, weights = g.bets[which, i, 0], g.bets[which, i, 1]
    return g.fixed[i].range * fewest_gains(g.logs[side, i], rates, weights)


# -- returns ---------------------------------------------------------------------------------------------


@inlined
def part(c: Any, total: float, n: float) -> Any:
    """`ModelFree.part`: what n trials have earned, each taken to [0, 1]."""
    return (total - c.first_low * n) / c.span


@inlined
def returned(c: Any, earned: float, total: float, n: float, believed: float) -> Any:
    """What a return adds to v, or to Q and R: there it is compared with what was guessed before."""
    if c.bounded == 0:
        return c.first_proxy, 0.0
    guess = guessed(n, part(c, total, n), part(c, believed, 1.0))
    Q = (part(c, earned, 1.0) - guess) ** 2
    return Q, guess * Q


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


@bare
def means_seen(g: Any, i: int) -> Any:
    """`LearnedBaseline.means_seen`."""
    c, s = g.fixed[i], g.state[i]
    if c.model_free == 1 and c.bounded == 1:
        rule = returns_rule(g, i, rails.VALUE)
        return returns_between(s.safe_gained, 0.0, s.safe_proxy, s.safe_guessed, c.span, rule)
    rule, rho, level = rule_of(g, i, rails.VALUE), c.safe_rho, c.seen_level
    return means_between(s.safe_gained, 0.0, s.safe_proxy, s.safe_length, rule, rho, level)


@bare
def look_at_value(g: Any, i: int, safe: Any) -> None:
    """`LearnedBaseline.look_at_value`; `safe` are the visits expected of the baseline, [pairs]."""
    s = g.state[i]
    if s.count == 0.0:
        return
    below, above = means_seen(g, i)
    if g.fixed[i].paths == 1:
        T0, table = g.visits[rails.SAFELY], g.tables[i]
        below, above = paths_between(below, above, s.count, safe, T0, table[rails.LOWER], table[rails.UPPER])
    if g.fixed[i].bets == 1:
        below = max(below, s.safe_x + bets_won(g, i, 1, rails.DOWN))
        above = min(above, s.safe_x - bets_won(g, i, 1, rails.UP))
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
    found = budget_at(g, now, i, low)
    if low < high:
        found = min(found, budget_at(g, now, i, high))
    return max(found, joint(g, now, i, 0.0, 0, safe)) if g.fixed[i].learned == 1 else found


@inlined
def after(g: Any, now: Any, i: int, safe: Any) -> Any:
    """`Ledger.after`: the budget if the candidate runs."""
    low, high = values_of(g, i)
    worth, credit = g.state[i].low, credit_at(g, i, low)
    found = budget_at(g, now, i, low) + worth - required_at(g, i, low)
    if low < high:
        credit = min(credit, credit_at(g, i, high))
        found = min(found, budget_at(g, now, i, high) + worth - required_at(g, i, high))
    if credit <= 0.0:
        return -np.inf
    return max(found, joint(g, now, i, worth, 1, safe)) if g.fixed[i].learned == 1 else found


@bare
def joint(g: Any, now: Any, i: int, low: float, runs: int, safe: Any) -> Any:
    """`LearnedBaseline.joint`: the budget by both sums, if `runs` more ran that are worth `low`."""
    c, s = g.fixed[i], g.state[i]
    if s.count == 0.0 or not g.certified or (c.paths == 0 and c.bounded == 1):
        return -np.inf
    n = now.exact + now.designed + runs
    kappa = now.exact - c.r1 * n
    worth, share = low - c.r0 * n, kappa / s.count
    if c.paths == 0:
        found = s.gained + share * s.safe_gained
        return worth + found - joint_boundary(s.proxy, s.safe_proxy, share, c.rho, c.safe_rho, c.joint_level)
    (below, above), visits, table = means_seen(g, i), g.visits, g.tables[i]
    return worth + joint_paths(
        designed_worth(g, i), kappa, s.count, below, above, visits[rails.EXPECTED], visits[rails.REALISED],
        safe, visits[rails.SAFELY], table[rails.LOWER], table[rails.UPPER],
    )  # fmt: skip


@bare
def renew_bound(g: Any, i: int) -> None:
    """What the designed trials are worth at least, by their sums: `Argument.worth`."""
    c, s = g.fixed[i], g.state[i]
    found = designed_worth(g, i)
    if c.paths == 1:
        visits, table = g.visits, g.tables[i]
        found = path_bound(
            found, visits[rails.EXPECTED], visits[rails.REALISED], table[rails.LOWER], table[rails.UPPER]
        )
        if c.bets == 1:
            found = max(found, s.sum_x + bets_won(g, i, 0, rails.DESIGNED))
        elif c.crosses == 1:
            u = stitched(s.sum_v, c.cross_start, c.cross_scale, c.cross_level) if s.sum_v > 0.0 else 0.0
            found = max(found, s.sum_x - u)
    s.bound = max(s.bound, found)


# -- designs ---------------------------------------------------------------------------------------------


@inlined
def likely_mean(g: Any, seen: Any, i: int, p: int) -> Any:
    """`Statistics.constraint_mean`, as the argument reads it."""
    if g.knows:
        return g.tables[i, rails.KNOWN, p]
    return g.tables[i, rails.MEAN, p] if seen[p, COUNT] > 0.0 else g.fixed[i].floor


@bare
def hidden_after(g: Any, i: int, rate: float, v: float, length: float, general: Any) -> Any:
    """`Certified.hidden_after`: what chance may hide after so much, if `rate` is earned on average."""
    c, s = g.fixed[i], g.state[i]
    if general is not None:
        if c.bets == 1:
            x = min(max((rate - c.floor) / (c.ceiling - c.floor), 0.0), 1.0)
            Q = (s.sum_v + x * (1.0 - x) / c.alike) * (length / c.length) / (s.length / c.length + 1.0)
            return c.range * spent(g.bets[0, i, 0], g.bets[0, i, 1], Q)
        if c.model_free == 1 and c.bounded == 1:
            x = min(max(part(c, rate, 1.0), 0.0), 1.0)
            coins, grows = x * (1.0 - x), length / (s.length + 1.0)
            rule = returns_rule(g, i, rails.NOISE)
            return c.span * excess((s.proxy + coins) * grows, (s.guessed + x * coins) * grows, rule)
    return missing(rate, v, length, rule_of(g, i, rails.NOISE))


@jit
def asked_of_design(g: Any, now: Any, left: int, paced: bool, general: Any, required: Any, pace: Any) -> None:
    """What is required of a design by each guardrail, and the pace, [m] each: `Certified.pace`."""
    for i in range(len(g.state)):
        c, s, value = g.fixed[i], g.state[i], value_of(g, i)
        required[i] = pace[i] = required_at(g, i, value)
        if not paced:
            continue
        n, base = now.done - now.baseline + left, now.baseline
        debt = required[i] - s.last_low - base * credit_at(g, i, value)
        rate = required[i] / c.length if s.length == 0.0 else s.gained / s.length
        v, length = s.proxy + left * s.last_proxy, s.length + left * s.last_longest
        hidden = hidden_after(g, i, rate, v, length, general)
        if c.learned == 1:
            kappa = base - c.r1 * (n + base)
            hidden += abs(kappa) * (s.value_high - s.value_low) / 2
            if s.count > 0.0 and c.joint_level > 0.0:
                other = joint_boundary(v, s.safe_proxy, kappa / s.count, c.rho, c.safe_rho, c.joint_level)
                hidden = min(hidden, other)
        if c.paths == 1 and c.bets == 0:
            for p in range(g.visits.shape[1]):
                hidden += (
                    abs(g.visits[rails.REALISED, p] - g.visits[rails.EXPECTED, p])
                    * g.tables[i, rails.HALF, p]
                )
        pace[i] = required[i] + (hidden + debt) / n
