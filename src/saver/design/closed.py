"""The paper's two designs: closed form on trees, Algorithm 2 on graphs.

SEPEC, the bandit design of Wan, Kveton and Song (2022), as far as it is known.

One behaviour, chosen before it is played, that minimises the variance of an importance-weighted estimate,
sum pi^2 (variance + mean^2) / b, under the safety constraint. (Safe exploration for efficient policy
evaluation and comparison, ICML 2022.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Bools, Floats, Ints
from saver.errors import InvalidPolicy, InvalidProblem
from saver.kernels.believing import spread_over
from saver.kernels.solve.onestate import under_one
from saver.play.nodes import Nodes
from saver.problem import checks
from saver.problem.bellman import by_step, occupancy, visits, weights
from saver.problem.mdp import Mdp


@dataclass(frozen=True, eq=False)
class Design:
    """A behaviour to collect with.

    Attributes:
        policy: [S, A], or [L, S, A] where it depends on the step.
        spread: the normaliser, M(s) or B(s) in the paper, [S] or [L, S].
    """

    policy: Floats
    spread: Floats


def limit(
    mdp: Mdp, target: ArrayLike, variance: ArrayLike, behaviour: ArrayLike, *, onward: ArrayLike | None = None
) -> float:
    """sum c^2 variance / d: K times the mean squared error after K episodes of `behaviour`, as K grows.

    Infinite if the behaviour never visits a pair that has weight and variance. `onward`, [S, A], adds
    sum onward / d^-, d^- the visits before step L - 1: see `Planner.solve`.
    """
    c, noise = weights(mdp, target), check_variance(mdp, variance)
    d = visits(mdp, behaviour)
    if np.any((c > 0) & (noise > 0) & (d <= 0)):
        return float("inf")
    total = limit_of(c**2 * noise, d)
    if onward is not None:
        moves = checks.within("onward", checks.shaped("onward", onward, d.shape), 0.0)
        total += limit_of(moves, occupancy(mdp, behaviour)[: mdp.horizon - 1].sum(axis=0))
    return total


def limit_of(cost: Floats, d: Floats) -> float:
    """sum cost / d over the pairs with a cost."""
    needed = cost > 0
    if np.any(d[needed] <= 0):
        return float("inf")
    return float(np.sum(cost[needed] / d[needed]))


def check_variance(mdp: Mdp, variance: ArrayLike) -> Floats:
    """[S, A], finite and not negative."""
    return checks.within("variance", checks.shaped("variance", variance, (mdp.states, mdp.actions)), 0.0)


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
        return np.repeat(rows, np.diff(moves.indptr))[moves.indices == state]

    return np.flatnonzero(ways > 1), parents


def _pair(mdp: Mdp, pair: int) -> str:
    state, action = divmod(int(pair), mdp.actions)
    return f"({mdp.state_label(state)}, {mdp.action_label(action)})"


def without_side_information(target: Floats, baseline: Floats, alpha: float) -> Floats:
    """b = max((1 - alpha) pi_0, pi / nu), nu such that it sums to 1: safe for any constraint means >= 0.

    It minimises sum pi^2 / b over b >= (1 - alpha) pi_0, as if variance + mean^2 were the same everywhere.
    """
    least = (1.0 - alpha) * baseline
    above = target > 0  # those at pi / nu; the others stay at the least
    while True:
        share = (1.0 - least[~above].sum()) / target[above].sum()
        falling = above & (share * target < least)
        if not falling.any():
            return np.where(above, share * target, least)
        above &= ~falling


def with_side_information(
    target: Floats, second_moment: Floats, constraint_mean: Floats, required: float, allowed: Bools
) -> Floats:
    """The b that minimises sum pi^2 second_moment / b with b . constraint_mean >= required."""
    return under_one(target**2 * second_moment, np.array(constraint_mean), allowed, required)
