"""`play_alike` where start, transitions and policies leave nothing to chance: an episode is a list of pairs.

It serves one guardrail, known values and tracked designs behind the certified ledger or behind none. What it
gives is what `play_alike` gives, in .45 of the time on the tree (benchmarks/results/loops.md).
"""

from __future__ import annotations

from typing import Any

from saver._jit import inlined
from saver.kernels.candidates import unsigned
from saver.kernels.entering import keep_means, keep_sums
from saver.kernels.forms import EARN, EXPLORE, NO_GATE, SAFE
from saver.kernels.keeping import COUNT
from saver.kernels.ledgers import credit_at, designed_worth, likely_mean, required_at
from saver.kernels.rails import LIKELY, LOWER, MEAN, SCALE, TRUE, WHERE
from saver.kernels.streams import draw, take
from saver.kernels.tracking import learn, row_at
from saver.play.nodes import richest


@inlined
def play_one_way(  # noqa: PLR0915  (one loop whose numbers stay in registers)
    scene: Any, rules: Any, plays: Any, run: Any, g: Any, candidate: int, until: int, world: Any
) -> Any:
    """Episodes up to number `until`, each a `candidate` or what it falls back to; False if one is refused."""
    now, seen, c, state, table = run.now, run.seen, g.fixed[0], g.state[0], g.tables[0]
    L, ways, factor = len(scene.factor), run.ways, scene.factor
    exploring, certified = candidate == EXPLORE, rules.gate != NO_GATE
    by_node = rules.explore_by_node if exploring else now.by_node == 1
    first_row = 0 if exploring else rules.first_row
    k, explored, base = now.done, now.explored, now.baseline
    exact, designed, units, bound = now.exact, now.designed, now.units, state.bound
    earned, worst, gained, proxy, length = state.earned, state.worst, state.gained, state.proxy, state.length
    required, surplus = required_at(g, 0, c.low), credit_at(g, 0, c.low)
    safe = trail(scene, plays.sure, plays.kinds[SAFE].first, plays.kinds[SAFE].by_node == 1, ways[SAFE])
    fine, since, steps, same, worth = True, 0, 0, False, 0.0
    while k < until and run.stop[0] == 0 and fine:
        # what the candidate would do, and whether it may be played
        if since < L:
            steps = trail(scene, run.tracker.choice, first_row, by_node, ways[candidate])
            same = certified and alike(ways[candidate], steps, ways[SAFE], safe)
            worth = summed(factor, ways[candidate], steps, table[TRUE])
        kind, value, taken, credited, low = candidate, worth, steps, same, 0.0
        if certified and not same:
            low = summed(factor, ways[candidate], steps, table[LOWER])
            spare = exact * surplus + bound - designed * required - required + c.tolerance
            if spare + low < 0.0:
                kind, value, taken, credited = SAFE, 0.0, safe, True
                went, surely = instead_one_way(scene, rules, run, g, safe, spare)
                if went > 0:
                    kind, taken, credited, low = EARN, went, False, surely
                    value = summed(factor, ways[EARN], went, table[TRUE])

        # the episode, and what it taught
        learned = kind != SAFE or rules.learn_from_baseline
        total, fine = walk_way(scene, rules, run, g, ways[kind], taken, learned, certified, world)
        since = learn(scene, rules, run, kind, taken, learned)

        # the ledger, and the truth
        if credited:
            exact += 1
        else:
            designed += 1
            v = c.proxy * scene.noise[taken]
            units += v == c.full
            gained, proxy, length = gained + total, proxy + v, length + scene.length[taken]
            if certified:
                state.last_proxy, state.last_longest, state.last_low = v, scene.length[taken], low
                state.gained, state.proxy, state.length = gained, proxy, length
                found = gained - g.table[unsigned(units)] if units == designed else designed_worth(g, 0)
                bound = max(bound + low, found)
            for t in range(0 if certified else taken):
                run.visited[ways[kind, t]] += factor[t]
        k += 1
        base += kind == SAFE
        earned += value
        worst = min(worst, base * c.true_value + earned - k * c.true_required)
        if kind == EXPLORE:
            explored += 1
            if explored >= rules.explorations and not rules.explore_by_clock:
                break
    keep_means(certified, seen, table, c.floor)
    counts = (k, explored, base, exact, designed, units)
    keep_sums(now, state, counts, (earned, worst, bound, gained, proxy, length))
    return fine


@inlined
def walk_way(
    scene: Any, rules: Any, run: Any, g: Any, way: Any, taken: int, learned: bool, certified: bool, world: Any
) -> Any:
    """Play along a way; sum discount^t C, and whether nothing is refused."""
    seen, pairs, c, table = run.seen, scene.pairs, g.fixed[0], g.tables[0]
    A, total, fine = unsigned(scene.uniform.shape[1]), 0.0, True
    for t in range(taken):
        p = unsigned(way[t])
        run.path[t, 0], run.path[t, 1] = p // A, p % A
        r = draw(world, rules.law, pairs[p].where, pairs[p].scale, scene.rewards)
        x = r if rules.shared else draw(world, c.law, table[WHERE, p], table[SCALE, p], g.data)
        if x < c.least or x > c.most or (rules.watched and (r < pairs[p].low or r > pairs[p].high)):
            fine = False
        total += scene.factor[t] * x
        if learned:
            take(seen, p, r)
            table[MEAN, p] += (x - table[MEAN, p]) / seen[p, COUNT]
            if certified:
                table[LOWER, p] = max(table[MEAN, p] - g.depth[unsigned(int(seen[p, COUNT]))], c.floor)
    return total, fine


@inlined
def trail(scene: Any, choice: Any, first_row: int, by_node: bool, way: Any) -> Any:
    """The pairs on the way of a policy, into `way`; how many."""
    nodes, A = scene.nodes, unsigned(scene.uniform.shape[1])
    s, steps = unsigned(scene.start[0]), 0
    for t in range(len(scene.slot)):
        p = s * A + unsigned(choice[row_at(unsigned(first_row), by_node, unsigned(scene.slot[t, s]), s)])
        way[t], steps = p, t + 1
        if nodes.indptr[p] == nodes.indptr[p + unsigned(1)]:
            break
        s = unsigned(nodes.indices[nodes.indptr[p]])
    return steps


@inlined
def alike(one: Any, steps: int, other: Any, others: int) -> Any:
    """Whether two ways are the same."""
    same = steps == others
    for t in range(steps):
        same = same and one[t] == other[t]
    return same


@inlined
def summed(factor: Any, way: Any, steps: int, table: Any) -> Any:
    """V(b; table)."""
    total = 0.0
    for t in range(steps):
        total += factor[t] * table[unsigned(way[t])]
    return total


@inlined
def instead_one_way(scene: Any, rules: Any, run: Any, g: Any, safe: int, spare: float) -> Any:
    """`instead`: the steps of the earner and its lower value; no steps for the baseline."""
    if not rules.earner:
        return 0, 0.0
    for p in range(len(run.seen)):
        g.tables[0, LIKELY, p] = likely_mean(g, run.seen, 0, p)
    surely, likely = richest(scene.nodes, g.shaped[0, LOWER], g.shaped[0, LIKELY], run.earner)
    if (surely + likely) / 2 < g.fixed[0].low:
        return 0, 0.0
    steps = trail(scene, run.earner, 0, True, run.ways[EARN])
    low = summed(scene.factor, run.ways[EARN], steps, g.tables[0, LOWER])
    if alike(run.ways[EARN], steps, run.ways[SAFE], safe) or spare + low < 0.0:
        return 0, 0.0
    return steps, low
