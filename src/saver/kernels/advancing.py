"""The compiled loop: `reference.run_once` for every collector, on plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner, loop
from saver.kernels.believing import next_plan
from saver.kernels.checkpoints import fold, record, weigh
from saver.kernels.entering import begin_ledgers
from saver.kernels.forms import DESIGN, ESTIMATED, EXPLORE, FIXED, OUTSIDE, PAST, SAFE
from saver.kernels.keeping import Out
from saver.kernels.ledgers import look_at_value
from saver.kernels.looping import play_alike
from saver.kernels.onestep import play_one_step
from saver.kernels.oneway import play_one_way
from saver.kernels.replanning import plan
from saver.kernels.tracking import rate_all

FINISHED, PAUSED, PLAN, CHECK, REFUSED = range(5)  # why the loop returned
NEVER, NOTHING = 2**62, -1  # a plan's number; episodes of a run that has not begun


@inner
def begin(scene: Any, rules: Any, run: Any, g: Any) -> None:
    """An empty campaign."""
    now, row = run.now, run.now.row
    run.cells.fill(0)
    now.row = row
    run.seen.fill(0.0)
    for p in range(len(rules.needed)):
        run.needed[p] = rules.needed[p]
    for i in range(len(rules.head_start)):
        for a in range(rules.head_start.shape[1]):
            run.tracker.T[i, a] = rules.head_start[i, a]
    run.node_visits.fill(0.0)
    run.visited.fill(0.0)
    for zeros in (run.moves, run.ends, run.scales.pairs, run.scales.sums):
        zeros.fill(0.0)
    run.scales.each.fill(0.0)
    for reach in (run.reach, run.detour):  # nodes are listed, and sums are added up, as in any other run
        reach.layer[-1] = 0
        reach.mass.fill(0.0)
    run.mark.fill(False)
    run.dirty_count.fill(0)
    run.spread.fill(0.0)
    now.whole = rules.whole_plans
    now.next_plan = NEVER if rules.plan == FIXED else 1
    now.enough = 1
    now.by_node = rules.design_by_node
    now.past = g.history > 0
    begin_ledgers(rules, g)
    follow(scene, rules, run)


@inner
def follow(scene: Any, rules: Any, run: Any) -> None:
    """What the tracker does first."""
    now = run.now
    if rules.plan == FIXED and rules.tracked:
        now.planned = 1
        states = scene.nodes.state if rules.design_by_node else scene.every
        rate_all(run.tracker, rules.first_row, states, now.enough, run.needed, run.seen)
    if rules.explore_tracked and rules.explorations > 0:
        states = scene.nodes.state if rules.explore_by_node else scene.every
        rate_all(run.tracker, np.int64(0), states, np.int64(0), run.needed, run.seen)  # no twin for a literal


@inlined
def remembered(scene: Any, rules: Any, plays: Any, run: Any, g: Any) -> None:
    """Logged baseline episodes were drawn: what they say, and have not to say again."""
    run.now.past = 0
    for i in range(len(g.state) if g.certified else 0):
        if g.fixed[i].learned == 1:
            look_at_value(g, i, plays.visits[SAFE])
    follow(scene, rules, run)
    if rules.weighing.wanted:
        fold(rules, run)  # what was seen before has no weight


@loop
def advance(  # noqa: PLR0912  (every kind of event in one place)
    scene: Any, rules: Any, plays: Any, run: Any, g: Any, free: Any, several: Any, general: Any,
    one_way: Any, one_step: Any, outs: Any, acting: Any, world: Any, most: int,
) -> Any:  # fmt: skip
    """Play run after run, one for each row of `outs`, until the end of the last, `most` episodes of one, or
    something that only the caller can do.

    Between two events (a plan, a checkpoint, the end of exploration, the middle) episodes are all alike. What
    does not apply is None: `free`, where there is a model; `several`, of one guardrail; and two of the loops,
    `general`, `one_way` and `one_step`. What a test for just that leaves out is not compiled.
    """
    now, K = run.now, rules.episodes
    while True:
        out, i = row_of_runs(outs, now.row), now.row
        if now.done == NOTHING:
            begin(scene, rules, run, g)
            if free is not None:
                free.starts.fill(0.0)
        last = min(K, now.done + most)
        while now.done < last and run.stop[0] == 0:
            kind, until = PAST, g.history
            if not now.past:
                until = min(last, out.checkpoints[now.point])
                kind, until = upcoming(scene, rules, run, g, several, general, until)
                if kind == NOTHING:
                    return PLAN
            fine = True
            if general is not None:
                fine = play_alike(scene, rules, plays, run, g, free, kind, until, acting[i], world[i])
            if one_way is not None:
                fine = play_one_way(scene, rules, plays, run, g, kind, until, world[i])
            if one_step is not None:
                fine = play_one_step(scene, rules, plays, run, g, kind, until, world[i])
            if not fine:
                return REFUSED
            if general is not None:  # noqa: SIM102  (numba looks for just this test)
                if now.past:
                    remembered(scene, rules, plays, run, g)
                    continue
            if now.done == out.checkpoints[now.point]:
                record(scene, rules, plays, run, g, out, general)
                now.point += 1
                if rules.estimate == ESTIMATED:
                    return CHECK
        if now.done < K:
            return PAUSED
        for j in range(len(g.state)):
            out.worst[j] = g.state[j].worst
        if i + 1 == len(world):
            return FINISHED
        now.row, now.done = i + 1, NOTHING


@inlined
def upcoming(scene: Any, rules: Any, run: Any, g: Any, several: Any, general: Any, until: int) -> Any:
    """The kind of the next episodes, and how long they are alike; NOTHING if the caller is to plan first."""
    now, number = run.now, run.now.done + 1
    if now.enough == 1 and 2 * number > rules.episodes:
        now.enough = 2
        if now.planned:
            states = scene.nodes.state if now.by_node else scene.every
            rate_all(run.tracker, rules.first_row, states, now.enough, run.needed, run.seen)
    if now.enough == 1:
        until = min(until, rules.episodes // 2)
    if rules.weighing.wanted:
        if number >= now.next_weights:
            weigh(rules, run, number)
        until = min(until, now.next_weights - 1)
    if (now.done if rules.explore_by_clock else now.explored) < rules.explorations:
        return EXPLORE, min(until, rules.explorations) if rules.explore_by_clock else until
    if number >= now.next_plan:
        if rules.plan == OUTSIDE:
            return NOTHING, until
        plan(scene, rules, run, g, several, general)
        now.next_plan = next_plan(number, rules.replan)
    return DESIGN, min(until, now.next_plan - 1)


@inlined
def row_of_runs(outs: Any, i: int) -> Any:
    """What is kept of one run."""
    return Out(outs.checkpoints, outs.answers[i], outs.common[i], outs.rails[i], outs.worst[i])
