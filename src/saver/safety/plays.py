"""What a policy would do in one episode, as the ledgers and the tracker need it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saver._jit import jit
from saver._types import Floats
from saver.design.flows import Nodes, forward
from saver.problem.mdp import Mdp
from saver.safety.policies import Grid, Policy

REMEMBERED = 64  # plays


class Play(NamedTuple):
    """One policy, evaluated."""

    behaviour: Floats  # [nodes, A]
    flow: Floats  # P(node, action), [nodes, A]
    weights: Floats  # expected discounted visits, [S, A]
    noise: float  # sum of discount^2t over the steps that can happen

    def light(self) -> Play:
        """The same without what is as large as the unrolled model."""
        return self._replace(behaviour=np.zeros((0, 0)), flow=np.zeros((0, 0)))


class Stage:
    """Evaluates policies in one model; compiled passes over its nodes."""

    def __init__(self, mdp: Mdp) -> None:
        self.mdp = mdp
        self.nodes = Nodes.of(mdp)
        self.grid = Grid(mdp, self.nodes.step, self.nodes.state)
        self._factors = mdp.discount**self.nodes.step
        self._known: dict[Any, Play] = {}

    def play(self, policy: Policy | Floats) -> Play:
        """Evaluate a policy, or its table [S, A] or [L, S, A]; the last few are remembered."""
        kept = policy if isinstance(policy, Policy) else self.grid.policy(policy)
        found = self._known.get(kept.key)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.pop(next(iter(self._known)))
            found = self._known[kept.key] = self.evaluate(kept)
        return found

    def evaluate(self, policy: Policy) -> Play:
        """`play` without remembering: threads that share a stage may call it."""
        b = policy.by_node()
        nothing = np.zeros((self.mdp.states, self.mdp.actions))
        mass = np.zeros(len(b))
        forward(self.nodes, b, nothing, mass, np.zeros(nothing.shape))
        flow = mass[:, None] * b
        D = self.grid.by_state(self._factors[:, None] * flow)
        possible = np.bincount(self.nodes.step, mass) > 0
        noise = np.sum(self.mdp.discount ** (2.0 * np.flatnonzero(possible)))
        return Play(b, flow, D, float(noise))

    def second_moment(self, play: Play, h: Floats) -> float:
        """E_b[(sum_t discount^t h(s_t,a_t))^2]."""
        return float(second_moment(self.nodes, play.behaviour, h))

    @cached_property
    def deterministic(self) -> bool:
        """Whether start and transitions leave nothing to chance."""
        rows = self.mdp.pairs(np.flatnonzero(self.mdp.reachable))
        moves = self.mdp.transitions[rows]
        return bool(np.all(np.diff(moves.indptr) <= 1) and (self.mdp.start > 0).sum() == 1)


@jit
def second_moment(nodes: Any, b: Any, h: Any) -> Any:
    """E[R^2] of R = sum discount^t h by first and second moments of what is ahead."""
    A = b.shape[1]
    steps = len(nodes.layer) - 1
    one, two = np.zeros(len(nodes.start)), np.zeros(len(nodes.start))
    one_here, two_here = np.zeros(len(nodes.start)), np.zeros(len(nodes.start))
    for t in range(steps - 1, -1, -1):
        factor = nodes.discount**t
        for i in range(nodes.layer[t], nodes.layer[t + 1]):
            s = nodes.state[i]
            first, second = 0.0, 0.0
            for a in range(A):
                if b[i, a] > 0.0:
                    now = factor * h[s, a]
                    ahead, square = 0.0, 0.0
                    if t + 1 < steps:
                        for e in range(nodes.indptr[s * A + a], nodes.indptr[s * A + a + 1]):
                            ahead += nodes.data[e] * one[nodes.indices[e]]
                            square += nodes.data[e] * two[nodes.indices[e]]
                    first += b[i, a] * (now + ahead)
                    second += b[i, a] * (now * now + 2.0 * now * ahead + square)
            one_here[s], two_here[s] = first, second
        one, one_here = one_here, one
        two, two_here = two_here, two
    total = 0.0
    for i in range(nodes.layer[1]):
        total += nodes.start[nodes.state[i]] * two[nodes.state[i]]
    return total
