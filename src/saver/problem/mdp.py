"""The model: known transitions, a horizon, a discount, a start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saver.errors import InvalidData, InvalidProblem
from saver.problem import checks
from saver.problem.checks import Bools, Floats, Ints

Edge = tuple[int, int, int, float]
LONGEST = 1_000_000  # steps


@dataclass(frozen=True, eq=False)
class Mdp(checks.Frozen):
    """A finite-horizon Markov decision process without its rewards.

    A row of `transitions` sums to 1, or to 0: then the episode ends after that action. Entering a terminal
    state ends the episode too, and no action is taken in it. An episode lasts at most `horizon` steps.

    Attributes:
        transitions: [S * A, S] sparse; the constructor also takes a dense [S, A, S].
        horizon: L, the largest number of steps of an episode.
        discount: in (0, 1].
        start: [S] distribution; the constructor also takes one state.
        terminal: the states that end an episode.
        available: [S, A] booleans; False marks an action that is missing in that state.
        state_names: one for each state, or None.
        action_names: one for each action, or None.
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
        matrix = _as_rows(self.transitions)
        states = matrix.shape[1]
        actions = matrix.shape[0] // states
        checked = {
            "transitions": matrix,
            "horizon": checks.whole("horizon", self.horizon, 1, LONGEST),
            "discount": checks.between("discount", self.discount, 0.0, 1.0, closed=(False, True)),
            "start": _as_start(self.start, states),
            "terminal": _as_terminal(self.terminal, states),
            "available": _as_available(self.available, (states, actions)),
            "state_names": _as_names("state_names", self.state_names, states),
            "action_names": _as_names("action_names", self.action_names, actions),
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

        Memory is proportional to the number of edges. `options` are those of the constructor.
        """
        states, actions = checks.whole("states", states, 1), checks.whole("actions", actions, 1)
        if states * actions > 10**9:
            raise InvalidProblem(f"{states} states with {actions} actions are more than 10^9 pairs")
        table: Any = edges if isinstance(edges, np.ndarray) else list(_iterable(edges))
        rows = checks.array("edges", table if np.size(table) else np.empty((0, 4)))
        if rows.ndim != 2 or rows.shape[1] != 4:
            raise InvalidProblem(
                f"edges has shape {rows.shape}; each edge must be (state, action, next_state, probability)"
            )
        names, bounds = ("state", "action", "next_state"), (states, actions, states)
        for column, (name, bound) in enumerate(zip(names, bounds, strict=True)):
            index = rows[:, column]
            bad = np.flatnonzero((index < 0) | (index >= bound) | (index != np.floor(index)))
            if len(bad):
                raise InvalidProblem(
                    f"edge {bad[0]} {rows[bad[0]].tolist()} has {name} {checks.show(index[bad[0]])}; "
                    f"it must be a whole number from 0 to {bound - 1}"
                )
        if (bad := np.flatnonzero(rows[:, 3] < 0)).size:
            raise InvalidProblem(
                f"edge {bad[0]} {rows[bad[0]].tolist()} has probability {checks.show(rows[bad[0], 3])}; "
                "it must be at least 0"
            )
        pair = rows[:, 0].astype(np.int64) * actions + rows[:, 1].astype(np.int64)
        shape = (states * actions, states)
        matrix = sparse.coo_array((rows[:, 3], (pair, rows[:, 2].astype(np.int64))), shape=shape)
        return cls(matrix.tocsr(), horizon, **options)

    @property
    def states(self) -> int:
        """S."""
        return int(self.transitions.shape[1])

    @property
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
        return _read_only(flow)

    def pairs(self, states: Ints) -> Ints:
        """The rows of `flow` that belong to `states`."""
        rows: Ints = (states[:, None] * self.actions + np.arange(self.actions)).ravel()
        return rows

    @cached_property
    def layers(self) -> tuple[Ints, ...]:
        """For each step the states that some behaviour can be in; shorter than L if all episodes are."""
        layers: list[Ints] = []
        seen = self.start > 0
        while len(layers) < self.horizon and seen.any():
            states = np.flatnonzero(seen)
            if layers and np.array_equal(states, layers[-1]):
                return (*layers, *[layers[-1]] * (self.horizon - len(layers)))
            layers.append(states)
            rows = self.pairs(states)[self.available[states].ravel()]
            seen = np.zeros(self.states, dtype=bool)
            seen[self.flow[rows].indices] = True
        return tuple(layers)

    @cached_property
    def reachable(self) -> Bools:
        """[S], the states that some behaviour can be in within the horizon."""
        mask = np.zeros(self.states, dtype=bool)
        for states in self.layers:
            mask[states] = True
        return mask

    def state_label(self, state: int) -> str:
        """How messages call a state."""
        return f"state {state}" + (f" ({self.state_names[state]})" if self.state_names else "")

    def action_label(self, action: int) -> str:
        """How messages call an action."""
        return f"action {action}" + (f" ({self.action_names[action]})" if self.action_names else "")

    def check_path(self, states: Ints, actions: Ints) -> None:
        """Refuse a trajectory that the transitions make impossible or that stops before its end."""
        if self.start[states[0]] == 0:
            raise InvalidData(f"the episode starts in {self.state_label(states[0])}, which has probability 0")
        for t, (state, action) in enumerate(zip(states, actions, strict=True)):
            where = f"{self.action_label(action)} in {self.state_label(state)} at step {t}"
            if not self.available[state, action]:
                raise InvalidData(f"{where} is missing from the model")
            row = self.flow.indptr[state * self.actions + action : state * self.actions + action + 2]
            successors = self.flow.indices[row[0] : row[1]]
            if t + 1 < len(states):
                if states[t + 1] in self.terminal:
                    raise InvalidData(
                        f"{self.state_label(states[t + 1])} at step {t + 1} is terminal: no action is taken "
                        "in it; leave it out"
                    )
                if states[t + 1] not in successors:
                    raise InvalidData(f"{where} cannot lead to {self.state_label(states[t + 1])}")
            elif t + 1 < self.horizon and not self._may_end(state, action):
                raise InvalidData(
                    f"the episode stops after step {t}, but {where} always goes on "
                    f"and the horizon is {self.horizon}; tell the whole episode"
                )

    def _may_end(self, state: int, action: int) -> bool:
        pair = state * self.actions + action
        row = slice(self.transitions.indptr[pair], self.transitions.indptr[pair + 1])
        successors = self.transitions.indices[row]
        return not len(successors) or bool(np.isin(successors, self.terminal).any())

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
        empty = np.flatnonzero(~self.available.any(axis=1))
        if len(empty):
            raise InvalidProblem(
                f"{self.state_label(empty[0])} has no available action; at least one is needed"
            )
        for state in self.terminal:
            if self.start[state] > 0:
                raise InvalidProblem(
                    f"{self.state_label(state)} is terminal but episodes start in it with probability "
                    f"{self.start[state]:g}; an episode needs at least one action"
                )


def _iterable(edges: Any) -> Any:
    if not isinstance(edges, Iterable):
        raise InvalidProblem(
            f"edges is {edges!r}; it must hold (state, action, next_state, probability) rows"
        )
    return edges


def _as_rows(transitions: Any) -> Any:
    if sparse.issparse(transitions):
        if transitions.ndim != 2:
            raise InvalidProblem(
                f"transitions has shape {transitions.shape}; sparse it must be (states * actions, states)"
            )
        matrix = sparse.csr_array(transitions, copy=True)
        matrix.data = np.array(checks.array("transitions.data", matrix.data))
        matrix.sum_duplicates()
    else:
        dense = checks.array("transitions", transitions)
        if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or not dense.size:
            raise InvalidProblem(
                f"transitions has shape {dense.shape}; it must be (states, actions, states), "
                "or sparse (states * actions, states), none of them 0"
            )
        checks.within("transitions", dense, 0.0)
        matrix = sparse.csr_array(dense.reshape(-1, dense.shape[2]))
    rows, states = matrix.shape
    if not states or not rows or rows % states:
        raise InvalidProblem(
            f"transitions has shape {matrix.shape}; it must be (states * actions, states), none of them 0"
        )
    if (bad := np.flatnonzero(matrix.data < 0)).size:
        pair = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        state, action = divmod(pair, rows // states)
        raise InvalidProblem(
            f"transitions of action {action} in state {state} to state {matrix.indices[bad[0]]} is "
            f"{checks.show(matrix.data[bad[0]])}; it must be at least 0"
        )
    matrix.eliminate_zeros()
    return _read_only(matrix)


def _read_only(matrix: Any) -> Any:
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def _as_start(start: int | ArrayLike, states: int) -> Floats:
    if not isinstance(start, Sequence) and np.ndim(start) == 0:
        index = checks.whole("start", start, 0)
        if index >= states:
            raise InvalidProblem(f"start is {index}; it must be a state from 0 to {states - 1}")
        values = np.zeros(states)
        values[index] = 1.0
    else:
        values = checks.shaped("start", start, (states,))
        checks.distribution("start", values, InvalidProblem)
    result: Floats = checks.frozen(values)
    return result


def _as_terminal(terminal: ArrayLike, states: int) -> tuple[int, ...]:
    try:
        raw = np.asarray(terminal)
    except ValueError:
        raw = np.empty((0, 0))
    if raw.ndim != 1:
        raise InvalidProblem(f"terminal is {terminal!r}; it must be a sequence of states")
    if raw.dtype == np.bool_:
        if raw.shape != (states,):
            raise InvalidProblem(f"terminal has shape {raw.shape}; as booleans it must be ({states},)")
        raw = np.flatnonzero(raw)
    numbers = sorted({checks.whole("terminal", value, 0) for value in raw})
    if numbers and numbers[-1] >= states:
        raise InvalidProblem(f"terminal holds {numbers[-1]}; states are from 0 to {states - 1}")
    return tuple(numbers)


def _as_available(available: ArrayLike | None, shape: tuple[int, int]) -> Bools:
    try:
        values = np.ones(shape, dtype=bool) if available is None else np.asarray(available)
    except ValueError:
        raise InvalidProblem(f"available is ragged; it must be booleans of {shape}") from None
    if values.shape != shape or values.dtype != np.bool_:
        raise InvalidProblem(
            f"available is {values.dtype} of shape {values.shape}; it must be booleans of {shape}"
        )
    result: Bools = checks.frozen(values)
    return result


def _as_names(name: str, names: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, Sequence) or not all(isinstance(item, str) for item in names):
        raise InvalidProblem(f"{name} is {names!r}; it must be a sequence of {count} strings")
    result = tuple(names)
    if len(result) != count:
        raise InvalidProblem(f"{name} has {len(result)} entries; it must have {count}")
    return result
