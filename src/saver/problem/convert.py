"""What the constructors of a model accept, and what they make of it; labels in the place of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saver._types import Bools, Floats, Ints
from saver.errors import InvalidData, InvalidProblem, SaverError, nearest
from saver.problem import checks

INTEGERS = (int, np.integer)
LARGEST = 10**9  # pairs


def counts_of(states: Any, actions: Any) -> tuple[int, int]:
    """How many states and actions."""
    states, actions = checks.whole("states", states, 1), checks.whole("actions", actions, 1)
    if states * actions > LARGEST:
        raise InvalidProblem(f"{states} states with {actions} actions are more than 10^9 pairs")
    return states, actions


def edge_table(edges: Any, states: int, actions: int, state_names: Any, action_names: Any) -> Floats:
    """(state, action, next_state, probability) rows of states and actions that are there, as numbers."""
    if not isinstance(edges, Iterable):
        raise InvalidProblem(
            f"edges is {edges!r}; it must hold (state, action, next_state, probability) rows"
        )
    table = edges if isinstance(edges, np.ndarray) else _numbered(list(edges), state_names, action_names)
    rows = checks.array("edges", table if len(table) else np.empty((0, 4)))
    if rows.ndim != 2 or rows.shape[1] != 4:
        raise InvalidProblem(
            f"edges has shape {rows.shape}; each edge must be (state, action, next_state, probability)"
        )
    bounds = {"state": states, "action": actions, "next_state": states}
    for index, (name, bound) in zip(rows.T, bounds.items(), strict=False):
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
    return rows


def _numbered(rows: list[Any], state_names: Any, action_names: Any) -> list[Any]:
    """Edges with numbers where they had labels."""
    if not any(isinstance(item, str) for row in rows if isinstance(row, Sequence) for item in row):
        return rows
    states, actions = Labels("state", state_names), Labels("action", action_names)
    kinds = {"state": states, "action": actions, "next_state": states}

    def number(i: int, item: Any, name: str) -> Any:
        return kinds[name].number(f"{name} of edge {i}", item, InvalidProblem)

    return [
        [*(number(i, *at) for at in zip(row, kinds, strict=False)), *row[3:]] for i, row in enumerate(rows)
    ]


def transition_rows(transitions: Any) -> Any:
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
    sums, lengths = np.asarray(matrix.sum(axis=1)).ravel(), np.diff(matrix.indptr)
    off = np.abs(sums - 1.0)
    near = (off > checks.EXACT) & (off <= checks.tolerance(lengths))
    matrix.data /= np.repeat(np.where(near, sums, 1.0), lengths)
    return read_only(matrix)


def read_only(matrix: Any) -> Any:
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def start_distribution(start: Any, states: int, names: Sequence[str] | None = None) -> Floats:
    start = Labels("state", names).number("start", start, InvalidProblem)
    if not isinstance(start, Sequence) and np.ndim(start) == 0:
        index = checks.whole("start", start, 0)
        if index >= states:
            raise InvalidProblem(f"start is {index}; it must be a state from 0 to {states - 1}")
        values = np.zeros(states)
        values[index] = 1.0
    else:
        values = checks.shaped("start", start, (states,))
        checks.distribution("start", values, InvalidProblem)
    return checks.frozen(values)


def terminal_states(terminal: Any, states: int, names: Sequence[str] | None = None) -> tuple[int, ...]:
    try:
        raw: Any = np.asarray(terminal)
    except ValueError:
        raw = np.empty((0, 0))
    if raw.ndim != 1:
        raise InvalidProblem(f"terminal is {terminal!r}; it must be a sequence of states")
    if raw.dtype == np.bool_:
        if raw.shape != (states,):
            raise InvalidProblem(f"terminal has shape {raw.shape}; as booleans it must be ({states},)")
        raw = np.flatnonzero(raw)
    elif raw.dtype.kind in "OUT":
        known = Labels("state", names)
        raw = [known.number(f"terminal[{i}]", item, InvalidProblem) for i, item in enumerate(terminal)]
    numbers = sorted({checks.whole("terminal", value, 0) for value in raw})
    if numbers and numbers[-1] >= states:
        raise InvalidProblem(f"terminal holds {numbers[-1]}; states are from 0 to {states - 1}")
    return tuple(numbers)


def availability(available: ArrayLike | None, shape: tuple[int, int]) -> Bools:
    try:
        values = np.ones(shape, dtype=bool) if available is None else np.asarray(available)
    except ValueError:
        raise InvalidProblem(f"available is ragged; it must be booleans of {shape}") from None
    if values.shape != shape or values.dtype != np.bool_:
        raise InvalidProblem(
            f"available is {values.dtype} of shape {values.shape}; it must be booleans of {shape}"
        )
    return checks.frozen(values)


def names_of(name: str, names: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, Sequence) or not all(isinstance(item, str) for item in names):
        raise InvalidProblem(f"{name} is {names!r}; it must be a sequence of {count} strings")
    result = tuple(names)
    if len(result) != count:
        raise InvalidProblem(f"{name} has {len(result)} entries; it must have {count}")
    if len(set(result)) < count:
        twice = next(item for i, item in enumerate(result) if item in result[:i])
        raise InvalidProblem(f"{name} holds {twice!r} twice; a name must stand for one")
    return result


# -- labels: what may be said in the place of a number; a text is always one --


class Labels:
    """The names of the states, or of the actions (`kind`), of a model, in order; None where it has none."""

    def __init__(self, kind: str, names: Sequence[str] | None) -> None:
        self.kind, self.names = kind, names
        self._numbers = {name: number for number, name in enumerate(names or ())}

    def number(self, place: str, said: Any, error: type[SaverError] = InvalidData) -> Any:
        """The number that a label stands for; what is no text stays as it is."""
        if not isinstance(said, str):
            return said
        if self.names is None:
            raise error(
                f"{place} is {said!r}, and the model has no {self.kind}_names; say a whole number, or give "
                "it names"
            )
        if said not in self._numbers:
            raise error(f"{place} is {said!r}, which is no {self.kind}; {nearest(said, self.names, 10)}")
        return self._numbers[said]

    def numbers(self, name: str, column: Any) -> Ints:
        """A column of whole numbers and labels as numbers."""
        found = [self.number(f"{name}[{at}]", said) for at, said in enumerate(column)]
        return np.array(found, dtype=np.int64)

    def said(self, number: Any) -> Any:
        """The label of a number; the number where there are no labels."""
        return int(number) if self.names is None else self.names[number]


def spoken(name: str, value: Any) -> Any:
    """A sequence of whole numbers, as int64; with labels among them, as objects of type int and str."""
    try:
        raw = np.asarray(value)
    except ValueError:
        raw = np.empty(1)
    if raw.ndim == 1 and raw.dtype == np.int64:
        return raw
    if raw.ndim == 1 and raw.dtype.kind in "OUT":
        given = raw.tolist() if isinstance(value, np.ndarray) or raw.dtype.kind == "O" else list(value)
        rest = [item for item in given if not isinstance(item, str)]
        whole = all(isinstance(item, INTEGERS) and not isinstance(item, bool) for item in rest)
        if whole and len(rest) < len(given):  # labels, and beside them whole numbers only
            return np.array([str(x) if isinstance(x, str) else int(x) for x in given], dtype=object)
    if raw.ndim != 1 or (raw.size and raw.dtype.kind not in "iu"):
        raise InvalidData(f"{name} must be a sequence of whole numbers, or of labels, got {value!r}")
    if raw.dtype.kind == "u" and raw.size and raw.max() > np.iinfo(np.int64).max:
        raise InvalidData(f"{name} holds {raw.max()}, which is no index")
    return raw.astype(np.int64)
