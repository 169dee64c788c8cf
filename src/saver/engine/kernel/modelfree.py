"""The compiled episode loop where transitions are unknown: `reference.run_once` on plain arrays.

The ledger is one of returns, trials are told at once, and every plan and every estimate is the caller's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import inlined, inner, loop
from saver._types import Bools, Floats, Ints
from saver.collect.foresight import Foresight
from saver.engine.kernel.advancing import (
    CHECK,
    FINISHED,
    NOTHING,
    PAUSED,
    PLAN,
    REFUSED,
    row_out,
    row_shown,
)
from saver.engine.kernel.candidates import affordable
from saver.engine.kernel.entering import count_truth
from saver.engine.kernel.following import comes_first, rate_all, rescore, row_of
from saver.engine.kernel.forms import (
    CERTAINTY,
    DESIGN,
    EXPLORE,
    NO_GATE,
    SAFE,
    SAME,
)
from saver.engine.kernel.guarding import PAST
from saver.engine.kernel.keeping import COUNT, NOW, Tracker
from saver.engine.kernel.rails import TRUE
from saver.engine.kernel.reaching import as_baseline
from saver.engine.kernel.teaching import released
from saver.engine.kernel.totals import begin_returns, enter_returns, look_at_history, record_returns
from saver.engine.kernel.walking import walk
from saver.play.nodes import Nodes
from saver.problem.moving import earned

DRAWN = 4  # a further column of `flags`: what is promised of a trial is decided by its draws, in truth


class Land(NamedTuple):
    """The world, by the nodes of a model that knows nothing of it. The names are those of `Scene`."""

    nodes: Nodes  # every (step, state)
    slot: Ints
    indptr: Ints
    to: Ints
    chance: Floats
    ends: Bools
    start: Ints
    start_chance: Floats
    pairs: Floats  # columns as in `Scene`; what is worth something is in the guardrails' tables
    rewards: Floats
    factor: Floats
    target_by_step: Floats  # none: nothing is weighted
    uniform: Floats
    every: Ints
    safe_nodes: Ints  # all: nobody knows where the baseline goes


class Manner(NamedTuple):
    """The collector's choices. The names are those of `Rules`."""

    episodes: int
    explorations: int
    explore_by_clock: bool
    tracked: bool
    track_all: bool
    first_row: int
    plays_baseline: bool
    learn_from_baseline: bool
    gate: int
    laws: tuple[int]  # of rewards
    shared: bool
    watched: bool
    estimate: int = CERTAINTY  # and where each action led is counted


class Plays(NamedTuple):
    """The policies that are drawn from, one for each kind of episode. The names are those of `Sheets`."""

    policy: Floats
    sure: Ints
    flags: Ints  # [kinds, 5]; SAME: it does everywhere what the baseline does
    worth: Floats  # true, [kinds, guardrails]


class Followed(NamedTuple):
    """A model in which the tracked policy is followed, and how far it got; none where `start` is empty."""

    indptr: Ints
    indices: Ints
    data: Floats
    start: Floats
    gains: Floats
    mass: Floats  # [L + 1, S]
    sums: Floats  # [L + 1, m]

    @classmethod
    def of(cls, model: Foresight, steps: int) -> Followed:
        """What a plan believed, or the truth."""
        return cls(*model.moves, model.start, model.gains, *model.room(steps))


class Blind(NamedTuple):
    """One campaign. The names are those of `Run`."""

    now: Any
    cells: Ints
    seen: Floats
    tracker: Tracker
    needed: Ints
    node_visits: Floats
    moves: Floats  # [edges]
    ends: Floats  # [pairs]
    paid: Floats
    ends_paid: Floats
    starts: Floats  # [S]
    path: Ints
    draws: Floats
    truth: Followed
    belief: Followed
    stop: Ints

    def following(self, tracker: Tracker, belief: Foresight | None = None) -> Blind:
        """The same campaign with another plan, whose model is given."""
        believed = Followed.of(belief or nothing_believed(), len(self.path))
        return self._replace(tracker=tracker, belief=believed)


def nothing_believed() -> Foresight:
    """Of a plan that has no model."""
    ints, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
    return Foresight(ints, ints, floats, floats, np.zeros((0, 0)))


def new_blind(land: Land, rows: Floats, true: Foresight, stop: Ints) -> Blind:
    """Room for one campaign; `rows` are those to follow."""
    S, A = land.uniform.shape
    L, nodes, ints, pairs, edges = len(land.factor), len(land.nodes.state), np.int64, S * A, len(land.to)
    now: Any = np.zeros(1, dtype=NOW).view(np.recarray)
    return Blind(
        now=now[0],
        cells=now.view(ints),
        seen=np.zeros((pairs, 4)),
        tracker=Tracker.of(rows),
        needed=np.zeros(pairs, dtype=ints),
        node_visits=np.zeros((nodes, A)),
        moves=np.zeros(edges),
        ends=np.zeros(pairs),
        paid=np.zeros(edges),
        ends_paid=np.zeros(pairs),
        starts=np.zeros(S),
        path=np.zeros((L, 2), dtype=ints),
        draws=np.zeros(L),
        truth=Followed.of(true, L),
        belief=Followed.of(nothing_believed(), L),
        stop=stop,
    )


@inner
def begin(run: Any, g: Any) -> None:
    """An empty campaign."""
    run.cells.fill(0)
    run.seen.fill(0.0)
    run.node_visits.fill(0.0)
    for zeros in (run.moves, run.ends, run.paid, run.ends_paid, run.starts):
        zeros.fill(0.0)
    run.now.next_plan = run.now.enough = 1
    begin_returns(g)


@loop
def advance_blind(  # noqa: PLR0912  (as `advance`)
    land: Any, rules: Any, plays: Any, run: Any, outs: Any, acting: Any, world: Any, most: int, g: Any,
    shown: Any,
) -> Any:  # fmt: skip
    """`advance` of one run, the only row: each plan, or a checkpoint, is completed by the caller."""
    now, K, out = run.now, rules.episodes, row_out(outs, 0)
    if now.done == NOTHING:
        begin(run, g)
        if not stretch_blind(land, rules, plays, run, g, PAST, g.history, acting[0], world[0]):
            return REFUSED
        look_at_history(g)
    last = min(K, now.done + most)
    while now.done < last and run.stop[0] == 0:
        number = now.done + 1
        if now.enough == 1 and 2 * number > K:
            now.enough = 2
            if now.planned:
                states = land.nodes.state if now.by_node else land.every
                rate_all(run.tracker, np.int64(0), states, now.enough, run.needed, run.seen)
        until = min(last, out.checkpoints[now.point])
        if now.enough == 1:
            until = min(until, K // 2)
        kind = DESIGN
        if (now.done if rules.explore_by_clock else now.explored) < rules.explorations:
            kind = EXPLORE
            until = min(until, rules.explorations) if rules.explore_by_clock else until
        elif number >= now.next_plan:
            return PLAN
        else:
            until = min(until, now.next_plan - 1)
        if not stretch_blind(land, rules, plays, run, g, kind, until, acting[0], world[0]):
            return REFUSED
        if now.done == out.checkpoints[now.point]:
            record_returns(now, g, out, row_shown(shown, 0))
            now.point += 1
            return CHECK
    if now.done < K:
        return PAUSED
    for i in range(len(g.state)):
        shown.worst[0, i] = g.state[i].worst
    return FINISHED


@inner
def stretch_blind(
    land: Any, rules: Any, plays: Any, run: Any, g: Any, candidate: int, until: int, acting: Any, world: Any
) -> Any:
    """`stretch_guarded`: episodes up to number `until`; of the PAST, baseline episodes before the first."""
    now, past = run.now, candidate == PAST
    candidate = SAFE if past else candidate
    tracked, by_node = rules.tracked and candidate == DESIGN, now.by_node == 1
    same, L = plays.flags[candidate, SAME] == 1, len(land.factor)
    since = 0 if tracked else L  # the first step at which the tracked policy is not what was followed
    for i in range(len(g.state)):
        g.state[i].believed = np.nan
        if not tracked:
            g.state[i].worth = plays.worth[candidate, i]
    k = 0 if past else now.done
    while k < until and run.stop[0] == 0:
        if since < L:
            foresee(land, run, by_node, since, g)
            same = g.certified and as_baseline(land, run.tracker.choice, 0, by_node, plays)
        kind, credited = candidate, g.certified and same
        for i in range(len(g.state)):
            g.state[i].value = g.state[i].worth
        gated = rules.gate != NO_GATE and not credited and not past
        if gated and not affordable(rules.gate, now, g, g.visits[0]):
            kind = SAFE
        kind = SAFE if kind == DESIGN and rules.plays_baseline else kind
        learned = past or kind != SAFE or rules.learn_from_baseline
        follows = tracked and kind != SAFE
        taken = walk(
            land, rules, plays, run, g, run.starts, kind, run.tracker.choice, follows, 0, by_node,
            learned, False, True, world if past else acting, world,
        )  # fmt: skip
        if taken == 0:
            return False
        k += 1
        enter_returns(now, g, past, credited or kind == SAFE)
        if past:
            continue
        if g.certified and not follows and plays.flags[kind, DRAWN] == 1:
            drawn_worth(land, run, g, taken)
        if rules.tracked:
            changed = track(land, rules, run, kind, taken, learned)
            since = changed if tracked else L
        count_truth(now, g, kind)
        if kind == EXPLORE:
            now.explored += 1
            if now.explored >= rules.explorations and not rules.explore_by_clock:
                break
    return True


@inlined
def foresee(land: Any, run: Any, by_node: bool, since: int, g: Any) -> None:
    """What an episode is truly worth, and `decide.foreseen`: what the plan believes that it will earn."""
    goes(land, run.truth, run.tracker.choice, by_node, since)
    for i in range(len(g.state)):
        g.state[i].worth = run.truth.sums[len(land.factor), i]
    if len(run.belief.start) > 0:
        goes(land, run.belief, run.tracker.choice, by_node, since)
        for i in range(len(g.state)):
            g.state[i].believed = run.belief.sums[len(land.factor), i]


@inlined
def goes(land: Any, to: Any, choice: Any, by_node: bool, since: int) -> None:
    """Follow the tracked policy from a step on."""
    earned(
        to.indptr, to.indices, to.data, to.start, choice, land.slot, by_node, land.factor, to.gains, since,
        to.mass, to.sums,
    )  # fmt: skip


@inlined
def track(land: Any, rules: Any, run: Any, kind: int, taken: int, learned: bool) -> Any:
    """Counts and scores of the tracker after an episode; the first step whose choice may have changed."""
    A, enough = land.uniform.shape[1], run.now.enough
    counted, by_node = kind == DESIGN or rules.track_all, run.now.by_node == 1
    since = len(land.factor)
    for t in range(taken):
        s, a = run.path[t, 0], run.path[t, 1]
        p = s * A + a
        if counted:
            row = row_of(land, 0, by_node, t, s)
            run.node_visits[land.slot[t, s], a] += 1.0
            run.tracker.T[row, a] += 1.0
            before = run.tracker.choice[row]
            rescore(run.tracker, row, a, comes_first(run.needed, run.seen, p, enough))
            if run.tracker.choice[row] != before:
                since = min(since, t if by_node else 0)
        if learned and run.needed[p] <= enough and run.seen[p, COUNT] < enough + taken:
            released(land, rules, run, s, a)
            since = 0
    return since


@inlined
def drawn_worth(land: Any, run: Any, g: Any, taken: int) -> None:
    """What an episode is truly worth where its draws decide where it goes."""
    A = land.uniform.shape[1]
    for i in range(len(g.state)):
        value = 0.0
        for t in range(taken):
            value += land.factor[t] * g.tables[i, TRUE, run.path[t, 0] * A + run.path[t, 1]]
        g.state[i].value = value
