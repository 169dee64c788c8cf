"""The ledgers of returns in compiled form: `Returns`, `LearnedReturns` and `PluginReturns`, told at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner, jit
from saver.engine.kernel.candidates import nearest
from saver.engine.kernel.entering import true_budget
from saver.engine.kernel.guards import (
    believed,
    cloud,
    credit_at,
    means_seen,
    required_at,
    required_of,
    value_of,
)
from saver.engine.kernel.rails import MEAN, NOISE, VALUE
from saver.safety.bernstein import Bernstein, excess, guessed
from saver.safety.boundaries import mixture


@inner
def begin_returns(g: Any) -> None:
    """Nothing told."""
    g.cells.fill(0.0)
    for i in range(len(g.state)):
        c, s = g.fixed[i], g.state[i]
        s.value_low, s.value_high, s.worst, s.low = c.low, c.high, np.inf, c.first_low
        for p in range(g.tables.shape[2]):
            g.tables[i, MEAN, p] = 0.0


@inner
def luck(g: Any, i: int, which: int, Q: float, R: float) -> Any:
    """`Returns.luck`, by the rule of designed trials or that of V0."""
    rates = g.rates[which, i]
    return g.fixed[i].span * excess(Q, R, Bernstein(rates[0], rates[1], rates[2]))


@inlined
def part(c: Any, total: float, n: float) -> Any:
    """`Returns.part`: what n trials have earned, each taken to [0, 1]."""
    return (total - c.first_low * n) / c.span


@inlined
def added(c: Any, earned: float, total: float, n: float, believed: float) -> Any:
    """What a trial adds to v, or to Q and R: there it is compared with what was guessed before."""
    if c.bounded == 0:
        return c.first_proxy, 0.0
    guess = guessed(n, part(c, total, n), part(c, believed, 1.0))
    Q = (part(c, earned, 1.0) - guess) ** 2
    return Q, guess * Q


@inner
def enter_returns(now: Any, g: Any, past: bool, credited: bool) -> None:
    """What an episode earned, into the ledgers: `Returns.tell` and `learn`, or `PluginReturns`."""
    for i in range(len(g.state)):
        c, s = g.fixed[i], g.state[i]
        if credited and c.learned == 1:
            if g.certified:
                Q, R = added(c, s.total, s.safe_gained, s.count, np.nan)
                s.safe_proxy += Q
                s.safe_tilt += R
            s.count += 1.0
            s.safe_gained += s.total
            if g.certified and not past:
                look_at_value(g, i)
        elif not credited and not g.certified:
            s.bound += s.total
        elif not credited:
            Q, R = added(c, s.total, s.gained, s.length, s.believed)
            s.proxy += Q
            s.tilt += R
            s.gained += s.total
            s.length += 1.0
            s.bound = max(s.bound + c.first_low, designed_worth(g, i))
    if not past:
        now.exact += credited
        now.designed += not credited


@inner
def look_at_history(g: Any) -> None:
    """`Learned.learn`: what all logged episodes together say of V0."""
    for i in range(len(g.state) if g.certified and g.history > 0 else 0):
        if g.fixed[i].learned == 1:
            look_at_value(g, i)


@inlined
def designed_worth(g: Any, i: int) -> Any:
    """`Returns.seen_worth`: at least this much are designed trials worth."""
    c, s = g.fixed[i], g.state[i]
    if c.bounded == 1:
        return s.gained - luck(g, i, NOISE, s.proxy, s.tilt)
    return s.gained - mixture(s.proxy, c.noise_rho, c.noise_level) if s.proxy > 0.0 else s.gained


@inlined
def look_at_value(g: Any, i: int) -> None:
    """`Learned.look_at_value`, where V0 is the mean of what was seen."""
    s = g.state[i]
    if g.fixed[i].bounded == 1:
        below = s.safe_gained - luck(g, i, VALUE, s.safe_proxy, s.safe_tilt)
        above = s.safe_gained + luck(g, i, VALUE, s.safe_proxy, s.safe_proxy - s.safe_tilt)
    else:
        below, above = means_seen(g, i)
    s.value_low = max(s.value_low, below / s.count)
    s.value_high = max(s.value_low, min(s.value_high, above / s.count))


@jit
def asked_of_returns(g: Any, now: Any, remaining: int, paced: bool, required: Any, pace: Any) -> None:
    """What is required of a design by each guardrail, and the pace, [m] each."""
    for i in range(len(g.state)):
        required[i] = pace[i] = required_of(g, i)
        if paced:
            pace[i] = pace_of_returns(g, now, i, remaining)


@jit
def pace_of_returns(g: Any, now: Any, i: int, remaining: int) -> Any:
    """`Certified.pace`, of one guardrail."""
    c, s, value = g.fixed[i], g.state[i], value_of(g, i)
    required, base = required_at(g, i, value), now.baseline
    n, length = now.done - base + remaining, s.length + remaining
    debt = required - c.first_low - base * credit_at(g, i, value)
    rate = required if s.length == 0.0 else s.gained / s.length
    v = s.proxy + remaining * c.first_proxy
    if c.bounded == 1:
        x = min(max(part(c, rate, 1.0), 0.0), 1.0)
        coins, grows = x * (1.0 - x), length / (s.length + 1.0)
        hidden = luck(g, i, NOISE, (s.proxy + coins) * grows, (s.tilt + x * coins) * grows)
    else:
        hidden = mixture(v, c.noise_rho, c.noise_level) if v > 0.0 else 0.0
    if c.learned == 1:
        kappa = base - c.r1 * (n + base)
        hidden += abs(kappa) * (s.value_high - s.value_low) / 2
        if s.count > 0.0 and c.joint_level > 0.0:
            hidden = min(hidden, cloud(g, i, v, kappa / s.count))
    return required + (hidden + debt) / n


@inner
def record_returns(now: Any, g: Any, out: Any, shown: Any) -> None:
    """Budgets at a checkpoint."""
    at, least, nothing = now.point, np.inf, g.visits[0]
    out.baseline_share[at] = now.baseline / now.done
    for i in range(len(g.state)):
        budget, unit = true_budget(g, now, i), g.fixed[i].true_unit
        shown.budgets[i, at], shown.ledgers[i, at] = budget, believed(g, now, i, nothing)
        if i == 0 or budget / unit < least:
            least, out.budget[at] = budget / unit, budget
    out.ledger[at] = nearest(now, g, nothing)[1]
