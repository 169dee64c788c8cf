"""Certainty equivalence: the value in the model whose means (and transitions) are those observed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from saver._types import Bools, Floats
from saver.estimate.interval import Estimate, from_parts, nothing_seen
from saver.problem.bellman import by_step, occupancy, weights
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments


def certainty(mdp: Mdp, target: Floats, rewards: Moments, level: float = 0.95) -> Estimate:
    """Y = sum c(s,a) mean(s,a) with known transitions; its variance is sum c^2 variance / T.

    Weight on pairs that were never seen is filled with the average of the seen, weighted alike: the sum over
    the seen divided by `covered`.
    """
    c = weights(mdp, target)
    seen = rewards.counts > 0
    covered = covered_share(c, seen)
    if covered == 0.0:
        return nothing_seen(level)
    c = np.where(seen, c, 0.0) / covered
    value = float(np.sum(c * rewards.mean))
    return from_parts(value, *_reward_noise(c, rewards), covered, level)


def certainty_estimated(
    mdp: Mdp, target: Floats, rewards: Moments, moves: Any, ends: Floats, level: float = 0.95
) -> Estimate:
    """The paper's recursion with estimated transitions, from counts of moves [S * A, S] and of ends [S * A].

    Y_t(s) = sum_a pi(a|s) (mean(s,a) + discount sum_s' P^(s'|s,a) Y_{t+1}(s')).

    To first order its variance adds to that of the means, for each pair, Var_{s' ~ P^}[u(s,a,s')] / n(s,a),
    u = sum_t discount^{t+1} x_t(s,a) Y_{t+1}(s'), n the number of observed outcomes.

    Where pairs were never seen, the sum over the seen is divided by their share of all steps under P^.
    """
    shape = (mdp.states, mdp.actions)
    outcomes = np.asarray(moves.sum(axis=1)).ravel() + ends
    x = occupancy(mdp, target)
    onward_needed = x[:-1].sum(axis=0) > 0
    seen = (rewards.counts > 0) & ((outcomes.reshape(shape) > 0) | ~onward_needed)
    c = weights(mdp, target)
    covered, total = covered_share(c, seen), float(c.sum())
    if covered == 0.0:
        return nothing_seen(level)

    P = (sparse.diags_array(1.0 / np.maximum(outcomes, 1)) @ moves).tocsr()
    pi = by_step(mdp, target)
    share = 1.0
    if covered < 1.0:
        share = float(mdp.start @ _backward(mdp, pi, seen.astype(float), P)[0]) / total
        if share == 0.0:  # nothing that was seen can be met by the moves that were seen
            return from_parts(math.nan, np.array([math.inf]), np.ones(1), covered, level)
    Y = _backward(mdp, pi, np.where(seen, rewards.mean, 0.0) / share, P)
    c, u = _forward(mdp, pi, P, Y)
    parts, freedom = _reward_noise(np.where(seen, c, 0.0) / share, rewards)
    move_parts = _move_noise(P, u, outcomes)
    return from_parts(
        float(mdp.start @ Y[0]),
        np.concatenate([parts, move_parts]),
        np.concatenate([freedom, np.maximum(outcomes - 1, 1)]),
        covered,
        level,
    )


def covered_share(c: Floats, seen: Bools) -> float:
    """The share of the weight that is on seen pairs; exactly 1 when, and only when, all of it is."""
    if not np.any(c[~seen] > 0):
        return 1.0
    return min(float(c[seen].sum() / c.sum()), math.nextafter(1.0, 0.0))


def _reward_noise(c: Floats, rewards: Moments) -> tuple[Floats, Floats]:
    """c^2 variance / T and T - 1 of each weighted pair; infinite where T = 1."""
    used = c > 0
    count, variance = rewards.counts[used], rewards.variance[used]
    variance = np.where(count >= 2, variance, np.inf)
    return c[used] ** 2 * variance / count, np.maximum(count - 1.0, 1.0)


def _backward(mdp: Mdp, pi: Floats, mean: Floats, P: Any) -> Floats:
    Y = np.zeros((mdp.horizon + 1, mdp.states))
    for t in reversed(range(mdp.horizon)):
        Y[t] = np.sum(pi[t] * (mean + mdp.discount * (P @ Y[t + 1]).reshape(mean.shape)), axis=1)
    return Y


def _forward(mdp: Mdp, pi: Floats, P: Any, Y: Floats) -> tuple[Floats, Floats]:
    """The weights c under P^, and u for each stored entry of P^."""
    c, mass, u = np.zeros((mdp.states, mdp.actions)), mdp.start, np.zeros(P.nnz)
    rows = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
    for t in range(mdp.horizon):
        flow = mdp.discount**t * mass[:, None] * pi[t]
        c += flow
        u += mdp.discount * flow.ravel()[rows] * Y[t + 1][P.indices]
        mass = P.T @ (mass[:, None] * pi[t]).ravel()
    return c, u


def _move_noise(P: Any, u: Floats, outcomes: Floats) -> Floats:
    """Var_{s' ~ P^}[u] / (n - 1) for each pair, an end counting as u = 0; infinite where n = 1."""
    rows = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
    centre = np.bincount(rows, P.data * u, P.shape[0])
    ends = np.maximum(1.0 - np.bincount(rows, P.data, P.shape[0]), 0.0) * (outcomes > 0)
    spread = np.bincount(rows, P.data * (u - centre[rows]) ** 2, P.shape[0]) + ends * centre**2
    once = (outcomes == 1) & (np.bincount(rows, np.abs(u), P.shape[0]) > 0)
    return np.where(once, np.inf, spread / np.maximum(outcomes - 1, 1))
