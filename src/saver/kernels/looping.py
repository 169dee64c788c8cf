"""The loop over episodes that are all alike, under any number of guardrails, with a model or without one.

And one episode of it, step by step. What it gives is what the reference gives for trials told at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.kernels.candidates import (
    affordable,
    as_baseline,
    drawn_way,
    drawn_worth,
    foresee,
    instead,
    lowest,
    lowest_drawn,
    reach,
    worths,
)
from saver.kernels.entering import count_truth, enter, teaches
from saver.kernels.forms import DESIGN, EARN, ESTIMATED, EXPLORE, IMPORTANCE, NO_GATE, PAST, SAFE
from saver.kernels.keeping import COUNT
from saver.kernels.ledgers import renew_control
from saver.kernels.rails import COUNTED, MEAN, MIDDLE, SCALE, SEEN, SQUARED, WHERE
from saver.kernels.streams import act, choose, draw, take, uniform, welford
from saver.kernels.tracking import drawn_row, learn, row_of
from saver.problem.checks import LARGEST


@inner
def play_alike(  # noqa: PLR0912  (in the order of the reference)
    scene: Any, rules: Any, plays: Any, run: Any, g: Any, free: Any, candidate: int, until: int, acting: Any,
    world: Any,
) -> Any:  # fmt: skip
    """Episodes up to number `until`, each a `candidate` or what it falls back to; False if one is refused.

    A candidate of the PAST is the baseline of before the campaign, which counts for nothing. Exploring stops
    as soon as enough was explored. `free` is None where there is a model.
    """
    now, past, exploring = run.now, candidate == PAST, candidate == EXPLORE
    candidate = SAFE if past else candidate
    tracked = not past and (rules.explore_tracked if exploring else rules.tracked)
    by_node = rules.explore_by_node if exploring else now.by_node == 1
    first_row = 0 if exploring else rules.first_row
    visits = run.reach.visits if tracked else plays.visits[candidate]
    noise, longest = plays.kinds[candidate].noise, plays.kinds[candidate].longest
    L, steps = len(scene.factor), 0
    same, since = plays.kinds[candidate].same == 1, 0 if tracked else L
    drawn_worths(scene, run, g, free, candidate, visits)
    k = 0 if past else now.done
    while k < until and run.stop[0] == 0:
        # what the candidate would do, and whether it may be played
        if since < L:
            steps, same = tracked_worths(scene, plays, run, g, free, first_row, by_node, since, visits)
            noise, longest = scene.noise[steps], scene.length[steps]
        kind, credited, last = candidate, g.certified and same, (noise, longest)
        for i in range(len(g.state)):
            g.state[i].value = g.state[i].worth
        if g.logs.shape[2] > 0 and not past:
            renew_control(g, now, plays.kinds[SAFE].length)
        if rules.gate != NO_GATE and not credited and not past:
            kind, went = passed(scene, rules, plays, run, g, free, candidate, tracked, steps, visits)
            if kind == EARN:
                last = (scene.noise[went], scene.length[went])
        kind = SAFE if kind == DESIGN and rules.plays_baseline else kind
        credited = credited or kind == SAFE
        learned = past or kind != SAFE or rules.learn_from_baseline

        # the episode, and what it taught
        earns, taught = kind == EARN, not g.certified if past else learned
        follows = earns or (tracked and kind != SAFE)
        choice = run.earner if earns else run.tracker.choice
        taken = walk(
            scene, rules, plays, run, g, free, kind, choice, follows, 0 if earns else first_row,
            earns or by_node, learned, taught, past, world if past else acting, world,
        )  # fmt: skip
        if taken == 0:
            return False
        k += 1
        if free is None:  # noqa: SIM102  (numba looks for just this test)
            if g.drawn and not credited and not tracked:
                credited = drawn_way(scene, plays, run, g, taken)
                last = (scene.noise[taken], scene.length[taken])
        if not past:
            changed = learn(scene, rules, run, kind, taken, learned)
            since = changed if tracked else L

        # the ledgers, and the truth
        way = run.detour.visits if earns else visits
        enter(scene, rules, plays, run, g, kind, tracked, steps, taken, past, credited, taught, way, last)
        if past:
            continue
        if free is not None:  # noqa: SIM102
            if g.certified and not follows and free.drawn[kind] == 1:
                drawn_worth(scene, run, g, taken)
        count_truth(now, g, kind)
        if kind == EXPLORE and now.explored >= rules.explorations and not rules.explore_by_clock:
            break
    return True


@inlined
def drawn_worths(scene: Any, run: Any, g: Any, free: Any, candidate: int, visits: Any) -> None:
    """What a drawn candidate is truly worth."""
    if free is None:
        worths(scene.factor, run.reach, visits, 0, g)
    if free is not None:
        for i in range(len(g.state)):
            g.state[i].worth, g.state[i].believed = free.worth[candidate, i], np.nan


@inlined
def tracked_worths(
    scene: Any, plays: Any, run: Any, g: Any, free: Any, first_row: int, by_node: bool, since: int,
    visits: Any,
) -> Any:  # fmt: skip
    """What a tracked one is worth; its steps, where these are known, and whether it is the baseline."""
    steps, same = 0, False
    if free is None:
        steps, same = reach(scene, run.tracker.choice, first_row, by_node, plays, run.reach)
        worths(scene.factor, run.reach, visits, steps, g)
    if free is not None:
        foresee(scene, run, free, by_node, since, g)
        same = g.certified and as_baseline(scene, run.tracker.choice, 0, by_node, plays)
    return steps, same


@inlined
def passed(
    scene: Any, rules: Any, plays: Any, run: Any, g: Any, free: Any, candidate: int, tracked: bool,
    steps: int, visits: Any,
) -> Any:  # fmt: skip
    """The kind that the gates let pass: the candidate, the earner or the baseline; an earner's steps."""
    if free is None:
        if g.drawn and not tracked:
            lowest_drawn(scene.nodes, plays.behaviour[candidate], g)
        else:
            lowest(scene.factor, run.reach, visits, steps, g)
    if affordable(rules.gate, run.now, g, plays.visits[SAFE]):
        return candidate, 0
    went = 0
    if free is None:  # noqa: SIM102
        if rules.earner:
            went = instead(scene, rules, plays, run, g)
    return EARN if went > 0 else SAFE, went


@inlined
def walk(  # noqa: PLR0912  (every estimator and law in one pass over the steps)
    scene: Any, rules: Any, plays: Any, run: Any, g: Any, free: Any, kind: int, choice: Any, tracked: bool,
    first_row: int, by_node: bool, learned: bool, taught: bool, past: bool, acting: Any, world: Any,
) -> Any:  # fmt: skip
    """Play one episode; return its length, 0 if it is refused. Its sums are kept with each guardrail.

    If it is `learned` the statistics learn from it. The ledgers do if they are `taught`, or learn V0. Where
    there is no model (`free` is not None) it is counted where episodes begin, and where the last action led
    is told too.
    """
    L, A = len(scene.factor), scene.uniform.shape[1]
    weighted = rules.estimate == IMPORTANCE and kind != SAFE
    counted = learned and rules.estimate == ESTIMATED
    random = not tracked and plays.kinds[kind].random == 1
    ratio, weighed, p, taken, r = 1.0, 0.0, 0, 0, 0.0
    for i in range(len(g.state)):
        g.state[i].total = g.state[i].guess = 0.0
    for t in range(L if random else 0):
        run.draws[t] = uniform(acting)
    s = scene.start[choose(world, scene.start_chance, 0, len(scene.start))]
    if free is not None:
        free.starts[s] += learned
    for t in range(L):
        if tracked:
            a = choice[row_of(scene, first_row, by_node, t, s)]
        else:
            row = drawn_row(scene, plays, kind, t, s)
            a = act(plays.policy, row, run.draws[t]) if random else plays.sure[row]
            if weighted:
                ratio /= plays.policy[row, a]
        p = s * A + a
        run.path[t, 0], run.path[t, 1] = s, a
        pair = scene.pairs[p]
        r = draw(world, rules.law, pair.where, pair.scale, scene.rewards)
        if learned:
            take(run.seen, p, r)
        if not observe(rules, run, g, p, scene.factor[t], r, learned, taught, past, world):
            return 0
        if rules.watched and (r < pair.low or r > pair.high):
            return 0
        if weighted:
            ratio *= scene.target_by_step[t if len(scene.target_by_step) > 1 else 0, s, a]
            weighed += scene.factor[t] * ratio * r
        taken = t + 1
        stays = scene.indptr[p] == scene.indptr[p + 1]
        if free is None:
            stays = stays or taken == L
        if stays:
            break
        e = choose(world, scene.chance, scene.indptr[p], scene.indptr[p + 1])
        s = scene.to[e]
        if scene.ends[s]:
            break
        if counted:
            run.moves[0, e] += 1.0
            run.moves[1, e] += r
    over = taken < L
    if free is not None:
        over = scene.indptr[p] == scene.indptr[p + 1] or scene.ends[s]
    if counted and over:
        run.ends[0, p] += 1.0
        run.ends[1, p] += r
    return taken if not weighted or take_weighted(run.now, weighed) else 0


@inlined
def take_weighted(now: Any, x: float) -> Any:
    """An importance-weighted return enters the statistics; False if it is refused."""
    if not abs(x) <= LARGEST:
        return False
    now.weighted += 1
    now.weighted_mean, now.weighted_squares = welford(
        now.weighted, now.weighted_mean, now.weighted_squares, x
    )
    return True


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
            T = table[COUNTED, p] + 1.0
            table[COUNTED, p] = T
            if c.bets == 1:
                table[SEEN, p], table[SQUARED, p] = welford(T, table[SEEN, p], table[SQUARED, p], x)
            elif c.learned == 0 and g.history == 0:  # statistics and ledger see the same
                table[SEEN, p] = table[MEAN, p]
            else:
                table[SEEN, p] += (x - table[SEEN, p]) / T
    return True
