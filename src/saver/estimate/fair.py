"""An estimate that choices cannot bias: by the weights that samples had when their trials were asked.

Sample means of pairs that are visited as their outcomes advise are biased: a pair that looked bad is left
alone, and keeps looking bad. What is chosen by sample variances, or by constraints that have nothing to do
with rewards, biases nothing to first order; where the constraint is the reward, what is chosen by constraint
means does. A weight v that is fixed before its sample is seen cannot: sum v (R - mu) has mean 0, whatever is
chosen. So

    Y = sum c mean + (1 / m) sum_t v_t (R_t - mean(s_t, a_t)) = (1 / m) sum v R + sum (c - V / m) mean

has the bias of the means times what the weights V of a pair leave of m c; m = sum |V| / sum |c|. `spend`
makes the weights such that little is left, early: the first samples of a pair count most, which costs
precision.
Each sample counts v_t / m + (c - V / m) / T; the variance is the sum of their squares times variances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saver._types import Floats
from saver.estimate.certainty import noise_of, weighted
from saver.estimate.interval import Estimate, Missing, from_parts
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments
from saver.problem.promise import Bounded, SubGaussian

if TYPE_CHECKING:
    from saver.estimate.anytime import RewardTally


def by_weights(
    mdp: Mdp,
    c: Floats,
    tally: RewardTally,
    rewards: Moments,
    level: float,
    reward: SubGaussian | Bounded | None,
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
    variance, freedom = noise_of(mdp, rewards, reward, seen)
    missing = Missing(plain.below, plain.above, plain.unseen, plain.reasons[1:])
    return from_parts(value, variance * np.maximum(share, 0.0), freedom, plain.covered, level, missing)
