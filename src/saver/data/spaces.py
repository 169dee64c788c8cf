"""The elements of a finite Gymnasium space as numbers from 0, and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from saver.data.gym import gymnasium
from saver.errors import InvalidData, InvalidProblem


class Numbering:
    """A `Discrete`, `MultiDiscrete` or `MultiBinary` space, or a `Tuple` or `Dict` of these.

    Attributes:
        count: how many elements there are.
        names: one for each, as Python writes it; None where an element is its number.
    """

    def __init__(self, space: Any, what: str) -> None:
        self._space, self._what = space, what
        parts = list(_parts(space, what))
        self._first = np.array([first for first, _ in parts], dtype=np.int64)
        self._sizes = tuple(size for _, size in parts)
        self.count = math.prod(self._sizes)
        self._plain = isinstance(space, gymnasium("spaces").Discrete)
        self._same = self._plain and not self._first.any()

    @property
    def names(self) -> tuple[str, ...] | None:
        """As Python writes the elements."""
        if self._same:
            return None
        return tuple(_text(self.element(number)) for number in range(self.count))

    def number(self, element: Any) -> int:
        """Of an element."""
        if self._plain:
            place = int(element) - int(self._first[0])
            if not 0 <= place < self.count:
                raise InvalidData(f"{self._what} is {element}, which is not in {self._space}")
            return place
        flat = np.array(list(_flat(self._space, element)), dtype=np.int64) - self._first
        if np.any((flat < 0) | (flat >= self._sizes)):
            raise InvalidData(f"{self._what} is {element}, which is not in {self._space}")
        return int(np.ravel_multi_index(tuple(flat), self._sizes))

    def element(self, number: int) -> Any:
        """Of a number."""
        if self._plain:
            return number + int(self._first[0])
        flat = np.array(np.unravel_index(number, self._sizes)) + self._first
        return _build(self._space, iter(flat.tolist()))


def _parts(space: Any, what: str) -> Iterator[tuple[int, int]]:
    """The first element and the size of each finite part."""
    spaces = gymnasium("spaces")
    if isinstance(space, spaces.Discrete):
        yield int(space.start), int(space.n)
    elif isinstance(space, spaces.MultiDiscrete):
        yield from zip(space.start.ravel().tolist(), space.nvec.ravel().tolist(), strict=True)
    elif isinstance(space, spaces.MultiBinary):
        yield from [(0, 2)] * math.prod(space.shape)
    elif isinstance(space, spaces.Tuple | spaces.Dict):
        for inner in _inner(space):
            yield from _parts(inner, what)
    else:
        raise InvalidProblem(
            f"the {what} space is {space}; saver needs finitely many: wrap the environment, by "
            f"gymnasium.wrappers.Transform{what.capitalize()} with a Discrete space"
        )


def _inner(space: Any) -> Any:
    return space.spaces if isinstance(space, gymnasium("spaces").Tuple) else space.spaces.values()


def _flat(space: Any, element: Any) -> Iterator[int]:
    """The parts of an element."""
    spaces = gymnasium("spaces")
    if isinstance(space, spaces.Tuple):
        for inner, part in zip(space.spaces, element, strict=True):
            yield from _flat(inner, part)
    elif isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            yield from _flat(inner, element[key])
    else:
        yield from np.ravel(element).tolist()


def _build(space: Any, flat: Iterator[int]) -> Any:
    """The element of these parts."""
    spaces = gymnasium("spaces")
    if isinstance(space, spaces.Tuple):
        return tuple(_build(inner, flat) for inner in space.spaces)
    if isinstance(space, spaces.Dict):
        return {key: _build(inner, flat) for key, inner in space.spaces.items()}
    if isinstance(space, spaces.Discrete):
        return next(flat)
    found = [next(flat) for _ in range(math.prod(space.shape))]
    return np.array(found, dtype=space.dtype).reshape(space.shape)


def _text(element: Any) -> str:
    """Short, and the same whatever kind of integer it holds."""
    if isinstance(element, np.ndarray):
        return str(element.tolist())
    if isinstance(element, tuple):
        return f"({', '.join(_text(part) for part in element)})"
    if isinstance(element, dict):
        return f"{{{', '.join(f'{key}: {_text(part)}' for key, part in element.items())}}}"
    return str(element)
