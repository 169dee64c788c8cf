"""The paper's two designs: closed form on trees, Algorithm 2 on graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from saver.design.parts import Design, check_variance, proportional
from saver.errors import InvalidPolicy, InvalidProblem
from saver.problem import checks
from saver.problem.bellman import by_step, onward
from saver.problem.checks import Ints
from saver.problem.mdp import Mdp


def tree(mdp: Mdp, target: ArrayLike, variance: ArrayLike) -> Design:
    """The optimal behaviour on a tree (eq. 5 and 6): b(a|s) is proportional to the a-th term of

    M(s) = sum_a pi(a|s) sqrt(variance(s,a) + discount^2 sum_s' P(s'|s,a) M(s')^2),

    and sum_s start(s) M(s)^2 is the smallest limit that any behaviour has. The work is linear in the edges.
    """
    pi = checks.policy(mdp, target, "target")
    noise = check_variance(mdp, variance)
    check_tree(mdp)
    M, squared = np.zeros(mdp.states), np.zeros(mdp.states)
    policy = by_step(mdp, pi)[0].copy()
    for t in reversed(range(len(mdp.layers))):
        s = mdp.layers[t]
        here = by_step(mdp, pi)[t, s]
        ahead = (mdp.flow[mdp.pairs(s)] @ squared).reshape(here.shape)
        terms = here * np.sqrt(noise[s] + mdp.discount**2 * ahead)
        M[s] = terms.sum(axis=1)
        squared[s] = M[s] ** 2
        policy[s] = proportional(terms, M[s], here)
    return Design(policy, M)


def dag(mdp: Mdp, target: ArrayLike, variance: ArrayLike, time_indexed: bool = False) -> Design:
    """Algorithm 2, which treats a graph as if it were a tree:

    B_t(s) = sum_a pi(a|s) sqrt(variance(s,a) + discount^2 sum_s' P(s'|s,a) B_{t+1}(s')^2), B_L = 0.

    The stationary design puts B_0 on the right at every step; `time_indexed` puts B_{t+1} at step t.
    Exact on trees (the stationary one if their depth is within the horizon), approximate elsewhere.
    (The printed B_{t+1}(s) on the right is B_{t+1}(s').)
    """
    pi = checks.policy(mdp, target, "target")
    noise = check_variance(mdp, variance)
    if pi.ndim == 3 and not time_indexed:
        raise InvalidPolicy("target depends on the step: call dag(..., time_indexed=True)")

    B = np.zeros((mdp.horizon + 1, mdp.states))
    policy = np.empty((mdp.horizon, mdp.states, mdp.actions))
    for t in reversed(range(mdp.horizon)):
        here = by_step(mdp, pi)[t]
        terms = here * np.sqrt(noise + mdp.discount**2 * onward(mdp, B[t + 1] ** 2))
        B[t] = terms.sum(axis=1)
        B[t, list(mdp.terminal)] = 0.0
        policy[t] = proportional(terms, B[t], here)
    if time_indexed:
        return Design(policy, B[:-1])
    terms = pi * np.sqrt(noise + mdp.discount**2 * onward(mdp, B[0] ** 2))
    return Design(proportional(terms, terms.sum(axis=1), pi), B[0])


def is_tree(mdp: Mdp) -> bool:
    """Whether `tree` applies: no state can be entered in two ways within the horizon."""
    checks.model(mdp)
    return not len(_entered_twice(mdp)[0])


def check_tree(mdp: Mdp) -> None:
    """Refuse a model that is no tree, naming a state and the two ways into it."""
    states, parents = _entered_twice(mdp)
    if not len(states):
        return
    ways = [_pair(mdp, pair) for pair in parents(states[0])]
    if mdp.start[states[0]] > 0:
        ways.insert(0, "the start of the episode")
    raise InvalidProblem(
        f"the model is no tree: {mdp.state_label(states[0])} has two parents, {ways[0]} and {ways[1]}; "
        "use design.dag or design.exact"
    )


def _entered_twice(mdp: Mdp) -> tuple[Ints, Callable[[int], Ints]]:
    """The states with more than one way in, and a function from a state to the pairs that lead to it."""
    distinct = {id(layer): layer for layer in mdp.layers[: mdp.horizon - 1]}
    early = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *distinct.values()]))
    rows = mdp.pairs(early)[mdp.available[early].ravel()]
    moves = mdp.flow[rows]
    ways = np.bincount(moves.indices, minlength=mdp.states) + (mdp.start > 0)

    def parents(state: int) -> Ints:
        found: Ints = np.repeat(rows, np.diff(moves.indptr))[moves.indices == state]
        return found

    return np.flatnonzero(ways > 1), parents


def _pair(mdp: Mdp, pair: int) -> str:
    state, action = divmod(int(pair), mdp.actions)
    return f"({mdp.state_label(state)}, {mdp.action_label(action)})"
