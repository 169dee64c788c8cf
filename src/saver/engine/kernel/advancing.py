"""The compiled episode loop: `reference.run_once` for every collector, on plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner, loop
from saver.collect.planning import next_plan
from saver.engine.kernel.checkpoints import record
from saver.engine.kernel.entering import record_guards
from saver.engine.kernel.following import rate_all
from saver.engine.kernel.forms import (
    CERTIFIED,
    DESIGN,
    ESTIMATED,
    EXPLORE,
    FIXED,
    OUTSIDE,
    SAFE,
)
from saver.engine.kernel.guarding import PAST, begin_guards, stretch_guarded
from saver.engine.kernel.guards import look_at_value
from saver.engine.kernel.keeping import Out
from saver.engine.kernel.onestep import stretch_one
from saver.engine.kernel.rails import Shown
from saver.engine.kernel.reaching import box_one
from saver.engine.kernel.replanning import plan
from saver.engine.kernel.stretching import stretch
from saver.engine.kernel.weighing import fold, weigh

FINISHED, PAUSED, PLAN, CHECK, REFUSED = range(5)  # why the loop returned
NEVER, NOTHING = 2**62, -1  # a plan's number; episodes of a run that has not begun


@inner
def begin(scene: Any, rules: Any, run: Any) -> None:
    """An empty campaign."""
    now, row = run.now, run.now.row
    run.cells.fill(0)
    now.row = row
    run.seen.fill(0.0)
    for p in range(len(rules.needed)):
        run.needed[p] = rules.needed[p]
    for i in range(len(rules.ahead)):
        for a in range(rules.ahead.shape[1]):
            run.tracker.T[i, a] = rules.ahead[i, a]
    run.node_visits.fill(0.0)
    for zeros in (run.visited, run.terms, run.moves, run.ends, run.paid, run.ends_paid):
        zeros.fill(0.0)
    scales = run.scales
    for zeros in (scales.T, scales.total, scales.squares, scales.guess, scales.gained, scales.noise,
                  scales.drawn):  # fmt: skip
        zeros.fill(0.0)
    for table in (scales.W, scales.w, scales.V, scales.Q, scales.v):
        table.fill(0.0)
    scales.made.fill(0)
    run.mark.fill(False)
    run.dirty_count.fill(0)
    run.spread.fill(0.0)
    now.whole = rules.whole_plans
    run.now.worst = np.inf
    now.last_proxy, now.last_longest, now.last_low = rules.last
    now.next_plan = NEVER if rules.plan == FIXED else 1
    now.enough = 1
    now.by_node = rules.design_by_node
    follow(scene, rules, run)
    run.expected.fill(0.0)
    run.realised.fill(0.0)
    if rules.ledger == CERTIFIED:
        box = run.box
        box_one(rules, run.seen, box, 0)  # nothing was seen of any
        for side in (box.lower, box.upper, box.middle, box.half):
            side.fill(side[0])


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


@inner
def begin_guarded(scene: Any, rules: Any, sheets: Any, run: Any, guards: Any, acting: Any, world: Any) -> Any:
    """Nothing known but history, which is drawn here; False if some of it is refused."""
    begin_guards(guards)
    if not stretch_guarded(scene, rules, sheets, run, guards, PAST, guards.history, acting, world):
        return False
    for i in range(len(guards.state) if guards.certified and guards.history > 0 else 0):
        if guards.fixed[i].learned == 1:
            look_at_value(guards, i, sheets.visits[SAFE])
    follow(scene, rules, run)
    if rules.weighing.wanted:
        fold(rules, run)  # what was seen before has no weight
    return True


@loop
def advance(  # noqa: PLR0912, PLR0915  (every kind of event in one place)
    scene: Any, rules: Any, sheets: Any, run: Any, outs: Any, acting: Any, world: Any, most: int,
    guards: Any, shown: Any, alone: Any, paths: Any,
) -> Any:  # fmt: skip
    """Play run after run, one for each row of `outs`, until the end of the last, `most` episodes of one, or
    something that only the caller can do.

    Between two events (a plan, a checkpoint, the end of exploration, the middle) episodes are all alike. They
    are played by one of three loops: for several `guards` or values that are not known, for one step `alone`,
    or for `paths`. Two of these arguments are None: what a test for just that leaves out is not compiled.
    """
    now, K = run.now, rules.episodes
    while True:
        out, own, i = row_out(outs, now.row), row_shown(shown, now.row), now.row
        if now.done == NOTHING:
            begin(scene, rules, run)
            if guards is not None:  # noqa: SIM102  (numba looks for just this test)
                if not begin_guarded(scene, rules, sheets, run, guards, acting[i], world[i]):
                    return REFUSED
        last = min(K, now.done + most)
        while now.done < last and run.stop[0] == 0:
            number = now.done + 1
            if now.enough == 1 and 2 * number > K:
                now.enough = 2
                if now.planned:
                    states = scene.nodes.state if now.by_node else scene.every
                    rate_all(run.tracker, rules.first_row, states, now.enough, run.needed, run.seen)
            until = min(last, out.checkpoints[now.point])
            if now.enough == 1:
                until = min(until, K // 2)
            if rules.weighing.wanted:
                if number >= now.next_weights:
                    weigh(rules, run, number)
                until = min(until, now.next_weights - 1)
            kind = DESIGN
            if (now.done if rules.explore_by_clock else now.explored) < rules.explorations:
                kind = EXPLORE
                until = min(until, rules.explorations) if rules.explore_by_clock else until
            else:
                if number >= now.next_plan:
                    if rules.plan == OUTSIDE:
                        return PLAN
                    plan(scene, rules, run, guards)
                    now.next_plan = next_plan(number, rules.replan)
                until = min(until, now.next_plan - 1)
            fine = True
            if guards is not None:
                fine = stretch_guarded(scene, rules, sheets, run, guards, kind, until, acting[i], world[i])
            if alone is not None:
                fine = stretch_one(scene, rules, sheets, run, kind, until, world[i])
            if paths is not None:
                fine = stretch(scene, rules, sheets, run, kind, until, acting[i], world[i])
            if not fine:
                return REFUSED
            if now.done == out.checkpoints[now.point]:
                k = now.done
                budget = now.baseline * rules.baseline + now.earned - k * rules.required
                record(scene, rules, sheets, run, out, budget)
                if guards is not None:
                    record_guards(now, guards, run.visited, sheets.visits[SAFE], out, own)
                now.point += 1
                if rules.estimate == ESTIMATED:
                    return CHECK
        if now.done < K:
            return PAUSED
        own.worst[0] = now.worst
        if guards is not None:
            for j in range(len(guards.state)):
                own.worst[j] = guards.state[j].worst
        if i + 1 == len(world):
            return FINISHED
        now.row, now.done = i + 1, NOTHING


@inlined
def row_out(out: Any, i: int) -> Any:
    """What is kept of one run."""
    return Out(
        out.checkpoints, out.estimates[i], out.stderr[i], out.freedom[i], out.below[i], out.above[i],
        out.conditional_mse[i], out.anytime_low[i], out.anytime_high[i], out.fair[i], out.fair_stderr[i],
        out.budget[i], out.ledger[i], out.baseline_share[i],
    )  # fmt: skip


@inlined
def row_shown(shown: Any, i: int) -> Any:
    """What is kept of the guardrails in one run."""
    return Shown(shown.budgets[i], shown.ledgers[i], shown.worst[i])
