"""How an episode enters the ledgers of all guardrails, and the true account."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import inlined, inner
from saver._types import Floats, Ints
from saver.engine.kernel.candidates import nearest
from saver.engine.kernel.forms import SAFE
from saver.engine.kernel.guards import (
    believed,
    bet_on,
    bet_safely,
    box_pair,
    look_at_value,
    renew_bound,
    renewed_control,
)
from saver.engine.kernel.rails import COUNTED, DESIGNED, EXPECTED, REALISED, SAFELY, SEEN
from saver.engine.kernel.reaching import lower_bound
from saver.safety.capital import bet


class Trip(NamedTuple):
    """Where an episode went."""

    path: Ints  # [L, 2]
    taken: int  # steps
    factor: Floats  # discount^t
    noise: float  # sum of discount^2t over the steps
    length: float  # sum of discount^t
    actions: int


@inner
def enter(
    now: Any, g: Any, trip: Any, past: bool, credited: bool, taught: bool, one_way: bool, visits: Any,
    safe: Any, last: Any,
) -> None:  # fmt: skip
    """`Certified.tell` and `learn`, or what of them the plug-in ledger does.

    `visits` are those expected of what was played, `safe` of the baseline; `last` are the noise and the
    length of all steps that could happen.
    """
    if g.certified:
        for i in range(len(g.state)):
            for t in range(trip.taken if taught or teaches(g.fixed[i], past) else 0):
                box_pair(g, i, pair_at(trip, t))
    for i in range(len(g.state) if g.certified and not past else 0):
        renewed_control(g, now, i, credited)
    if credited:
        count_safe(g, trip, past, safe)
    elif g.certified:
        count_designed(g, trip, one_way, visits, last)
    if not past:
        now.exact += credited
        now.designed += not credited
    for i in range(len(g.state) if g.certified else 0):
        if g.fixed[i].learned == 1 and not past:
            look_at_value(g, i, safe)
        if now.designed > 0 and (not credited or g.fixed[i].paths == 1):
            renew_bound(g, i)


@inlined
def teaches(c: Any, past: bool) -> Any:
    """Whether an episode of the baseline teaches the box of a guardrail, whoever else learns from it."""
    return c.learned == 1 and (c.paths == 1 or not past)


@inlined
def pair_at(trip: Any, t: int) -> Any:
    """The pair of a step."""
    return trip.path[t, 0] * trip.actions + trip.path[t, 1]


@inlined
def count_safe(g: Any, trip: Any, past: bool, safe: Any) -> None:
    """What the baseline earned and where it was, where V0 is learned: `Sums.add_safe`."""
    for i in range(len(g.state)):
        c, s = g.fixed[i], g.state[i]
        if c.learned == 1:
            if c.bets == 1:
                bet_safely(g, i, past, safe)
            s.count += 1.0
            s.safe_gained += s.total
            s.safe_proxy += c.proxy * trip.noise
            s.safe_length += trip.length
    for t in range(trip.taken if g.paths else 0):
        g.visits[SAFELY, pair_at(trip, t)] += trip.factor[t]


@inlined
def count_designed(g: Any, trip: Any, one_way: bool, visits: Any, last: Any) -> None:
    """What a designed trial earned, where it was expected and where it was: `Sums.add`."""
    noise, longest = last
    if g.paths:
        for p in range(0 if one_way else len(visits)):
            g.visits[EXPECTED, p] += visits[p]
        for t in range(trip.taken):
            g.visits[REALISED, pair_at(trip, t)] += trip.factor[t]
            if one_way:
                g.visits[EXPECTED, pair_at(trip, t)] += trip.factor[t]
    for i in range(len(g.state)):
        c, s = g.fixed[i], g.state[i]
        s.gained += s.total
        s.proxy += c.proxy * trip.noise
        s.length += trip.length
        s.last_proxy, s.last_longest, s.last_low = c.proxy * noise, longest, s.low
        s.bound += s.low
        if c.bets == 1:
            y = bet_on(g, i, s.centre)
            s.sum_x += s.centre
            s.sum_v += y * y
            bet(g.logs[DESIGNED, i], g.bets[0, i, 0], y)
        elif c.crosses == 1:
            s.sum_x += s.total - (s.guess - s.centre)
            s.sum_v += c.proxy * noise + longest * s.spread


@inlined
def count_truth(now: Any, g: Any, kind: int) -> None:
    """The true budgets after an episode."""
    now.done += 1
    now.baseline += kind == SAFE
    for i in range(len(g.state)):
        s = g.state[i]
        if kind != SAFE:
            s.earned += s.value
        s.worst = min(s.worst, true_budget(g, now, i))


@inlined
def true_budget(g: Any, now: Any, i: int) -> Any:
    """`Account.budget`."""
    c = g.fixed[i]
    return now.baseline * c.true_value + g.state[i].earned - now.done * c.true_required


@inner
def record_guards(now: Any, g: Any, visited: Any, safe: Any, out: Any, shown: Any) -> None:
    """Budgets at a checkpoint, after all else was recorded."""
    at, least = now.point, np.inf
    for i in range(len(g.state)):
        c, s = g.fixed[i], g.state[i]
        if not g.certified:  # what the plug-in ledger believes
            s.bound = 0.0
            for p in range(len(visited)):
                s.bound += visited[p] * lower_bound(
                    g.tables[i, COUNTED, p], g.tables[i, SEEN, p], 0.0, 0.0, c.floor
                )
        budget = true_budget(g, now, i)
        shown.budgets[i, at], shown.ledgers[i, at] = budget, believed(g, now, i, safe)
        if i == 0 or budget / c.true_unit < least:
            least, out.budget[at] = budget / c.true_unit, budget
    out.ledger[at] = nearest(now, g, safe)[1]
