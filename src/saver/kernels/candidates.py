"""Where a policy goes, what it is worth, whether all guardrails let it pass, and what is played instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.kernels.forms import PROSPECTIVE, SAFE
from saver.kernels.ledgers import after, believed, likely_mean, required_at, value_of
from saver.kernels.rails import HALF, LIKELY, LOWER, MIDDLE, TRUE
from saver.kernels.tracking import drawn_row, row_at
from saver.play.nodes import richest
from saver.play.stage import farthest
from saver.problem.moving import earned


@inlined
def worths(factor: Any, r: Any, visits: Any, steps: int, g: Any) -> None:
    """What a candidate is truly worth."""
    for i in range(len(g.state)):
        g.state[i].worth = along(factor, r, visits, steps, g.tables[i, TRUE])


@inlined
def lowest(factor: Any, r: Any, visits: Any, steps: int, g: Any) -> None:
    """`Ledger.lower` of a candidate by each guardrail; V(b; m) and V(b; h^2) too where they are asked."""
    for i in range(len(g.state)):
        s, table = g.state[i], g.tables[i]
        if g.fixed[i].crosses == 0:
            s.low = along(factor, r, visits, steps, table[LOWER])
            continue
        low, centre, spread = 0.0, 0.0, 0.0
        for p in range(unsigned(len(visits))):
            x, h = visits[p], table[HALF, p]
            low += x * table[LOWER, p]
            centre += x * table[MIDDLE, p]
            spread += x * h * h
        for t in range(steps if len(visits) == 0 else 0):
            for j in range(r.layer[t], r.layer[t + 1]):
                p, x = r.pair[r.node[j]], factor[t] * r.mass[r.node[j]]
                low += x * table[LOWER, p]
                centre += x * table[MIDDLE, p]
                spread += x * table[HALF, p] * table[HALF, p]
        s.low, s.centre, s.spread = low, centre, spread


@inner
def lowest_drawn(nodes: Any, behaviour: Any, g: Any) -> None:
    """The same of the worst that a policy can draw, where draws decide all."""
    for i in range(len(g.state)):
        g.state[i].low = -farthest(nodes, behaviour, g.shaped[i, LOWER], -1.0)


@inlined
def affordable(gate: int, now: Any, g: Any, safe: Any) -> Any:
    """Whether every guardrail's gate lets the candidate pass."""
    for i in range(len(g.state)):
        found = after(g, now, i, safe) if gate == PROSPECTIVE else believed(g, now, i, safe)
        if found < -g.fixed[i].tolerance:
            return False
    return True


@inner
def nearest(now: Any, g: Any, safe: Any) -> Any:
    """The guardrail whose believed budget is the least, in units of what is required, and that budget."""
    at, least, kept = 0, np.inf, 0.0
    for i in range(len(g.state)):
        found, unit = believed(g, now, i, safe), abs(required_at(g, i, value_of(g, i)))
        if unit == 0.0:
            unit = g.fixed[i].unit if g.fixed[i].unit > 0.0 else 1.0
        if i == 0 or found / unit < least:
            at, least, kept = i, found / unit, found
    return at, kept


@inlined
def instead(scene: Any, rules: Any, plays: Any, run: Any, g: Any) -> Any:
    """`fall_back`: the steps of the earner, 0 for the baseline."""
    m, r, safe = len(g.state), run.detour, plays.visits[SAFE]
    at = nearest(run.now, g, safe)[0] if m > 1 else 0
    for i in range(m):
        for p in range(len(run.seen)):
            g.tables[i, LIKELY, p] = likely_mean(g, run.seen, i, p)
    surely, likely = richest(scene.nodes, g.shaped[at, LOWER], g.shaped[at, LIKELY], run.earner)
    if (surely + likely) / 2 < value_of(g, at):
        return 0
    steps, same = reach(scene, run.earner, 0, True, plays, r)
    if same:
        return 0
    for i in range(m):
        surely = along(scene.factor, r, r.visits, steps, g.tables[i, LOWER])
        likely = along(scene.factor, r, r.visits, steps, g.tables[i, LIKELY])
        if i != at and (surely + likely) / 2 < value_of(g, i):
            return 0
    lowest(scene.factor, r, r.visits, steps, g)
    if not affordable(rules.gate, run.now, g, safe):
        return 0
    for i in range(m):
        g.state[i].value = along(scene.factor, r, r.visits, steps, g.tables[i, TRUE])
    return steps


@inlined
def drawn_way(scene: Any, plays: Any, run: Any, g: Any, taken: int) -> Any:
    """What the draws made of a policy: worth, lower values, and whether it went as the baseline does."""
    A, same = scene.uniform.shape[1], True
    for t in range(taken):
        s, a = run.path[t, 0], run.path[t, 1]
        safe = drawn_row(scene, plays, SAFE, t, s)
        same = same and plays.policy[safe, a] == 1.0
    drawn_worth(scene, run, g, taken)
    for i in range(len(g.state)):
        one, table = g.state[i], g.tables[i]
        one.low = one.centre = one.spread = 0.0
        for t in range(taken):
            p, factor = run.path[t, 0] * A + run.path[t, 1], scene.factor[t]
            one.low += factor * table[LOWER, p]
            one.centre += factor * table[MIDDLE, p]
            one.spread += factor * table[HALF, p] * table[HALF, p]
    return same


@inlined
def unsigned(i: int) -> Any:
    """An index known not to be negative: compiled code then spends nothing on counting from the end."""
    return np.uint64(i)


@inlined
def reach(scene: Any, choice: Any, first_row: int, by_node: bool, plays: Any, r: Any) -> Any:
    """Where the tracked policy goes, step by step: list the nodes of `r`, with their pair and probability.

    Once it went to more than half of all nodes the list holds all, some with probability 0: then it need not
    be made again. Return the number of steps, and whether the baseline goes there too.
    """
    if len(r.visits) > 0 and r.layer[-1] == len(scene.nodes.state):
        return flood(scene, choice, first_row, by_node, plays, r)
    steps, same = listed(scene, choice, first_row, by_node, plays, r)
    for t in range(steps if len(r.visits) > 0 else 0):
        for j in range(r.layer[t], r.layer[t + 1]):
            r.visits[r.pair[r.node[j]]] += scene.factor[t] * r.mass[r.node[j]]
    return steps, same


@inlined
def flood(scene: Any, choice: Any, first_row: int, by_node: bool, plays: Any, r: Any) -> Any:
    """`reach` for policies that go nearly everywhere: the visits of pairs, and no list."""
    nodes, A, L, steps = scene.nodes, unsigned(scene.uniform.shape[1]), len(scene.slot), 0
    for i in range(len(nodes.state)):
        r.mass[i] = 0.0
    for p in range(len(r.visits)):
        r.visits[p] = 0.0
    for i in range(len(scene.start)):
        r.mass[scene.slot[0, scene.start[i]]] = scene.start_chance[i]
    for t in range(L):
        alive, factor, row = 0.0, scene.factor[t], unsigned(first_row)
        for j in range(nodes.layer[t], nodes.layer[t + 1]):
            i = unsigned(j)
            s, mass = unsigned(nodes.state[i]), r.mass[i]
            p = s * A + unsigned(choice[row_at(row, by_node, i, s)])
            alive += mass
            r.visits[p] += factor * mass
            if t + 1 < L:
                for e in range(unsigned(nodes.indptr[p]), unsigned(nodes.indptr[p + unsigned(1)])):
                    r.mass[unsigned(scene.slot[t + 1, unsigned(nodes.indices[e])])] += mass * nodes.data[e]
        if alive == 0.0:
            break
        steps = t + 1
    return steps, as_baseline(scene, choice, first_row, by_node, plays)


@inlined
def as_baseline(scene: Any, choice: Any, first_row: int, by_node: bool, plays: Any) -> Any:
    """Whether the tracked policy agrees with the baseline wherever the baseline goes."""
    for i in scene.safe_nodes:
        s = scene.nodes.state[i]
        safe = row_at(plays.kinds[SAFE].first, plays.kinds[SAFE].by_node == 1, i, s)
        if plays.policy[safe, choice[row_at(first_row, by_node, i, s)]] < 1.0:
            return False
    return True


@inlined
def listed(scene: Any, choice: Any, first_row: int, by_node: bool, plays: Any, r: Any) -> Any:
    """`reach` but for the visits of pairs, which are set to 0."""
    nodes, A, L = scene.nodes, scene.uniform.shape[1], len(scene.slot)
    n, begin, steps, same = 0, 0, 0, True
    safe_first, safe_by_node = plays.kinds[SAFE].first, plays.kinds[SAFE].by_node == 1
    full = r.layer[-1] == len(nodes.state)
    for j in range(r.layer[-1]):
        r.mass[r.node[j]] = 0.0
    for p in range(len(r.visits)):
        r.visits[p] = 0.0
    for i in range(len(scene.start)):
        r.node[n] = scene.slot[0, scene.start[i]]
        r.mass[r.node[n]] = scene.start_chance[i]
        n += 1
    for t in range(L):
        end, alive = nodes.layer[t + 1] if full else n, False
        for j in range(begin, end):
            i = r.node[j]
            s, mass = nodes.state[i], r.mass[i]
            a = choice[row_at(first_row, by_node, i, s)]
            p = s * A + a
            r.pair[i] = p
            alive = alive or mass > 0.0
            safe = row_at(safe_first, safe_by_node, i, s)
            same = same and (plays.policy[safe, a] == 1.0 or mass == 0.0)
            if t + 1 < L:
                for e in range(unsigned(nodes.indptr[p]), unsigned(nodes.indptr[p + 1])):
                    q, x = unsigned(scene.slot[t + 1, unsigned(nodes.indices[e])]), mass * nodes.data[e]
                    if not full and r.mass[q] == 0.0 and x > 0.0:
                        r.node[n] = q
                        n += 1
                    r.mass[q] += x
        if not alive:
            break
        r.layer[t], begin, steps = begin, end, t + 1
    r.layer[steps] = begin
    r.layer[-1] = len(nodes.state) if full else n
    if not full and 2 * n > len(nodes.state):
        for i in range(len(nodes.state)):
            s = nodes.state[i]
            r.node[i], r.pair[i] = i, s * A + choice[row_at(first_row, by_node, i, s)]
        r.layer[-1] = len(nodes.state)
        for t in range(steps + 1):
            r.layer[t] = nodes.layer[t]
    return steps, same


@inlined
def along(factor: Any, r: Any, visits: Any, steps: int, table: Any) -> Any:
    """V(b; table), by its visits where these are known, else by the nodes of `r`."""
    total = 0.0
    for p in range(unsigned(len(visits))):
        total += visits[p] * table[p]
    for t in range(steps if len(visits) == 0 else 0):
        for j in range(r.layer[t], r.layer[t + 1]):
            i = unsigned(r.node[j])
            total += factor[t] * r.mass[i] * table[unsigned(r.pair[i])]
    return total


@inlined
def foresee(scene: Any, run: Any, free: Any, by_node: bool, since: int, g: Any) -> None:
    """What an episode is truly worth, and `decide.foreseen`: what the plan believes that it will earn."""
    goes(scene, free.truth, run.tracker.choice, by_node, since)
    for i in range(len(g.state)):
        g.state[i].worth = free.truth.sums[len(scene.factor), i]
    if len(free.belief.start) > 0:
        goes(scene, free.belief, run.tracker.choice, by_node, since)
        for i in range(len(g.state)):
            g.state[i].believed = free.belief.sums[len(scene.factor), i]


@inlined
def goes(scene: Any, to: Any, choice: Any, by_node: bool, since: int) -> None:
    """Follow the tracked policy from a step on."""
    earned(
        to.indptr, to.indices, to.data, to.start, choice, scene.slot, by_node, scene.factor, to.gains, since,
        to.mass, to.sums,
    )  # fmt: skip


@inlined
def drawn_worth(scene: Any, run: Any, g: Any, taken: int) -> None:
    """What an episode is truly worth where its draws decide where it goes."""
    A = scene.uniform.shape[1]
    for i in range(len(g.state)):
        g.state[i].value = 0.0
        for t in range(taken):
            p = run.path[t, 0] * A + run.path[t, 1]
            g.state[i].value += scene.factor[t] * g.tables[i, TRUE, p]
