"""One episode to be run: what to play, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saver.errors import InvalidData
from saver.problem import checks
from saver.problem.checks import Floats


@dataclass(frozen=True, eq=False)
class Trial:
    """One episode to be run.

    Attributes:
        number: from 1, in order of asking.
        kind: "explore", "design" or "baseline".
        policy: what `act` follows, [S, A] or [L, S, A].
        draws: one uniform number for each step, or None where the policy leaves nothing to chance.
        horizon: the largest number of steps.
    """

    number: int
    kind: str
    policy: Floats
    draws: Floats | None
    horizon: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", checks.frozen(self.policy))
        if self.draws is not None:
            object.__setattr__(self, "draws", checks.frozen(self.draws))

    def row(self, step: int, state: int) -> Floats:
        """The probabilities of the actions at this step in this state."""
        result: Floats = self.policy[state] if self.policy.ndim == 2 else self.policy[step, state]
        return result

    def act(self, step: int, state: int) -> int:
        """The action to take; asked again it answers the same."""
        for name, value, count in (("step", step, self.horizon), ("state", state, self.policy.shape[-2])):
            if not isinstance(value, int | np.integer) or not 0 <= value < count:
                raise InvalidData(f"{name} is {value!r}; it must be from 0 to {count - 1}")
        row = self.row(step, state)
        if self.draws is None:
            return int(np.argmax(row))
        reached = int(np.searchsorted(np.cumsum(row), self.draws[step], side="right"))
        if reached >= len(row) or row[reached] == 0.0:
            reached = int(np.flatnonzero(row)[-1])
        return reached

    def state(self) -> dict[str, Any]:
        """Plain data."""
        draws = None if self.draws is None else self.draws.tolist()
        return {
            "number": self.number,
            "kind": self.kind,
            "policy": self.policy.tolist(),
            "draws": draws,
            "horizon": self.horizon,
        }

    @classmethod
    def load(cls, state: dict[str, Any]) -> Trial:
        """Back from plain data."""
        draws = None if state["draws"] is None else np.array(state["draws"])
        policy = np.array(state["policy"])
        return cls(state["number"], state["kind"], policy, draws, state["horizon"])

    def same_as(self, other: Trial) -> bool:
        """Whether both are the same trial, perhaps after a restart."""
        return (
            (self.number, self.kind) == (other.number, other.kind)
            and np.array_equal(self.policy, other.policy)
            and (self.draws is None) == (other.draws is None)
            and (self.draws is None or np.array_equal(self.draws, other.draws))  # type: ignore[arg-type]
        )
