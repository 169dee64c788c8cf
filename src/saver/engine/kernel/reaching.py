"""Where a policy goes, and what it is worth: sums over the nodes of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined
from saver.engine.kernel.following import row_at
from saver.engine.kernel.forms import BY_NODE, FIRST, SAFE, WORTH
from saver.engine.kernel.keeping import CONSTRAINT, COUNT
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
    if scene.one_way:
        return trail(scene, choice, first_row, by_node, sheets, r)
    if len(r.visits) > 0 and r.size[0] == len(scene.nodes.state):
        return flood(scene, choice, first_row, by_node, sheets, r)
    steps, length, value, same = listed(scene, choice, first_row, by_node, sheets, r)
    for t in range(steps if len(r.visits) > 0 else 0):
        for j in range(r.layer[t], r.layer[t + 1]):
            r.visits[r.pair[r.node[j]]] += scene.factor[t] * r.mass[r.node[j]]
    return steps, length, value, same


@inlined
def trail(scene: Any, choice: Any, first_row: int, by_node: bool, sheets: Any, r: Any) -> Any:
    """`reach` where start and transitions leave nothing to chance: one node at each step."""
    nodes, A, L = scene.nodes, place(scene.uniform.shape[1]), len(scene.slot)
    safe_first, safe_by_node = sheets.flags[SAFE, FIRST], sheets.flags[SAFE, BY_NODE] == 1
    s, steps, length, value, same = place(scene.start[0]), 0, 0.0, 0.0, True
    for t in range(L):
        i = place(scene.slot[t, s])
        a = place(choice[row_at(place(first_row), by_node, i, s)])
        p = s * A + a
        r.node[t], r.pair[i], r.mass[i], r.layer[t], steps = i, p, 1.0, t, t + 1
        length += scene.factor[t]
        value += scene.factor[t] * scene.pairs[p, WORTH]
        same = same and sheets.policy[row_at(place(safe_first), safe_by_node, i, s), a] == 1.0
        if nodes.indptr[p] == nodes.indptr[p + place(1)]:
            break
        s = place(nodes.indices[nodes.indptr[p]])
    r.layer[steps] = steps
    return steps, length, value, same


@inlined
def flood(scene: Any, choice: Any, first_row: int, by_node: bool, sheets: Any, r: Any) -> Any:
    """`reach` for policies that go nearly everywhere: the visits of pairs, and no list."""
    nodes, A, L, steps = scene.nodes, place(scene.uniform.shape[1]), len(scene.slot), 0
    for i in range(len(nodes.state)):
        r.mass[i] = 0.0
    for p in range(len(r.visits)):
        r.visits[p] = 0.0
    for i in range(len(scene.start)):
        r.mass[scene.slot[0, scene.start[i]]] = scene.start_chance[i]
    for t in range(L):
        alive, factor, row = 0.0, scene.factor[t], place(first_row)
        for j in range(nodes.layer[t], nodes.layer[t + 1]):
            i = place(j)
            s, mass = place(nodes.state[i]), r.mass[i]
            p = s * A + place(choice[row_at(row, by_node, i, s)])
            alive += mass
            r.visits[p] += factor * mass
            if t + 1 < L:
                for e in range(place(nodes.indptr[p]), place(nodes.indptr[p + place(1)])):
                    r.mass[place(scene.slot[t + 1, place(nodes.indices[e])])] += mass * nodes.data[e]
        if alive == 0.0:
            break
        steps = t + 1
    length, value = 0.0, 0.0
    for p in range(len(r.visits)):
        length += r.visits[p]
        value += r.visits[p] * scene.pairs[p, WORTH]
    return steps, length, value, as_baseline(scene, choice, first_row, by_node, sheets)


@inlined
def as_baseline(scene: Any, choice: Any, first_row: int, by_node: bool, sheets: Any) -> Any:
    """Whether the tracked policy agrees with the baseline wherever the baseline goes."""
    for i in scene.safe_nodes:
        s = scene.nodes.state[i]
        safe = row_at(sheets.flags[SAFE, FIRST], sheets.flags[SAFE, BY_NODE] == 1, i, s)
        if sheets.policy[safe, choice[row_at(first_row, by_node, i, s)]] < 1.0:
            return False
    return True


@inlined
def listed(scene: Any, choice: Any, first_row: int, by_node: bool, sheets: Any, r: Any) -> Any:
    """`reach` but for the visits of pairs, which are set to 0."""
    nodes, A, L = scene.nodes, scene.uniform.shape[1], len(scene.slot)
    n, begin, steps, length, value = 0, 0, 0, 0.0, 0.0
    same = True
    safe_first, safe_by_node = sheets.flags[SAFE, FIRST], sheets.flags[SAFE, BY_NODE] == 1
    full = r.size[0] == len(nodes.state)
    for j in range(r.size[0]):
        r.mass[r.node[j]] = 0.0
    for p in range(len(r.visits)):
        r.visits[p] = 0.0
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
def pair_sums(visits: Any, box: Any) -> Any:
    """V(b; lower ends), V(b; m) and V(b; h^2) of a policy by its discounted visits, [pairs]."""
    low, centre, spread = 0.0, 0.0, 0.0
    for p in range(place(len(visits))):
        x, h = visits[p], box.half[p]
        low += x * box.lower[p]
        centre += x * box.middle[p]
        spread += x * h * h
    return low, centre, spread


@inlined
def lower_bound(T: float, mean: float, scale: float, width: float, floor: float) -> Any:
    """The paper's lower confidence bound of a constraint mean; `width` is that after one sample."""
    return max(mean - scale * (width / np.sqrt(T)), floor) if T > 0.0 else floor


@inlined
def box_one(rules: Any, seen: Any, box: Any, p: int) -> None:
    """The certificate's box for one pair; only its lower end where nothing else is asked."""
    T, mean = seen[p, COUNT], seen[p, CONSTRAINT]
    if len(rules.depth) > T:
        box.lower[p] = max(mean - rules.depth[place(int(T))], rules.box.floor)
        return
    low, high = ends(T, mean, rules.box)
    box.lower[p], box.upper[p] = low, high
    box.middle[p], box.half[p] = (low + high) / 2, (high - low) / 2
