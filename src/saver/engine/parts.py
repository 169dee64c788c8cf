"""Compiled parts of one episode: draws, the tracker, where a policy goes, what it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner, jit
from saver.engine.layout import BY_NODE, COIN, FIRST, NORMAL, SAFE, WEIGHT, WORTH
from saver.engine.state import CONSTRAINT, COUNT, MEAN, SQUARES
from saver.engine.streams import normal, uniform
from saver.problem.moments import moment_step
from saver.safety.widths import side

welford = inlined(moment_step)


@inlined
def place(i: int) -> Any:
    """An index known not to be negative: compiled code then spends nothing on counting from the end."""
    return np.uint64(i)


@inlined
def draw(stream: Any, kind: int, where: float, scale: float, data: Any) -> Any:
    """One observation, as `Law.sample` makes it."""
    if kind == NORMAL:
        return where + scale * normal(stream)
    if kind == COIN:
        return 1.0 if uniform(stream) < where else 0.0
    return data[int(where) + int(uniform(stream) * scale)]


@inlined
def take(seen: Any, p: int, r: float, c: float) -> None:
    """A reward and a constraint of one pair enter the statistics, as in `Moments.add`."""
    T = seen[p, COUNT] + 1.0
    seen[p, COUNT] = T
    seen[p, MEAN], seen[p, SQUARES] = welford(T, seen[p, MEAN], seen[p, SQUARES], r)
    seen[p, CONSTRAINT] += (c - seen[p, CONSTRAINT]) / T


@inlined
def choose(stream: Any, chance: Any, first: int, last: int) -> Any:
    """One of the options first..last-1, drawn only where there are several."""
    if last - first == 1:
        return first
    u, reached = uniform(stream), 0.0
    for e in range(first, last):
        reached += chance[e]
        if reached > u:
            return e
    return last - 1


@inlined
def act(policy: Any, row: int, u: float) -> Any:
    """The action that the uniform number u picks from a row of probabilities."""
    reached, last = 0.0, 0
    for a in range(policy.shape[1]):
        reached += policy[row, a]
        if policy[row, a] > 0.0:
            last = a
        if reached > u:
            return a
    return last


@inlined
def pick(score: Any, row: int) -> Any:
    """argmax of a row; ties go to the lowest index. No branches: they would be guessed wrong."""
    at, best = 0, score[row, 0]
    for a in range(1, score.shape[1]):
        better = score[row, a] > best
        at = a if better else at
        best = score[row, a] if better else best
    return at


@inlined
def rate(b: float, T: float, first: bool) -> Any:
    """The tracker's score b / T; infinite for a pair that comes first."""
    if first:
        return np.inf
    return b / T if b > 0.0 else 0.0


@jit
def rate_all(tracker: Any, begin: int, states: Any, enough: int, pairs: Any, seen: Any) -> None:
    """Score all rows from `begin` on anew; `states` gives the state of each."""
    A = tracker.b.shape[1]
    for i in range(len(states)):
        for a in range(A):
            p = states[i] * A + a
            first = pairs[p, WEIGHT] > 0.0 and seen[p, COUNT] < enough
            tracker.score[begin + i, a] = rate(tracker.b[begin + i, a], tracker.T[begin + i, a], first)
        tracker.choice[begin + i] = pick(tracker.score, begin + i)


@inlined
def reach(scene: Any, choice: Any, first_row: int, by_node: bool, sheets: Any, r: Any) -> Any:
    """Where the tracked policy goes, step by step: list the nodes of `r`, with their pair and probability.

    Once it went to more than half of all nodes the list holds all, some with probability 0: then it need not
    be made again. Return the number of steps, the expected discounted steps, V_c, and whether the baseline
    goes there too.
    """
    nodes, A, L = scene.nodes, scene.uniform.shape[1], len(scene.slot)
    n, begin, steps, length, value = 0, 0, 0, 0.0, 0.0
    same = True
    safe_first, safe_by_node = sheets.flags[SAFE, FIRST], sheets.flags[SAFE, BY_NODE] == 1
    full = r.size[0] == len(nodes.state)
    for j in range(r.size[0]):
        r.mass[r.node[j]] = 0.0
    for i in range(len(scene.start)):
        r.node[n] = scene.slot[0, scene.start[i]]
        r.mass[r.node[n]] = scene.start_chance[i]
        n += 1
    for t in range(L):
        end, factor, alive = nodes.layer[t + 1] if full else n, scene.factor[t], False
        for j in range(begin, end):
            i = r.node[j]
            s, mass = nodes.state[i], r.mass[i]
            a = choice[first_row + (i if by_node else s)]
            p = s * A + a
            r.pair[i] = p
            alive = alive or mass > 0.0
            length += factor * mass
            value += factor * mass * scene.pairs[p, WORTH]
            safe = safe_first + (i if safe_by_node else s)
            same = same and (sheets.policy[safe, a] == 1.0 or mass == 0.0)
            if t + 1 < L:
                for e in range(place(nodes.indptr[p]), place(nodes.indptr[p + 1])):
                    q, x = place(scene.slot[t + 1, place(nodes.indices[e])]), mass * nodes.data[e]
                    if not full and r.mass[q] == 0.0 and x > 0.0:
                        r.node[n] = q
                        n += 1
                    r.mass[q] += x
        if not alive:
            break
        r.layer[t], begin, steps = begin, end, t + 1
    r.layer[steps] = begin
    r.size[0] = len(nodes.state) if full else n
    if not full and 2 * n > len(nodes.state):
        for i in range(len(nodes.state)):
            s = nodes.state[i]
            r.node[i], r.pair[i] = i, s * A + choice[first_row + (i if by_node else s)]
        r.size[0] = len(nodes.state)
        for t in range(steps + 1):
            r.layer[t] = nodes.layer[t]
    return steps, length, value, same


@inlined
def reached_sums(scene: Any, r: Any, steps: int, box: Any) -> Any:
    """V(b; m), V(b; h) and E_b[(sum_t discount^t h)^2] of the policy in `r`."""
    nodes = scene.nodes
    centre, width = 0.0, 0.0
    for t in range(steps - 1, -1, -1):
        factor = scene.factor[t]
        for j in range(r.layer[t], r.layer[t + 1]):
            i = place(r.node[j])
            p, mass = place(r.pair[i]), factor * r.mass[i]
            m, h = box[p, 0], box[p, 1]
            centre += mass * m
            width += mass * h
            now, ahead, square = factor * h, 0.0, 0.0
            if t + 1 < steps:
                for e in range(place(nodes.indptr[p]), place(nodes.indptr[p + place(1)])):
                    q = place(scene.slot[t + 1, place(nodes.indices[e])])
                    ahead += nodes.data[e] * r.ahead[q, 2]
                    square += nodes.data[e] * r.ahead[q, 3]
            r.ahead[i, 2] = now + ahead
            r.ahead[i, 3] = now * now + 2.0 * now * ahead + square
    second = 0.0
    for i in range(len(scene.start)):
        second += scene.start_chance[i] * r.ahead[scene.slot[0, scene.start[i]], 3]
    return centre, width, second


@inlined
def sums_ahead(scene: Any, choice: Any, first_row: int, by_node: bool, box: Any, r: Any) -> Any:
    """V_c, V(b; m), V(b; h) and E_b[(sum_t discount^t h)^2] of the tracked policy, in one pass from the end.

    Goes through every node: for graphs where most policies go nearly everywhere.
    """
    nodes, A, L = scene.nodes, place(scene.uniform.shape[1]), len(scene.slot)
    worth, centre, width, second = 0.0, 0.0, 0.0, 0.0
    for t in range(L - 1, -1, -1):
        factor, last = scene.factor[t], t + 1 == L
        for j in range(nodes.layer[t], nodes.layer[t + 1]):
            i = place(j)
            s = place(nodes.state[i])
            p = s * A + place(choice[place(first_row) + (i if by_node else s)])
            w, m, h, square = 0.0, 0.0, 0.0, 0.0
            if not last:
                for e in range(place(nodes.indptr[p]), place(nodes.indptr[p + place(1)])):
                    q, x = place(scene.slot[t + 1, place(nodes.indices[e])]), nodes.data[e]
                    w += x * r.ahead[q, 0]
                    m += x * r.ahead[q, 1]
                    h += x * r.ahead[q, 2]
                    square += x * r.ahead[q, 3]
            now = factor * box[p, 1]
            r.ahead[i, 0] = factor * scene.pairs[p, WORTH] + w
            r.ahead[i, 1] = factor * box[p, 0] + m
            r.ahead[i, 2] = now + h
            r.ahead[i, 3] = now * now + 2.0 * now * h + square
    for i in range(len(scene.start)):
        q, x = scene.slot[0, scene.start[i]], scene.start_chance[i]
        worth += x * r.ahead[q, 0]
        centre += x * r.ahead[q, 1]
        width += x * r.ahead[q, 2]
        second += x * r.ahead[q, 3]
    return worth, centre, width, second


@inlined
def as_baseline(scene: Any, choice: Any, first_row: int, by_node: bool, sheets: Any) -> Any:
    """Whether the tracked policy agrees with the baseline wherever the baseline goes."""
    for i in scene.safe_nodes:
        s = scene.nodes.state[i]
        safe = sheets.flags[SAFE, FIRST] + (i if sheets.flags[SAFE, BY_NODE] else s)
        if sheets.policy[safe, choice[first_row + (i if by_node else s)]] < 1.0:
            return False
    return True


@inlined
def drawn_sums(weights: Any, kind: int, box: Any) -> Any:
    """V(b; m) and V(b; h) of the policy that this kind of episode is drawn from."""
    centre, width, A = 0.0, 0.0, weights.shape[2]
    for p in range(len(box)):
        centre += weights[kind, p // A, p % A] * box[p, 0]
        width += weights[kind, p // A, p % A] * box[p, 1]
    return centre, width


@inlined
def lower_bound(T: float, mean: float, scale: float, width: float, floor: float) -> Any:
    """The paper's lower confidence bound of a constraint mean; `width` is that after one sample."""
    return max(mean - scale * (width / np.sqrt(T)), floor) if T > 0.0 else floor


@inner
def box_all(seen: Any, numbers: Any, box: Any, h: Any) -> None:
    """The certificate's box for every pair."""
    A = h.shape[1]
    for p in range(len(seen)):
        box[p, 0], box[p, 1] = side(seen[p, COUNT], seen[p, CONSTRAINT], numbers)
        h[p // A, p % A] = box[p, 1]
