"""The passes where one row decides for a whole phase.

With P_b(s,s') = sum_a b(a|s) P(s'|s,a) a step walks the states alone. What the actions of a row are worth,
weighted by when the row is in use, is rebuilt once for each phase from what was walked,

    sum_t mass_t(s) Q_t(s,a) = weight(s) g(s,a) + sum_s' P(s'|s,a) H(s,s'),   H = sum_t mass_t(s) V_{t+1}(s'),

and likewise for C. For behaviours that are constant in phases all of it equals what the passes step by step
give. The last phase is one step, so what leads on can be priced apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner
from saver.kernels.solve.passes import advantages, at_start, extrapolated, keep_early

ZERO, ONE = np.uint64(0), np.uint64(1)
NEVER = 1e-250  # the weight of a row that is not in use


@inner
def merge(model: Any, f: Any, y: Any, P: Any) -> None:
    """Fill P_b of phase f."""
    A = model.actions
    for r in range(model.block[f], model.block[f + ONE]):
        s = model.row_state[r]
        for k in range(model.merged_ptr[s], model.merged_ptr[s + ONE]):
            P[k] = 0.0
        for a in range(A):
            for e in range(model.indptr[s * A + a], model.indptr[s * A + a + ONE]):
                P[model.slot[e]] += y[r * A + a] * model.data[e]


@inner
def forward_phases(
    model: Any, b: Any, ratio: Any, beta: float, y: Any, mass: Any, weight: Any, N: Any
) -> None:
    """Extrapolate b into y and follow y: fill the mass of nodes, the weight of rows and the visits N."""
    A = model.actions
    here, onward, P = model.start.copy(), np.zeros(len(model.start)), np.zeros(len(model.merged))
    N[:] = 0.0
    weight[:] = 0.0
    phases = np.uint64(len(model.phase)) - ONE
    for f in range(phases):
        if f + ONE == phases:
            keep_early(N, len(model.allowed))
        for r in range(model.block[f], model.block[f + ONE]):
            extrapolated(b, ratio, beta, y, r * A, A)
        merge(model, f, y, P)
        for t in range(model.phase[f], model.phase[f + ONE]):
            for i in range(model.layer[t], model.layer[t + ONE]):
                s = model.state[i]
                arrived = here[s]
                here[s], mass[i] = 0.0, arrived
                weight[model.row[i]] += arrived
                for k in range(model.merged_ptr[s], model.merged_ptr[s + ONE]):
                    onward[model.merged[k]] += arrived * P[k]
            here, onward = onward, here
        for r in range(model.block[f], model.block[f + ONE]):
            for a in range(A):
                N[model.row_state[r] * A + a] += weight[r] * y[r * A + a]


@inner
def backward_phases(
    model: Any, y: Any, mass: Any, weight: Any, g: Any, c: Any, scale: float, push: Any, pull: Any
) -> Any:
    """Fill the advantages of g and c under y; return V_c and how it moves (see `backward`)."""
    A, pairs, earn, table = model.actions, len(c), np.empty((len(g), 2)), np.empty((len(y), 2))
    for p in range(len(g)):
        earn[p, 0], earn[p, 1] = g[p] if p < pairs else g[p] + g[p - pairs], c[p % pairs]
    ahead = walk_phases(model, y, mass, weight, earn, table, ZERO)
    for j in range(len(y)):
        push[j], pull[j] = table[j, 0], table[j, 1]
    drift, slope, phases = 0.0, 0.0, np.uint64(len(model.phase)) - ONE
    for later in range(phases):
        f = phases - ONE - later
        for r in range(model.block[f], model.block[f + ONE]):
            _, _, by_gain, by_unit = advantages(y, push, pull, r * A, A, scale)
            drift += 0.5 * weight[r] * by_gain
            slope += 0.5 * weight[r] * by_unit
    return at_start(model, ahead[:, 1]), drift, slope


@inner
def walk_phases(model: Any, y: Any, mass: Any, weight: Any, earn: Any, table: Any, first: Any) -> Any:
    """Fill columns of `table`, from `first` on, with what the actions of rows are worth (see `columns`).

    They are both of two columns, or four of more. Return their values in each state at the start.
    """
    A, states, lanes = model.actions, len(model.start), 2 if earn.shape[1] == 2 else 4
    ahead, here, now = np.zeros((states, lanes)), np.zeros((states, lanes)), np.zeros((states, lanes))
    P, H = np.zeros(len(model.merged)), np.zeros((len(model.merged), lanes))
    faded = np.zeros(states)  # sum_t discount^t mass_t(s)
    phases, early = np.uint64(len(model.phase)) - ONE, np.uint64(len(earn)) - np.uint64(len(model.allowed))
    for later in range(phases):
        f = phases - ONE - later
        shift = early if later > ZERO else ZERO
        merge(model, f, y, P)
        for r in range(model.block[f], model.block[f + ONE]):
            s = model.row_state[r]
            for k in range(np.uint64(lanes)):
                now[s, k] = 0.0
                for a in range(A):
                    now[s, k] += y[r * A + a] * earn[shift + s * A + a, first + k]
        H[:] = 0.0
        faded[:] = 0.0
        for back in range(model.phase[f + ONE] - model.phase[f]):
            t = model.phase[f + ONE] - ONE - back
            if lanes == 2:
                step_of_two(model, t, mass, P, now, faded, H, ahead, here)
            else:
                step_of_four(model, t, mass, P, now, faded, H, ahead, here, first)
            ahead, here = here, ahead
        for r in range(model.block[f], model.block[f + ONE]):
            rebuild(model, r, weight[r], earn, shift, faded, H, table, first)
    return ahead


@inner
def step_of_two(
    model: Any, t: Any, mass: Any, P: Any, now: Any, faded: Any, H: Any, ahead: Any, here: Any
) -> None:
    """V and W of step t from those of the step after, and what the step adds to H."""
    last = t + ONE == np.uint64(len(model.powers))
    for i in range(model.layer[t], model.layer[t + ONE]):
        s = model.state[i]
        arrived, V, W = mass[i], now[s, 0], model.powers[t] * now[s, 1]
        faded[s] += model.powers[t] * arrived
        if not last:
            for k in range(model.merged_ptr[s], model.merged_ptr[s + ONE]):
                v, w = ahead[model.merged[k], 0], ahead[model.merged[k], 1]
                V += P[k] * v
                W += P[k] * w
                H[k, 0] += arrived * v
                H[k, 1] += arrived * w
        here[s, 0], here[s, 1] = V, W


@inner
def step_of_four(
    model: Any, t: Any, mass: Any, P: Any, now: Any, faded: Any, H: Any, ahead: Any, here: Any, first: Any
) -> None:
    """The same for four columns, of which that of the prices is not discounted."""
    power, last = model.powers[t], t + ONE == np.uint64(len(model.powers))
    lead = power if first > ZERO else 1.0
    for i in range(model.layer[t], model.layer[t + ONE]):
        s = model.state[i]
        arrived = mass[i]
        faded[s] += power * arrived
        v0, v1, v2, v3 = lead * now[s, 0], power * now[s, 1], power * now[s, 2], power * now[s, 3]
        if not last:
            for k in range(model.merged_ptr[s], model.merged_ptr[s + ONE]):
                n, p = model.merged[k], P[k]
                a0, a1, a2, a3 = ahead[n, 0], ahead[n, 1], ahead[n, 2], ahead[n, 3]
                v0 += p * a0
                v1 += p * a1
                v2 += p * a2
                v3 += p * a3
                H[k, 0] += arrived * a0
                H[k, 1] += arrived * a1
                H[k, 2] += arrived * a2
                H[k, 3] += arrived * a3
        here[s, 0], here[s, 1], here[s, 2], here[s, 3] = v0, v1, v2, v3


@inner
def rebuild(
    model: Any, r: Any, weight: float, earn: Any, shift: Any, faded: Any, H: Any, table: Any, first: Any
) -> None:
    """Q and C_i of row r, means over the time in which the row is in use; 0 if it never is."""
    A, s = model.actions, model.row_state[r]
    share = 1.0 / weight if weight > NEVER else 0.0
    for a in range(A):
        p = s * A + a
        for k in range(np.uint64(H.shape[1])):
            total = (weight if first + k == ZERO else faded[s]) * earn[shift + p, first + k]
            for e in range(model.indptr[p], model.indptr[p + ONE]):
                total += model.data[e] * H[model.slot[e], k]
            table[r * A + a, first + k] = share * total
