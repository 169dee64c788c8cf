"""The loop over episodes that are all alike, with one guardrail against a known value."""

from __future__ import annotations

from typing import Any

from saver._jit import inlined
from saver.engine.kernel.earning import (
    bounded_value,
    budget_of,
    drawn_path,
    instead,
    keep_visits,
    lowest,
    note_visits,
    seen_worth,
    together,
)
from saver.engine.kernel.following import row_of
from saver.engine.kernel.forms import (
    BY_NODE,
    C_SCALE,
    C_WHERE,
    CERTIFIED,
    DESIGN,
    EARN,
    ESTIMATED,
    EXPLORE,
    FIRST,
    FLOOR,
    IMPORTANCE,
    LONGEST,
    NO_GATE,
    NOISE,
    PAPER,
    PROSPECTIVE,
    R_HIGH,
    R_LOW,
    R_SCALE,
    R_WHERE,
    RANDOM,
    SAFE,
    SAME,
    TRUE,
)
from saver.engine.kernel.reaching import reach
from saver.engine.kernel.sampling import act, choose, draw, take, welford
from saver.engine.kernel.streams import uniform
from saver.engine.kernel.teaching import learn
from saver.problem.checks import LARGEST
from saver.safety.noise import least
from saver.safety.paths import path_bound


@inlined
def stretch(  # noqa: PLR0912, PLR0915  (one loop whose numbers stay in registers)
    scene: Any, rules: Any, sheets: Any, run: Any, candidate: int, until: int, acting: Any, world: Any
) -> Any:
    """Episodes up to number `until`, each a `candidate` or what it falls back to; False if one is refused.

    Exploring stops as soon as enough was explored.
    """
    now = run.now
    k, explored, base = now.done, now.explored, now.baseline
    exact, designed, units = now.exact, now.designed, now.units
    earned, worst, bound = now.earned, now.worst, now.bound
    gained, proxy, length = now.gained, now.proxy, now.length
    exploring = candidate == EXPLORE
    tracked = rules.explore_tracked if exploring else rules.tracked
    by_node = rules.explore_by_node if exploring else now.by_node == 1
    first_row = 0 if exploring else rules.first_row
    certified = rules.ledger == CERTIFIED
    steps, noise, longest = 0, sheets.numbers[candidate, NOISE], sheets.numbers[candidate, LONGEST]
    floor, worth = sheets.numbers[candidate, FLOOR], sheets.numbers[candidate, TRUE]
    same = sheets.flags[candidate, SAME] == 1
    stale, fine = tracked, True
    while k < until and run.stop[0] == 0:
        # what the candidate would do
        if stale:
            steps, mean_length, worth, same = reach(
                scene, run.tracker.choice, first_row, by_node, sheets, run.reach
            )
            noise, longest, floor = scene.noise[steps], scene.length[steps], rules.floor * mean_length
        stale, low, centre, spread = False, floor, 0.0, 0.0
        if certified and not same:
            low, centre, spread = lowest(
                scene, rules, sheets, run, run.reach, candidate, tracked, steps, floor
            )

        # whether it may be played
        kind, value, credited = candidate, worth, certified and same
        last = (noise, longest, low)
        if rules.gate != NO_GATE and not credited:
            budget = budget_of(rules, exact, designed, bound if certified else now.total)
            if rules.gate == PROSPECTIVE:
                if not certified:
                    low = bounded_value(scene, rules, run, tracked, steps, sheets, candidate)
                kind = candidate if budget + low - rules.required >= -rules.tolerance else SAFE
            else:
                kind = candidate if budget >= -rules.tolerance else SAFE
            if rules.earner and kind == SAFE:
                went, value, low, centre, spread = instead(scene, rules, sheets, run, budget)
                if went > 0:
                    kind, last = EARN, (scene.noise[went], scene.length[went], low)
        kind = SAFE if kind == DESIGN and rules.plays_baseline else kind
        credited = credited or kind == SAFE
        learned = kind != SAFE or rules.learn_from_baseline

        # the episode, and what it taught
        earns = kind == EARN
        total, guess, taken = walk(
            scene, rules, sheets, run, kind, run.earner if earns else run.tracker.choice,
            earns or (tracked and kind != SAFE), 0 if earns else first_row, earns or by_node, learned, acting,
            world,
        )  # fmt: skip
        if taken == 0:
            fine = False
            break
        if rules.drawn and not credited and not tracked:
            value, low, credited = drawn_path(scene, sheets, run, taken)
            last = (scene.noise[taken], scene.length[taken], low)
        stale = learn(scene, rules, run, kind, taken, learned) and tracked

        # the ledger
        if credited:
            exact += 1
        else:
            designed += 1
            if certified:
                v = rules.proxy * scene.noise[taken]
                gained, proxy, length = gained + total, proxy + v, length + scene.length[taken]
                units += 1 if v == rules.unit else 0
                now.last_proxy, now.last_longest, now.last_low = rules.proxy * last[0], last[1], low
                bound += low
                if not rules.paths:
                    bound = max(bound, seen_worth(rules, units, designed, gained, proxy, length))
                else:
                    visits = run.reach.visits if tracked else sheets.visits[candidate]
                    note_visits(scene, run, run.detour.visits if kind == EARN else visits, taken)
                    if rules.crosses:
                        now.sum_x += total - (guess - centre)
                        now.sum_v += rules.proxy * last[0] + last[1] * spread
                        bound = max(bound, together(rules, now.sum_x, now.sum_v))
            elif rules.ledger == PAPER:
                now.total += bounded_value(scene, rules, run, tracked, steps, sheets, candidate)
        if rules.paths and designed > 0:
            worthy = least(gained, proxy, length, rules.rule)
            bound = max(bound, path_bound(worthy, run.expected, run.realised, run.box.lower, run.box.upper))
        if rules.keeps_visits:
            keep_visits(scene, rules, sheets, run, kind, tracked, steps, taken)

        # the truth
        k += 1
        if kind == SAFE:
            base += 1
        else:
            earned += value
        worst = min(worst, base * rules.baseline + earned - k * rules.required)
        if kind == EXPLORE:
            explored += 1
            if explored >= rules.explorations and not rules.explore_by_clock:
                break
    now.done, now.explored, now.baseline = k, explored, base
    now.exact, now.designed, now.units = exact, designed, units
    now.earned, now.worst, now.bound = earned, worst, bound
    now.gained, now.proxy, now.length = gained, proxy, length
    return fine


@inlined
def walk(  # noqa: PLR0912  (every estimator and law in one pass over the steps)
    scene: Any, rules: Any, sheets: Any, run: Any, kind: int, choice: Any, tracked: bool, first_row: int,
    by_node: bool, learned: bool, acting: Any, world: Any,
) -> Any:  # fmt: skip
    """Play one episode; return sum discount^t C, sum discount^t m, and its length (0 if it is refused)."""
    L, A, pairs = len(scene.factor), scene.uniform.shape[1], scene.pairs
    weighted = rules.estimate == IMPORTANCE and kind != SAFE
    random = not tracked and sheets.flags[kind, RANDOM] == 1
    ratio, weighed, gained, guess, p = 1.0, 0.0, 0.0, 0.0, 0
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
        c = r
        if not rules.shared:
            c = draw(world, rules.laws[1], pairs[p, C_WHERE], pairs[p, C_SCALE], scene.constraints)
        if c < rules.bounds[0] or c > rules.bounds[1]:
            return 0.0, 0.0, 0
        if rules.watched and (r < pairs[p, R_LOW] or r > pairs[p, R_HIGH]):
            return 0.0, 0.0, 0
        gained += scene.factor[t] * c
        if rules.crosses:
            guess += scene.factor[t] * run.box.middle[p]
        if weighted:
            ratio *= scene.target_by_step[t if len(scene.target_by_step) > 1 else 0, s, a]
            weighed += scene.factor[t] * ratio * r
        if learned:
            take(run.seen, p, r, c)
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
            return 0.0, 0.0, 0
        now = run.now
        now.weighted += 1
        now.weighted_mean, now.weighted_squares = welford(
            now.weighted, now.weighted_mean, now.weighted_squares, weighed
        )
    return gained, guess, taken
