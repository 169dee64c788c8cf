"""The backward pass under several guardrails: prices and constraints as columns of one table.

Column 0 holds the prices, column i the constraint of guardrail i - 1, the rest is 0; a second half of rows,
where there is one, is what pairs earn before the last step. Columns are walked four at a time, written out:
processors add four numbers at once, and the same as loops takes 1.24 to 1.34 of the time (graphs of 30 and
300 states). For one guardrail `passes` stay: see there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inlined, inner, jit
from saver.kernels.solve.passes import ROUNDED, at_start
from saver.kernels.solve.phases import walk_phases

ZERO, ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(5))


def width(rails: int) -> int:
    """Columns of a table for so many guardrails: a multiple of four."""
    return 4 * (rails // 4 + 1)


@jit
def walk_columns(
    model: Any, y: Any, mass: Any, weight: Any, earn: Any, scale: Any, table: Any, stake: Any, earned: Any
) -> None:
    """Fill `table` [rows * A, K] with Q - V and C_i - W_i under y, for what pairs earn, `earn` [S * A, K].

    `stake` [rows, 2] takes V and sum_i scale_i spread of C_i, `earned` [m] the constraint values.
    """
    stake[:] = 0.0
    for block in range(np.uint64(earn.shape[1]) // FOUR):
        first = FOUR * block
        if len(model.phase) > 1:
            ahead = walk_phases(model, y, mass, weight, earn, table, first)
            for r in range(np.uint64(len(weight))):
                centre(y, table, r, model.actions, scale, stake, first)
        else:
            ahead = walk_nodes(model, y, earn, scale, table, stake, first)
        for k in range(FOUR):
            if ZERO < first + k <= np.uint64(len(earned)):
                earned[first + k - ONE] = at_start(model, ahead[:, k])


@inner
def walk_nodes(model: Any, y: Any, earn: Any, scale: Any, table: Any, stake: Any, first: Any) -> Any:
    """Four columns, step by step; return their values in each state at the start."""
    A, steps = model.actions, np.uint64(len(model.layer)) - ONE
    ahead, here = np.zeros((len(model.start), 4)), np.zeros((len(model.start), 4))
    early = np.uint64(len(earn)) - np.uint64(len(model.allowed))
    for back in range(steps):
        t = steps - ONE - back
        faded = model.powers[t]
        lead = faded if first > ZERO else 1.0  # prices are not discounted
        shift = early if back > ZERO else ZERO
        for i in range(model.layer[t], model.layer[t + ONE]):
            s = model.state[i]
            for a in range(A):
                j, p = i * A + a, s * A + a
                k = shift + p
                q0, q1 = lead * earn[k, first], faded * earn[k, first + ONE]
                q2, q3 = faded * earn[k, first + TWO], faded * earn[k, first + THREE]
                if back > ZERO:
                    for e in range(model.indptr[p], model.indptr[p + ONE]):
                        d, n = model.data[e], model.indices[e]
                        q0 += d * ahead[n, ZERO]
                        q1 += d * ahead[n, ONE]
                        q2 += d * ahead[n, TWO]
                        q3 += d * ahead[n, THREE]
                table[j, first], table[j, first + ONE] = q0, q1
                table[j, first + TWO], table[j, first + THREE] = q2, q3
            v0, v1, v2, v3 = centre(y, table, i, A, scale, stake, first)
            here[s, ZERO], here[s, ONE], here[s, TWO], here[s, THREE] = v0, v1, v2, v3
        ahead, here = here, ahead
    return ahead


@inlined
def centre(y: Any, table: Any, r: Any, A: Any, scale: Any, stake: Any, first: Any) -> Any:
    """Take the means off four columns of a row, return them, and add to its `stake`."""
    at = r * A
    v0, v1, v2, v3 = 0.0, 0.0, 0.0, 0.0
    low0, low1, low2, low3 = np.inf, np.inf, np.inf, np.inf
    high0, high1, high2, high3 = -np.inf, -np.inf, -np.inf, -np.inf
    for j in range(at, at + A):
        if y[j] > 0.0:
            q0, q1 = table[j, first], table[j, first + ONE]
            q2, q3 = table[j, first + TWO], table[j, first + THREE]
            v0 += y[j] * q0
            v1 += y[j] * q1
            v2 += y[j] * q2
            v3 += y[j] * q3
            low0, low1, low2, low3 = min(low0, q0), min(low1, q1), min(low2, q2), min(low3, q3)
            high0, high1, high2, high3 = max(high0, q0), max(high1, q1), max(high2, q2), max(high3, q3)
    for j in range(at, at + A):
        table[j, first] -= v0
        table[j, first + ONE] -= v1
        table[j, first + TWO] -= v2
        table[j, first + THREE] -= v3
    if first == ZERO:
        stake[r, 0] = v0
    stake[r, 1] += (
        scale[first] * spread(low0, high0)
        + scale[first + ONE] * spread(low1, high1)
        + scale[first + TWO] * spread(low2, high2)
        + scale[first + THREE] * spread(low3, high3)
    )
    return v0, v1, v2, v3


@inlined
def spread(low: float, high: float) -> float:
    """high - low, 0 where that is mere rounding."""
    return high - low if high - low > ROUNDED * (abs(high) + abs(low)) else 0.0


@jit
def weigh(y: Any, weight: Any, table: Any, stake: Any, push: Any, moves: Any, A: Any) -> None:
    """The advantages in the prices, (Q - V) / unit, unit = max(V, sum_i scale_i spread of C_i) in each row.

    As `passes.advantages` does for one guardrail. `stake[:, 0]` takes 1 / unit. `moves` [m, K] takes how V_i
    moves in a `mirror_step`, to first order: column 0 by the gains, column k + 1 per unit of multiplier k.
    """
    m = np.uint64(len(moves))
    moves[:] = 0.0
    for r in range(np.uint64(len(weight))):
        unit = max(stake[r, 0], stake[r, 1])
        unit = 1.0 / unit if unit > 0.0 else 0.0
        stake[r, 0] = unit
        half = 0.5 * weight[r] * unit
        for j in range(r * A, r * A + A):
            push[j] = table[j, 0] * unit
        for i in range(m):
            for block in range(np.uint64(table.shape[1]) // FOUR):
                first = FOUR * block
                u0, u1, u2, u3 = 0.0, 0.0, 0.0, 0.0
                for j in range(r * A, r * A + A):
                    share = y[j] * table[j, i + ONE]
                    u0 += share * table[j, first]
                    u1 += share * table[j, first + ONE]
                    u2 += share * table[j, first + TWO]
                    u3 += share * table[j, first + THREE]
                moves[i, first] += half * u0
                moves[i, first + ONE] += half * u1
                moves[i, first + TWO] += half * u2
                moves[i, first + THREE] += half * u3


@inner
def combine(table: Any, stake: Any, multipliers: Any, pull: Any, A: Any) -> None:
    """pull = sum_i multiplier_i (C_i - W_i) / unit."""
    for r in range(np.uint64(len(stake))):
        for j in range(r * A, r * A + A):
            total = 0.0
            for i in range(len(multipliers)):
                total += multipliers[i] * table[j, i + 1]
            pull[j] = total * stake[r, 0]
