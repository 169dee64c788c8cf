"""User input is checked here, once, at the boundary; what is inside trusts it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saver._jit import brief
from saver._types import Floats
from saver.errors import InvalidPolicy, InvalidProblem, SaverError

SUM_TOLERANCE = 1e-8  # of a probability row, times its length
LARGEST_TOLERANCE = 1e-4
EXACT = 1e-12  # a row further from 1 than this is normalised, so that no mass is made or lost over many steps
LARGEST = 1e100  # magnitudes beyond it overflow when squared and summed


def show(value: Any) -> str:
    """A number with as many digits as it needs, and no more."""
    short = f"{value:g}"
    return short if math.isnan(value) or float(short) == value else repr(float(value))


def read_only(values: Any) -> Any:
    """The same numbers, in one piece and read-only: compiled code is made anew for each kind of array."""
    view = np.ascontiguousarray(values).view()
    view.setflags(write=False)
    return view


@brief
def lawful(rows: Any, available: Any, exact: float) -> bool:
    """Whether [S, A], or [steps, S, A] as [steps * S, A], holds distributions over the available actions."""
    S = len(available)
    for i in range(len(rows)):
        total = 0.0
        for a in range(rows.shape[1]):
            x = rows[i, a]
            if not x >= 0.0 or (x > 0.0 and not available[i % S, a]):
                return False
            total += x
        if not abs(total - 1.0) <= exact:
            return False
    return True


@brief
def below(values: Any, most: float) -> bool:
    """Whether no magnitude is above, and none is missing."""
    for value in values:  # noqa: SIM110  (a generator is slow here)
        if not abs(value) <= most:
            return False
    return True


def places(bad: Any) -> Any:
    """Where it is true; nearly always nowhere, which is found sooner."""
    return np.argwhere(bad) if bad.any() else ()


def array(name: str, value: ArrayLike, error: type[SaverError] = InvalidProblem) -> Floats:
    """`value` as finite floats; not copied where it already is."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise error(f"{name} has masked entries; fill or drop them")
    try:
        raw = np.asarray(value)
        if raw.dtype.kind == "O" and not all(isinstance(item, Real) for item in raw.ravel()):
            raise TypeError("not all entries are numbers")
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"its entries are {raw.dtype}")
        result = raw.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as cause:
        raise error(f"{name} must be an array of numbers: {cause}") from None
    if result.ndim == 1 and below(result, LARGEST):
        return result
    bad = places(~(np.abs(result) <= LARGEST))
    if len(bad):
        raise error(
            f"{name}{at(bad[0])} is {result[tuple(bad[0])]:g}; every entry must be a finite number of "
            f"magnitude at most {LARGEST:g}: rescale it"
        )
    return result


def shaped(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """`array` of exactly this shape."""
    result = array(name, value)
    if result.shape != shape:
        raise InvalidProblem(f"{name} has shape {result.shape}; it must be {shape}")
    return result


def table(name: str, value: ArrayLike, wanted: str = "(states, actions)") -> Floats:
    """`array` of a number for each pair, as a copy that cannot be written."""
    result = array(name, value)
    if result.ndim != 2 or not result.size:
        raise InvalidProblem(f"{name} has shape {result.shape}; it must be {wanted}")
    return frozen(result)


def within(
    name: str, values: Floats, low: float, high: float = math.inf, error: type[SaverError] = InvalidProblem
) -> Floats:
    """`values`, all of them from `low` to `high`."""
    bad = places((values < low) | (values > high))
    if len(bad):
        wanted = f"at least {low:g}" if high == math.inf else f"in [{low:g}, {high:g}]"
        raise error(f"{name}{at(bad[0])} is {show(values[tuple(bad[0])])}; it must be {wanted}")
    return values


def number(name: str, value: Any) -> float:
    """One finite float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InvalidProblem(f"{name} is {value!r}; it must be a number")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not abs(result) <= LARGEST:
        raise InvalidProblem(
            f"{name} is {result}; it must be finite, of magnitude at most {LARGEST:g}: rescale it"
        )
    return result


def positive(name: str, value: Any) -> float:
    """One positive float."""
    result = number(name, value)
    if result <= 0.0:
        raise InvalidProblem(f"{name} is {show(result)}; it must be positive")
    return result


def numbers(name: str, value: Any, count: int) -> tuple[float, ...]:
    """Exactly `count` finite floats."""
    if not isinstance(value, Sequence | np.ndarray) or len(value) != count:
        raise InvalidProblem(f"{name} is {value!r}; it must hold {count} numbers")
    return tuple(number(f"{name}[{i}]", item) for i, item in enumerate(value))


def between(name: str, value: Any, low: float, high: float, *, closed: tuple[bool, bool]) -> float:
    """One float in the interval from `low` to `high`; `closed` says which ends belong to it."""
    result = number(name, value)
    above = result >= low if closed[0] else result > low
    below = result <= high if closed[1] else result < high
    if not (above and below):
        interval = f"{'[' if closed[0] else '('}{low:g}, {high:g}{']' if closed[1] else ')'}"
        raise InvalidProblem(f"{name} is {show(result)}; it must be in {interval}")
    return result


def whole(
    name: str, value: Any, low: int, high: int = 10**9, error: type[SaverError] = InvalidProblem
) -> int:
    """One integer from `low` to `high`."""
    try:
        result = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        result = None
    if result is None:
        raise error(f"{name} is {value!r}; it must be a whole number")
    if result < low:
        raise error(f"{name} is {result}; it must be at least {low}")
    if result > high:
        raise error(f"{name} is {result}; it must be at most {high}")
    return result


def choice(name: str, value: Any, known: Iterable[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in known:
        raise InvalidProblem(f"{name} is {value!r}; it must be one of {', '.join(known)}")
    return value


def by_name(name: str, given: Mapping[Any, Any], kind: str, taken: str = "") -> None:
    """Refuse {name: one of a kind} with other names than texts, or without any."""
    if not given:
        raise InvalidProblem(f"{name} has no {kind}; give one, or {{name: {kind}}}")
    for key in given:
        if not isinstance(key, str) or not key or key == taken:
            more = f", and not {taken!r}, which is taken" if taken else ""
            raise InvalidProblem(f"{name} has the name {key!r}; a name must be a text{more}")


def flag(name: str, value: Any) -> None:
    """Yes or no."""
    if not isinstance(value, bool):
        raise InvalidProblem(f"{name} is {value!r}; it must be True or False")


def kind(name: str, value: Any, wanted: type) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, wanted):
        raise InvalidProblem(f"{name} is {type(value).__name__}; it must be a saver.{wanted.__name__}")


def tolerance(length: Any) -> Any:
    """How far the sum of `length` probabilities may be from 1."""
    return np.minimum(SUM_TOLERANCE * np.maximum(length, 1), LARGEST_TOLERANCE)


def distribution(name: str, values: Floats, error: type[SaverError]) -> Floats:
    """`values`, whose last axis holds probabilities that sum to 1."""
    within(name, values, 0.0, error=error)
    sums = values.sum(axis=-1)
    bad = places(np.abs(sums - 1.0) > tolerance(values.shape[-1]))
    if len(bad):
        row = tuple(bad[0])
        raise error(f"{name}{at(bad[0])} sums to {sums[row]:.10g}; probabilities must sum to 1")
    return values


def model(mdp: Any, known: bool = True) -> None:
    """Refuse what is no `Mdp`, nor, where transitions need not be `known`, an `Unknown`."""
    from saver.problem.model import Model

    if not isinstance(mdp, Model):
        more = "" if known else ", or a saver.Unknown"
        raise InvalidProblem(f"mdp is {type(mdp).__name__}; it must be a saver.Mdp{more}")
    if known and not mdp.known:
        raise InvalidProblem("mdp is a saver.Unknown; this needs known transitions: give a saver.Mdp")


def policy(mdp: Any, value: ArrayLike, name: str = "policy", known: bool = True) -> Floats:
    """A policy of `mdp`: (S, A), or time-indexed (L, S, A); of an `Unknown` if it need not be `known`."""
    model(mdp, known)
    shape = (mdp.states, mdp.actions)
    shapes = (shape, (mdp.horizon, *shape))
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.shape in shapes:
        given: Floats = value
        if lawful(read_only(given.reshape(-1, mdp.actions)), read_only(mdp.available), EXACT):
            return given  # nearly always, and found sooner
    result = array(name, value, InvalidPolicy)
    if result.shape not in shapes:
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
    bad = places((result > 0) & ~mdp.available)
    if len(bad):
        state, action = bad[0][-2:]
        raise InvalidPolicy(
            f"{name} gives weight {result[tuple(bad[0])]:g} to {mdp.action_label(action)} in "
            f"{mdp.state_label(state)}, where that action is missing; set it to 0 or make it available"
        )
    sums = result.sum(axis=-1, keepdims=True)
    return result if np.all(np.abs(sums - 1.0) <= EXACT) else result / sums


class Frozen:
    """Read-only arrays stay read-only in a copy and in another process."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy, so that neither side can change the other."""
    copy = values.copy()
    copy.setflags(write=False)
    return copy


def at(index: NDArray[Any]) -> str:
    """A place in an array, as one writes it."""
    return f"[{', '.join(str(i) for i in index)}]" if len(index) else ""


def child_seed(seed: int | np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """The child of a seed at `key`; the caller's stays as it is. Streams are passed in, never global."""
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(whole("seed", seed, 0, 2**128))
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))
