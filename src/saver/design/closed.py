"""The paper's two designs: closed form on trees, Algorithm 2 on graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saver._jit import loop
from saver._types import Floats, Ints
from saver.design.limits import Design, check_variance
from saver.errors import InvalidPolicy, InvalidProblem
from saver.play.nodes import Nodes
from saver.problem import checks
from saver.problem.bellman import by_step
from saver.problem.mdp import Mdp


def tree(mdp: Mdp, target: ArrayLike, variance: ArrayLike) -> Design:
    """The optimal behaviour on a tree (eq. 4 and 5): b(a|s) is proportional to the a-th term of

    M(s) = sum_a pi(a|s) sqrt(variance(s,a) + discount^2 sum_s' P(s'|s,a) M(s')^2),

    and sum_s start(s) M(s)^2 is the smallest limit that any behaviour has. The work is linear in the edges.
    """
    pi = checks.policy(mdp, target, "target")
    noise = np.array(check_variance(mdp, variance))
    check_tree(mdp)
    here = own_step(mdp, pi)
    M, policy = np.zeros(mdp.states), here.copy()
    spread_over(
        Nodes.of(mdp), np.concatenate(mdp.layers[::-1]), here, noise, np.ones(noise.shape), M, M, policy
    )
    return Design(policy, M)


def dag(mdp: Mdp, target: ArrayLike, variance: ArrayLike, time_indexed: bool = False) -> Design:
    """Algorithm 2, which treats a graph as if it were a tree:

    B_t(s) = sum_a pi(a|s) sqrt(variance(s,a) + discount^2 sum_s' P(s'|s,a) B_{t+1}(s')^2), B_L = 0.

    The stationary design puts B_0 on the right at every step; `time_indexed` puts B_{t+1} at step t.
    Exact on trees (the stationary one if their depth is within the horizon), approximate elsewhere.
    (The printed B_{t+1}(s) on the right is B_{t+1}(s').)
    """
    pi = checks.policy(mdp, target, "target")
    noise = np.array(check_variance(mdp, variance))
    if pi.ndim == 3 and not time_indexed:
        raise InvalidPolicy("target depends on the step: call dag(..., time_indexed=True)")
    nodes, going = Nodes.of(mdp), going_on(mdp)
    B = np.zeros((mdp.horizon + 1, mdp.states))
    policy = by_step(mdp, pi).copy()
    even = np.ones(noise.shape)
    for t in reversed(range(mdp.horizon)):
        spread_over(nodes, going, np.array(by_step(mdp, pi)[t]), noise, even, B[t + 1], B[t], policy[t])
    if time_indexed:
        return Design(policy, B[:-1])
    stationary = np.array(pi)
    spread_over(nodes, going, np.array(pi), noise, even, B[0], np.zeros(mdp.states), stationary)
    return Design(stationary, B[0])


def going_on(mdp: Mdp) -> Ints:
    """The states in which an action can be taken."""
    return np.setdiff1d(np.arange(mdp.states), np.array(mdp.terminal, dtype=np.int64))


def own_step(mdp: Mdp, policy: Floats) -> Floats:
    """A tree's policy as [S, A]: in each state the row of the one step at which it can be met."""
    rows = np.array(by_step(mdp, policy)[0])
    if policy.ndim == 3:
        for t, states in enumerate(mdp.layers):
            rows[states] = policy[t, states]
    return rows


@loop
def spread_over(
    nodes: Any, states: Any, pi: Any, variance: Any, factor: Any, beyond: Any, spread: Any, policy: Any
) -> None:
    """For each of `states`, in this order, the terms pi sqrt(factor variance + discount^2 sum P beyond^2).

    Their sum goes to `spread`, their shares to `policy`: the target's row where all are 0. On a tree `beyond`
    is `spread` itself, and children come before their parents.
    """
    A = pi.shape[1]
    for s in states:
        total = 0.0
        for a in range(A):
            ahead = 0.0
            for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                ahead += nodes.data[e] * (beyond[nodes.indices[e]] * beyond[nodes.indices[e]])
            policy[s, a] = pi[s, a] * np.sqrt(
                variance[s, a] * factor[s, a] + nodes.discount * nodes.discount * ahead
            )
            total += policy[s, a]
        spread[s] = total
        for a in range(A):
            policy[s, a] = policy[s, a] / total if total > 0.0 else pi[s, a]


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
