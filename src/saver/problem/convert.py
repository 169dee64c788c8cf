"""What the constructors of a model accept, and what they make of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saver._types import Bools, Floats
from saver.errors import InvalidProblem
from saver.problem import checks
from saver.problem.labels import Labels


def edge_table(edges: Any, states: int, actions: int) -> Floats:
    """(state, action, next_state, probability) rows of states and actions that are there."""
    if not isinstance(edges, Iterable):
        raise InvalidProblem(
            f"edges is {edges!r}; it must hold (state, action, next_state, probability) rows"
        )
    table: Any = edges if isinstance(edges, np.ndarray) else list(edges)
    rows = checks.array("edges", table if len(table) else np.empty((0, 4)))
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
    return rows


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
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    near = (np.abs(sums - 1.0) > checks.EXACT) & (
        np.abs(sums - 1.0) <= checks.tolerance(np.diff(matrix.indptr))
    )
    matrix.data /= np.repeat(np.where(near, sums, 1.0), np.diff(matrix.indptr))
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
    result: Floats = checks.frozen(values)
    return result


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
    result: Bools = checks.frozen(values)
    return result


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


def numbered_edges(edges: Any, state_names: Any, action_names: Any) -> Any:
    """Edges with numbers where they had labels."""
    if isinstance(edges, np.ndarray) or not isinstance(edges, Iterable):
        return edges
    rows = list(edges)
    if not any(isinstance(item, str) for row in rows if isinstance(row, Sequence) for item in row):
        return rows
    states, actions = Labels("state", state_names), Labels("action", action_names)
    kinds = (("state", states), ("action", actions), ("next_state", states))
    return [
        [
            *(
                known.number(f"{name} of edge {i}", item, InvalidProblem)
                for item, (name, known) in zip(row, kinds, strict=False)
            ),
            *row[3:],
        ]
        for i, row in enumerate(rows)
    ]
