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
from saver.kernels.solve.passes import advantages, early_prices, extrapolated, keep_early

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
    A, states = model.actions, len(model.start)
    ahead, here, now = np.zeros((states, 2)), np.zeros((states, 2)), np.zeros((states, 2))
    P, H = np.zeros(len(model.merged)), np.zeros((len(model.merged), 2))
    faded = np.zeros(states)  # sum_t discount^t mass_t(s)
    drift, slope, early = 0.0, 0.0, early_prices(g, len(model.allowed))
    phases = np.uint64(len(model.phase)) - ONE
    for later in range(phases):
        f = phases - ONE - later
        price = early if later > ZERO else g
        merge(model, f, y, P)
        expect(model, f, y, price, c, now)
        H[:] = 0.0
        faded[:] = 0.0
        for back in range(model.phase[f + ONE] - model.phase[f]):
            t = model.phase[f + ONE] - ONE - back
            walk_back(model, t, mass, P, now, faded, H, ahead, here)
            ahead, here = here, ahead
        for r in range(model.block[f], model.block[f + ONE]):
            rebuild(model, r, weight[r], price, c, faded, H, push, pull)
            _, _, by_gain, by_unit = advantages(y, push, pull, r * A, A, scale)
            drift += 0.5 * weight[r] * by_gain
            slope += 0.5 * weight[r] * by_unit
    earned = 0.0
    for s in range(states):
        if model.start[s] > 0.0:
            earned += model.start[s] * ahead[s, 1]
    return earned, drift, slope


@inner
def expect(model: Any, f: Any, y: Any, g: Any, c: Any, now: Any) -> None:
    """Fill what one step of phase f earns in each state: sum_a b g and sum_a b c."""
    A = model.actions
    for r in range(model.block[f], model.block[f + ONE]):
        s = model.row_state[r]
        V, W = 0.0, 0.0
        for a in range(A):
            V += y[r * A + a] * g[s * A + a]
            W += y[r * A + a] * c[s * A + a]
        now[s, 0], now[s, 1] = V, W


@inner
def walk_back(
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
def rebuild(
    model: Any, r: Any, weight: float, g: Any, c: Any, faded: Any, H: Any, push: Any, pull: Any
) -> None:
    """Q and C of row r, means over the time in which the row is in use; 0 if it never is."""
    A, s = model.actions, model.row_state[r]
    share = 1.0 / weight if weight > NEVER else 0.0
    for a in range(A):
        pair = s * A + a
        Q, C = weight * g[pair], faded[s] * c[pair]
        for e in range(model.indptr[pair], model.indptr[pair + ONE]):
            Q += model.data[e] * H[model.slot[e], 0]
            C += model.data[e] * H[model.slot[e], 1]
        push[r * A + a], pull[r * A + a] = share * Q, share * C
