"""The loop of `kernel.stretch` for several guardrails, costs, and baseline values that are not known.

What it gives is what the reference gives, for trials told at once, behind certified ledgers or behind none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.engine.kernel.candidates import affordable, along, drawn_way, instead, lowest, nearest
from saver.engine.kernel.earning import keep_visits
from saver.engine.kernel.following import row_of
from saver.engine.kernel.forms import (
    BY_NODE,
    DESIGN,
    EARN,
    ESTIMATED,
    EXPLORE,
    FIRST,
    IMPORTANCE,
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
from saver.engine.kernel.guards import believed, box_pair, look_at_value, renew_bound
from saver.engine.kernel.learning import learn
from saver.engine.kernel.memory import COUNT
from saver.engine.kernel.reaching import lower_bound, reach
from saver.engine.kernel.sampling import act, choose, draw, take, welford
from saver.engine.kernel.streams import uniform
from saver.problem.checks import LARGEST


@inner
def begin_guards(scene: Any, rules: Any, sheets: Any, run: Any, g: Any, world: Any) -> Any:
    """Nothing known but history, which is drawn here; False if some of it is refused."""
    g.cells.fill(0.0)
    for table in (g.mean, g.T, g.seen):
        table.fill(0.0)
    for zeros in (g.expected, g.realised, g.safe_realised):
        zeros.fill(0.0)
    certified = g.rails.certified
    for i in range(len(g.state)):
        c, s = g.rails.fixed[i], g.state[i]
        s.value_low, s.value_high, s.worst = c.low, c.high, np.inf
        s.last_proxy, s.last_longest, s.last_low = c.first_proxy, c.first_longest, c.first_low
        for p in range(len(run.seen) if certified else 0):
            box_pair(g, i, p)
    for _ in range(g.rails.history):
        taken = walk(
            scene, rules, sheets, run, g, SAFE, run.tracker.choice, False, 0, False, True, not certified,
            world, world,
        )  # fmt: skip
        if taken == 0:
            return False
        if certified:
            renew_box(scene, run, g, taken, False)
        count_safe(scene, run, g, taken)
        for i in range(len(g.state) if certified else 0):
            look_at_value(g, i, sheets.visits[SAFE])
    return True


@inlined
def stretch_guarded(  # noqa: PLR0912  (the order in which the reference does it)
    scene: Any, rules: Any, sheets: Any, run: Any, g: Any, candidate: int, until: int, acting: Any, world: Any
) -> Any:
    """`stretch`: episodes up to number `until`, each a `candidate` or what it falls back to."""
    now, exploring, certified = run.now, candidate == EXPLORE, g.rails.certified
    tracked = rules.explore_tracked if exploring else rules.tracked
    by_node = rules.explore_by_node if exploring else now.by_node == 1
    first_row = 0 if exploring else rules.first_row
    visits = run.reach.visits if tracked else sheets.visits[candidate]
    steps, noise, longest = 0, sheets.numbers[candidate, NOISE], sheets.numbers[candidate, LONGEST]
    same, stale = sheets.flags[candidate, SAME] == 1, tracked
    for i in range(0 if tracked else len(g.state)):
        g.state[i].worth = along(scene, run.reach, visits, 0, g.rails.means[i])
    while now.done < until and run.stop[0] == 0:
        if stale:
            steps, _, _, same = reach(scene, run.tracker.choice, first_row, by_node, sheets, run.reach)
            noise, longest = scene.noise[steps], scene.length[steps]
            for i in range(len(g.state)):
                g.state[i].worth = along(scene, run.reach, visits, steps, g.rails.means[i])
        kind, credited, spent, reached = candidate, certified and same, noise, longest
        for i in range(len(g.state)):
            g.state[i].value = g.state[i].worth
        if rules.gate != NO_GATE and not credited:
            lowest(scene, sheets, run, g, run.reach, visits, candidate, tracked, steps)
            if not affordable(rules, sheets, run, g):
                went = instead(scene, rules, sheets, run, g) if rules.earner else 0
                kind = EARN if went > 0 else SAFE
                if went > 0:
                    spent, reached = scene.noise[went], scene.length[went]
        kind = SAFE if kind == DESIGN and rules.plays_baseline else kind
        credited, learned, earns = (
            credited or kind == SAFE,
            kind != SAFE or rules.learn_from_baseline,
            kind == EARN,
        )
        taken = walk(
            scene, rules, sheets, run, g, kind, run.earner if earns else run.tracker.choice,
            earns or (tracked and kind != SAFE), 0 if earns else first_row, earns or by_node, learned,
            learned, acting, world,
        )  # fmt: skip
        if taken == 0:
            return False
        if g.rails.drawn and not credited and not tracked:
            credited, spent, reached = (
                drawn_way(scene, sheets, run, g, taken),
                scene.noise[taken],
                scene.length[taken],
            )
        stale = learn(scene, rules, run, kind, taken, learned) and tracked
        if certified:
            renew_box(scene, run, g, taken, learned)
        if credited:
            now.exact += 1
            count_safe(scene, run, g, taken)
        else:
            now.designed += 1
            if certified:
                count_designed(scene, run, g, run.detour.visits if earns else visits, taken, spent, reached)
        if certified:
            settle(sheets, run, g, not credited)
        if rules.keeps_visits:
            keep_visits(scene, rules, sheets, run, kind, tracked, steps, taken)
        count_truth(run, g, kind)
        if kind == EXPLORE:
            now.explored += 1
            if now.explored >= rules.explorations and not rules.explore_by_clock:
                break
    return True


@inlined
def walk(  # noqa: PLR0912  (every estimator and law in one pass over the steps)
    scene: Any, rules: Any, sheets: Any, run: Any, g: Any, kind: int, choice: Any, tracked: bool,
    first_row: int, by_node: bool, learned: bool, taught: bool, acting: Any, world: Any,
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
        if not observe(rules, run, g, p, scene.factor[t], r, learned, taught, world):
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
    if rules.estimate == ESTIMATED and learned and taken < L:
        run.ends[p] += 1.0
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
    rules: Any, run: Any, g: Any, p: int, factor: float, r: float, learned: bool, taught: bool, world: Any
) -> Any:
    """Draw what is guarded and learn from it, in the order of the world's laws; False if it is refused."""
    rails = g.rails
    for i in rails.order:
        c, s, x = rails.fixed[i], g.state[i], r
        if not rules.shared:
            x = draw(world, rails.kinds[i], rails.where[i, p], rails.scale[i, p], rails.data)
        x *= c.sign
        if x < c.least or x > c.most:
            return False
        s.total += factor * x
        s.guess += factor * g.middle[i, p]
        if learned:
            g.mean[i, p] += (x - g.mean[i, p]) / run.seen[p, COUNT]
        if taught or c.learned == 1:
            g.T[i, p] += 1.0
            g.seen[i, p] += (x - g.seen[i, p]) / g.T[i, p]
    return True


@inner
def renew_box(scene: Any, run: Any, g: Any, taken: int, taught: bool) -> None:
    """The boxes where the episode was."""
    A = scene.uniform.shape[1]
    for i in range(len(g.state)):
        for t in range(taken if taught or g.rails.fixed[i].learned == 1 else 0):
            box_pair(g, i, run.path[t, 0] * A + run.path[t, 1])


@inner
def count_safe(scene: Any, run: Any, g: Any, taken: int) -> None:
    """What the baseline earned and where it was, where V0 is learned: `Sums.add_safe`."""
    A = scene.uniform.shape[1]
    for i in range(len(g.state)):
        c, s = g.rails.fixed[i], g.state[i]
        if c.learned == 1:
            s.count += 1.0
            s.safe_gained += s.total
            s.safe_proxy += c.proxy * scene.noise[taken]
            s.safe_length += scene.length[taken]
    for t in range(taken if g.rails.paths else 0):
        g.safe_realised[run.path[t, 0] * A + run.path[t, 1]] += scene.factor[t]


@inner
def count_designed(
    scene: Any, run: Any, g: Any, visits: Any, taken: int, noise: float, longest: float
) -> None:
    """What a designed trial earned, where it was expected and where it was: `Sums.add`."""
    A = scene.uniform.shape[1]
    if g.rails.paths:
        for p in range(0 if scene.one_way else len(visits)):
            g.expected[p] += visits[p]
        for t in range(taken):
            p = run.path[t, 0] * A + run.path[t, 1]
            g.realised[p] += scene.factor[t]
            if scene.one_way:
                g.expected[p] += scene.factor[t]
    for i in range(len(g.state)):
        c, s = g.rails.fixed[i], g.state[i]
        s.gained += s.total
        s.proxy += c.proxy * scene.noise[taken]
        s.length += scene.length[taken]
        s.last_proxy, s.last_longest, s.last_low = c.proxy * noise, longest, s.low
        s.bound += s.low
        if c.crosses == 1:
            s.sum_x += s.total - (s.guess - s.centre)
            s.sum_v += c.proxy * noise + longest * s.spread


@inner
def settle(sheets: Any, run: Any, g: Any, designed: bool) -> None:
    """See what the sums say now: `Certified._settle`."""
    for i in range(len(g.state)):
        c = g.rails.fixed[i]
        if c.learned == 1:
            look_at_value(g, i, sheets.visits[SAFE])
        if run.now.designed > 0 and (designed or c.paths == 1):
            renew_bound(g, i)


@inner
def count_truth(run: Any, g: Any, kind: int) -> None:
    """The true budgets."""
    now = run.now
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
    c = g.rails.fixed[i]
    return now.baseline * c.true_value + g.state[i].earned - now.done * c.true_required


@inner
def record_guards(sheets: Any, run: Any, g: Any, out: Any, shown: Any) -> None:
    """Budgets at a checkpoint, after all else was recorded."""
    now, at, least = run.now, run.now.point, np.inf
    for i in range(len(g.state)):
        c, s = g.rails.fixed[i], g.state[i]
        if not g.rails.certified:  # what the plug-in ledger believes
            s.bound = 0.0
            for p in range(len(run.visited)):
                s.bound += run.visited[p] * lower_bound(g.T[i, p], g.seen[i, p], 0.0, 0.0, c.floor)
        budget = true_budget(g, now, i)
        shown.budgets[i, at], shown.ledgers[i, at] = budget, believed(g, now, i, sheets.visits[SAFE])
        if i == 0 or budget / c.true_unit < least:
            least, out.budget[at] = budget / c.true_unit, budget
    out.ledger[at] = nearest(sheets, run, g)[1]
