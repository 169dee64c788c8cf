"""User input is checked here, once, at the boundary; what is inside trusts it."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saver.errors import InvalidData, InvalidPolicy, InvalidProblem, SaverError

if TYPE_CHECKING:
    from saver.problem.mdp import Mdp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SUM_TOLERANCE = 1e-8  # of a probability row, times its length


def array(name: str, value: ArrayLike, error: type[SaverError] = InvalidProblem) -> Floats:
    """`value` as floats without NaN or infinity; not copied where it already is."""
    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise error(f"{name} must be an array of numbers: {cause}") from None
    bad = np.argwhere(~np.isfinite(result))
    if len(bad):
        raise error(f"{name}{_at(bad[0])} is {result[tuple(bad[0])]}; every entry must be a finite number")
    return result


def shaped(
    name: str, value: ArrayLike, shape: tuple[int, ...], error: type[SaverError] = InvalidProblem
) -> Floats:
    """`array` of exactly this shape."""
    result = array(name, value, error)
    if result.shape != shape:
        raise error(f"{name} has shape {result.shape}; it must be {shape}")
    return result


def within(
    name: str,
    values: Floats,
    low: float,
    high: float = math.inf,
    error: type[SaverError] = InvalidProblem,
) -> Floats:
    """`values`, all of them from `low` to `high`."""
    bad = np.argwhere((values < low) | (values > high))
    if len(bad):
        wanted = f"at least {low:g}" if high == math.inf else f"in [{low:g}, {high:g}]"
        raise error(f"{name}{_at(bad[0])} is {values[tuple(bad[0])]:g}; it must be {wanted}")
    return values


def number(name: str, value: Any) -> float:
    """One finite float."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise InvalidProblem(f"{name} is {value!r}; it must be a number") from None
    if not math.isfinite(result):
        raise InvalidProblem(f"{name} is {result}; it must be finite")
    return result


def between(name: str, value: Any, low: float, high: float, *, closed: tuple[bool, bool]) -> float:
    """One float in the interval from `low` to `high`; `closed` says which ends belong to it."""
    result = number(name, value)
    above = result >= low if closed[0] else result > low
    below = result <= high if closed[1] else result < high
    if not (above and below):
        interval = f"{'[' if closed[0] else '('}{low:g}, {high:g}{']' if closed[1] else ')'}"
        raise InvalidProblem(f"{name} is {result:g}; it must be in {interval}")
    return result


def whole(name: str, value: Any, low: int) -> int:
    """One integer, at least `low`."""
    try:
        result = operator.index(value)
    except TypeError:
        raise InvalidProblem(f"{name} is {value!r}; it must be a whole number") from None
    if isinstance(value, bool | np.bool_):
        raise InvalidProblem(f"{name} is {value!r}; it must be a whole number")
    if result < low:
        raise InvalidProblem(f"{name} is {result}; it must be at least {low}")
    return result


def distribution(name: str, values: Floats, error: type[SaverError]) -> Floats:
    """`values`, whose last axis holds probabilities that sum to 1."""
    within(name, values, 0.0, error=error)
    sums = values.sum(axis=-1)
    bad = np.argwhere(np.abs(sums - 1.0) > SUM_TOLERANCE * values.shape[-1])
    if len(bad):
        row = tuple(bad[0])
        raise error(f"{name}{_at(bad[0])} sums to {sums[row]:.10g}; probabilities must sum to 1")
    return values


def policy(mdp: Mdp, value: ArrayLike, name: str = "policy") -> Floats:
    """A policy of `mdp`: (S, A), or time-indexed (L, S, A)."""
    result = array(name, value, InvalidPolicy)
    shape = (mdp.states, mdp.actions)
    if result.shape not in (shape, (mdp.horizon, *shape)):
        if result.ndim in (2, 3) and result.shape[-1] > mdp.actions:
            raise InvalidPolicy(
                f"{name} has {result.shape[-1]} actions but the model has {mdp.actions}: "
                f"action {mdp.actions} is missing from the model"
            )
        raise InvalidPolicy(
            f"{name} has shape {result.shape}; it must be {shape}, or {(mdp.horizon, *shape)} "
            "where it depends on the step"
        )
    distribution(name, result, InvalidPolicy)
    bad = np.argwhere((result > 0) & ~mdp.available)
    if len(bad):
        state, action = bad[0][-2:]
        raise InvalidPolicy(
            f"{name} gives weight {result[tuple(bad[0])]:g} to {mdp.action_label(action)} in "
            f"{mdp.state_label(state)}, where that action is missing; set it to 0 or make it available"
        )
    return result


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy, so that neither side can change the other."""
    copy = values.copy()
    copy.setflags(write=False)
    return copy


def trajectory(
    mdp: Mdp, states: ArrayLike, actions: ArrayLike, *values: tuple[str, ArrayLike]
) -> tuple[Ints, Ints, list[Floats]]:
    """One episode as equal-length sequences, possible under the transitions of `mdp`."""
    s = _indices("states", states, mdp.states)
    a = _indices("actions", actions, mdp.actions)
    columns = [array(name, column, InvalidData) for name, column in values]
    for name, column in [("actions", a), *zip([n for n, _ in values], columns, strict=True)]:
        if column.shape != s.shape:
            raise InvalidData(
                f"{name} has shape {column.shape} but states has {s.shape}; they must be equally long"
            )
    if not 1 <= len(s) <= mdp.horizon:
        raise InvalidData(f"the episode has {len(s)} steps; it must have 1 to {mdp.horizon}, the horizon")
    mdp.check_path(s, a)
    return s, a, columns


def _indices(name: str, value: ArrayLike, count: int) -> Ints:
    raw = np.asarray(value)
    if raw.ndim != 1 or (raw.size and not np.issubdtype(raw.dtype, np.integer)):
        raise InvalidData(f"{name} must be a sequence of whole numbers, got {value!r}")
    bad = np.flatnonzero([not 0 <= index < count for index in raw])
    if len(bad):
        raise InvalidData(f"{name}[{bad[0]}] is {raw[bad[0]]}; it must be from 0 to {count - 1}")
    return raw.astype(np.int64)


def _at(index: NDArray[Any]) -> str:
    return f"[{', '.join(str(i) for i in index)}]" if len(index) else ""
