"""Reads the transition tables of Gymnasium's toy environments, without needing Gymnasium.

`env.unwrapped.P[state][action]` is a list of (probability, next state, reward, done). Such an environment may
enter a state with done in one move and without it in another (Taxi does), so moves that are done lead to one
state that is added: terminal, or one that lasts until the horizon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._types import Floats
from saver.errors import InvalidData
from saver.problem.mdp import Mdp

Moves = Mapping[int, Mapping[int, list[tuple[float, int, float, bool]]]]


@dataclass(frozen=True, eq=False)
class GymTable:
    """A table as arrays; equal (state, action, next state, done) rows are as they were listed.

    Attributes:
        states, actions: how many; the added state is number `states`.
        rows: (state, action, next state, probability, reward, done), [n, 6].
    """

    states: int
    actions: int
    rows: Floats

    @classmethod
    def of(cls, P: Moves) -> GymTable:
        """From `env.unwrapped.P`."""
        try:
            states, actions = len(P), len(P[0])
            rows: Any = np.array(
                [
                    (s, a, to, p, reward, done)
                    for s in range(states)
                    for a in range(actions)
                    for p, to, reward, done in P[s][a]
                ],
                dtype=np.float64,
            )
        except (KeyError, TypeError, ValueError) as cause:
            raise InvalidData(
                f"the table is no P[state][action] = [(probability, next state, reward, done)]: {cause!r}"
            ) from None
        return cls(states, actions, rows)

    def model(self, horizon: int, start: Any, *, lasts: bool = False, **options: Any) -> Mdp:
        """The model: what is done leads to the added state, which ends the episode or `lasts`."""
        s, a, to, p, _, done = self.rows.T
        over = self.states
        edges = np.column_stack([s, a, np.where(done > 0, over, to), p])
        if lasts:
            stay = [(over, action, over, 1.0) for action in range(self.actions)]
            edges = np.concatenate([edges, np.array(stay)])
        where = np.append(np.asarray(start, dtype=float), 0.0)
        ends = () if lasts else (over,)
        return Mdp.from_edges(edges, over + 1, self.actions, horizon, start=where, terminal=ends, **options)

    def mean(self, values: Floats) -> Floats:
        """The mean over its rows of a number for each row, [states + 1, A]; 0 in the added state."""
        s, a, _, p, _, _ = self.rows.T
        table = np.zeros((self.states + 1, self.actions))
        np.add.at(table, (s.astype(int), a.astype(int)), p * values)
        return table

    def optimal(self, discount: float, tolerance: float = 1e-12) -> Floats:
        """Q of the best policy for the discounted reward, without a horizon, [states + 1, A]."""
        s, a, to, p, reward, done = self.rows.T
        at, goes = (s.astype(int), a.astype(int)), np.where(done > 0, self.states, to).astype(int)
        Q = np.zeros((self.states + 1, self.actions))
        while True:
            ahead = np.max(Q, axis=1)[goes]
            better = np.zeros(Q.shape)
            np.add.at(better, at, p * (reward + discount * ahead))
            if np.max(np.abs(better - Q)) <= tolerance:
                return better
            Q = better


def greedy(Q: Floats, share: float) -> Floats:
    """The best action with probability `share`, ties to the lowest, and the rest evenly over all actions."""
    states, actions = Q.shape
    policy = np.full(Q.shape, (1.0 - share) / actions)
    policy[np.arange(states), np.argmax(Q, axis=1)] += share
    return policy
