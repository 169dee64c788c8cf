"""The loop of `kernel.stretch` for several guardrails, costs, and baseline values that are not known.

What it gives is what the reference gives, for trials told at once, behind certified ledgers or behind none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner
from saver.engine.kernel.candidates import affordable, drawn_way, instead, lowest, lowest_drawn, worths
from saver.engine.kernel.earning import keep_visits
from saver.engine.kernel.entering import Trip, count_truth, enter
from saver.engine.kernel.forms import (
    DESIGN,
    EARN,
    EXPLORE,
    LENGTH,
    LONGEST,
    NO_GATE,
    NOISE,
    SAFE,
    SAME,
)
from saver.engine.kernel.guards import box_pair, renew_control
from saver.engine.kernel.rails import COUNTED, MEAN, SEEN, SQUARED
from saver.engine.kernel.reaching import reach
from saver.engine.kernel.teaching import learn
from saver.engine.kernel.walking import walk

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
            scene, rules, sheets, run, g, None, kind, run.earner if earns else run.tracker.choice,
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
