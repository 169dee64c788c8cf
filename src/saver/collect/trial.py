"""One episode to be run: what to play, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import overload

import numpy as np

from saver._types import Floats
from saver.errors import InvalidData
from saver.play.policy import Policy
from saver.problem import checks


@dataclass(frozen=True, eq=False)
class Trial:
    """One episode to be run.

    Attributes:
        number: from 1, in order of asking.
        kind: "explore", "design", "earn" or "baseline".
        follows: what `act` follows, where some behaviour can be; `policy` is the same as a table.
        draws: one uniform number for each step, or None where the policy leaves nothing to chance.
        seen: not empty once `act` was called, on this object or a shallow copy of it: the one thing that
            changes.
    """

    number: int
    kind: str
    follows: Policy
    draws: Floats | None
    seen: list[bool] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.draws is not None:
            object.__setattr__(self, "draws", checks.frozen(self.draws))

    @property
    def policy(self) -> Floats:
        """What `act` follows, [S, A] or [L, S, A]."""
        return self.follows.table()

    @property
    def horizon(self) -> int:
        """The largest number of steps."""
        return int(self.follows.grid.mdp.horizon)

    def __repr__(self) -> str:
        return f"Trial(number={self.number}, kind={self.kind!r})"

    def row(self, step: int, state: int | str) -> Floats:
        """The probabilities of the actions at this step in this state, which may be said by its name."""
        if isinstance(state, str):
            state = int(self.follows.grid.mdp.state_labels.number("state", state))
        return self.follows.row(step, state)

    @overload
    def act(self, step: int, state: int) -> int: ...
    @overload
    def act(self, step: int, state: str) -> int | str: ...
    def act(self, step: int, state: int | str) -> int | str:
        """The action to take; asked again it answers the same.

        In a state that is said by its name the answer is the action's name, if actions have names.
        """
        if not isinstance(state, str):
            return self._act(step, state)
        mdp = self.follows.grid.mdp
        told: int | str = mdp.action_labels.said(self._act(step, mdp.state_labels.number("state", state)))
        return told

    @property
    def looked(self) -> bool:
        """Whether somebody knows where it starts."""
        return bool(self.seen)

    def look(self) -> None:
        """Somebody does."""
        if not self.seen:
            self.seen.append(True)

    def _act(self, step: int, state: int) -> int:
        mdp = self.follows.grid.mdp
        for name, value, count in (("step", step, mdp.horizon), ("state", state, mdp.states)):
            if not isinstance(value, int | np.integer) or not 0 <= value < count:
                raise InvalidData(f"{name} is {value!r}; it must be from 0 to {count - 1}")
        self.look()
        if self.follows.chosen and (action := self.follows.action(step, state)) >= 0:
            return action
        row = self.follows.row(step, state)
        if self.draws is None:
            return int(np.argmax(row))
        reached = int(np.searchsorted(np.cumsum(row), self.draws[step], side="right"))
        if reached >= len(row) or row[reached] == 0.0:
            reached = int(np.flatnonzero(row)[-1])
        return reached

    def same_as(self, other: Trial) -> bool:
        """Whether both are the same trial, perhaps after a restart."""
        return self is other or (
            (self.number, self.kind) == (other.number, other.kind)
            and self.follows.key == other.follows.key
            and (self.draws is None) == (other.draws is None)
            and (self.draws is None or np.array_equal(self.draws, other.draws))  # type: ignore[arg-type]
        )
