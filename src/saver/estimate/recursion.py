"""The recursion with estimated transitions: values in the model of what was seen, and the weights of designs.

K times the error of the recursion with estimated transitions goes to

    sum (c^2 variance + 2 c Cov(r, u)) / N + sum Var[u] / N^- (+ Var[V_0] where the start is learned),

u as in `certainty_estimated`, N the visits per episode and N^- those whose next state is told. Where all are,
both are N, and the weight of a pair is Var[c r + u(s')].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saver._types import Bools, Floats
from saver.kernels.bounds.spread import Declared
from saver.kernels.solve.pricing import carry, disperse, priced
from saver.problem import checks
from saver.problem.bellman import by_step, followed, powers
from saver.problem.checks import read_only
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments
from saver.problem.moving import led, worth


@dataclass(frozen=True, eq=False)
class Moves:
    """What was seen of moves; rewards are summed by outcome, because one may depend on the other."""

    counts: Any  # [S * A, S], sparse
    ends: Floats  # [S * A]
    paid: Floats  # the sum of the rewards of each stored entry of `counts`
    ends_paid: Floats  # [S * A]
    starts: Floats  # [S]

    def apart(self, counts: Any) -> bool:
        """Whether most episodes that last to the horizon do not tell where they ended; `counts` of rewards.

        Then visits in the last step teach rewards and no moves.
        """
        to_the_end = float(self.starts.sum() - self.ends.sum())
        return float(np.sum(counts) - self.outcomes.sum()) > to_the_end / 2

    @cached_property
    def outcomes(self) -> Floats:
        """How often it was seen where a pair led, [S * A]."""
        return led(read_only(self.counts.indptr), read_only(self.counts.data), read_only(self.ends))

    @cached_property
    def rows(self) -> Any:
        """The pair of each stored entry."""
        return np.repeat(np.arange(self.counts.shape[0]), np.diff(self.counts.indptr))


class Recursion(NamedTuple):
    """What the recursion finds for one policy, or for one less another: see `certainty_estimated`."""

    value: float
    below: float
    above: float
    lost: Bools  # pairs that it needs and whose rewards or moves were not seen
    c: Floats  # the weights under P^
    u: Floats  # of each stored entry of P^
    reach: Floats  # the range of u over all states, [S * A]
    first: Floats  # Y_0, [S]
    asked: Floats  # c, of all pairs and of both policies together
    onward: Floats  # the same of the steps before the last, [S, A]

    def less(self, other: Recursion) -> Recursion:
        """What it finds above what another does."""
        c, u, first = self.c - other.c, self.u - other.u, self.first - other.first
        reach, asked, onward = self.reach + other.reach, self.asked + other.asked, self.onward + other.onward
        value, below, above = self.value - other.value, self.below + other.above, self.above + other.below
        return Recursion(value, below, above, self.lost | other.lost, c, u, reach, first, asked, onward)


def recursion(
    mdp: Any, policy: Floats, rewards: Moments, P: Any, outcomes: Floats, declared: Declared
) -> Recursion:
    shape = (mdp.states, mdp.actions)
    x = np.zeros((mdp.horizon, *shape))
    asked = followed(mdp, checks.policy(mdp, policy, "target"), mdp.discount, x)
    seen = (rewards.counts > 0) & ((outcomes.reshape(shape) > 0) | (x[:-1].sum(axis=0) == 0))
    onward = np.tensordot(mdp.factors[:-1], x[:-1], 1)
    lost, pi, share = (asked != 0) & ~seen, by_step(mdp, policy), 1.0
    if lost.any():
        share = float(mdp.start @ backward(mdp, pi, seen.astype(float), P)[0]) / float(asked.sum())
    # 0: nothing that was seen can be met by the moves that were seen
    Y = backward(mdp, pi, np.where(seen, rewards.mean, 0.0) / (share or math.nan), P)
    value, below, above = float(mdp.start @ Y[0]), 0.0, 0.0
    if lost.any() and declared.promised:
        low, high = (extreme(mdp, pi, P, rewards, declared, seen, highest) for highest in (False, True))
        least, most, Y, share = float(mdp.start @ low[0]), float(mdp.start @ high[0]), (low + high) / 2, 1.0
        value = min(max(value, least), most) if math.isfinite(value) else (least + most) / 2
        below, above = value - least, most - value
    elif lost.any():
        below = above = math.inf
    c, u, reach = np.zeros(shape), np.zeros(P.nnz), np.zeros(P.shape[0])
    factors = powers(mdp.discount, mdp.horizon)
    carry(P.indptr, P.indices, P.data, mdp.start, read_only(pi), Y, mdp.discount, factors, c, u, reach)
    c = np.where(rewards.counts > 0 if declared.promised else seen, c, 0.0) / (share or math.nan)
    return Recursion(value, below, above, lost, c, u, reach, Y[0], asked, onward)


def backward(mdp: Any, pi: Floats, mean: Floats, P: Any) -> Floats:
    Y = np.zeros((mdp.horizon + 1, mdp.states))
    worth(P.indptr, P.indices, P.data, read_only(pi), read_only(mean), mdp.discount, Y)
    return Y


def extreme(
    mdp: Any, pi: Floats, P: Any, rewards: Moments, declared: Declared, seen: Bools, highest: bool
) -> Floats:
    """`backward` with the least, or the most, that may follow where `seen` is False."""
    end = declared.ceiling if highest else declared.floor
    step = max(0.0, float(end.max())) if highest else min(0.0, float(end.min()))
    gain = np.where(rewards.counts > 0, rewards.mean, end)
    Y, ahead = np.zeros((mdp.horizon + 1, mdp.states)), 0.0  # ahead: the extreme of what follows step t
    for t in reversed(range(mdp.horizon)):
        onward = np.where(seen, (P @ Y[t + 1]).reshape(gain.shape), ahead)
        Y[t] = np.sum(pi[t] * (gain + mdp.discount * onward), axis=1)
        ahead = step + mdp.discount * ahead
    return Y


def move_noise(P: Any, u: Floats, reach: Floats, outcomes: Floats) -> tuple[Floats, Floats]:
    """Var_{s' ~ P^}[u] / (n - 1) for each pair, an end counting as u = 0, and its degrees of freedom.

    Where n = 1 the variance is the largest that the range of u allows.
    """
    spread, once = np.empty(P.shape[0]), outcomes == 1  # what a row of P lacks to 1 is an end
    disperse(P.indptr, read_only(P.data), u, spread)
    parts = np.where(once, (reach / 2.0) ** 2, spread / np.maximum(outcomes - 1, 1))
    return parts, np.where(once, math.inf, np.maximum(outcomes - 1, 1))


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
        return cls(read_only(stacked if stacked.ndim == 4 else stacked[:, None]), signs)


class Prices(NamedTuple):
    """Weights of the program, [S, A] each, and what the start adds."""

    rewards: Floats  # over N
    moves: Floats  # over N^-
    start: float  # Var[V_0]


def prices(mdp: Mdp, asked: Answers, mean: Floats, variance: Floats, moves: Moves | None = None) -> Prices:
    """Of these answers in a model; where it was learned from `moves`, rewards may depend on them."""
    P, told = mdp.flow, (np.zeros(0),) * 4
    if moves is not None:
        told = moves.counts.data, moves.paid, moves.ends, moves.ends_paid
    rows, factors = (P.indptr, P.indices, read_only(P.data)), powers(mdp.discount, mdp.horizon)
    means = read_only(mean), read_only(variance)
    found = priced(*rows, read_only(mdp.start), mdp.discount, factors, *asked, *means, *map(read_only, told))
    return Prices(*found)
