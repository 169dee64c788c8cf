"""Compiled parts of one episode: draws, the tracker, where a policy goes, what it is worth."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, jit
from saver.engine.layout import BY_NODE, COIN, FIRST, NORMAL, RANDOM, SAFE, WEIGHT, WORTH
from saver.engine.state import CONSTRAINT, COUNT
from saver.engine.streams import normal, uniform
from saver.safety.widths import side


@inlined
def draw(stream: Any, kind: int, where: float, scale: float, data: Any) -> Any:
    """One observation, as `Law.sample` makes it."""
    if kind == NORMAL:
        return where + scale * normal(stream)
    if kind == COIN:
        return 1.0 if uniform(stream) < where else 0.0
    return data[int(where) + int(uniform(stream) * scale)]


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
    """Where the tracked policy goes, step by step: fill the entries (state, action, probability) of `r`.

    Return the number of steps, the expected discounted steps, V_c, and whether the baseline goes there too.
    """
    nodes, A, L = scene.nodes, scene.uniform.shape[1], len(scene.factor)
    n, begin, steps, length, value = len(scene.start), 0, 0, 0.0, 0.0
    same = sheets.flags[SAFE, RANDOM] == 0
    for i in range(n):
        r.state[i], r.mass[i] = scene.start[i], scene.start_chance[i]
    for t in range(L):
        end = n
        if begin == end:
            break
        r.layer[t], steps = begin, t + 1
        for j in range(begin, end):
            s, mass = r.state[j], r.mass[j]
            a = choice[first_row + (scene.slot[t, s] if by_node else s)]
            p = s * A + a
            r.action[j] = a
            length += scene.factor[t] * mass
            value += scene.factor[t] * mass * scene.pairs[p, WORTH]
            safe = sheets.flags[SAFE, FIRST] + (scene.slot[t, s] if sheets.flags[SAFE, BY_NODE] else s)
            same = same and sheets.sure[safe] == a
            if t + 1 < L:
                for e in range(nodes.indptr[p], nodes.indptr[p + 1]):
                    following = nodes.indices[e]
                    q = r.place[following]
                    if q < end or q >= n or r.state[q] != following:
                        q = n
                        r.place[following] = q
                        r.state[q], r.mass[q] = following, 0.0
                        n += 1
                    r.mass[q] += mass * nodes.data[e]
        begin = end
    r.layer[steps] = n
    return steps, length, value, same


@inlined
def reached_sums(scene: Any, r: Any, steps: int, m: Any, h: Any) -> Any:
    """V(b; m), V(b; h) and E_b[(sum_t discount^t h)^2] of the policy in `r`."""
    nodes, A = scene.nodes, scene.uniform.shape[1]
    centre, width = 0.0, 0.0
    for t in range(steps - 1, -1, -1):
        here, there = 2 * (t % 2), 2 * ((t + 1) % 2)
        factor = scene.factor[t]
        for j in range(r.layer[t], r.layer[t + 1]):
            s, a = r.state[j], r.action[j]
            centre += factor * r.mass[j] * m[s, a]
            width += factor * r.mass[j] * h[s, a]
            now, ahead, square = factor * h[s, a], 0.0, 0.0
            if t + 1 < steps:
                for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                    ahead += nodes.data[e] * r.ahead[there, nodes.indices[e]]
                    square += nodes.data[e] * r.ahead[there + 1, nodes.indices[e]]
            r.ahead[here, s] = now + ahead
            r.ahead[here + 1, s] = now * now + 2.0 * now * ahead + square
    second = 0.0
    for i in range(len(scene.start)):
        second += scene.start_chance[i] * r.ahead[1, scene.start[i]]
    return centre, width, second


@inlined
def drawn_sums(weights: Any, kind: int, m: Any, h: Any) -> Any:
    """V(b; m) and V(b; h) of the policy that this kind of episode is drawn from."""
    centre, width = 0.0, 0.0
    for s in range(m.shape[0]):
        for a in range(m.shape[1]):
            centre += weights[kind, s, a] * m[s, a]
            width += weights[kind, s, a] * h[s, a]
    return centre, width


@inlined
def lower_bound(T: float, mean: float, scale: float, width: float, floor: float) -> Any:
    """The paper's lower confidence bound of a constraint mean; `width` is that after one sample."""
    return max(mean - scale * (width / np.sqrt(T)), floor) if T > 0.0 else floor


@jit
def box_all(seen: Any, numbers: Any, m: Any, h: Any) -> None:
    """The certificate's box for every pair."""
    A = m.shape[1]
    for p in range(len(seen)):
        m[p // A, p % A], h[p // A, p % A] = side(seen[p, COUNT], seen[p, CONSTRAINT], numbers)


@inlined
def spread_believed(T: float, squares: float, bonus: float, width: float) -> Any:
    """(sample deviation + bonus width / sqrt(T))^2."""
    d = np.sqrt(squares / max(T - 1.0, 1.0)) + bonus * (width / np.sqrt(max(T, 1.0)))
    return d * d
