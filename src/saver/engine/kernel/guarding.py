"""The loop of `kernel.stretch` for several guardrails, costs, and baseline values that are not known.

What it gives is what the reference gives, for trials told at once, behind certified ledgers or behind none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.engine.kernel.candidates import affordable, drawn_way, instead, lowest, lowest_drawn, worths
from saver.engine.kernel.earning import keep_visits
from saver.engine.kernel.entering import Trip, count_truth, enter, teaches
from saver.engine.kernel.following import row_of
from saver.engine.kernel.forms import (
    BY_NODE,
    DESIGN,
    EARN,
    ESTIMATED,
    EXPLORE,
    FIRST,
    IMPORTANCE,
    LENGTH,
    LONGEST,
    NO_GATE,
    NOISE,
    R_HIGH,
    R_LOW,
    R_SCALE,
    R_WHERE,
    RANDOM,
    SAFE,
    SAME,
)
from saver.engine.kernel.guards import box_pair, renew_control
from saver.engine.kernel.keeping import COUNT
from saver.engine.kernel.rails import COUNTED, MEAN, MIDDLE, SCALE, SEEN, SQUARED, WHERE
from saver.engine.kernel.reaching import reach
from saver.engine.kernel.sampling import act, choose, draw, take, welford
from saver.engine.kernel.streams import uniform
from saver.engine.kernel.teaching import learn
from saver.problem.checks import LARGEST

PAST = 4  # a kind of episode: history


@inner
def begin_guards(g: Any) -> None:
    """Nothing known."""
    g.cells.fill(0.0)
    g.visits.fill(0.0)
    g.logs.fill(0.0)
    for i in range(len(g.state)):
        c, s, table = g.fixed[i], g.state[i], g.tables[i]
        s.value_low, s.value_high, s.worst = c.low, c.high, np.inf
        s.last_proxy, s.last_longest, s.last_low = c.first_proxy, c.first_longest, c.first_low
        for p in range(table.shape[1]):
            table[MEAN, p] = table[COUNTED, p] = table[SEEN, p] = table[SQUARED, p] = 0.0
            if g.certified:
                box_pair(g, i, p)


@inner
def stretch_guarded(  # noqa: PLR0912, PLR0915  (in the order of the reference)
    scene: Any, rules: Any, sheets: Any, run: Any, g: Any, candidate: int, until: int, acting: Any, world: Any
) -> Any:
    """`stretch`: episodes up to number `until`, each a `candidate` or what it falls back to.

    A candidate of the PAST is the baseline of before the campaign, which counts for nothing.
    """
    now, past, exploring, safe = run.now, candidate == PAST, candidate == EXPLORE, sheets.visits[SAFE]
    candidate = SAFE if past else candidate
    tracked = not past and (rules.explore_tracked if exploring else rules.tracked)
    by_node = rules.explore_by_node if exploring else now.by_node == 1
    first_row = 0 if exploring else rules.first_row
    visits = run.reach.visits if tracked else sheets.visits[candidate]
    steps, noise, longest = 0, sheets.numbers[candidate, NOISE], sheets.numbers[candidate, LONGEST]
    same, stale = sheets.flags[candidate, SAME] == 1, tracked
    if not tracked:
        worths(scene.factor, run.reach, visits, 0, g)
    k = 0 if past else now.done
    while k < until and run.stop[0] == 0:
        # what the candidate would do, and whether it may be played
        if stale:
            steps, _, _, same = reach(scene, run.tracker.choice, first_row, by_node, sheets, run.reach)
            noise, longest = scene.noise[steps], scene.length[steps]
            worths(scene.factor, run.reach, visits, steps, g)
        kind, credited, last = candidate, g.certified and same, (noise, longest)
        for i in range(len(g.state)):
            g.state[i].value = g.state[i].worth
        if g.logs.shape[2] > 0 and not past:
            renew_control(g, now, sheets.numbers[SAFE, LENGTH])
        if rules.gate != NO_GATE and not credited:
            if g.drawn and not tracked:
                lowest_drawn(scene.nodes, sheets.behaviour[candidate], g)
            else:
                lowest(scene.factor, run.reach, visits, steps, g)
            if not affordable(rules.gate, now, g, safe):
                went = instead(scene, rules, sheets, run, g) if rules.earner else 0
                kind = EARN if went > 0 else SAFE
                if went > 0:
                    last = (scene.noise[went], scene.length[went])
        kind = SAFE if kind == DESIGN and rules.plays_baseline else kind
        credited = credited or kind == SAFE
        learned = past or kind != SAFE or rules.learn_from_baseline

        # the episode, and what it taught
        earns, taught = kind == EARN, not g.certified if past else learned
        taken = walk(
            scene, rules, sheets, run, g, kind, run.earner if earns else run.tracker.choice,
            earns or (tracked and kind != SAFE), 0 if earns else first_row, earns or by_node, learned, taught,
            past, world if past else acting, world,
        )  # fmt: skip
        if taken == 0:
            return False
        k += 1
        if g.drawn and not credited and not tracked:
            credited = drawn_way(scene, sheets, run, g, taken)
            last = (scene.noise[taken], scene.length[taken])
        stale = not past and learn(scene, rules, run, kind, taken, learned) and tracked

        # the ledgers, and the truth
        trip = Trip(
            run.path, taken, scene.factor, scene.noise[taken], scene.length[taken], scene.uniform.shape[1]
        )
        way = run.detour.visits if earns else visits
        enter(now, g, trip, past, credited, taught, scene.one_way, way, safe, last)
        if past:
            continue
        if rules.keeps_visits:
            keep_visits(scene, rules, sheets, run, kind, tracked, steps, taken)
        count_truth(now, g, kind)
        if kind == EXPLORE:
            now.explored += 1
            if now.explored >= rules.explorations and not rules.explore_by_clock:
                break
    return True


@inlined
def walk(  # noqa: PLR0912  (every estimator and law in one pass over the steps)
    scene: Any, rules: Any, sheets: Any, run: Any, g: Any, kind: int, choice: Any, tracked: bool,
    first_row: int, by_node: bool, learned: bool, taught: bool, past: bool, acting: Any, world: Any,
) -> Any:  # fmt: skip
    """Play one episode; return its length, 0 if it is refused.

    If it is `learned` the statistics learn from it. The ledgers do if they are `taught`, or learn V0.
    """
    L, A, pairs = len(scene.factor), scene.uniform.shape[1], scene.pairs
    weighted = rules.estimate == IMPORTANCE and kind != SAFE
    random = not tracked and sheets.flags[kind, RANDOM] == 1
    ratio, weighed, p, taken = 1.0, 0.0, 0, 0
    for i in range(len(g.state)):
        g.state[i].total = g.state[i].guess = 0.0
    if random:
        for t in range(L):
            run.draws[t] = uniform(acting)
    s = scene.start[choose(world, scene.start_chance, 0, len(scene.start))]
    for t in range(L):
        if tracked:
            a = choice[row_of(scene, first_row, by_node, t, s)]
        else:
            row = row_of(scene, sheets.flags[kind, FIRST], sheets.flags[kind, BY_NODE] == 1, t, s)
            a = act(sheets.policy, row, run.draws[t]) if random else sheets.sure[row]
            if weighted:
                ratio /= sheets.policy[row, a]
        p = s * A + a
        run.path[t, 0], run.path[t, 1] = s, a
        r = draw(world, rules.laws[0], pairs[p, R_WHERE], pairs[p, R_SCALE], scene.rewards)
        if learned:
            take(run.seen, p, r, 0.0)
        if not observe(rules, run, g, p, scene.factor[t], r, learned, taught, past, world):
            return 0
        if rules.watched and (r < pairs[p, R_LOW] or r > pairs[p, R_HIGH]):
            return 0
        if weighted:
            ratio *= scene.target_by_step[t if len(scene.target_by_step) > 1 else 0, s, a]
            weighed += scene.factor[t] * ratio * r
        taken = t + 1
        if taken == L or scene.indptr[p] == scene.indptr[p + 1]:
            break
        e = choose(world, scene.chance, scene.indptr[p], scene.indptr[p + 1])
        s = scene.to[e]
        if scene.ends[s]:
            break
        if rules.estimate == ESTIMATED and learned:
            run.moves[e] += 1.0
            run.paid[e] += r
    if rules.estimate == ESTIMATED and learned and taken < L:
        run.ends[p] += 1.0
        run.ends_paid[p] += r
    if weighted:
        if not abs(weighed) <= LARGEST:
            return 0
        now = run.now
        now.weighted += 1
        now.weighted_mean, now.weighted_squares = welford(
            now.weighted, now.weighted_mean, now.weighted_squares, weighed
        )
    return taken


@inlined
def observe(
    rules: Any, run: Any, g: Any, p: int, factor: float, r: float, learned: bool, taught: bool, past: bool,
    world: Any,
) -> Any:  # fmt: skip
    """Draw what is guarded and learn from it, in the order of the world's laws; False if it is refused."""
    for j in range(len(g.state)):
        i = g.fixed[j].draws
        c, s, table, x = g.fixed[i], g.state[i], g.tables[i], r
        if not rules.shared:
            x = draw(world, c.law, table[WHERE, p], table[SCALE, p], g.data)
        x *= c.sign
        if x < c.least or x > c.most:
            return False
        s.total += factor * x
        s.guess += factor * table[MIDDLE, p]
        if learned:
            table[MEAN, p] += (x - table[MEAN, p]) / run.seen[p, COUNT]
        if taught or teaches(c, past):
            table[COUNTED, p] += 1.0
            table[SEEN, p], table[SQUARED, p] = welford(
                table[COUNTED, p], table[SEEN, p], table[SQUARED, p], x
            )
    return True
