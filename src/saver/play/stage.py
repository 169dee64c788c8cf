"""What a policy would do in one episode, as the ledgers and the tracker need it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from saver._jit import jit
from saver._types import Floats
from saver.play.nodes import Nodes, followed, raised
from saver.play.policy import REMEMBERED, Grid, Policy
from saver.problem.checks import read_only

CERTAIN = 1.0 - 1e-9  # a probability, but for rounding
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Play:
    """One policy, evaluated."""

    behaviour: Floats  # [nodes, A]
    flow: Floats  # P(node, action), [nodes, A]
    weights: Floats  # expected discounted visits, [S, A]
    visits: Floats  # the same without discount
    noise: float  # sum of discount^2t over the steps that can happen
    longest: float  # sum of discount^t over them
    sure: bool  # it goes one way only
    facts: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, fact: Callable[..., T], *about: Any) -> T:
        """fact(play, *about), which must depend on nothing else: worked out once."""
        key = (fact, *about)
        if key not in self.facts:
            self.facts[key] = fact(self, *about)
        return self.facts[key]

    def value(self, mean: Floats) -> float:
        """V(b; mean)."""
        return float(np.add.reduce(self.weights * mean, axis=None))

    @cached_property
    def length(self) -> float:
        """Expected discounted steps."""
        return float(self.weights.sum())

    def goes_as(self, other: Play) -> bool:
        """Whether both go exactly the same ways."""
        return self.once(_goes_as, other)

    @cached_property
    def light(self) -> Play:
        """The same without what is as large as the unrolled model."""
        return replace(self, behaviour=NOTHING, flow=NOTHING)


NOTHING = np.zeros((0, 0))


def _goes_as(one: Play, other: Play) -> bool:
    return np.array_equal(one.flow, other.flow)


class Stage:
    """Evaluates policies in one model; compiled passes over its nodes."""

    def __init__(self, mdp: Any) -> None:
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
        flow, mass, _, _ = followed(self.nodes, read_only(b), read_only(nothing))
        visits = self.grid.by_state(flow)
        D = visits if self.mdp.discount == 1.0 else self.grid.by_state(self._factors[:, None] * flow)
        gammas = self.mdp.discount ** np.flatnonzero(np.bincount(self.nodes.step, mass) > 0)
        sure = bool(np.all((flow == 0.0) | (flow == 1.0)))
        return Play(b, flow, D, visits, float(np.sum(gammas**2)), float(np.sum(gammas)), sure)

    def widest(self, play: Play, h: Floats) -> float:
        """The largest sum_t discount^t h(s_t,a_t) of any way that b can go."""
        return float(farthest(self.nodes, play.behaviour, h, 1.0))

    def least(self, play: Play, lower: Floats) -> float:
        """The smallest sum_t discount^t lower(s_t,a_t) of any way that b can go."""
        return -float(farthest(self.nodes, play.behaviour, lower, -1.0))

    def promised(self, policy: Policy, draws: Any, baseline: Play) -> Play:
        """What a trial is promised as: the policy, or, where draws decide all, what they make of it.

        A policy that goes where the baseline goes is the baseline, whatever is drawn.
        """
        play = self.play(policy)
        if draws is None or not self.deterministic or play.goes_as(baseline):
            return play
        return self.play(policy.drawn(draws))

    @cached_property
    def most(self) -> Floats:
        """How often an episode can be in a state, [S, 1]: in every step, or in every second one."""
        S, A, state, step = self.mdp.states, self.mdp.actions, self.nodes.state, self.nodes.step
        loops = self.mdp.transitions.tocoo()
        stays = np.zeros(S, dtype=bool)
        stays[loops.col[loops.row // A == loops.col]] = True
        first, last = np.zeros((2, S), dtype=np.int64)
        first[state[::-1]], last[state] = step[::-1], step  # nodes come by rising step
        met = np.bincount(state, minlength=S)
        often = np.where(stays, met, np.minimum(met, (last - first) // 2 + 1))
        return np.maximum(1.0, often)[:, None]

    @cached_property
    def deterministic(self) -> bool:
        """Whether start and transitions leave nothing to chance."""
        rows = self.mdp.pairs(np.flatnonzero(self.mdp.reachable))
        moves = self.mdp.transitions[rows]
        return bool(np.all(np.diff(moves.indptr) <= 1) and (self.mdp.start > 0).sum() == 1)


class Blind(Stage):
    """Where transitions are unknown: nothing is known of where a policy goes, but what it would do there.

    `flow` are the probabilities of the actions at every node: two policies go the same ways if they are equal
    everywhere.
    """

    def evaluate(self, policy: Policy) -> Play:
        """What is known of a policy without its model: it may last from one step to all."""
        b, none = policy.by_node(), np.zeros((self.mdp.states, self.mdp.actions))
        gammas = self.mdp.factors
        return Play(b, b, none, none, float(np.sum(gammas**2)), float(np.sum(gammas)), False)

    @property
    def deterministic(self) -> bool:
        """Nobody knows."""
        return False


def stage_of(mdp: Any) -> Stage:
    """The stage of a model, or of what is known of it."""
    return Stage(mdp) if mdp.known else Blind(mdp)


@jit
def farthest(nodes: Any, b: Any, h: Any, sign: float) -> Any:
    """max over what can happen of sign * sum discount^t h."""
    A = b.shape[1]
    steps = len(nodes.layer) - 1
    ahead, here = np.zeros(len(nodes.start)), np.zeros(len(nodes.start))
    for t in range(steps - 1, -1, -1):
        factor = sign * raised(nodes.discount, t)
        for i in range(nodes.layer[t], nodes.layer[t + 1]):
            s = nodes.state[i]
            best = -np.inf
            for a in range(A):
                if b[i, a] > 0.0:
                    p = s * A + a
                    rest, goes_on = -np.inf, 0.0
                    if t + 1 < steps:
                        for e in range(nodes.indptr[p], nodes.indptr[p + 1]):
                            rest = max(rest, ahead[nodes.indices[e]])
                            goes_on += nodes.data[e]
                    if goes_on < CERTAIN:
                        rest = max(rest, 0.0)  # it may also end
                    best = max(best, factor * h[s, a] + rest)
            here[s] = best
        ahead, here = here, ahead
    best = -np.inf
    for i in range(nodes.layer[1]):
        if nodes.start[nodes.state[i]] > 0.0:
            best = max(best, ahead[nodes.state[i]])
    return best
