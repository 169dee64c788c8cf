"""One trajectory: what was seen in an episode, wherever it was run."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._types import Ints
from saver.errors import InvalidData
from saver.problem import checks
from saver.problem.codec import portable
from saver.problem.labels import spoken
from saver.problem.model import END


@portable("episode")
@dataclass(frozen=True, eq=False)
class Episode(checks.Frozen):
    """One episode, step by step; the sequences are equally long and cannot be written.

    Unpacks into its first four: `states, actions, rewards, constraints = episode`. States and actions may be
    labels, the names that a model gives them; `check` makes numbers of them, and every model that is told
    an episode does.

    Attributes:
        states: `states[t]` is where `actions[t]` was taken.
        actions: likewise.
        rewards: likewise.
        constraints: likewise, or None where nothing is guarded; of several guardrails {name: sequence}, with
            None for one that was not measured.
        propensities: the probability with which each action was taken, or None where it was not recorded.
        final_state: where the last action led; None if not seen, `saver.END` if it ended the episode.
    """

    states: Any
    actions: Any
    rewards: Any
    constraints: Any = None
    propensities: Any = None
    final_state: Any = None

    def __post_init__(self) -> None:
        states, given, checked = spoken("states", self.states), self.constraints, self.__dict__
        checked["states"] = _as_long("states", states, states)
        checked["actions"] = _as_long("actions", spoken("actions", self.actions), states)
        checked["rewards"] = _numbers("rewards", self.rewards, states)
        if isinstance(given, Mapping):
            checked["constraints"] = _by_name(given, states)
        elif given is not None:
            checked["constraints"] = _numbers("constraints", given, states)
        if self.propensities is not None:
            checked["propensities"] = _numbers("propensities", self.propensities, states)
        if self.final_state is not None and not isinstance(self.final_state, str):
            last = checks.whole("final_state", self.final_state, END, error=InvalidData)
            object.__setattr__(self, "final_state", last)

    def guarded(self, constraints: Any) -> Episode:
        """The same with these constraints, which were checked."""
        other = copy.copy(self)
        object.__setattr__(other, "constraints", constraints)
        return other

    def until(self, steps: int) -> Episode:
        """The first steps; where the last of them led is not seen."""
        given = self.constraints
        if isinstance(given, Mapping):
            given = {name: column if column is None else column[:steps] for name, column in given.items()}
        elif given is not None:
            given = given[:steps]
        said = self.propensities
        return Episode(
            self.states[:steps], self.actions[:steps], self.rewards[:steps], given,
            propensities=None if said is None else said[:steps],
        )  # fmt: skip

    def __iter__(self) -> Iterator[Any]:
        """States, actions, rewards, constraints."""
        return iter((self.states, self.actions, self.rewards, self.constraints))

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.states)

    def numbered(self, mdp: Any) -> Episode:
        """The same with numbers in the place of labels."""
        said = (
            self.states.dtype.kind == "O",
            self.actions.dtype.kind == "O",
            isinstance(self.final_state, str),
        )
        if not any(said):
            return self
        other = copy.copy(self)
        if said[0]:
            found = mdp.state_labels.numbers("states", self.states)
            object.__setattr__(other, "states", checks.frozen(found))
        if said[1]:
            found = mdp.action_labels.numbers("actions", self.actions)
            object.__setattr__(other, "actions", checks.frozen(found))
        last = mdp.state_labels.number("final_state", self.final_state)
        object.__setattr__(other, "final_state", last)
        return other

    def check(self, mdp: Any, complete: bool = True) -> Episode:
        """The same with numbers in the place of labels; what cannot happen in this model is refused."""
        return self.numbered(mdp)._checked(mdp, complete)

    def _checked(self, mdp: Any, complete: bool) -> Episode:
        if complete and self.final_state is None and mdp.surely(self.states, self.actions):
            return self
        for name, column, count in (
            ("states", self.states, mdp.states),
            ("actions", self.actions, mdp.actions),
        ):
            if len(bad := np.flatnonzero((column < 0) | (column >= count))):
                raise InvalidData(f"{name}[{bad[0]}] is {column[bad[0]]}; it must be from 0 to {count - 1}")
        if not 1 <= len(self) <= mdp.horizon:
            raise InvalidData(
                f"the episode has {len(self)} steps; it must have 1 to {mdp.horizon}, the horizon"
            )
        mdp.check_path(self.states, self.actions, self.final_state, complete)
        return self


def _as_long(name: str, column: Any, states: Ints) -> Any:
    """A column, which must be as long as the episode."""
    if column.shape != states.shape:
        raise InvalidData(
            f"{name} has shape {column.shape} but states has {states.shape}; they must be equally long"
        )
    return checks.frozen(column)


def _by_name(given: Mapping[Any, Any], states: Ints) -> dict[str, Any]:
    """The columns of several guardrails."""
    found = {}
    for name, column in given.items():
        at = f"constraints[{name!r}]"
        found[name] = None if column is None else _numbers(at, column, states)
    return found


def _numbers(name: str, column: Any, states: Ints) -> Any:
    return _as_long(name, checks.array(name, column, InvalidData), states)
