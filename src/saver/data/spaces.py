"""Gymnasium, imported when it is used: environments by ids, finite spaces in numbers, what steps show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from saver.data.sources import needed
from saver.errors import InvalidData, InvalidProblem, no_such

BARE = "gymnasium.make(..., max_episode_steps={})"
REWARD = "reward"  # the name by which the reward itself is guarded
CONSTRAINTS = "constraints"  # the entry of `info` that is read where nothing else is said


def gymnasium(part: str = "") -> Any:
    """Gymnasium, or a part of it such as "vector.utils"."""
    return needed(f"gymnasium.{part}" if part else "gymnasium", "this", "gym")


@contextmanager
def opened(env: Any, vector: bool = False) -> Iterator[Any]:
    """An environment as it is, or one that is made by its id and closed again; a `vector` if that will do."""
    made = gymnasium()
    found = made.make(env) if isinstance(env, str) else env
    if not isinstance(found, (made.Env, made.vector.VectorEnv) if vector else made.Env):
        more = ", or a vector of them" if vector else ""
        raise InvalidProblem(
            f"env is a {type(env).__name__}; it must be a gymnasium.Env, or the id of one{more}"
        )
    try:
        yield found
    finally:
        if isinstance(env, str):
            found.close()


def steps_of(env: Any) -> int | None:
    """After how many steps an environment stops by itself; None where nothing is said."""
    longest = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    return None if longest is None else int(longest)


class Numbering:
    """The `element`s of a space by their `number`s from 0, and back.

    A `Discrete`, `MultiDiscrete` or `MultiBinary` space, or a `Tuple` or `Dict` of these.
    """

    def __init__(self, space: Any, what: str) -> None:
        self.space, self.what, self.parts = space, what, list(_parts(space, what))
        self.count = math.prod(size for _, size in self.parts)  # of elements
        self.plain = isinstance(space, gymnasium("spaces").Discrete)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The elements as Python writes them; None where each is its number."""
        if self.plain and self.parts[0][0] == 0:
            return None
        return tuple(_text(self.element(number)) for number in range(self.count))

    def number(self, element: Any) -> int:
        number, flat = 0, [element] if self.plain else _flat(self.space, element)
        for part, (first, size) in zip(flat, self.parts, strict=True):
            place = int(part) - first
            if not 0 <= place < size:
                raise InvalidData(f"{self.what} is {element}, which is not in {self.space}")
            number = number * size + place
        return number

    def element(self, number: int) -> Any:
        flat = []
        for first, size in reversed(self.parts):
            number, place = divmod(number, size)
            flat.append(first + place)
        return flat[0] if self.plain else _build(self.space, iter(flat[::-1]))


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
        for inner in space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces:
            yield from _parts(inner, what)
    else:
        raise InvalidProblem(
            f"the {what} space is {space}; saver needs finitely many: wrap the environment, by "
            f"gymnasium.wrappers.Transform{what.capitalize()} with a Discrete space"
        )


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


# -- what each step shows of what is guarded --


class Step(NamedTuple):
    """One step as the environment gives it."""

    state: Any
    action: Any
    reward: float
    next_state: Any
    terminated: bool
    info: Mapping[str, Any]


Watch = Callable[[Any, Any, float, Any, bool, Any], float]
Guardrails = str | Watch | Mapping[str, str | Watch] | None
STEP = "(state, action, reward, next_state, terminated, info)"


class Watched:
    """The `guardrails` of `play`: functions of a step, or names of entries of its `info`."""

    def __init__(self, given: Any) -> None:
        self.given, self.several = given, isinstance(given, Mapping)
        self.by_name = dict(given) if self.several else {} if given is None else {"": given}
        for name, one in self.by_name.items():
            if not (isinstance(one, str) or callable(one)):
                raise InvalidProblem(
                    f"{self._place(name)} is {one!r}; it must be a function of {STEP}, the name of an entry "
                    f"of info, or {REWARD!r}"
                )
        read = [CONSTRAINTS] if given is None else self.by_name.values()
        self.entries = tuple(one for one in read if isinstance(one, str))  # of `info`, that are read

    def _place(self, name: str) -> str:
        return f"guardrails[{name!r}]" if self.several else "guardrails"

    def check(self, names: list[str]) -> None:
        """Refuse, before anything is run, other guardrails than a problem has."""
        said = ", ".join(names)
        if self.several:
            for name in self.by_name:
                if name not in names:
                    raise no_such("guardrail", name, names)
            if lost := [name for name in names if name not in self.by_name]:
                raise InvalidProblem(
                    f"guardrails has no {lost[0]!r}; the problem guards {said}: give one for each"
                )
        elif self.given is not None and len(names) > 1:
            raise InvalidProblem(f"guardrails is one, and the problem guards {said}; give {{name: function}}")

    def see(self, step: Step) -> Any:
        """What a step shows: a number, {name: number}, or None where nothing is guarded."""
        if self.given is None:
            found = step.info.get(CONSTRAINTS)
            return dict(found) if isinstance(found, Mapping) else found
        seen = {name: self._one(name, watch, step) for name, watch in self.by_name.items()}
        return seen if self.several else seen[""]

    def _one(self, name: str, watch: str | Watch, step: Step) -> float:
        if not callable(watch) and watch not in step.info:
            if watch == REWARD:
                return step.reward
            known = ", ".join(step.info) or "nothing"
            raise InvalidData(f"{self._place(name)} is {watch!r}, and info has no such entry; it has {known}")
        found = watch(*step) if callable(watch) else step.info[watch]
        try:
            return float(found)
        except (TypeError, ValueError):
            raise InvalidData(f"{self._place(name)} gave {found!r}; it must give a number") from None


def columns(seen: list[Any]) -> Any:
    """Of the steps of an episode: one sequence, or {name: sequence}, or None."""
    if all(item is None for item in seen):
        return None
    if isinstance(seen[0], dict):
        return {name: [item[name] for item in seen] for name in seen[0]}
    return seen
