"""The ledgers of returns in compiled form: `Returns`, `LearnedReturns` and `PluginReturns`, told at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner, jit
from saver.engine.kernel.candidates import nearest
from saver.engine.kernel.entering import true_budget
from saver.engine.kernel.guards import believed, cloud, credit_at, means_seen, required_at, value_of
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
def luck(g: Any, i: int, which: int, Q: float) -> Any:
    """`Returns.luck`, by the rule of designed trials or that of V0."""
    rates = g.rates[which, i]
    return g.fixed[i].span * excess(Q, Bernstein(rates[0], rates[1], rates[2]))


@inlined
def part(c: Any, total: float, n: float) -> Any:
    """`Returns.part`: what n trials have earned, each taken to [0, 1]."""
    return (total - c.first_low * n) / c.span


@inlined
def added(c: Any, earned: float, total: float, n: float, believed: float) -> Any:
    """What a trial adds to v, or to Q: there it is compared with what was guessed before."""
    if c.bounded == 0:
        return c.first_proxy
    return (part(c, earned, 1.0) - guessed(n, part(c, total, n), part(c, believed, 1.0))) ** 2


@inner
def enter_returns(now: Any, g: Any, past: bool, credited: bool) -> None:
    """What an episode earned, into the ledgers: `Returns.tell` and `learn`, or `PluginReturns`."""
    for i in range(len(g.state)):
        c, s = g.fixed[i], g.state[i]
        if credited and c.learned == 1:
            s.safe_proxy += added(c, s.total, s.safe_gained, s.count, np.nan) if g.certified else 0.0
            s.count += 1.0
            s.safe_gained += s.total
            if g.certified and not past:
                look_at_value(g, i)
        elif not credited and not g.certified:
            s.bound += s.total
        elif not credited:
            s.proxy += added(c, s.total, s.gained, s.length, s.believed)
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
        return s.gained - luck(g, i, NOISE, s.proxy)
    return s.gained - mixture(s.proxy, c.noise_rho, c.noise_level) if s.proxy > 0.0 else s.gained


@inlined
def look_at_value(g: Any, i: int) -> None:
    """`Learned.look_at_value`, where V0 is the mean of what was seen."""
    s = g.state[i]
    if g.fixed[i].bounded == 1:
        slack = luck(g, i, VALUE, s.safe_proxy)
        below, above = s.safe_gained - slack, s.safe_gained + slack
    else:
        below, above = means_seen(g, i)
    s.value_low = max(s.value_low, below / s.count)
    s.value_high = max(s.value_low, min(s.value_high, above / s.count))


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
        hidden = luck(g, i, NOISE, (s.proxy + x * (1.0 - x)) / (s.length + 1.0) * length)
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
