"""A model whose transitions nobody knows: they are learned from what is told."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from saver._types import Floats, Ints
from saver.errors import InvalidData, InvalidProblem
from saver.problem import checks, convert
from saver.problem.codec import portable
from saver.problem.mdp import LONGEST, Mdp
from saver.problem.model import END, Model
from saver.problem.moving import rated, still

LARGEST = 10**9  # pairs


@portable("unknown")
@dataclass(frozen=True, eq=False)
class Unknown(Model):
    """The place of an `Mdp` whose transitions are learned, and its start too where none is given.

    Any state may follow any action, and an episode may end after any: a move that was never seen is data.

    Attributes:
        states: S.
        actions: A.
        horizon: L, the largest number of steps of an episode.
        discount: in (0, 1].
        start: [S] distribution, or one state, by its number or name; None: learned.
        available: [S, A] booleans; False marks an action that is missing in that state.
        state_names: one for each state, all different, or None; they may be said in the place of numbers.
        action_names: one for each action, likewise.
    """

    states: Any
    actions: Any
    horizon: int
    _: KW_ONLY
    discount: float = 1.0
    start: Any = None
    available: Any = None
    state_names: Sequence[str] | None = None
    action_names: Sequence[str] | None = None

    known = False
    terminal = ()

    def __post_init__(self) -> None:
        states, actions = checks.whole("states", self.states, 1), checks.whole("actions", self.actions, 1)
        if states * actions > LARGEST:
            raise InvalidProblem(f"{states} states with {actions} actions are more than 10^9 pairs")
        names = convert.names_of("state_names", self.state_names, states)
        start = None if self.start is None else convert.start_distribution(self.start, states, names)
        checked = {
            "states": states,
            "actions": actions,
            "horizon": checks.whole("horizon", self.horizon, 1, LONGEST),
            "discount": checks.between("discount", self.discount, 0.0, 1.0, closed=(False, True)),
            "start": start,
            "available": convert.availability(self.available, (states, actions)),
            "state_names": names,
            "action_names": convert.names_of("action_names", self.action_names, actions),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self.check_actions()

    @cached_property
    def layers(self) -> tuple[Ints, ...]:
        """For each step the states that an episode may be in: all, but for a start that is given."""
        every = np.arange(self.states)
        first = every if self.start is None else np.flatnonzero(self.start)
        return (first, *[every] * (self.horizon - 1))

    @property
    def flow(self) -> Any:
        """No move is known: [S * A, S], empty."""
        return sparse.csr_array((self.states * self.actions, self.states))

    def check_path(
        self, states: Ints, actions: Ints, final_state: int | None = None, complete: bool = True
    ) -> None:
        """Refuse a start that has probability 0, an action that is missing, a state that does not exist."""
        if self.start is not None and self.start[states[0]] == 0:
            raise InvalidData(f"the episode starts in {self.state_label(states[0])}, which has probability 0")
        if len(bad := np.flatnonzero(~self.available[states, actions])):
            t = int(bad[0])
            said = self.move_label(t, int(states[t]), int(actions[t]))
            raise InvalidData(f"{said} is missing from the model")
        if final_state is not None and final_state >= self.states:
            raise InvalidData(f"final_state is {final_state}; it must be from 0 to {self.states - 1}")
        if complete and len(states) < self.horizon and final_state is not None and final_state != END:
            raise InvalidData(
                f"final_state is {final_state} after {len(states)} of {self.horizon} steps; "
                "tell saver.END if the episode ended there, or complete=False if it was cut off (a history "
                "holds whole episodes: leave it out)"
            )
        if not complete and (len(states) == self.horizon or final_state == END):
            said = self.move_label(len(states) - 1, int(states[-1]), int(actions[-1]))
            raise InvalidData(
                f"the episode ended with {said}: nothing was cut off; tell it without complete=False"
            )

    def believed(self, moves: Any, ends: Floats, starts: Floats) -> Believed:
        """The model of what was seen: counts of moves [S * A, S], of ends [S * A], of starts [S]."""
        rates = rated(still(moves.indptr), still(moves.data), still(ends))
        rows = copy(moves)  # without scipy's checks: a model is made for every plan
        rows.data, rows.indices, rows.indptr = rates, moves.indices.copy(), moves.indptr.copy()
        start, total = self.start, float(np.sum(starts))
        if start is None:
            start = checks.frozen(starts / total if total else np.full(self.states, 1.0 / self.states))
        return Believed.trusted(
            transitions=convert.read_only(rows), horizon=self.horizon, discount=self.discount, start=start,
            terminal=(), available=self.available, state_names=self.state_names,
            action_names=self.action_names, uniform=self.uniform,
        )  # fmt: skip


class Believed(Mdp):
    """A model of frequencies: what a row lacks to 1 ends the episode, and no outcome seen is an end."""

    @classmethod
    def trusted(cls, **parts: Any) -> Believed:
        """Of parts that need no checks: a model is made for every plan and every answer."""
        made = object.__new__(cls)
        for name, value in parts.items():
            object.__setattr__(made, name, value)
        return made

    def _check_rows(self) -> None:
        return
