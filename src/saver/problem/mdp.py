"""The model: known transitions, a horizon, a discount, a start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saver._types import Ints
from saver.errors import InvalidData, InvalidProblem
from saver.problem import checks, convert
from saver.problem.codec import portable
from saver.problem.model import Model
from saver.problem.moving import Paths, possible, reached, still

Edge = tuple[int | str, int | str, int | str, float]
LONGEST = 1_000_000  # steps


@portable("mdp")
@dataclass(frozen=True, eq=False)
class Mdp(Model):
    """A finite-horizon Markov decision process without its rewards.

    A row of `transitions` sums to 1, or to 0: then the episode ends after that action. Entering a terminal
    state ends the episode too, and no action is taken in it. An episode lasts at most `horizon` steps.

    Attributes:
        transitions: [S * A, S] sparse; the constructor also takes a dense [S, A, S].
        horizon: L, the largest number of steps of an episode.
        discount: in (0, 1].
        start: [S] distribution; the constructor also takes one state, by its number or name.
        terminal: the states that end an episode; the constructor also takes their names.
        available: [S, A] booleans; False marks an action that is missing in that state.
        state_names: one for each state, all different, or None; they may be said in the place of numbers.
        action_names: one for each action, likewise.
    """

    transitions: Any
    horizon: int
    _: KW_ONLY
    discount: float = 1.0
    start: Any = 0
    terminal: Any = ()
    available: Any = None
    state_names: Sequence[str] | None = None
    action_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        matrix = convert.transition_rows(self.transitions)
        states = matrix.shape[1]
        actions = matrix.shape[0] // states
        names = convert.names_of("state_names", self.state_names, states)
        checked = {
            "transitions": matrix,
            "horizon": checks.whole("horizon", self.horizon, 1, LONGEST),
            "discount": checks.between("discount", self.discount, 0.0, 1.0, closed=(False, True)),
            "start": convert.start_distribution(self.start, states, names),
            "terminal": convert.terminal_states(self.terminal, states, names),
            "available": convert.availability(self.available, (states, actions)),
            "state_names": names,
            "action_names": convert.names_of("action_names", self.action_names, actions),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_rows()
        self._check_ends()

    @classmethod
    def from_edges(
        cls, edges: Iterable[Edge] | ArrayLike, states: int, actions: int, horizon: int, **options: Any
    ) -> Mdp:
        """A model from (state, action, next_state, probability) rows; equal edges add up.

        Memory is proportional to the number of edges. `options` are those of the constructor; with
        `state_names` and `action_names` edges may say labels.
        """
        states, actions = checks.whole("states", states, 1), checks.whole("actions", actions, 1)
        if states * actions > 10**9:
            raise InvalidProblem(f"{states} states with {actions} actions are more than 10^9 pairs")
        edges = convert.numbered_edges(edges, options.get("state_names"), options.get("action_names"))
        rows = convert.edge_table(edges, states, actions)
        pair = rows[:, 0].astype(np.int64) * actions + rows[:, 1].astype(np.int64)
        shape = (states * actions, states)
        matrix = sparse.coo_array((rows[:, 3], (pair, rows[:, 2].astype(np.int64))), shape=shape)
        return cls(matrix.tocsr(), horizon, **options)

    @cached_property
    def states(self) -> int:
        """S."""
        return int(self.transitions.shape[1])

    @cached_property
    def actions(self) -> int:
        """A."""
        return int(self.transitions.shape[0]) // self.states

    @cached_property
    def flow(self) -> Any:
        """`transitions` with only the moves after which the episode goes on, [S * A, S] sparse."""
        if not self.terminal:
            return self.transitions
        keep = np.ones(self.states)
        keep[list(self.terminal)] = 0.0
        flow = sparse.diags_array(np.repeat(keep, self.actions)) @ self.transitions
        flow = (flow @ sparse.diags_array(keep)).tocsr()
        flow.eliminate_zeros()
        return convert.read_only(flow)

    @cached_property
    def layers(self) -> tuple[Ints, ...]:
        """For each step the states that some behaviour can be in; shorter than L if all episodes are."""
        flow, start = self.flow, np.flatnonzero(self.start > 0)
        states: Ints
        states, ends = reached(flow.indptr, flow.indices, still(self.available), start, self.horizon)
        begins = [0, *ends.tolist()]
        layers = [states[i:j] for i, j in pairwise(begins) if i < j]
        settled = len(layers) == len(ends)  # from here on they stay
        return (*layers, *[layers[-1]] * (self.horizon - len(layers) if settled else 0))

    def check_path(
        self, states: Ints, actions: Ints, final_state: int | None = None, complete: bool = True
    ) -> None:
        """Refuse a trajectory that is impossible, or that stops before its end and is said to be complete."""
        if self.start[states[0]] == 0:
            raise InvalidData(f"the episode starts in {self.state_label(states[0])}, which has probability 0")
        last = len(states) - 1
        for t, (state, action) in enumerate(zip(states.tolist(), actions.tolist(), strict=True)):
            if not self.available[state, action]:
                raise InvalidData(f"{self.move_label(t, state, action)} is missing from the model")
            if t < last:
                self._check_move(t, state, action, int(states[t + 1]))
        check = self._check_end if complete else self._check_cut
        check(last, int(states[last]), int(actions[last]), final_state)

    def surely(self, states: Ints, actions: Ints) -> bool:
        """Whether a whole episode can have happened."""
        return bool(possible(self._paths, states, actions))

    @cached_property
    def _paths(self) -> Paths:
        """What `possible` needs."""
        ends, rows = np.zeros(self.states, dtype=bool), self.transitions
        ends[list(self.terminal)] = True
        start, available = np.asarray(self.start), self.available
        return Paths(
            still(rows.indptr), still(rows.indices), still(start), still(available), still(ends), self.horizon
        )

    @cached_property
    def moves(self) -> Ints:
        """The moves after which an episode goes on, (state * A + action) * S + next state, sorted."""
        rows = np.repeat(np.arange(self.flow.shape[0]), np.diff(self.flow.indptr))
        found: Ints = np.sort(rows * self.states + self.flow.indices.astype(np.int64))
        return found

    def _check_move(self, t: int, state: int, action: int, following: int) -> None:
        if following in self.terminal:
            raise InvalidData(
                f"{self.state_label(following)} at step {t + 1} is terminal: no action is taken "
                "in it; leave it out"
            )
        if following not in self.successors(state, action):
            raise InvalidData(
                f"{self.move_label(t, state, action)} cannot lead to {self.state_label(following)} in this "
                "model; where moves are to be learned, give the problem a saver.Unknown"
            )

    def _check_cut(self, t: int, state: int, action: int, final_state: int | None) -> None:
        goes_on = not np.isin(self.successors(state, action), self.terminal).all()  # of none: False
        ended = final_state is not None and (final_state < 0 or final_state in self.terminal)
        if t + 1 >= len(self.layers) or not goes_on or ended:
            raise InvalidData(
                f"the episode ended with {self.move_label(t, state, action)}: nothing was cut off; tell it "
                "without complete=False"
            )

    def _check_end(self, t: int, state: int, action: int, final_state: int | None) -> None:
        successors, early = self.successors(state, action), t + 1 < self.horizon
        ends = not len(successors) or bool(np.isin(successors, self.terminal).any())
        if final_state is not None and final_state >= 0:
            if final_state not in successors:
                raise InvalidData(
                    f"final_state is {final_state}, but {self.move_label(t, state, action)} cannot lead there"
                )
            ends = final_state in self.terminal
        elif final_state is not None and not ends:
            raise InvalidData(
                f"final_state says that the episode ended, but {self.move_label(t, state, action)} always "
                "goes on"
            )
        if early and not ends:
            raise InvalidData(
                f"the episode stops after step {t}, but {self.move_label(t, state, action)} always goes on "
                f"and the horizon is {self.horizon}; tell the whole episode, or complete=False if it was "
                "cut off"
            )

    def successors(self, state: int, action: int) -> Ints:
        """The states that an action can lead to, terminal ones too; none where the episode ends after it."""
        pair = state * self.actions + action
        found: Ints = self.transitions.indices[
            self.transitions.indptr[pair] : self.transitions.indptr[pair + 1]
        ]
        return found

    def _check_rows(self) -> None:
        matrix = self.transitions
        sums = np.asarray(matrix.sum(axis=1)).ravel()
        far = np.abs(sums - 1.0) > checks.tolerance(np.diff(matrix.indptr))
        bad = np.flatnonzero(far & (sums != 0.0))
        if len(bad):
            state, action = divmod(int(bad[0]), self.actions)
            raise InvalidProblem(
                f"transitions of {self.action_label(action)} in {self.state_label(state)} sum to "
                f"{sums[bad[0]]:.10g}; they must sum to 1, or to 0 where the episode ends after that action"
            )
        moving = np.flatnonzero((sums > 0) & ~self.available.ravel())
        if len(moving):
            state, action = divmod(int(moving[0]), self.actions)
            raise InvalidProblem(
                f"{self.action_label(action)} in {self.state_label(state)} is marked as missing but has "
                "transitions; remove them or make it available"
            )

    def _check_ends(self) -> None:
        self.check_actions()
        for state in self.terminal:
            if self.start[state] > 0:
                raise InvalidProblem(
                    f"{self.state_label(state)} is terminal but episodes start in it with probability "
                    f"{self.start[state]:g}; an episode needs at least one action"
                )
