"""The same under several guardrails, by Newton steps towards its KKT conditions.

minimise sum w_a^2 / b_a over distributions b with s = M b - required >= 0. With multipliers nu, lambda and z

    - w^2 / b^2 + nu - lambda M - z = 0,   lambda_i s_i = z_a b_a = target -> 0.

The Hessian is diagonal, so each step is a system of one equation for each guardrail.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner, jit
from saver.kernels.solve.game import game
from saver.kernels.solve.onestate import ROUNDING, one_state, under_one

STEPS = 80
CLOSED = 1e-13  # of the objective: all complementarities together, where they are rounding
SETTLED = 1e-11  # of nu: an error of the prices that is
SLOWEST = 0.3  # by which complementarity falls while prices are wrong
INSIDE = 0.995  # of the way to the boundary
NEARLY = 1e-13  # of the size of a constraint: holds but for rounding
RIDGE = 1e-14  # of the diagonal: equal guardrails
ROOM = 1e-7  # below the best balance, of the spans, that makes room to search in


@jit
def one_decision(w: Any, means: Any, allowed: Any, required: Any) -> Any:
    """The design [A] for costs w = c^2 variance, means [m, A] and `required` [m], rounded to the safe side.

    Even over the allowed actions if nothing costs. Out of reach alone, a guardrail asks for the most it can
    have; out of reach together, all are lowered by the same share of their spans. What is found is mixed with
    the most balanced point until it is safe.
    """
    if len(means) == 1:
        return under_one(w, means[0], allowed, required[0])
    at = np.flatnonzero(allowed)
    M, r, scale = means[:, at], required.copy(), np.empty(len(required))
    for i in range(len(r)):
        top = np.max(M[i])
        r[i], scale[i] = min(r[i], top), top - np.min(M[i])
    root = np.sqrt(w[at])
    part, total = np.full(len(at), 1.0 / len(at)), np.sum(root)
    if total > 0.0:
        part = root / total
    if missing_share(part, part, M, r) > 0.0:
        worst, safest = balance_of(M, r, scale)
        for i in range(len(r)):
            r[i] += min(worst, 0.0) * scale[i]
        if total > 0.0:
            part = several(root, M, r - max(0.0, ROOM - max(worst, 0.0)) * scale)[0]
        share = missing_share(part, safest, M, r)
        part = (1.0 - share) * part + share * safest
    b = np.zeros(len(w))
    for k in range(len(at)):
        b[at[k]] = part[k]
    return b


@inner
def balance_of(M: Any, r: Any, scale: Any) -> Any:
    """The largest least (M b - r) / scale and its b; guardrails that no action moves are left out."""
    count = 0
    payoff = np.empty(M.shape)
    for i in range(len(r)):
        if scale[i] > ROUNDING * (np.max(np.abs(M[i])) + abs(r[i])):
            for a in range(M.shape[1]):
                payoff[count, a] = (M[i, a] - r[i]) / scale[i]
            count += 1
    if count == 0:
        return 0.0, np.full(M.shape[1], 1.0 / M.shape[1])
    worst, x, _ = game(payoff[:count])
    return worst, x


@inner
def missing_share(b: Any, safest: Any, M: Any, r: Any) -> float:
    """The share of `safest` that makes b feasible; 1 if b is `safest` and is not."""
    share = 0.0
    for i in range(len(r)):
        earned, most, size = 0.0, 0.0, abs(r[i])
        for a in range(len(b)):
            earned += b[a] * M[i, a]
            most += safest[a] * M[i, a]
            size += b[a] * abs(M[i, a])
        missing = r[i] - earned
        if missing > ROUNDING * size:
            share = max(share, min(1.0, missing / max(most - earned, missing)))
    return share


@jit
def several(w: Any, M: Any, required: Any) -> Any:
    """b and lambda [m] for weights w >= 0, not all 0, means M [m, A] and bounds that are attainable.

    Where one guardrail alone gives what is safe by the others too, this is its closed form.
    """
    m = len(required)
    multipliers = np.zeros(m)
    b = w / np.sum(w)
    if holds(b, M, required):
        return b, multipliers
    for i in range(m):
        if np.sum(b * M[i]) < required[i]:
            alone, multiplier = one_state(w, M[i], min(required[i], np.max(M[i])))
            if holds(alone, M, required):
                multipliers[i] = multiplier
                return alone, multipliers
    scale, low = np.empty(m), np.empty(m)
    rows, bounds = np.empty(M.shape), np.empty(m)
    for i in range(m):
        low[i] = np.min(M[i])
        scale[i] = np.max(M[i]) - low[i]
        scale[i] = scale[i] if scale[i] > 0.0 else 1.0
        rows[i], bounds[i] = (M[i] - low[i]) / scale[i], (required[i] - low[i]) / scale[i]
    total = np.sum(w)
    b, multipliers = newton((w / total) ** 2, rows, bounds)
    return b, multipliers * total**2 / scale


@inner
def holds(b: Any, M: Any, required: Any) -> bool:
    """Whether b is safe by all guardrails, but for rounding."""
    for i in range(len(required)):
        earned, size = np.sum(b * M[i]), np.sum(b * np.abs(M[i])) + abs(required[i])
        if earned < required[i] - NEARLY * size:
            return False
    return True


@inner
def newton(cost: Any, M: Any, required: Any) -> Any:
    """b and lambda by a primal-dual interior-point method; rows of M have range 1, roots of cost sum to 1."""
    m, A = M.shape
    b = 0.5 * np.sqrt(cost) + 0.5 / A
    s, lam = np.empty(m), np.empty(m)
    for i in range(m):
        s[i] = max(np.sum(M[i] * b) - required[i], 0.1)
        lam[i] = 1.0 / s[i]
    z, nu = 1.0 / b, np.sum(cost / b)
    db, dz, ds, dlam = np.empty(A), np.empty(A), np.empty(m), np.empty(m)
    for _ in range(STEPS):
        mu, floor = (np.sum(z * b) + np.sum(lam * s)) / (A + m), CLOSED * np.sum(cost / b) / (A + m)
        off = residual(cost, M, b, lam, z, nu)
        if mu <= 2.0 * floor and off <= SETTLED:
            break
        dnu = step(cost, M, required, b, s, lam, z, nu, 0.0, db, dz, ds, dlam)
        sigma = max((1.0 - reach(b, db, z, dz, s, ds, lam, dlam)) ** 3, min(off, SLOWEST))
        dnu = step(cost, M, required, b, s, lam, z, nu, max(sigma * mu, floor), db, dz, ds, dlam)
        alpha = min(1.0, INSIDE * reach(b, db, z, dz, s, ds, lam, dlam))
        b += alpha * db
        z += alpha * dz
        s += alpha * ds
        lam += alpha * dlam
        nu += alpha * dnu
    return b / np.sum(b), lam


@inner
def step(
    cost: Any, M: Any, required: Any, b: Any, s: Any, lam: Any, z: Any, nu: float, target: float,
    db: Any, dz: Any, ds: Any, dlam: Any,
) -> float:  # fmt: skip
    """Fill the Newton step towards complementarities of `target`; return that of nu."""
    m, A = M.shape
    inverse, rest = np.empty(A), np.empty(A)
    total, slack = 0.0, 1.0
    for a in range(A):
        price = cost[a] / (b[a] * b[a])
        inverse[a] = 1.0 / (2.0 * price / b[a] + z[a] / b[a])
        rest[a] = price - nu + target / b[a]
        for i in range(m):
            rest[a] += lam[i] * M[i, a]
        total += inverse[a]
        slack -= b[a] + inverse[a] * rest[a]
    # dnu = (sum_i mean_i dlam_i total - slack) / total, by which the rows below are free of it
    mean, system, side = np.zeros(m), np.zeros((m, m)), np.empty(m)
    for i in range(m):
        for a in range(A):
            mean[i] += inverse[a] * M[i, a]
        mean[i] /= total
    for i in range(m):
        side[i] = required[i] + target / lam[i] - mean[i] * slack
        for a in range(A):
            side[i] -= M[i, a] * (b[a] + inverse[a] * rest[a])
            weight = inverse[a] * (M[i, a] - mean[i])
            for k in range(i + 1):
                system[i, k] += weight * (M[k, a] - mean[k])
        system[i, i] = (1.0 + RIDGE) * system[i, i] + s[i] / lam[i]
    solve(system, side)
    dnu = -slack / total
    for i in range(m):
        dlam[i] = side[i]
        dnu += mean[i] * dlam[i]
        ds[i] = target / lam[i] - s[i] - s[i] / lam[i] * dlam[i]
    for a in range(A):
        change = rest[a] - dnu
        for i in range(m):
            change += M[i, a] * dlam[i]
        db[a] = inverse[a] * change
        dz[a] = target / b[a] - z[a] - z[a] / b[a] * db[a]
    return dnu


@inner
def residual(cost: Any, M: Any, b: Any, lam: Any, z: Any, nu: float) -> float:
    """How far the prices are from what the multipliers say, over nu."""
    worst = 0.0
    for a in range(len(b)):
        off = nu - z[a] - cost[a] / (b[a] * b[a])
        for i in range(len(lam)):
            off -= lam[i] * M[i, a]
        worst = max(worst, abs(off))
    return worst / abs(nu)


@inner
def solve(system: Any, side: Any) -> None:
    """Solve for `side` in place, by the root of a positive matrix of which the lower half is given."""
    m = len(side)
    for i in range(m):
        for k in range(i + 1):
            total = system[i, k]
            for j in range(k):
                total -= system[i, j] * system[k, j]
            if i == k:
                system[i, i] = np.sqrt(max(total, 1e-300))
            else:
                system[i, k] = total / system[k, k]
        for k in range(i):
            side[i] -= system[i, k] * side[k]
        side[i] /= system[i, i]
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            side[i] -= system[k, i] * side[k]
        side[i] /= system[i, i]


@inner
def reach(b: Any, db: Any, z: Any, dz: Any, s: Any, ds: Any, lam: Any, dlam: Any) -> float:
    """The longest step up to 1 that keeps all of them from falling below 0."""
    longest = 1.0
    for a in range(len(b)):
        if db[a] < 0.0:
            longest = min(longest, -b[a] / db[a])
        if dz[a] < 0.0:
            longest = min(longest, -z[a] / dz[a])
    for i in range(len(s)):
        if ds[i] < 0.0:
            longest = min(longest, -s[i] / ds[i])
        if dlam[i] < 0.0:
            longest = min(longest, -lam[i] / dlam[i])
    return longest
