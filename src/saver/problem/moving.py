"""Compiled passes through a model: where a policy goes, and where any can."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import jit


@jit
def follow(
    indptr: Any, indices: Any, data: Any, start: Any, policy: Any, factors: Any, x: Any, c: Any
) -> None:
    """Add sum_t factors[t] x_t(s,a) to c, [S, A]; write x_t to x, [L, S, A], where it has steps.

    The policy is [1, S, A], or [L, S, A]. Sums are in the order of states and actions.
    """
    S, A = c.shape
    mass, arriving = start.copy(), np.zeros(S)
    for t in range(len(factors)):
        row, alive = t if len(policy) > 1 else 0, False
        for s in range(S):
            if mass[s] != 0.0:
                alive = True
                for a in range(A):
                    flow, p = mass[s] * policy[row, s, a], s * A + a
                    c[s, a] += factors[t] * flow
                    if len(x) > 0:
                        x[t, s, a] = flow
                    if flow != 0.0:
                        for e in range(indptr[p], indptr[p + 1]):
                            arriving[indices[e]] += data[e] * flow
        if not alive:
            return
        mass, arriving = arriving, mass
        arriving[:] = 0.0


@jit
def reached(indptr: Any, indices: Any, available: Any, start: Any, horizon: int) -> Any:
    """The states, in order, that available actions lead to from `start`, step after step, one after another.

    And where those of each step begin and end, until nobody is there; from where they stay they stand once.
    """
    S, A = available.shape
    found, begins, ends = list(start), [0], [len(start)]
    seen, begin = np.zeros(S, dtype=np.bool_), 0
    while len(ends) < horizon and begin < len(found):
        end = len(found)
        seen[:] = False
        for j in range(begin, end):
            for a in range(A):
                p = found[j] * A + a
                for e in range(indptr[p], indptr[p + 1] if available[found[j], a] else indptr[p]):
                    seen[indices[e]] = True
        same, at = True, begin
        for s in range(S):
            if seen[s]:
                same = same and at < end and found[at] == s
                at += 1
        if same and at == end:
            begins += [begin] * (horizon - len(ends))
            ends += [end] * (horizon - len(ends))
            break
        for s in range(S):
            if seen[s]:
                found.append(s)
        if len(found) > end:
            begins.append(end)
            ends.append(len(found))
        begin = end
    return np.array(found), np.array(begins), np.array(ends)


@jit
def met(indptr: Any, to: Any, counts: Any, paid: Any) -> Any:
    """The moves with a count, by rows: where rows begin, where they lead, how often, and what was paid."""
    total = 0
    for e in range(len(counts)):
        total += counts[e] > 0
    begins, leads = np.zeros(len(indptr), dtype=np.int32), np.empty(total, dtype=np.int32)
    seen, sums, at = np.empty(total), np.empty(total), 0
    for p in range(len(indptr) - 1):
        for e in range(indptr[p], indptr[p + 1]):
            if counts[e] > 0:
                leads[at], seen[at], sums[at] = to[e], counts[e], paid[e]
                at += 1
        begins[p + 1] = at
    return begins, leads, seen, sums


@jit
def led(indptr: Any, counts: Any, ends: Any) -> Any:
    """How often it was seen where each pair led, of counts of moves, by rows, and of ends."""
    outcomes = np.empty(len(ends))
    for p in range(len(ends)):
        total = 0.0
        for e in range(indptr[p], indptr[p + 1]):
            total += counts[e]
        outcomes[p] = total + ends[p]
    return outcomes


@jit
def rated(indptr: Any, counts: Any, ends: Any) -> Any:
    """Counts of moves, by rows, as frequencies."""
    rates, outcomes = np.empty(len(counts)), led(indptr, counts, ends)
    for p in range(len(ends)):
        for e in range(indptr[p], indptr[p + 1]):
            rates[e] = counts[e] / max(outcomes[p], 1.0)
    return rates


@jit
def worth(indptr: Any, indices: Any, data: Any, policy: Any, gain: Any, discount: float, Y: Any) -> None:
    """Write to Y, [L + 1, S], what follows: sum_a pi_t(a|s) (gain(s,a) + discount sum_s' P(s'|s,a) Y_{t+1}).

    The policy is [1, S, A], or [L, S, A].
    """
    S, A = gain.shape
    for t in range(len(Y) - 2, -1, -1):
        row = t if len(policy) > 1 else 0
        for s in range(S):
            total = 0.0
            for a in range(A):
                ahead, p = 0.0, s * A + a
                for e in range(indptr[p], indptr[p + 1]):
                    ahead += data[e] * Y[t + 1, indices[e]]
                total += policy[row, s, a] * (gain[s, a] + discount * ahead)
            Y[t, s] = total


@jit
def earned(
    indptr: Any, indices: Any, data: Any, start: Any, choice: Any, slot: Any, by_node: bool, factors: Any,
    gains: Any, since: int, mass: Any, sums: Any,
) -> None:  # fmt: skip
    """Write to sums, [L + 1, m], what a policy of one action a row earns of gains, [m, S * A], step by step.

    Rows are the nodes slot[t, s], or the states; mass, [L + 1, S], is where the policy goes. Of one that was
    followed before, and differs from step `since` on, what was written up to there stands. Indices without a
    sign: compiled code then counts from the front only; the first sum is kept out of memory.
    """
    S, m, L = len(start), len(gains), len(factors)
    A = np.uint64(gains.shape[1] // S)
    if since == 0:
        mass[0], sums[0] = start, 0.0
    for t in range(since, L):
        now, then, alive, factor = np.uint64(t), np.uint64(t + 1), False, factors[t]
        for q in range(S):
            mass[then, np.uint64(q)] = 0.0
        first = sums[now, 0]
        for i in range(1, m):
            sums[then, i] = sums[now, i]
        for j in range(S):
            s = np.uint64(j)
            here = mass[now, s]
            if here != 0.0:
                alive = True
                p = s * A + np.uint64(choice[np.uint64(slot[now, s] if by_node else j)])
                first += factor * here * gains[np.uint64(0), p]
                for i in range(1, m):
                    sums[then, i] += factor * here * gains[np.uint64(i), p]
                if t + 1 == L:
                    continue
                for e in range(np.uint64(indptr[p]), np.uint64(indptr[p + np.uint64(1)])):
                    mass[then, np.uint64(indices[e])] += data[e] * here
        sums[then, 0] = first
        if not alive:
            mass[t + 1 :], sums[t + 1 :] = 0.0, sums[t]
            return
