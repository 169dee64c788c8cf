"""What a visit is worth where transitions are learned: the weights of the design's program.

K times the error of the recursion with estimated transitions goes to

    sum (c^2 variance + 2 c Cov(r, u)) / N + sum Var[u] / N^- (+ Var[V_0] where the start is learned),

u as in `certainty_estimated`, N the visits per episode and N^- those whose next state is told. Where all are,
both are N, and the weight of a pair is Var[c r + u(s')].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.estimate.recursion import Moves, backward, covariance, forward, move_spread
from saver.problem.mdp import Mdp

Answer = Sequence[tuple[float, Floats]]  # policies, each with its sign


class Prices(NamedTuple):
    """Weights of the program, [S, A] each, and what the start adds."""

    rewards: Floats  # over N
    moves: Floats  # over N^-
    start: float  # Var[V_0]


def prices(
    mdp: Mdp, asked: Sequence[Answer], mean: Floats, variance: Floats, moves: Moves | None = None
) -> Prices:
    """Of these answers in a model; where it was learned from `moves`, rewards may depend on them."""
    P, shape = mdp.flow, mean.shape
    by_reward, by_move, by_start = np.zeros(shape), np.zeros(shape), 0.0
    for answer in asked:
        c, u, first = np.zeros(shape), np.zeros(P.nnz), np.zeros(mdp.states)
        for sign, policy in answer:
            pi = policy if policy.ndim == 3 else policy[None]
            Y = backward(mdp, pi, mean, P)
            own, ahead, _ = forward(mdp, pi, P, Y)
            c, u, first = c + sign * own, u + sign * ahead, first + sign * Y[0]
        by_reward += c**2 * variance
        if moves is not None:
            by_reward += 2.0 * c * covariance(moves, P, u).reshape(shape)
        by_move += move_spread(P, u).reshape(shape)
        by_start += float(mdp.start @ first**2 - (mdp.start @ first) ** 2)
    return Prices(by_reward, by_move, by_start)
