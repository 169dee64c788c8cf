"""What was seen in an episode, wherever it was run, and in many, column by column."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.errors import InvalidData
from saver.problem import checks
from saver.problem.checks import read_only
from saver.problem.codec import portable
from saver.problem.convert import spoken
from saver.problem.model import END, NOT_SEEN

SEEN = ("states", "actions", "rewards", "constraints", "propensities")  # of each step


def _rows(column: Any, kept: Any) -> Any:
    """Those of a column, of each by name, or of none."""
    if isinstance(column, Mapping):
        return {name: _rows(one, kept) for name, one in column.items()}
    return None if column is None else column[kept]


class Rows(checks.Frozen):
    """Steps, one after the other, of an episode or of many."""

    def part(self, kept: Any, **changed: Any) -> Any:
        """The same with these rows only, and with what else changes with them."""
        whole: Any = self  # a dataclass
        return replace(whole, **{name: _rows(getattr(self, name), kept) for name in SEEN}, **changed)


@portable("episode")
@dataclass(frozen=True, eq=False)
class Episode(Rows):
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
        states, given, checked = spoken("states", self.states), self.constraints, vars(self)
        checked["states"] = _as_long("states", states, states)
        checked["actions"] = _as_long("actions", spoken("actions", self.actions), states)
        checked["rewards"] = _numbers("rewards", self.rewards, states)
        if isinstance(given, Mapping):
            checked["constraints"] = {
                name: column if column is None else _numbers(f"constraints[{name!r}]", column, states)
                for name, column in given.items()
            }
        elif given is not None:
            checked["constraints"] = _numbers("constraints", given, states)
        if self.propensities is not None:
            checked["propensities"] = _numbers("propensities", self.propensities, states)
        if self.final_state is not None and not isinstance(self.final_state, str):
            checked["final_state"] = checks.whole("final_state", self.final_state, END, error=InvalidData)

    @property
    def steps(self) -> Ints:
        """t, of each row."""
        return np.arange(len(self))

    def returns(self, column: Floats, discount: float) -> float:
        """sum_t discount^t of what a column holds."""
        return float(np.sum(discount**self.steps * column))

    def but(self, **checked: Any) -> Episode:
        """The same with other columns, which were checked."""
        other = copy.copy(self)
        vars(other).update(checked)
        return other

    def until(self, steps: int) -> Any:
        """The first steps; where the last of them led is not seen."""
        return self.part(slice(steps), final_state=None)

    def __iter__(self) -> Iterator[Any]:
        """States, actions, rewards, constraints."""
        return iter((self.states, self.actions, self.rewards, self.constraints))

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.states)

    def check(self, mdp: Any, complete: bool = True) -> Episode:
        """The same with numbers in the place of labels; what cannot happen in this model is refused."""
        found, last, known = self, self.final_state, mdp.state_labels
        if "O" in (self.states.dtype.kind, self.actions.dtype.kind) or isinstance(last, str):
            found = self.but(
                states=checks.frozen(known.numbers("states", self.states)),
                actions=checks.frozen(mdp.action_labels.numbers("actions", self.actions)),
                final_state=known.number("final_state", last),
            )
        mdp.check_path(found.states, found.actions, found.final_state, complete)
        return found


def _as_long(name: str, column: Any, states: Ints) -> Any:
    """A column, which must be as long as the episode."""
    if column.shape != states.shape:
        raise InvalidData(
            f"{name} has shape {column.shape} but states has {states.shape}; they must be equally long"
        )
    return checks.frozen(column)


def _numbers(name: str, column: Any, states: Ints) -> Any:
    return _as_long(name, checks.array(name, column, InvalidData), states)


@dataclass(frozen=True, eq=False)
class Columns(Rows):
    """Episodes one after the other; iterating gives each as a `saver.Episode`."""

    offsets: Ints  # episode i has the rows from offsets[i] to offsets[i + 1], [episodes + 1]
    states: Ints  # states, actions: of each row, as numbers from 0
    actions: Ints
    rewards: Floats  # likewise
    # by guardrail, likewise; NaN in all rows of an episode in which it was not measured
    constraints: dict[str, Any]
    propensities: Any  # likewise, or None where they were not recorded
    final_states: Ints  # where each episode's last action led; -1 (`saver.END`) to its end, -2 nobody saw it
    complete: Bools  # of each episode, False if it was cut off and went on

    def __post_init__(self) -> None:
        for name in ("offsets", "states", "actions", "rewards", "propensities", "final_states", "complete"):
            if (column := getattr(self, name)) is not None:
                vars(self)[name] = read_only(column)
        vars(self)["constraints"] = {name: read_only(column) for name, column in self.constraints.items()}

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
        steps = ([getattr(one, name) for one in listed] for name in ("states", "actions", "rewards"))
        states, actions, rewards = map(np.concatenate, steps)
        return cls(
            _offsets([len(one) for one in listed]), states, actions, rewards, _together(listed),
            None if said[0] is None else np.concatenate(said), np.array(finals, dtype=np.int64),
            np.ones(len(listed), bool) if complete is None else np.asarray(complete, dtype=bool), **more,
        )  # fmt: skip

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
        return np.diff(self.offsets)

    @property
    def last(self) -> Ints:
        """The last row of each episode."""
        return self.offsets[1:] - 1

    @cached_property
    def steps(self) -> Ints:
        """t, of each row."""
        return np.arange(self.rows) - np.repeat(self.offsets[:-1], self.lengths)

    def returns(self, column: Floats, discount: float) -> Floats:
        """sum_t discount^t of what a column holds, of each episode."""
        return np.add.reduceat(discount**self.steps * column, self.offsets[:-1])

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

    def called(self, number: int) -> str:
        """How messages call an episode."""
        return f"history[{number}]"

    def __iter__(self) -> Iterator[Episode]:
        """Each as a `saver.Episode`."""
        return (self[number] for number in range(len(self)))

    def following(self, mdp: Any) -> Ints:
        """Where each row led: to a state, to the end of its episode (-1), or nobody saw it (-2).

        An episode that is complete before the horizon has ended, wherever it was then.
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
        return self._whole(kept, lengths, finals, self.complete | longer)

    def select(self, chosen: Any) -> Self:
        """Those episodes that are chosen, [episodes] booleans."""
        mask = np.asarray(chosen, dtype=bool)
        kept = np.repeat(mask, self.lengths)
        return self._whole(kept, self.lengths[mask], self.final_states[mask], self.complete[mask])

    def _whole(self, kept: Any, lengths: Ints, finals: Any, complete: Any) -> Self:
        """Those rows, which are episodes of these lengths."""
        more = {"offsets": _offsets(lengths), "final_states": finals, "complete": complete}
        return self.part(kept, **more)


def _offsets(lengths: Any) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)])


def _together(listed: list[Episode]) -> dict[str, Any]:
    """The guardrails of many episodes."""
    if all(one.constraints is None for one in listed):
        return {}
    first = listed[0].constraints
    for number, one in enumerate(listed):
        if not isinstance(one.constraints, dict) or one.constraints.keys() != first.keys():
            raise InvalidData(
                f"episode {number} does not tell the guardrails of the first by name; tell {{name: sequence}}"
            )
    columns = {name: [(one, one.constraints[name]) for one in listed] for name in first}
    return {
        name: np.concatenate([np.full(len(one), np.nan) if told is None else told for one, told in column])
        for name, column in columns.items()
    }
