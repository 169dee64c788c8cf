"""Certainty equivalence: the value in the model whose means (and transitions) are those observed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saver._types import Bools, Floats
from saver.estimate.interval import Estimate, Missing, from_parts, nothing_seen
from saver.estimate.spread import Declared, spreads
from saver.problem.bellman import by_step, occupancy, weights
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments
from saver.problem.promise import Bounded, SubGaussian
from saver.problem.question import difference


def certainty(
    mdp: Mdp,
    target: Floats,
    rewards: Moments,
    level: float = 0.95,
    reward: SubGaussian | Bounded | None = None,
    against: Floats | None = None,
) -> Estimate:
    """The value with known transitions, or what it is above that of `against`: see `weighted`."""
    c = weights(mdp, target) if against is None else difference(mdp, target, against)
    return weighted(mdp, c, rewards, level, reward)


def weighted(
    mdp: Mdp, c: Floats, rewards: Moments, level: float = 0.95, reward: SubGaussian | Bounded | None = None
) -> Estimate:
    """Y = sum c(s,a) mean(s,a), for weights of either sign; its variance is sum c^2 variance / T.

    The mean of a pair that was never seen is taken to be the average of the seen, weighted by |c|, or what of
    its declared range is nearest to that (the middle, where nothing was seen). Its range is added to the
    interval: on its lower side c (mean - floor), on its upper side c (ceiling - mean), if c > 0.
    """
    declared = Declared.of(mdp, reward, rewards)
    seen, asked = rewards.counts > 0, c != 0
    lost, used = asked & ~seen, asked & seen
    if not used.any() and not declared.promised:
        return nothing_seen(level, pairs_of(lost))
    floor, ceiling, size = declared.floor[lost], declared.ceiling[lost], np.abs(c[used])
    mean = rewards.mean[used]
    if used.any():
        guess = np.clip(float(np.sum(size * mean) / np.sum(size)), floor, ceiling)
    else:
        guess = (floor + ceiling) / 2
    value = float(np.sum(c[used] * mean) + np.sum(c[lost] * guess))
    to_floor, to_ceiling = c[lost] * (guess - floor), c[lost] * (ceiling - guess)
    below = float(np.sum(np.maximum(to_floor, -to_ceiling)))
    above = float(np.sum(np.maximum(to_ceiling, -to_floor)))
    reasons = (*_lost_reason(lost, below, above), *_once_reason(used & (rewards.counts == 1), declared))
    missing = Missing(below, above, pairs_of(lost), reasons)
    return from_parts(value, *_reward_noise(c, rewards, declared), covered_share(c, seen), level, missing)


def certainty_estimated(
    mdp: Mdp,
    target: Floats,
    rewards: Moments,
    moves: Any,
    ends: Floats,
    level: float = 0.95,
    reward: SubGaussian | Bounded | None = None,
    against: Floats | None = None,
) -> Estimate:
    """The paper's recursion with estimated transitions, from counts of moves [S * A, S] and of ends [S * A].

    Y_t(s) = sum_a pi(a|s) (mean(s,a) + discount sum_s' P^(s'|s,a) Y_{t+1}(s')).

    To first order its variance adds to that of the means, for each pair, Var_{s' ~ P^}[u(s,a,s')] / n(s,a),
    u = sum_t discount^{t+1} x_t(s,a) Y_{t+1}(s'), n the number of observed outcomes. After one outcome the
    variance is taken to be as large as the values ahead allow, ((max u - min u) / 2)^2. A difference to
    `against` has the differences of c and of u.

    Where pairs were never seen, the sum over the seen is divided by their share of all steps under P^. With
    declared rewards the recursion is repeated with the lowest and the highest that may follow a pair whose
    rewards or moves were not seen: its range, and then the lowest or highest reward until the horizon, or an
    end. The interval is around these two values, the noise that of their average.
    """
    outcomes = np.asarray(moves.sum(axis=1)).ravel() + ends
    P = (sparse.diags_array(1.0 / np.maximum(outcomes, 1)) @ moves).tocsr()
    declared = Declared.of(mdp, reward, rewards)
    signs = {1.0: target} if against is None else {1.0: target, -1.0: against}
    found = {sign: _recursion(mdp, policy, rewards, P, outcomes, declared) for sign, policy in signs.items()}
    lost = np.any([one.lost for one in found.values()], axis=0)
    covered = covered_share(np.sum([weights(mdp, policy) for policy in signs.values()], axis=0), ~lost)
    if covered == 0.0 and not declared.promised:
        return nothing_seen(level, pairs_of(lost))
    value = sum(sign * one.value for sign, one in found.items())
    below = sum(one.below if sign > 0 else one.above for sign, one in found.items())
    above = sum(one.above if sign > 0 else one.below for sign, one in found.items())
    c = np.sum([sign * one.c for sign, one in found.items()], axis=0)
    u = np.sum([sign * one.u for sign, one in found.items()], axis=0)
    reach = np.sum([one.reach for one in found.values()], axis=0)
    parts, freedom = _reward_noise(c, rewards, declared)
    once = (c != 0) & (rewards.counts == 1)
    reasons = (*_lost_reason(lost, below, above), *_once_reason(once, declared))
    move_parts, move_freedom = _move_noise(P, u, reach, outcomes)
    return from_parts(
        value,
        np.nan_to_num(np.concatenate([parts, move_parts]), nan=math.inf, posinf=math.inf),
        np.concatenate([freedom, move_freedom]),
        covered,
        level,
        Missing(below, above, pairs_of(lost), reasons),
    )


class Recursion(NamedTuple):
    """What the recursion finds for one policy: see `certainty_estimated`."""

    value: float
    below: float
    above: float
    lost: Bools  # pairs that it needs and whose rewards or moves were not seen
    c: Floats
    u: Floats
    reach: Floats


def _recursion(
    mdp: Mdp, policy: Floats, rewards: Moments, P: Any, outcomes: Floats, declared: Declared
) -> Recursion:
    shape = (mdp.states, mdp.actions)
    onward_needed = occupancy(mdp, policy)[:-1].sum(axis=0) > 0
    seen = (rewards.counts > 0) & ((outcomes.reshape(shape) > 0) | ~onward_needed)
    c = weights(mdp, policy)
    lost, pi, share = (c != 0) & ~seen, by_step(mdp, policy), 1.0
    if lost.any():
        share = float(mdp.start @ _backward(mdp, pi, seen.astype(float), P)[0]) / float(c.sum())
    # 0: nothing that was seen can be met by the moves that were seen
    Y = _backward(mdp, pi, np.where(seen, rewards.mean, 0.0) / (share or math.nan), P)
    value, below, above = float(mdp.start @ Y[0]), 0.0, 0.0
    if lost.any() and declared.promised:
        low, high = (_extreme(mdp, pi, P, rewards, declared, seen, highest) for highest in (False, True))
        least, most, Y, share = float(mdp.start @ low[0]), float(mdp.start @ high[0]), (low + high) / 2, 1.0
        value = min(max(value, least), most) if math.isfinite(value) else (least + most) / 2
        below, above = value - least, most - value
    elif lost.any():
        below = above = math.inf
    c, u, reach = _forward(mdp, pi, P, Y)
    c = np.where(rewards.counts > 0 if declared.promised else seen, c, 0.0) / (share or math.nan)
    return Recursion(value, below, above, lost, c, u, reach)


def covered_share(c: Floats, seen: Bools) -> float:
    """The share of the weight that is on seen pairs; exactly 1 when, and only when, all of it is."""
    if not np.any(c[~seen] != 0):
        return 1.0
    return min(float(np.abs(c[seen]).sum() / np.abs(c).sum()), math.nextafter(1.0, 0.0))


def pairs_of(chosen: Bools) -> tuple[tuple[int, int], ...]:
    """Where it is true, as (state, action)."""
    return tuple((int(s), int(a)) for s, a in np.argwhere(chosen))


def _lost_reason(lost: Bools, below: float, above: float) -> tuple[str, ...]:
    count = int(lost.sum())
    if not count:
        return ()
    were = "pairs that the target needs were" if count > 1 else "pair that the target needs was"
    never = f"{count} {were} never seen"
    if math.isinf(below):
        return (f"{never}, and nothing is declared about rewards: unbounded",)
    return (f"{never}: declared ranges add {below:.3g} below and {above:.3g} above",)


def _once_reason(once: Bools, declared: Declared) -> tuple[str, ...]:
    count = int(once.sum())
    if not count:
        return ()
    what = "what is declared" if declared.promised else "the largest sample variance"
    if np.isinf(declared.variance).any():
        what = "nothing"
    return (f"{count} pair{'s' if count > 1 else ''} seen once: {what} stands for the variance",)


def _reward_noise(c: Floats, rewards: Moments, declared: Declared) -> tuple[Floats, Floats]:
    """c^2 variance / T of each seen pair that has weight, and its degrees of freedom."""
    used = (c != 0) & (rewards.counts > 0)
    variance, freedom = _spreads(rewards, declared, used)
    return c[used] ** 2 * variance / rewards.counts[used], freedom


def noise_of(
    mdp: Mdp, rewards: Moments, reward: SubGaussian | Bounded | None, used: Bools
) -> tuple[Floats, Floats]:
    """The variances of some seen pairs, as intervals believe them, and their degrees of freedom."""
    return _spreads(rewards, Declared.of(mdp, reward, rewards), used)


def _spreads(rewards: Moments, declared: Declared, used: Bools) -> tuple[Floats, Floats]:
    count = rewards.counts[used].astype(np.float64)
    variance, freedom = np.empty(len(count)), np.empty(len(count))
    tables = (declared.variance[used], declared.floor[used], declared.ceiling[used])
    spreads(count, rewards.mean[used], rewards.squares[used], *tables, declared.bounded, declared.freedom,
            variance, freedom)  # fmt: skip
    return variance, freedom


def _backward(mdp: Mdp, pi: Floats, mean: Floats, P: Any) -> Floats:
    Y = np.zeros((mdp.horizon + 1, mdp.states))
    for t in reversed(range(mdp.horizon)):
        Y[t] = np.sum(pi[t] * (mean + mdp.discount * (P @ Y[t + 1]).reshape(mean.shape)), axis=1)
    return Y


def _extreme(
    mdp: Mdp, pi: Floats, P: Any, rewards: Moments, declared: Declared, seen: Bools, highest: bool
) -> Floats:
    """`_backward` with the least, or the most, that may follow where `seen` is False."""
    end = declared.ceiling if highest else declared.floor
    step = max(0.0, float(end.max())) if highest else min(0.0, float(end.min()))
    gain = np.where(rewards.counts > 0, rewards.mean, end)
    Y, ahead = np.zeros((mdp.horizon + 1, mdp.states)), 0.0  # ahead: the extreme of what follows step t
    for t in reversed(range(mdp.horizon)):
        onward = np.where(seen, (P @ Y[t + 1]).reshape(gain.shape), ahead)
        Y[t] = np.sum(pi[t] * (gain + mdp.discount * onward), axis=1)
        ahead = step + mdp.discount * ahead
    return Y


def _forward(mdp: Mdp, pi: Floats, P: Any, Y: Floats) -> tuple[Floats, Floats, Floats]:
    """The weights c under P^, u for each stored entry of P^, and the range of u over all states, [S * A]."""
    c, mass, u = np.zeros((mdp.states, mdp.actions)), mdp.start, np.zeros(P.nnz)
    rows, reach = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr)), np.zeros(P.shape[0])
    for t in range(mdp.horizon):
        flow = mdp.discount**t * mass[:, None] * pi[t]
        c += flow
        u += mdp.discount * flow.ravel()[rows] * Y[t + 1][P.indices]
        reach += mdp.discount * flow.ravel() * (max(Y[t + 1].max(), 0.0) - min(Y[t + 1].min(), 0.0))
        mass = P.T @ (mass[:, None] * pi[t]).ravel()
    return c, u, reach


def _move_noise(P: Any, u: Floats, reach: Floats, outcomes: Floats) -> tuple[Floats, Floats]:
    """Var_{s' ~ P^}[u] / (n - 1) for each pair, an end counting as u = 0, and its degrees of freedom.

    Where n = 1 the variance is the largest that the range of u allows.
    """
    rows = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
    centre = np.bincount(rows, P.data * u, P.shape[0])
    ends = np.maximum(1.0 - np.bincount(rows, P.data, P.shape[0]), 0.0) * (outcomes > 0)
    spread = np.bincount(rows, P.data * (u - centre[rows]) ** 2, P.shape[0]) + ends * centre**2
    once = outcomes == 1
    parts = np.where(once, (reach / 2.0) ** 2, spread / np.maximum(outcomes - 1, 1))
    return parts, np.where(once, math.inf, np.maximum(outcomes - 1, 1))
