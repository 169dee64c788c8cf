"""How an episode enters the ledgers of all guardrails, and the true account."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner, jit
from saver.kernels import rails
from saver.kernels.bounds.capital import bet
from saver.kernels.candidates import along, unsigned
from saver.kernels.forms import DESIGN, EXPLORE, LATEST, PAPER, PLUGIN, SAFE
from saver.kernels.keeping import COUNT
from saver.kernels.ledgers import (
    bet_on,
    bet_safely,
    box_pair,
    look_at_value,
    renew_bound,
    renewed_control,
    returned,
)


@inner
def begin_ledgers(rules: Any, g: Any) -> None:
    """Nothing known."""
    g.cells.fill(0.0)
    g.visits.fill(0.0)
    g.logs.fill(0.0)
    for i in range(len(g.state)):
        c, s, table = g.fixed[i], g.state[i], g.tables[i]
        s.value_low, s.value_high, s.low = c.low, c.high, c.first_low
        s.last_proxy, s.last_longest, s.last_low = c.first_proxy, c.first_longest, c.first_low
        s.worst = np.inf
        for column in (rails.MEAN, rails.COUNTED, rails.SEEN, rails.SQUARED, rails.TERMS):
            table[column].fill(0.0)
        for p in range(table.shape[1]):
            learn_pair(rules, g, i, p)


@inlined
def learn_pair(rules: Any, g: Any, i: int, p: int) -> None:
    """What is known of a pair now: the certificate's box, or the paper's lower bound."""
    c, table = g.fixed[i], g.tables[i]
    T, mean = table[rails.COUNTED, p], table[rails.SEEN, p]
    if len(g.depth) > T:
        table[rails.LOWER, p] = max(mean - g.depth[unsigned(int(T))], c.floor)
    elif g.certified and c.model_free == 0:
        box_pair(g, i, p)
    elif not g.certified:
        scale = c.noise if rules.ledger in (PAPER, LATEST) else 0.0
        table[rails.LOWER, p] = max(mean - scale * (rules.width / T**0.5), c.floor) if T > 0.0 else c.floor


@inlined
def teaches(c: Any, past: bool) -> Any:
    """Whether an episode of the baseline teaches the box of a guardrail, whoever else learns from it."""
    return c.learned == 1 and c.model_free == 0 and (c.paths == 1 or not past)


@inlined
def enter(  # noqa: PLR0912  (one step of the argument after the other)
    scene: Any, rules: Any, plays: Any, run: Any, g: Any, kind: int, tracked: bool, steps: int, taken: int,
    past: bool, credited: bool, taught: bool, visits: Any, last: Any,
) -> None:  # fmt: skip
    """What ledgers do when a trial is asked and told; one of the past is told alone.

    `visits` are those expected of what was played, [pairs], or none where `run.reach` has it node by node;
    `last` are the noise and the length of all steps that could happen.
    """
    now, safe, A = run.now, plays.visits[SAFE], scene.uniform.shape[1]
    for i in range(len(g.state)):
        for t in range(taken if taught or teaches(g.fixed[i], past) else 0):
            learn_pair(rules, g, i, run.path[t, 0] * A + run.path[t, 1])
        if g.certified and not past:
            renewed_control(g, now, i, credited)
    if credited:
        count_safe(scene, run, g, taken, past, safe)
    elif g.certified:
        count_designed(scene, run, g, taken, visits, last)
    else:
        for i in range(len(g.state)):
            s = g.state[i]
            if g.fixed[i].model_free == 1:
                s.bound += s.total
            elif rules.ledger == PAPER:
                s.bound += along(scene.factor, run.reach, visits, steps, g.tables[i, rails.LOWER])
    if not past:
        now.exact += credited
        now.designed += not credited
    for i in range(len(g.state) if g.certified else 0):
        if g.fixed[i].learned == 1 and not past and (credited or g.fixed[i].paths == 1):
            look_at_value(g, i, safe)
        if now.designed > 0 and (not credited or g.fixed[i].paths == 1):
            if now.units == now.designed and now.units < len(g.table):
                g.state[i].bound = max(g.state[i].bound, g.state[i].gained - g.table[unsigned(now.units)])
            else:
                renew_bound(g, i)
    if rules.keeps_visits and not past:
        keep_visits(scene, rules, plays, run, g, kind, tracked, steps, taken)


@inlined
def count_safe(scene: Any, run: Any, g: Any, taken: int, past: bool, safe: Any) -> None:
    """What the baseline earned and where it was, where V0 is learned: `Tallying.add_safe`."""
    for i in range(len(g.state)):
        c, s = g.fixed[i], g.state[i]
        if c.learned == 1:
            if c.bets == 1:
                bet_safely(g, i, past, safe)
            v, R = c.proxy * scene.noise[taken], 0.0
            if c.model_free == 1:
                v, R = returned(c, s.total, s.safe_gained, s.count, np.nan)
            s.count += 1.0
            s.safe_gained += s.total
            s.safe_proxy += v
            s.safe_guessed += R
            s.safe_length += scene.length[taken]
    if g.paths:
        note_way(scene, run, g, rails.SAFELY, taken)


@inlined
def count_designed(scene: Any, run: Any, g: Any, taken: int, visits: Any, last: Any) -> None:
    """What a designed trial earned, where it was expected and where it was: `Tallying.add`."""
    noise, longest = last
    if g.paths:
        for p in range(0 if scene.one_way else len(visits)):
            g.visits[rails.EXPECTED, p] += visits[p]
        if scene.one_way:
            note_way(scene, run, g, rails.EXPECTED, taken)
        note_way(scene, run, g, rails.REALISED, taken)
    for i in range(len(g.state)):
        c, s = g.fixed[i], g.state[i]
        s.bound += s.low
        if c.model_free == 1:
            v, R = returned(c, s.total, s.gained, s.length, s.believed)
            s.gained, s.proxy, s.guessed, s.length = (
                s.gained + s.total, s.proxy + v, s.guessed + R, s.length + 1.0,
            )  # fmt: skip
            continue
        v = c.proxy * scene.noise[taken]
        run.now.units += v == c.full
        s.gained += s.total
        s.proxy += v
        s.length += scene.length[taken]
        s.last_proxy, s.last_longest, s.last_low = c.proxy * noise, longest, s.low
        if c.bets == 1:
            y = bet_on(g, i, s.centre)
            s.sum_x += s.centre
            s.sum_v += y * y
            bet(g.logs[rails.DESIGNED, i], g.bets[0, i, 0], y)
        elif c.crosses == 1:
            s.sum_x += s.total - (s.guess - s.centre)
            s.sum_v += c.proxy * noise + longest * s.spread


@inlined
def note_way(scene: Any, run: Any, g: Any, row: int, taken: int) -> None:
    """Where an episode was, discounted."""
    A = scene.uniform.shape[1]
    for t in range(taken):
        g.visits[row, run.path[t, 0] * A + run.path[t, 1]] += scene.factor[t]


# -- sums of expected visits times lower bounds: the ledgers of the paper's proof ---------------------------


@inlined
def keep_visits(
    scene: Any, rules: Any, plays: Any, run: Any, g: Any, kind: int, tracked: bool, steps: int, taken: int
) -> None:
    """Expected visits of the designed episodes, and the sum that `latest` and `plugin` make of them."""
    A, r, sums = scene.uniform.shape[1], run.reach, rules.ledger in (LATEST, PLUGIN)
    if kind != SAFE and tracked:
        for t in range(steps):
            for i in r.node[r.layer[t] : r.layer[t + 1]]:
                run.visited[r.pair[i]] += scene.factor[t] * r.mass[i]
                if sums:
                    renew_term(run.visited, g, r.pair[i])
    elif kind == EXPLORE:
        run.now.uncounted_explore += 1
    elif kind == DESIGN:
        run.now.uncounted += 1
    if sums:
        for t in range(taken):
            renew_term(run.visited, g, run.path[t, 0] * A + run.path[t, 1])
        run.now.since += 1
        if run.now.since >= len(run.visited) or (kind != SAFE and not tracked):
            add_up(plays.weights, run.visited, run.now, g)


@inlined
def renew_term(visited: Any, g: Any, p: int) -> None:
    """Bring one term of the sum up to date."""
    for i in range(len(g.state)):
        term = visited[p] * g.tables[i, rails.LOWER, p]
        g.state[i].bound += term - g.tables[i, rails.TERMS, p]
        g.tables[i, rails.TERMS, p] = term


@inner
def add_up(weights: Any, visited: Any, now: Any, g: Any) -> None:
    """The whole sum, anew."""
    flush(weights, visited, now)
    for i in range(len(g.state)):
        g.state[i].bound = 0.0
        for p in range(len(visited)):
            g.tables[i, rails.TERMS, p] = visited[p] * g.tables[i, rails.LOWER, p]
            g.state[i].bound += g.tables[i, rails.TERMS, p]
    now.since = 0


@jit
def flush(weights: Any, visited: Any, now: Any) -> None:
    """Count the expected visits of the drawn policies that were only numbered so far."""
    A = weights.shape[2]
    for p in range(len(visited)):
        s, a = p // A, p % A
        visited[p] += now.uncounted_explore * weights[EXPLORE, s, a]
        visited[p] += now.uncounted * weights[DESIGN, s, a]
    now.uncounted = 0
    now.uncounted_explore = 0


@inlined
def keep_sums(now: Any, state: Any, counts: Any, sums: Any) -> None:
    """What stood in registers."""
    now.done, now.explored, now.baseline, now.exact, now.designed, now.units = counts
    state.earned, state.worst, state.bound, state.gained, state.proxy, state.length = sums


@inlined
def keep_means(certified: bool, seen: Any, table: Any, floor: float) -> None:
    """What sums of expected visits are made of at checkpoints, where no ledger is: see `add_up`."""
    for p in range(0 if certified else len(seen)):
        table[rails.COUNTED, p], table[rails.SEEN, p] = seen[p, COUNT], table[rails.MEAN, p]
        table[rails.LOWER, p] = max(table[rails.MEAN, p], floor) if seen[p, COUNT] > 0.0 else floor


# -- the truth ---------------------------------------------------------------------------------------------


@inlined
def count_truth(now: Any, g: Any, kind: int) -> None:
    """The true budgets after an episode."""
    now.done += 1
    now.baseline += kind == SAFE
    now.explored += kind == EXPLORE
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
