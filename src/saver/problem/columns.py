"""Many episodes, column by column: what is taken in as a whole, without a Python object for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from saver._types import Floats, Ints
from saver.errors import InvalidData
from saver.problem import checks
from saver.problem.episode import Episode
from saver.problem.model import END

NOT_SEEN = -2  # a final state: nobody saw where the last action led


@dataclass(frozen=True, eq=False)
class Columns(checks.Frozen):
    """Episodes one after the other; iterating gives each as a `saver.Episode`.

    Attributes:
        offsets: episode i has the rows from offsets[i] to offsets[i + 1], [episodes + 1].
        states, actions: of each row, as numbers from 0.
        rewards: likewise.
        constraints: by guardrail, likewise; NaN in all rows of an episode in which it was not measured.
        propensities: likewise, or None where they were not recorded.
        final_states: where each episode's last action led; -1 (`saver.END`) to its end, -2 nobody saw it.
        complete: of each episode, False if it was cut off and went on.
    """

    offsets: Any
    states: Any
    actions: Any
    rewards: Any
    constraints: dict[str, Any]
    propensities: Any
    final_states: Any
    complete: Any

    def __post_init__(self) -> None:
        for name in ("offsets", "states", "actions", "rewards", "propensities", "final_states", "complete"):
            if (column := getattr(self, name)) is not None:
                object.__setattr__(self, name, _still(column))
        kept = {name: _still(column) for name, column in self.constraints.items()}
        object.__setattr__(self, "constraints", kept)

    @classmethod
    def of(cls, episodes: Iterable[Episode], complete: Any = None, **more: Any) -> Self:
        """Of episodes that all have the same guardrails, and propensities or none."""
        listed = list(episodes)
        if not listed:
            raise InvalidData("there are no episodes; give at least one")
        said = [episode.propensities for episode in listed]
        if any(item is None for item in said) and not all(item is None for item in said):
            raise InvalidData("some episodes have propensities and some have none; give them all, or none")
        finals = [NOT_SEEN if one.final_state is None else one.final_state for one in listed]
        return cls(
            np.concatenate([[0], np.cumsum([len(one) for one in listed])]),
            np.concatenate([one.states for one in listed]),
            np.concatenate([one.actions for one in listed]),
            np.concatenate([one.rewards for one in listed]),
            _together(listed),
            None if said[0] is None else np.concatenate(said),
            np.array(finals, dtype=np.int64),
            np.ones(len(listed), bool) if complete is None else np.asarray(complete, dtype=bool),
            **more,
        )

    def __len__(self) -> int:
        """The number of episodes."""
        return len(self.offsets) - 1

    @property
    def rows(self) -> int:
        """The number of steps of all episodes together."""
        return len(self.states)

    @cached_property
    def lengths(self) -> Ints:
        """The number of steps of each episode."""
        found: Ints = np.diff(self.offsets)
        return found

    @property
    def last(self) -> Ints:
        """The last row of each episode."""
        found: Ints = self.offsets[1:] - 1
        return found

    @cached_property
    def steps(self) -> Ints:
        """t, of each row."""
        found: Ints = np.arange(self.rows) - np.repeat(self.offsets[:-1], self.lengths)
        return found

    def __getitem__(self, number: int) -> Episode:
        """One episode."""
        at = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
        guarded = {
            name: None if np.isnan(column[at.start]) else column[at]
            for name, column in self.constraints.items()
        }
        said, final = self.propensities, int(self.final_states[number])
        return Episode(
            self.states[at], self.actions[at], self.rewards[at], guarded or None,
            propensities=None if said is None else said[at], final_state=None if final == NOT_SEEN else final,
        )  # fmt: skip

    def __iter__(self) -> Iterator[Episode]:
        """Each as a `saver.Episode`."""
        return (self[number] for number in range(len(self)))

    def returns(self, column: Floats, discount: float) -> Floats:
        """sum_t discount^t of what a column holds, of each episode."""
        found: Floats = np.add.reduceat(discount**self.steps * column, self.offsets[:-1])
        return found

    def following(self, mdp: Any) -> Ints:
        """Where each row led: to a state, to the end of its episode (-1), or nobody saw it (-2).

        An episode that is complete before the horizon has ended, as `saver.problem.sums.last_outcome` says.
        """
        found = np.empty(self.rows, dtype=np.int64)
        found[:-1] = self.states[1:]
        known = np.full(len(self), NOT_SEEN) if mdp.known else self.final_states
        found[self.last] = np.where(self.complete & (self.lengths < mdp.horizon), END, known)
        return found

    def until(self, horizon: int) -> Self:
        """The first steps of each; of a longer episode it is seen where the last of them led."""
        longer = self.lengths > horizon
        if not longer.any():
            return self
        kept = self.steps < horizon
        finals = np.array(self.final_states)
        finals[longer] = self.states[self.offsets[:-1][longer] + horizon]
        lengths = np.minimum(self.lengths, horizon)
        return self._rows(kept, np.concatenate([[0], np.cumsum(lengths)]), finals, self.complete | longer)

    def select(self, chosen: Any) -> Self:
        """Those episodes that are chosen, [episodes] booleans."""
        mask = np.asarray(chosen, dtype=bool)
        offsets = np.concatenate([[0], np.cumsum(self.lengths[mask])])
        kept = np.repeat(mask, self.lengths)
        return self._rows(kept, offsets, self.final_states[mask], self.complete[mask])

    def paying(self, name: str) -> Self:
        """The same with a guardrail in the place of the reward."""
        return replace(self, rewards=self.constraints[name])

    def _rows(self, kept: Any, offsets: Any, finals: Any, complete: Any) -> Self:
        said = self.propensities
        return replace(
            self, offsets=offsets, states=self.states[kept], actions=self.actions[kept],
            rewards=self.rewards[kept], final_states=finals, complete=complete,
            constraints={name: column[kept] for name, column in self.constraints.items()},
            propensities=None if said is None else said[kept],
        )  # fmt: skip


def _still(column: Any) -> Any:
    """A view that cannot be written: columns are long, and are not copied."""
    view = np.asarray(column).view()
    view.setflags(write=False)
    return view


def _together(listed: list[Episode]) -> dict[str, Any]:
    """The guardrails of many episodes."""
    if all(one.constraints is None for one in listed):
        return {}
    given = [one.constraints if isinstance(one.constraints, dict) else None for one in listed]
    names = given[0]
    for number, one in enumerate(given):
        if one is None or names is None or one.keys() != names.keys():
            raise InvalidData(
                f"episode {number} does not tell the guardrails of the first by name; tell {{name: sequence}}"
            )
    assert names is not None
    return {
        name: np.concatenate(
            [
                np.full(len(one), np.nan) if (found := one.constraints[name]) is None else found
                for one in listed
            ]
        )
        for name in names
    }
