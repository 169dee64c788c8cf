"""A policy as a trial and a state keep it: only where some behaviour can be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from saver._jit import brief
from saver._types import Floats, Ints

REMEMBERED = 64  # policies, and plays


class Grid:
    """Where each (step, state) of a model stands among its nodes; -1 where no behaviour can be."""

    def __init__(self, mdp: Any, step: Ints, state: Ints) -> None:
        self.mdp, self.step, self.state = mdp, step, state
        self.slot = np.full((mdp.horizon, mdp.states), -1, dtype=np.int64)
        self.slot[step, state] = np.arange(len(state))
        self.pair: Ints = (state[:, None] * mdp.actions + np.arange(mdp.actions)).ravel()  # of each cell
        self._kind = np.uint8 if mdp.actions <= 256 else np.uint16
        self._chosen: dict[tuple[bool, bytes], Policy] = {}

    def by_state(self, rows: Floats) -> Floats:
        """Rows of nodes summed over the steps, [S, A]."""
        mdp = self.mdp
        sums: Floats = np.bincount(self.pair, rows.ravel(), mdp.states * mdp.actions).astype(np.float64)
        return sums.reshape(mdp.states, mdp.actions)

    def policy(self, table: Any) -> Policy:
        """A policy from its table, [S, A] or [L, S, A], read-only."""
        by_step = table.ndim == 3
        rows = np.array(table[self.step, self.state] if by_step else table)
        return Policy(self, by_step, rows)

    def adopted(self, policy: Policy) -> Policy:
        """A policy of another model of the same size, by the nodes of this one."""
        if policy.grid.mdp is self.mdp:
            return policy
        rows = policy.rows
        if policy.by_step:
            place = policy.grid.slot[self.step, self.state]
            rows = rows[place]
            for i in np.flatnonzero(place < 0):
                row = policy.row(int(self.step[i]), int(self.state[i]))
                rows[i] = np.argmax(row) if policy.chosen else row
        return Policy(self, policy.by_step, rows)

    def choices(self, by_step: bool, actions: Any) -> Policy:
        """The deterministic policy of these actions, one for each node or state; the last few are kept."""
        rows = np.asarray(actions).astype(self._kind, copy=False)
        key = by_step, rows.tobytes()
        found = self._chosen.get(key)
        if found is None:
            if len(self._chosen) >= REMEMBERED:
                self._chosen.clear()
            found = self._chosen[key] = Policy(self, by_step, rows)
        return found


@dataclass(frozen=True, eq=False)
class Policy:
    """A policy row by row.

    Attributes:
        grid: of the model.
        by_step: rows are nodes, else states.
        rows: [n, A] probabilities, or [n] actions where nothing is left to chance.
    """

    grid: Grid
    by_step: bool
    rows: Any

    def __post_init__(self) -> None:
        self.rows.setflags(write=False)

    @cached_property
    def chosen(self) -> bool:
        """Whether `rows` are actions."""
        return bool(self.rows.ndim == 1)

    @cached_property
    def sure(self) -> bool:
        """Whether nothing is left to chance."""
        return self.chosen or bool(np.all((self.rows == 0.0) | (self.rows == 1.0)))

    @cached_property
    def key(self) -> tuple[bool, bool, bytes]:
        """Equal for equal policies."""
        return self.by_step, self.chosen, self.rows.tobytes()

    def action(self, step: int, state: int) -> int:
        """The action, where `rows` are actions; -1 where no behaviour can be."""
        place = int(self.grid.slot[step, state]) if self.by_step else state
        return int(self.rows[place]) if place >= 0 else -1

    def chooses(self, states: Ints, actions: Ints) -> bool:
        """Whether these are its actions, step by step, where `rows` are actions."""
        return bool(chosen(self.grid.slot, self.by_step, self.rows, states, actions))

    def chance(self, step: int, state: int, action: int) -> float:
        """The probability of an action."""
        if self.chosen and (taken := self.action(step, state)) >= 0:
            return float(taken == action)
        return float(self.row(step, state)[action])

    def chances(self, states: Ints, actions: Ints) -> Floats:
        """The probability of each action of an episode."""
        if self.chosen and self.chooses(states, actions):
            return np.ones(len(states))
        steps = enumerate(zip(states.tolist(), actions.tolist(), strict=True))
        return np.array([self.chance(t, state, action) for t, (state, action) in steps])

    def row(self, step: int, state: int) -> Floats:
        """The probabilities of the actions; where no behaviour can be, of what an unseen row stands for."""
        place = int(self.grid.slot[step, state]) if self.by_step else state
        if place < 0:
            return np.array(self._unseen[state])
        if not self.chosen:
            return self.rows[place]
        row = np.zeros(self.grid.mdp.actions)
        row[self.rows[place]] = 1.0
        return row

    @property
    def _unseen(self) -> Floats:
        """Uniform, or the first available action, [S, A]."""
        mdp = self.grid.mdp
        first: Floats = np.eye(mdp.actions)[np.argmax(mdp.available, axis=1)]
        return first if self.sure else np.asarray(mdp.uniform)

    def by_node(self) -> Floats:
        """The probabilities at every node, [nodes, A]."""
        rows = self.rows if self.by_step else self.rows[self.grid.state]
        if not self.chosen:
            return np.array(rows)
        result = np.zeros((len(rows), self.grid.mdp.actions))
        result[np.arange(len(rows)), rows] = 1.0
        return result

    def drawn(self, draws: Floats) -> Policy:
        """The deterministic policy that these draws, one for each step, make of it."""
        if self.chosen:
            return self
        rows = self.by_node()
        reached = np.sum(np.cumsum(rows, axis=1) <= draws[self.grid.step, None], axis=1)
        last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0.0, axis=1)
        inside = np.minimum(reached, rows.shape[1] - 1)
        void = (reached >= rows.shape[1]) | (rows[np.arange(len(rows)), inside] == 0.0)
        return self.grid.choices(True, np.where(void, last, inside))

    def table(self) -> Floats:
        """[S, A] or [L, S, A], read-only."""
        mdp = self.grid.mdp
        if not self.by_step:
            result = np.eye(mdp.actions)[self.rows] if self.chosen else np.array(self.rows)
        else:
            result = np.tile(self._unseen, (mdp.horizon, 1, 1))
            result[self.grid.step, self.grid.state] = self.by_node()
        result.setflags(write=False)
        return result


@brief
def chosen(slot: Any, by_step: bool, rows: Any, states: Any, actions: Any) -> bool:
    """`Policy.chooses`; not where no behaviour can be."""
    for t in range(len(states)):
        place = slot[t, states[t]] if by_step else states[t]
        if place < 0 or rows[place] != actions[t]:
            return False
    return True
