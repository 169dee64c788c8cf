"""What a visit is worth where transitions are learned: the weights of the design's program.

K times the error of the recursion with estimated transitions goes to

    sum (c^2 variance + 2 c Cov(r, u)) / N + sum Var[u] / N^- (+ Var[V_0] where the start is learned),

u as in `certainty_estimated`, N the visits per episode and N^- those whose next state is told. Where all are,
both are N, and the weight of a pair is Var[c r + u(s')].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saver._jit import jit
from saver._types import Floats
from saver.estimate.recursion import Moves, carry, covary, disperse
from saver.problem.bellman import powers
from saver.problem.mdp import Mdp
from saver.problem.moving import still, worth

UNTOLD = (np.zeros(0),) * 4


class Answers(NamedTuple):
    """What is asked: each answer is a sum of values of policies, with signs."""

    policies: Floats  # [n, 1, S, A], or [n, L, S, A]
    signs: Floats  # [answers, n]

    @classmethod
    def of(cls, targets: Sequence[Floats], against: Floats | None = None) -> Answers:
        """The value of each target, or its difference from that of `against`."""
        policies = [*targets, *([] if against is None else [against])]
        if any(policy.ndim == 3 for policy in policies):
            steps = max(len(policy) for policy in policies if policy.ndim == 3)
            policies = [np.broadcast_to(policy, (steps, *policy.shape[-2:])) for policy in policies]
        signs = np.zeros((len(targets), len(policies)))
        signs[:, len(targets) :] = -1.0
        np.fill_diagonal(signs, 1.0)
        stacked = np.stack(policies)
        return cls(still(stacked if stacked.ndim == 4 else stacked[:, None]), signs)


class Prices(NamedTuple):
    """Weights of the program, [S, A] each, and what the start adds."""

    rewards: Floats  # over N
    moves: Floats  # over N^-
    start: float  # Var[V_0]


def prices(mdp: Mdp, asked: Answers, mean: Floats, variance: Floats, moves: Moves | None = None) -> Prices:
    """Of these answers in a model; where it was learned from `moves`, rewards may depend on them."""
    P, told = mdp.flow, UNTOLD
    if moves is not None:
        told = moves.counts.data, moves.paid, moves.ends, moves.ends_paid
    rows, factors = (P.indptr, P.indices, still(P.data)), powers(mdp.discount, mdp.horizon)
    means = still(mean), still(variance)
    found = priced(*rows, still(mdp.start), mdp.discount, factors, *asked, *means, *map(still, told))
    return Prices(*found)


@jit
def priced(
    indptr: Any, indices: Any, chance: Any, start: Any, discount: float, factors: Any, policies: Any,
    signs: Any, mean: Any, variance: Any, counts: Any, paid: Any, ends: Any, ends_paid: Any,
) -> Any:  # fmt: skip
    """The sums of `prices`; `counts` and what was paid are empty where nothing was told."""
    S, A = mean.shape
    n = len(policies)
    own, ahead, first = np.zeros((n, S, A)), np.zeros((n, len(chance))), np.zeros((n, S))
    by_reward, by_move, by_start, each = np.zeros((S, A)), np.zeros((S, A)), 0.0, np.zeros(S * A)
    for k in range(n):
        Y = np.zeros((len(factors) + 1, S))
        worth(indptr, indices, chance, policies[k], mean, discount, Y)
        carry(indptr, indices, chance, start, policies[k], Y, discount, factors, own[k], ahead[k], each)
        first[k] = Y[0]
    for i in range(len(signs)):
        c, u, v = np.zeros((S, A)), np.zeros(len(chance)), np.zeros(S)
        for k in range(n):
            c += signs[i, k] * own[k]
            u += signs[i, k] * ahead[k]
            v += signs[i, k] * first[k]
        by_reward += c * c * variance
        if len(ends) > 0:
            covary(indptr, counts, paid, ends, ends_paid, chance, u, each)
            by_reward += 2.0 * c * each.reshape((S, A))
        disperse(indptr, chance, u, each)
        by_move += each.reshape((S, A))
        centre = np.sum(start * v)
        by_start += np.sum(start * v * v) - centre * centre
    return by_reward, by_move, by_start
