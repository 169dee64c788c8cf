"""Certainty equivalence: the value in the model whose means (and transitions) are those observed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saver._types import Bools, Floats
from saver.estimate.interval import DECLARE, Estimate, Missing, from_parts, nothing_seen
from saver.estimate.recursion import Moves, Recursion, move_noise, recursion
from saver.kernels.bounds.spread import Declared, Promised, spreads
from saver.kernels.solve.pricing import covary
from saver.problem.bellman import difference, weights
from saver.problem.checks import read_only
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments


def certainty(
    mdp: Mdp, target: Floats, rewards: Moments, level: float = 0.95, reward: Promised = None,
    against: Floats | None = None,
) -> Estimate:  # fmt: skip
    """The value with known transitions, or what it is above that of `against`: see `weighted`."""
    c = weights(mdp, target) if against is None else difference(mdp, target, against)
    return weighted(mdp, c, rewards, level, reward)


def weighted(mdp: Mdp, c: Floats, rewards: Moments, level: float = 0.95, reward: Promised = None) -> Estimate:
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
    reasons = (*_lost_reason(lost, below, above), *_unvaried_reasons(used, rewards, declared))
    missing = Missing(below, above, pairs_of(lost), reasons, fewest_of(c, rewards))
    return from_parts(value, *_reward_noise(c, rewards, declared), covered_share(c, seen), level, missing)


def certainty_estimated(
    mdp: Any, target: Floats, rewards: Moments, moves: Moves, level: float = 0.95, reward: Promised = None,
    against: Floats | None = None,
) -> Estimate:  # fmt: skip
    """The paper's recursion with estimated transitions; those of an `Unknown`, and its start, are unknown.

    Y_t(s) = sum_a pi(a|s) (mean(s,a) + discount sum_s' P^(s'|s,a) Y_{t+1}(s')).

    To first order its variance adds to that of the means, for each pair,

        Var_{s' ~ P^}[u] / n + 2 c Cov(r, u) / T,    u(s,a,s') = sum_t discount^{t+1} x_t(s,a) Y_{t+1}(s'),

    n the number of observed outcomes, T that of rewards; and Var[Y_0] / episodes where the start is learned.
    After one outcome the variance is taken to be as large as the values ahead allow, ((max u - min u) / 2)^2.
    A difference to `against` has the differences of c and of u.

    Where pairs were never seen, the sum over the seen is divided by their share of all steps under P^. With
    declared rewards the recursion is repeated with the lowest and the highest that may follow a pair whose
    rewards or moves were not seen: its range, and then the lowest or highest reward until the horizon, or an
    end. The interval is around these two values, the noise that of their average.
    """
    found, parts, freedom, declared = unknown_parts(mdp, target, rewards, moves, reward, against)
    asked, lost, below, above = found.asked, found.lost, found.below, found.above
    covered = covered_share(asked, ~lost)
    policies = 1 if against is None else 2
    beyond = 0.0 if mdp.known else beyond_share(mdp, asked / policies, found.onward / policies, moves)
    if covered == 0.0 and not declared.promised:
        return nothing_seen(level, pairs_of(lost))
    unvaried = _unvaried_reasons(found.c != 0, rewards, declared)
    reasons = (*_lost_reason(lost, below, above), *unvaried)
    if beyond > 0.0:
        where = f"about {beyond:.2g} of the steps lead where nobody has been"
        reasons = (*reasons, f"states are still being found: {where}")
    missing = Missing(below, above, pairs_of(lost), reasons, fewest_of(asked, rewards))
    return from_parts(found.value, parts, freedom, covered * (1.0 - beyond), level, missing)


class UnknownParts(NamedTuple):
    """The recursion of what is asked, and what varies in it."""

    found: Recursion
    parts: Floats  # of the variance, of each pair, and at last of the start
    freedom: Floats
    declared: Declared


def unknown_parts(
    mdp: Any, target: Floats, rewards: Moments, moves: Moves, reward: Promised, against: Floats | None
) -> UnknownParts:
    """What `certainty_estimated` is made of."""
    starts = moves.starts if mdp.start is None else None
    if not mdp.known:
        mdp = mdp.believed(moves.counts, moves.ends, moves.starts)
    outcomes = moves.outcomes
    rates = moves.counts.data * (1.0 / np.maximum(outcomes, 1))[moves.rows]
    P = sparse.csr_array((rates, moves.counts.indices, moves.counts.indptr), shape=moves.counts.shape)
    declared = Declared.of(mdp, reward, rewards)
    found = recursion(mdp, target, rewards, P, outcomes, declared)
    if against is not None:
        found = found.less(recursion(mdp, against, rewards, P, outcomes, declared))
    parts, freedom = _together(found, rewards, declared, moves, P)
    if starts is not None:
        parts[-1], freedom[-1] = _start_noise(found.first, starts)
    return UnknownParts(found, np.nan_to_num(parts, nan=math.inf, posinf=math.inf), freedom, declared)


def beyond_share(mdp: Any, c: Floats, onward: Floats, moves: Moves) -> float:
    """The share of the weight that leads where nobody has been, after Good (1953).

    Of the outcomes of a pair, or of the starts, as many are new as were, in so far, the only arrival in their
    state. `onward` is the weight before the last step: where that leads does not matter.
    """
    arrived = np.bincount(moves.counts.indices, moves.counts.data, len(moves.starts)) + moves.starts
    new = np.bincount(moves.rows, moves.counts.data * (arrived[moves.counts.indices] == 1), c.size)
    lost = float(np.sum(onward.ravel() * new / np.maximum(moves.outcomes, 1)))
    episodes = float(moves.starts.sum())
    if mdp.start is None and episodes:
        lost += float(np.sum(moves.starts[arrived == 1])) / episodes
    total = float(c.sum())
    return min(1.0, lost / total) if total else 0.0


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


def _unvaried_reasons(used: Bools, rewards: Moments, declared: Declared) -> tuple[str, ...]:
    """What stands for a variance that samples do not show."""
    count, none = int(np.sum(used & (rewards.counts == 1))), bool(np.isinf(declared.variance).any())
    if none and np.any(used & (rewards.counts > 1)):
        return (f"all samples of every pair agree, which shows nothing of how rewards vary: {DECLARE}",)
    what = "what is declared" if declared.promised else "nothing" if none else "the largest sample variance"
    said = f"{count} pair{'s' if count > 1 else ''} seen once: {what} stands for the variance"
    return (said,) if count else ()


def fewest_of(c: Floats, rewards: Moments) -> int:
    """The fewest samples of a pair that has weight; 0 where all samples of one agree."""
    asked = c != 0
    counts = np.where(rewards.squares > 0.0, rewards.counts, 0)[asked]
    return int(counts.min(initial=int(rewards.counts.max()))) if asked.any() else 0


def _reward_noise(c: Floats, rewards: Moments, declared: Declared) -> tuple[Floats, Floats]:
    """c^2 variance / T of each seen pair that has weight, and its degrees of freedom."""
    used = (c != 0) & (rewards.counts > 0)
    variance, freedom = noise_of(rewards, declared, used)
    return c[used] ** 2 * variance / rewards.counts[used], freedom


def noise_of(rewards: Moments, declared: Declared, used: Bools) -> tuple[Floats, Floats]:
    """The variances of some seen pairs, as intervals believe them, and their degrees of freedom."""
    count = rewards.counts[used].astype(np.float64)
    variance, freedom = np.empty(len(count)), np.empty(len(count))
    tables = (declared.variance[used], declared.floor[used], declared.ceiling[used])
    spreads(count, rewards.mean[used], rewards.squares[used], *tables, declared.bounded, declared.freedom,
            variance, freedom)  # fmt: skip
    return variance, freedom


def _together(
    found: Recursion, rewards: Moments, declared: Declared, moves: Moves, P: Any
) -> tuple[Floats, Floats]:
    """What each pair adds to the variance, by its rewards and its moves, with room for one more part."""
    c, size = found.c, found.c.size
    used, parts, freedom = (c != 0) & (rewards.counts > 0), np.zeros(size), np.ones(size)
    parts[used.ravel()], freedom[used.ravel()] = _reward_noise(c, rewards, declared)
    more, more_freedom = move_noise(P, found.u, found.reach, moves.outcomes)
    both = parts + more
    varies = (both > 0) & np.isfinite(both)
    rate = np.divide(parts, both, out=np.zeros(size), where=varies) ** 2 / freedom
    rate += np.divide(more, both, out=np.zeros(size), where=varies) ** 2 / more_freedom
    told = moves.counts.data, moves.paid, moves.ends, moves.ends_paid
    covariance = np.empty(size)  # of a pair's reward and u; an end has u = 0
    covary(moves.counts.indptr, *told, read_only(P.data), found.u, covariance)
    cross = 2.0 * c.ravel() * covariance / np.maximum(rewards.counts.ravel(), 1)
    freedoms = np.divide(1.0, rate, out=np.full(size, math.inf), where=rate > 0)
    return np.append(np.maximum(both + cross, 0.0), 0.0), np.append(freedoms, math.inf)


def _start_noise(first: Floats, starts: Floats) -> tuple[float, float]:
    """Var[Y_0] / (n - 1), and its degrees of freedom; the largest that can be after one episode."""
    n = float(starts.sum())
    if n < 2.0:
        return (max(first.max(), 0.0) - min(first.min(), 0.0)) ** 2 / 4, math.inf
    centre = float(np.sum(starts * first)) / n
    return float(np.sum(starts * (first - centre) ** 2)) / n / (n - 1), n - 1
