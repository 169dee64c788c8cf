"""One episode to be run: what to play, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saver.errors import InvalidData
from saver.problem.checks import Floats


@dataclass(frozen=True, eq=False)
class Trial:
    """One episode to be run.

    Attributes:
        number: from 1, in order of asking.
        kind: "explore", "design" or "baseline".
        policy: what `act` follows, [S, A] or [L, S, A].
        draws: one uniform number for each step, or None where the policy leaves nothing to chance.
    """

    number: int
    kind: str
    policy: Floats
    draws: Floats | None

    def row(self, step: int, state: int) -> Floats:
        """The probabilities of the actions at this step in this state."""
        result: Floats = self.policy[state] if self.policy.ndim == 2 else self.policy[step, state]
        return result

    def act(self, step: int, state: int) -> int:
        """The action to take; asked again it answers the same."""
        steps, states = len(self.draws) if self.draws is not None else None, self.policy.shape[-2]
        if not 0 <= state < states or step < 0 or (steps is not None and step >= steps):
            raise InvalidData(f"step {step} in state {state} is not in the model")
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
        return {"number": self.number, "kind": self.kind, "policy": self.policy.tolist(), "draws": draws}

    @classmethod
    def load(cls, state: dict[str, Any]) -> Trial:
        """Back from plain data."""
        draws = None if state["draws"] is None else np.array(state["draws"])
        return cls(state["number"], state["kind"], np.array(state["policy"]), draws)
