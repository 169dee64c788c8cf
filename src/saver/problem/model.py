"""What every model has, whether its transitions are known or not: states, actions, steps and their names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.errors import InvalidProblem
from saver.problem import checks
from saver.problem.labels import Labels

END = -1  # a final state: the last action ended the episode


class Model(checks.Frozen):
    """The parts of a model that no transition is needed for; `layers` are a subclass's own."""

    known = True  # whether the transitions are

    states: Any
    actions: Any
    horizon: int
    discount: float
    available: Any
    state_names: Sequence[str] | None
    action_names: Sequence[str] | None
    layers: Any  # for each step the states that some behaviour can be in

    @cached_property
    def uniform(self) -> Floats:
        """The policy that takes every available action alike, [S, A]."""
        even: Floats = checks.frozen(self.available / self.available.sum(axis=1, keepdims=True))
        return even

    @cached_property
    def factors(self) -> Floats:
        """discount^t, [L]."""
        found: Floats = checks.frozen(self.discount ** np.arange(self.horizon, dtype=np.float64))
        return found

    @cached_property
    def reachable(self) -> Bools:
        """[S], the states that some behaviour can be in within the horizon."""
        mask = np.zeros(self.states, dtype=bool)
        for states in self.layers:
            mask[states] = True
        return mask

    def surely(self, states: Ints, actions: Ints) -> bool:
        """Whether a whole episode is known at a glance to be possible; else it is looked at step by step."""
        return False

    def check_actions(self) -> None:
        """Refuse a state in which nothing can be done."""
        empty = np.flatnonzero(~self.available.any(axis=1))
        if len(empty):
            raise InvalidProblem(
                f"{self.state_label(empty[0])} has no available action; at least one is needed"
            )

    def pairs(self, states: Ints) -> Ints:
        """The rows s * A + a that belong to `states`."""
        rows: Ints = (states[:, None] * self.actions + np.arange(self.actions)).ravel()
        return rows

    @cached_property
    def state_labels(self) -> Labels:
        """What states may be called."""
        return Labels("state", self.state_names)

    @cached_property
    def action_labels(self) -> Labels:
        """What actions may be called."""
        return Labels("action", self.action_names)

    @property
    def pair_names(self) -> list[str] | None:
        """What pictures call the pairs, s * A + a: "state, action"; None where nothing has a name."""
        if self.state_names is None and self.action_names is None:
            return None
        said, done = self.state_labels.said, self.action_labels.said
        pairs = ((s, a) for s in range(self.states) for a in range(self.actions))
        return [f"{done(a)}" if self.states == 1 else f"{said(s)}, {done(a)}" for s, a in pairs]

    def state_label(self, state: int) -> str:
        """How messages call a state."""
        return f"state {state}" + (f" ({self.state_names[state]})" if self.state_names else "")

    def action_label(self, action: int) -> str:
        """How messages call an action."""
        return f"action {action}" + (f" ({self.action_names[action]})" if self.action_names else "")

    def move_label(self, step: int, state: int, action: int) -> str:
        """How messages call what was done at a step."""
        return f"{self.action_label(action)} in {self.state_label(state)} at step {step}"
