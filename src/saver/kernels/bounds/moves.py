"""What counted moves say of transitions that are unknown, and the least that a policy is worth by them.

Of n moves of a pair, each to one of m outcomes, let p^ be the shares. With probability 1 - d, for all n at
once,

    n KL(p^, p) <= log(1 / d) + (m - 1) log(e (1 + n / (m - 1)))

(Jonsson, Kaufmann, Menard et al. 2020, Prop. 1). The least p . v over this set has a dual of one number: for
every nu <= min v, where KL(p^, p) <= rate,

    p . v >= nu + sum over the seen of p_i (v_i - nu) >= nu + exp(sum p^_i log(v_i - nu) - rate),

the second by the arithmetic and the geometric mean. At the best nu the least p is p^ / (v - nu), times a
number; where that nu is min v, the rest of the mass is at the lowest outcome, which was not seen. Every other
nu gives a bound too: what is found is never above the least, wherever the search ends, and what rounding may
have added is taken off.

Backward, with v the values one step later and 0 for END,

    low_t(s) = sum_a b_t(a|s) (lower(s, a) + discount min over p of p . v),

for all policies and all steps at once, where the sets of all pairs hold.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief, jit
from saver._types import Floats, Ints

UNIT = 2.0**-53  # what one rounding may be, of 1
SMALLEST = 1e-290  # values that differ by less are equal
NEAREST, FARTHEST = 1e-16, 1e7  # of x: beyond them the bound moves by what rounding moves it
EARLY = 0.1  # where the search begins, of p^ . v, if the moments of v say nothing
CLOSE, ROUNDS, STRIDE = 1e-9, 100, 50.0  # to the best bound; 2 to 4 rounds are usual, 9 were the most seen


class Moves(NamedTuple):
    """The outcomes that were seen of P pairs: those of pair p stand from `first[p]` to `first[p + 1]`."""

    first: Ints  # [P + 1]
    outcomes: Ints
    shares: Floats  # of the pair's moves
    totals: Floats  # [P], moves of each pair

    @classmethod
    def of(cls, counts: Floats) -> Moves:
        """From counts [P, outcomes]."""
        pairs, outcomes = np.nonzero(counts)
        totals = np.asarray(np.sum(counts, axis=1), dtype=float)
        first = np.append(0, np.cumsum(np.bincount(pairs, minlength=len(counts))))
        return cls(first, outcomes, counts[pairs, outcomes] / totals[pairs], totals)


@brief
def radius(n: float, outcomes: float, log_level: float) -> float:
    """How large n KL(p^, p) may be after n moves, at any n; `log_level` is log d."""
    if outcomes <= 1.0:
        return 0.0
    if n <= 0.0:
        return math.inf
    free = outcomes - 1.0
    return free * (1.0 + math.log1p(n / free)) - log_level


@brief
def worst(counts: Any, n: float, values: Any, radius: float) -> float:
    """The least p . values over all p with n KL(p^, p) <= radius, from below; every entry is possible."""
    least, seen = math.inf, 0
    shares, parts = np.empty(len(values)), np.empty(len(values))
    for i in range(len(values)):
        least = min(least, values[i])
        if counts[i] > 0.0:
            shares[seen], parts[seen] = counts[i] / n, values[i]
            seen += 1
    rate = radius / n if n > 0.0 else math.inf
    return least_of(shares, parts, seen, rate, least, 0.0)[0]


@brief
def rate_ends(total: float, n: float, radius: float) -> Any:
    """Between these is the chance of a 1, after n observations 0 or 1 that add up to `total`."""
    values, zeros = np.array([0.0, 1.0]), n - total
    low = worst(np.array([zeros, total]), n, values, radius)
    return low, 1.0 - worst(np.array([total, zeros]), n, values, radius)


@brief
def lowest(
    policy: Any, lower: Any, moves: Any, radii: Any, discount: float, starts: Any, start_radius: float,
    values: Any,
) -> float:  # fmt: skip
    """The least value of a policy, and that of every step and state, written to `values` [L + 1, S].

    The policy is [L, S, A]; `lower` [S, A] what a pair gives at least; `moves` are those of S * A pairs with
    S + 1 outcomes, the last of them END, `radii` theirs. `starts` [S] are counts with `start_radius`, or the
    distribution and 0. Pairs that the policy does not take are not looked at.
    """
    steps, states, actions = policy.shape
    v, parts, found = np.zeros(states + 1), np.empty(states + 1), np.zeros(states * actions)
    values[steps] = 0.0
    for t in range(steps - 1, -1, -1):
        least = np.min(v)
        for s in range(states):
            total, size = 0.0, 0.0
            for a in range(actions):
                b, p, onward = policy[t, s, a], s * actions + a, 0.0
                if b == 0.0:
                    continue
                if t < steps - 1:
                    first, seen = moves.first[p], moves.first[p + 1] - moves.first[p]
                    for i in range(seen):
                        parts[i] = v[moves.outcomes[first + i]]
                    rate = radii[p] / moves.totals[p] if moves.totals[p] > 0.0 else math.inf
                    onward, found[p] = least_of(moves.shares[first:], parts, seen, rate, least, found[p])
                total += b * (lower[s, a] + discount * onward)
                size += b * (abs(lower[s, a]) + discount * abs(onward))
            values[t, s] = total - UNIT * (actions + 4.0) * size
        v[:states] = values[t]
    return worst(starts, np.sum(starts), values[0], start_radius)


@jit
def least_of(shares: Any, parts: Any, seen: int, rate: float, least: float, guess: float) -> Any:
    """The least p . v with KL(p^, p) <= rate, and x of `dual`, searched from `guess` on unless it is 0.

    `parts` are the v of the outcomes seen, and are overwritten; `least` is that of all outcomes.
    """
    if rate == math.inf or least == -math.inf:
        return least, guess
    span = 0.0
    for i in range(seen):
        span = max(span, parts[i] - least)
    if not SMALLEST < span < math.inf:
        return least, guess
    for i in range(seen):
        parts[i] = (parts[i] - least) / span
    above, x = dual(shares, parts, seen, rate, guess)
    above *= span
    return least + max(above - 2.0 * UNIT * (abs(least) + above), 0.0), x


@jit
def dual(shares: Any, parts: Any, seen: int, rate: float, guess: float) -> Any:
    """The same where the lowest outcome is worth 0 and the highest that was seen 1.

    With x = min v - nu, c = x + p^ . v and r = c / (v + x), the bound is

        p^ . v + c expm1(-sum p^ log r - rate), best where f(x) = log sum p^ r - sum p^ log r = rate.

    This f falls, far away as 1 / (x + .)^2 and near 0 as -log x. Newton's steps on f^-1/2 in x and on f in
    log x go left of the root or nearly so: the one further right is taken.
    """
    mean, second, third = 0.0, 0.0, 0.0
    for i in range(seen):
        part = shares[i] * parts[i]
        mean += part
        second += part * parts[i]
        third += part * parts[i] * parts[i]
    lost = UNIT * (4.0 * seen + 16.0)
    if rate <= 0.0:
        return mean - lost, guess
    x, variance = guess, second - mean * mean
    if x == 0.0 and variance > UNIT:  # the root, but for moments beyond the third
        skew = third - mean * (3.0 * second - 2.0 * mean * mean)
        x = math.sqrt(variance / (2.0 * rate)) - 2.0 / 3.0 * skew / variance - mean
    x = min(x if guess > 0.0 else max(x, EARLY * mean), FARTHEST)
    best, low, high = 0.0, 0.0, FARTHEST
    for _ in range(ROUNDS):
        c, logs, once, twice = mean + x, 0.0, 0.0, 0.0
        for i in range(seen):
            r = c / (parts[i] + x)
            part = shares[i] * r
            logs -= shares[i] * math.log(r)
            once += part
            twice += part * r
        best = max(best, mean + c * math.expm1(logs - rate) - lost - 8.0 * UNIT * c)
        f, fall, after = logs + math.log(once), (twice / once - once) / c, NEAREST
        if f > rate:
            low = x
        else:
            high = x
        if f > 0.0 and fall > 0.0:
            after = x * math.exp(min((f - rate) / (x * fall), STRIDE))
            after = max(after, x + 2.0 * f * (math.sqrt(f / rate) - 1.0) / fall)
        after = min(max(after, NEAREST), FARTHEST)
        if low > 0.0 and not low < after < high:
            after = math.sqrt(low * high)
        if abs(math.expm1(f - rate) * (after - x)) <= CLOSE:
            break
        x = after
    return best, x
