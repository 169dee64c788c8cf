"""Gymnasium, imported when it is used, and environments by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from saver.data.needed import needed
from saver.errors import InvalidProblem


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
