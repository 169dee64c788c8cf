"""The recursion with estimated transitions: what one policy is worth in the model of what was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saver._jit import jit
from saver._types import Bools, Floats
from saver.estimate.spread import Declared
from saver.problem import checks
from saver.problem.bellman import by_step, followed, powers
from saver.problem.moments import Moments
from saver.problem.moving import led, still, worth


@dataclass(frozen=True, eq=False)
class Moves:
    """What was seen of moves; rewards are summed by outcome, because one may depend on the other."""

    counts: Any  # [S * A, S], sparse
    ends: Floats  # [S * A]
    paid: Floats  # the sum of the rewards of each stored entry of `counts`
    ends_paid: Floats  # [S * A]
    starts: Floats  # [S]

    @classmethod
    def none(cls, mdp: Any) -> Moves:
        """Nothing seen."""
        pairs = mdp.states * mdp.actions
        empty = sparse.csr_array((pairs, mdp.states))
        return cls(empty, np.zeros(pairs), np.zeros(0), np.zeros(pairs), np.zeros(mdp.states))

    def apart(self, counts: Any) -> bool:
        """Whether most episodes that last to the horizon do not tell where they ended; `counts` of rewards.

        Then visits in the last step teach rewards and no moves.
        """
        to_the_end = float(self.starts.sum() - self.ends.sum())
        return float(np.sum(counts) - self.outcomes.sum()) > to_the_end / 2

    @cached_property
    def outcomes(self) -> Floats:
        """How often it was seen where a pair led, [S * A]."""
        found: Floats = led(still(self.counts.indptr), still(self.counts.data), still(self.ends))
        return found

    @cached_property
    def rows(self) -> Any:
        """The pair of each stored entry."""
        return np.repeat(np.arange(self.counts.shape[0]), np.diff(self.counts.indptr))


class Recursion(NamedTuple):
    """What the recursion finds for one policy: see `certainty_estimated`."""

    value: float
    below: float
    above: float
    lost: Bools  # pairs that it needs and whose rewards or moves were not seen
    c: Floats
    u: Floats
    reach: Floats
    first: Floats  # Y_0, [S]
    asked: Floats  # c, of all pairs
    onward: Floats  # the same of the steps before the last, [S, A]


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
    c, u, reach = forward(mdp, pi, P, Y)
    c = np.where(rewards.counts > 0 if declared.promised else seen, c, 0.0) / (share or math.nan)
    return Recursion(value, below, above, lost, c, u, reach, Y[0], asked, onward)


def backward(mdp: Any, pi: Floats, mean: Floats, P: Any) -> Floats:
    Y = np.zeros((mdp.horizon + 1, mdp.states))
    worth(P.indptr, P.indices, P.data, still(pi), still(mean), mdp.discount, Y)
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


def forward(mdp: Any, pi: Floats, P: Any, Y: Floats) -> tuple[Floats, Floats, Floats]:
    """The weights c under P^, u for each stored entry of P^, and the range of u over all states, [S * A]."""
    c, u, reach = np.zeros((mdp.states, mdp.actions)), np.zeros(P.nnz), np.zeros(P.shape[0])
    factors = powers(mdp.discount, mdp.horizon)
    carry(P.indptr, P.indices, P.data, mdp.start, still(pi), Y, mdp.discount, factors, c, u, reach)
    return c, u, reach


@jit
def carry(
    indptr: Any, indices: Any, data: Any, start: Any, pi: Any, Y: Any, discount: float, factors: Any,
    c: Any, u: Any, reach: Any,
) -> None:  # fmt: skip
    """The sums of `forward`, step by step; the policy is [1, S, A], or [L, S, A]."""
    S, A = c.shape
    mass, arriving = start.copy(), np.zeros(S)
    for t in range(len(factors)):
        span, row = max(Y[t + 1].max(), 0.0) - min(Y[t + 1].min(), 0.0), t if len(pi) > 1 else 0
        for s in range(S):
            for a in range(A if mass[s] != 0.0 else 0):
                p, flow, step = s * A + a, factors[t] * mass[s] * pi[row, s, a], mass[s] * pi[row, s, a]
                c[s, a] += flow
                reach[p] += discount * flow * span
                for e in range(indptr[p], indptr[p + 1]):
                    u[e] += discount * flow * Y[t + 1, indices[e]]
                    arriving[indices[e]] += data[e] * step
        mass, arriving = arriving, mass
        arriving[:] = 0.0


def covariance(moves: Moves, P: Any, u: Floats) -> Floats:
    """The sample covariance of a pair's reward and u, [S * A]; an end has u = 0."""
    found = np.empty(len(moves.ends))
    indptr, counts = moves.counts.indptr, moves.counts.data
    covary(indptr, counts, moves.paid, moves.ends, moves.ends_paid, still(P.data), u, found)
    return found


@jit
def covary(
    indptr: Any, counts: Any, paid: Any, ends: Any, ends_paid: Any, chance: Any, u: Any, out: Any
) -> None:
    """`covariance`, pair by pair."""
    for p in range(len(out)):
        n, total, centre, apart = 0.0, 0.0, 0.0, 0.0
        for e in range(indptr[p], indptr[p + 1]):
            n += counts[e]
            total += paid[e]
            centre += chance[e] * u[e]
        n = max(n + ends[p], 1.0)
        mean = (total + ends_paid[p]) / n
        for e in range(indptr[p], indptr[p + 1]):
            apart += (paid[e] - counts[e] * mean) * (u[e] - centre)
        out[p] = (apart - (ends_paid[p] - ends[p] * mean) * centre) / max(n - 1.0, 1.0)


def move_noise(P: Any, u: Floats, reach: Floats, outcomes: Floats) -> tuple[Floats, Floats]:
    """Var_{s' ~ P^}[u] / (n - 1) for each pair, an end counting as u = 0, and its degrees of freedom.

    Where n = 1 the variance is the largest that the range of u allows.
    """
    spread, once = move_spread(P, u), outcomes == 1
    parts = np.where(once, (reach / 2.0) ** 2, spread / np.maximum(outcomes - 1, 1))
    return parts, np.where(once, math.inf, np.maximum(outcomes - 1, 1))


def move_spread(P: Any, u: Floats) -> Floats:
    """Var_{s' ~ P^}[u] of each pair; what a row lacks to 1 is an end, which has u = 0."""
    found = np.empty(P.shape[0])
    disperse(P.indptr, still(P.data), u, found)
    return found


@jit
def disperse(indptr: Any, chance: Any, u: Any, out: Any) -> None:
    """`move_spread`, pair by pair."""
    for p in range(len(out)):
        total, centre, found = 0.0, 0.0, 0.0
        for e in range(indptr[p], indptr[p + 1]):
            total += chance[e]
            centre += chance[e] * u[e]
        for e in range(indptr[p], indptr[p + 1]):
            found += chance[e] * ((u[e] - centre) * (u[e] - centre))
        out[p] = found + max(1.0 - total, 0.0) * (centre * centre)
