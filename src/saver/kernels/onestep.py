"""`play_alike` for bandits: one step from one state, where every nanosecond counts.

It serves one guardrail, known values and tracked designs behind the certified ledger or behind none. The
candidate is one action: there is no path to follow and no flow to evaluate. What it gives is what
`play_alike` gives, in .38 to .48 of the time (benchmarks/results/loops.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner
from saver.kernels.candidates import unsigned
from saver.kernels.entering import keep_means, keep_sums
from saver.kernels.forms import DESIGN, EARN, EXPLORE, NO_GATE, SAFE, TREE
from saver.kernels.keeping import COUNT
from saver.kernels.ledgers import credit_at, required_at
from saver.kernels.rails import KNOWN, MEAN, SCALE, TRUE, WHERE
from saver.kernels.streams import draw, take
from saver.kernels.tracking import comes_first, drawn_row, pick, rate, rescore, row_of


@inlined
def play_one_step(  # noqa: PLR0912, PLR0915  (one loop whose numbers stay in registers)
    scene: Any, rules: Any, plays: Any, run: Any, g: Any, candidate: int, until: int, world: Any
) -> Any:
    """Episodes up to number `until`, each a `candidate` or what it falls back to; False if one is refused."""
    now, seen, c, state, table = run.now, run.seen, g.fixed[0], g.state[0], g.tables[0]
    s, A, enough = scene.start[0], scene.uniform.shape[1], now.enough
    design_row = row_of(scene, rules.first_row, now.by_node == 1, 0, s)
    row = design_row if candidate == DESIGN else row_of(scene, 0, rules.explore_by_node, 0, s)
    safe = plays.sure[drawn_row(scene, plays, SAFE, 0, s)]
    planned, certified = now.planned == 1, rules.gate != NO_GATE
    k, explored, base = now.done, now.explored, now.baseline
    exact, designed, bound = now.exact, now.designed, state.bound
    earned, worst, gained = state.earned, state.worst, state.gained
    required, surplus = required_at(g, 0, c.low), credit_at(g, 0, c.low)
    a, least, most = run.tracker.choice[row], c.least, c.most
    while k < until and run.stop[0] == 0:
        k += 1
        kind, played, low, budget = candidate, a, 0.0, exact * surplus + bound - designed * required
        same = certified and a == safe
        if certified and not same:
            low = lower_end(g, table, seen, s * A + a, c.floor)
            if budget + low - required < -c.tolerance:
                kind, played = SAFE, safe
                if rules.earner:
                    played, surely = earner_of(scene, seen, g, s, safe, budget - required + c.tolerance)
                    kind, low = (EARN, surely) if played != safe else (SAFE, low)
        p = s * A + played
        if kind == SAFE:
            k, base, exact, worst, a, fine = play_safely(
                scene, rules, run, g, (k, base, exact, worst, a), (row, design_row, played, p),
                (low, bound, designed, earned), until, world,
            )  # fmt: skip
            if not fine:
                return False
        else:
            x = observe(scene, rules, c, table, g.data, seen, p, True, world)
            if x < least or x > most:
                return False
            earned += table[TRUE, p]
            if same:
                exact += 1
            elif certified:
                designed, gained = designed + 1, gained + x
                by_low, by_sum = bound + low, gained - g.table[unsigned(designed)]
                bound = by_sum if by_sum > by_low else by_low
                if rules.paced or kind == EARN:
                    state.last_low = low
            else:
                designed += 1
                run.visited[p] += 1.0
            explored += kind == EXPLORE
            a = follow_one(run, (row, design_row, a, played, p), kind, planned, enough)
        worst = min(worst, base * c.true_value + earned - k * c.true_required)
        if candidate == EXPLORE and explored >= rules.explorations and not rules.explore_by_clock:
            break
    run.tracker.choice[row] = a
    if planned and rules.plan == TREE:
        run.mark[s], run.dirty[0], run.dirty_count[0] = True, s, 1
    keep_means(certified, seen, table, c.floor)
    counts = (k, explored, base, exact, designed, designed)
    keep_sums(now, state, counts, (earned, worst, bound, gained, designed * c.full, designed * 1.0))
    return True


@inlined
def follow_one(run: Any, places: Any, kind: int, planned: bool, enough: int) -> Any:
    """What the tracker learns from an episode, and the candidate's next action."""
    row, design_row, a, played, p = places
    b, T, score, _ = run.tracker
    needed = comes_first(run.needed, run.seen, p, enough)
    if kind == EARN:
        T[design_row, played] += 1.0
        if not planned:
            return a
    else:
        T[row, played] += 1.0
        score[row, played] = rate(b[row, played], T[row, played], kind == DESIGN and needed)
    if planned and kind != DESIGN:
        rescore(run.tracker, design_row, played, needed)
    return pick(score, row)


@inlined
def play_safely(
    scene: Any, rules: Any, run: Any, g: Any, counts: Any, place_of: Any, line: Any, until: int, world: Any
) -> Any:  # fmt: skip
    """The baseline, until the candidate can be afforded or may have become another."""
    k, base, exact, worst, a = counts
    row, design_row, safe, p = place_of
    low, bound, designed, earned = line
    c, seen, table, enough = g.fixed[0], run.seen, g.tables[0], run.now.enough
    required, surplus = required_at(g, 0, c.low), credit_at(g, 0, c.low)
    while True:
        x = observe(scene, rules, c, table, g.data, seen, p, rules.learn_from_baseline, world)
        if x < c.least or x > c.most:
            return k, base, exact, worst, a, False
        base += 1
        exact += 1
        if run.now.planned == 1 and rules.learn_from_baseline and seen[p, COUNT] <= enough:
            rescore(run.tracker, design_row, safe, comes_first(run.needed, seen, p, enough))
            a = pick(run.tracker.score, row)
            break
        spare = exact * surplus + bound - designed * required + low - required
        if rules.earner or k >= until or spare >= -c.tolerance:
            break
        worst = min(worst, base * c.true_value + earned - k * c.true_required)
        k += 1
    return k, base, exact, worst, a, True


@inlined
def lower_end(g: Any, table: Any, seen: Any, p: int, floor: float) -> Any:
    """The lower end of a pair's box."""
    return max(table[MEAN, p] - g.depth[unsigned(int(seen[p, COUNT]))], floor)


@inlined
def earner_of(scene: Any, seen: Any, g: Any, s: int, safe: int, spare: float) -> Any:
    """`instead_one` of what is known."""
    A, c = scene.uniform.shape[1], g.fixed[0]
    here, table = seen[s * A : s * A + A], g.tables[0, :, s * A : s * A + A]
    return instead_one(scene.nodes.available[s], here, table, g.knows, g.depth, c.floor, safe, c.low, spare)


@inner
def instead_one(
    available: Any, seen: Any, table: Any, knows: bool, depth: Any, floor: float, safe: int, enough: float,
    spare: float,
) -> Any:  # fmt: skip
    """What surely earns most and its lower end, or the safe action, of the one state's.

    `enough` is what it must earn as believed, and at worst no less than -`spare`.
    """
    best, at = -np.inf, safe
    for a in range(len(available)):
        if available[a]:
            low = max(table[MEAN, a] - depth[int(seen[a, COUNT])], floor)
            if low > best:
                best, at = low, a
    likely = table[MEAN, at] if seen[at, COUNT] > 0.0 else floor
    if knows:
        likely = table[KNOWN, at]
    if (best + likely) / 2 < enough or best + spare < 0.0:
        return safe, 0.0
    return at, best


@inlined
def observe(
    scene: Any, rules: Any, c: Any, table: Any, data: Any, seen: Any, p: int, learned: bool, world: Any
) -> Any:
    """Draw a reward and a constraint and learn from them; the constraint, or inf if the reward is refused."""
    pair = scene.pairs[p]
    r = draw(world, rules.law, pair.where, pair.scale, scene.rewards)
    x = r
    if not rules.shared:
        x = draw(world, c.law, table[WHERE, p], table[SCALE, p], data)
    if rules.watched and (r < pair.low or r > pair.high):
        return np.inf
    if learned:
        take(seen, p, r)
        table[MEAN, p] += (x - table[MEAN, p]) / seen[p, COUNT]
    return x
