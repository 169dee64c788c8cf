"""Importance weighting: rewards reweighted by how much likelier the target was to get there.

An estimate that choices cannot bias: by the weights that samples had when their trials were asked.

Sample means of pairs that are visited as their outcomes advise are biased (a pair that looked bad is left
alone, and keeps looking bad): by what constraint means choose, where the constraint is the reward. A weight v
that is fixed before its sample is seen cannot be: sum v (R - mu) has mean 0, whatever is chosen. So

    Y = sum c mean + (1 / m) sum_t v_t (R_t - mean(s_t, a_t)) = (1 / m) sum v R + sum (c - V / m) mean

has the bias of the means times what the weights V of a pair leave of m c; m = sum |V| / sum |c|. `spend`
makes the weights such that little is left, early: the first samples of a pair count most, which costs
precision.
Each sample counts v_t / m + (c - V / m) / T; the variance is the sum of their squares times variances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from saver._types import Floats, Ints
from saver.errors import InvalidData
from saver.estimate.certainty import noise_of, weighted
from saver.estimate.interval import Estimate, Missing, from_parts, nothing_seen
from saver.kernels.bounds.spread import Declared, Promised
from saver.problem.bellman import by_step
from saver.problem.checks import LARGEST, SUM_TOLERANCE, show
from saver.problem.episode import Columns, Episode
from saver.problem.history import episodes_of
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments, Sums, moment_step

if TYPE_CHECKING:
    from saver.estimate.anytime import RewardTally


def importance_return(
    mdp: Mdp, target: Floats, states: Ints, actions: Ints, rewards: Floats, propensities: Floats
) -> float:
    """sum_t discount^t (prod_{u <= t} pi(a_u|s_u) / b(a_u|s_u)) r_t: per decision; plain if L = 1."""
    bad = np.flatnonzero((propensities <= 0) | (propensities > 1 + SUM_TOLERANCE))
    if len(bad):
        raise InvalidData(
            f"propensities[{bad[0]}] is {show(propensities[bad[0]])}; the probability of an action "
            "that was taken must be in (0, 1]"
        )
    steps = np.arange(len(states))
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.cumprod(by_step(mdp, target)[steps, states, actions] / propensities)
        weighted = float(np.sum(mdp.discount**steps * ratio * rewards))
    if not abs(weighted) <= LARGEST:
        raise InvalidData(
            f"the importance-weighted return is {weighted:g}: "
            f"the propensities {propensities.tolist()} are too small"
        )
    return weighted


def take_weighted(mdp: Mdp, target: Floats, sums: Sums, episode: Episode, propensities: Floats) -> None:
    """An episode that was checked before counts for importance weighting."""
    s, a = episode.states, episode.actions
    weighted = importance_return(mdp, target, s, a, episode.rewards, propensities)
    count, mean, squares = sums.weighted
    sums.weighted = (count + 1, *moment_step(count + 1, mean, squares, weighted))
    sums.weighted_seen[s, a] = True


def running_ratios(mdp: Any, target: Floats, many: Columns, propensities: Floats) -> Floats:
    """prod_{u <= t} pi(a_u|s_u) / b(a_u|s_u), of each row of many episodes."""
    found: Floats = by_step(mdp, target)[many.steps, many.states, many.actions] / propensities
    lengths, first = many.lengths, many.offsets[:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(1, int(lengths.max(initial=0))):
            at = first[lengths > t] + t
            found[at] *= found[at - 1]
    return found


def take_all_weighted(mdp: Any, target: Floats, sums: Sums, many: Columns) -> None:
    """`take_weighted` of many episodes, all complete: the same, to rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = running_ratios(mdp, target, many, many.propensities)
        returns = many.returns(ratios * many.rewards, mdp.discount)
    wrong = (many.propensities <= 0) | (many.propensities > 1 + SUM_TOLERANCE)
    for number in (*episodes_of(many, wrong)[:1], *np.flatnonzero(~(np.abs(returns) <= LARGEST))[:1]):
        one = many[number]
        importance_return(mdp, target, one.states, one.actions, one.rewards, one.propensities)
    mean = float(returns[0] + (returns - returns[0]).mean())  # exact where all are equal
    seen = Moments(np.array(sums.weighted[0]), *map(np.array, sums.weighted[1:]))
    seen.merge(Moments(np.array(len(returns)), np.array(mean), np.array(np.sum((returns - mean) ** 2))))
    sums.weighted = (int(seen.counts), float(seen.mean), float(seen.squares))
    sums.weighted_seen[many.states, many.actions] = True


def importance(count: int, mean: float, squares: float, covered: float, level: float = 0.95) -> Estimate:
    """The average of `count` importance-weighted returns, from their running moments.

    Unbiased as long as the behaviours could take every action of the target. Where weights are large its
    interval is too short; how often is counted in docs/estimate.md.
    """
    if count == 0:
        return nothing_seen(level)
    variance = squares / (count - 1) / count if squares > 0.0 else np.inf
    equal = ("all weighted returns agree, which shows nothing of how they vary",)
    missing = Missing(reasons=equal if count > 1 and squares == 0.0 else ())
    return from_parts(mean, np.array([variance]), np.array([max(count - 1.0, 1.0)]), covered, level, missing)


def by_weights(
    mdp: Mdp, c: Floats, tally: RewardTally, rewards: Moments, level: float, reward: Promised
) -> Estimate:
    """Y, from the sums of what was told, weighed."""
    plain = weighted(mdp, c, rewards, level, reward)
    V, Q = tally.V.reshape(c.shape), tally.Q.reshape(c.shape)
    if not V.any():
        return plain
    seen, m = rewards.counts > 0, float(np.abs(V).sum() / np.abs(c).sum())
    value = plain.value + (tally.drawn - float(np.sum((V * rewards.mean)[seen]))) / m
    T, rest = rewards.counts[seen], (c - V / m)[seen]
    share = Q[seen] / m**2 + 2.0 * rest / T * V[seen] / m + rest**2 / T
    variance, freedom = noise_of(rewards, Declared.of(mdp, reward, rewards), seen)
    missing = Missing(plain.below, plain.above, plain.unseen, plain.reasons[1:])
    return from_parts(value, variance * np.maximum(share, 0.0), freedom, plain.covered, level, missing)
