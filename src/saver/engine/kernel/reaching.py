"""Where a policy goes, and what it is worth: sums over the nodes of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined
from saver.engine.kernel.following import row_at
from saver.engine.kernel.forms import BY_NODE, FIRST, SAFE, WORTH
from saver.engine.kernel.memory import CONSTRAINT, COUNT
from saver.safety.widths import ends


@inlined
def place(i: int) -> Any:
    """An index known not to be negative: compiled code then spends nothing on counting from the end."""
    return np.uint64(i)


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
            a = choice[row_at(first_row, by_node, i, s)]
            p = s * A + a
            r.pair[i] = p
            alive = alive or mass > 0.0
            length += factor * mass
            value += factor * mass * scene.pairs[p, WORTH]
            safe = row_at(safe_first, safe_by_node, i, s)
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
            r.node[i], r.pair[i] = i, s * A + choice[row_at(first_row, by_node, i, s)]
        r.size[0] = len(nodes.state)
        for t in range(steps + 1):
            r.layer[t] = nodes.layer[t]
    return steps, length, value, same


@inlined
def path_low(scene: Any, r: Any, steps: int, box: Any) -> Any:
    """V(b; lower ends) of the policy in `r`."""
    total = 0.0
    for t in range(steps):
        for j in range(r.layer[t], r.layer[t + 1]):
            i = place(r.node[j])
            total += scene.factor[t] * r.mass[i] * box.lower[place(r.pair[i])]
    return total


@inlined
def reached_sums(scene: Any, r: Any, steps: int, box: Any) -> Any:
    """V(b; lower ends), V(b; m) and E_b[(sum_t discount^t h)^2] of the policy in `r`."""
    nodes = scene.nodes
    low, centre = 0.0, 0.0
    for t in range(steps - 1, -1, -1):
        factor = scene.factor[t]
        for j in range(r.layer[t], r.layer[t + 1]):
            i = place(r.node[j])
            p, mass = place(r.pair[i]), factor * r.mass[i]
            low += mass * box.lower[p]
            centre += mass * box.middle[p]
            now, ahead, square = factor * box.half[p], 0.0, 0.0
            if t + 1 < steps:
                for e in range(place(nodes.indptr[p]), place(nodes.indptr[p + place(1)])):
                    q = place(scene.slot[t + 1, place(nodes.indices[e])])
                    ahead += nodes.data[e] * r.ahead[q, 0]
                    square += nodes.data[e] * r.ahead[q, 1]
            r.ahead[i, 0] = now + ahead
            r.ahead[i, 1] = now * now + 2.0 * now * ahead + square
    second = 0.0
    for i in range(len(scene.start)):
        second += scene.start_chance[i] * r.ahead[scene.slot[0, scene.start[i]], 1]
    return low, centre, second


@inlined
def drawn_sums(weights: Any, kind: int, box: Any) -> Any:
    """V(b; lower ends) and V(b; m) of the policy that this kind of episode is drawn from."""
    low, centre, A = 0.0, 0.0, weights.shape[2]
    for p in range(len(box.lower)):
        low += weights[kind, p // A, p % A] * box.lower[p]
        centre += weights[kind, p // A, p % A] * box.middle[p]
    return low, centre


@inlined
def lower_bound(T: float, mean: float, scale: float, width: float, floor: float) -> Any:
    """The paper's lower confidence bound of a constraint mean; `width` is that after one sample."""
    return max(mean - scale * (width / np.sqrt(T)), floor) if T > 0.0 else floor


@inlined
def box_one(rules: Any, seen: Any, box: Any, p: int) -> None:
    """The certificate's box for one pair; only its lower end where nothing else is asked."""
    T, mean = seen[p, COUNT], seen[p, CONSTRAINT]
    if 0.0 < T < len(rules.depth):
        box.lower[p] = min(max(mean - rules.depth[int(T)], rules.box.floor), rules.box.ceiling)
        return
    low, high = ends(T, mean, rules.box)
    box.lower[p], box.upper[p] = low, high
    box.middle[p], box.half[p] = (low + high) / 2, (high - low) / 2
