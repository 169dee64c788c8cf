"""Labels of states and actions: what may be said in the place of a number. A text is always a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saver._types import Ints
from saver.errors import InvalidData, SaverError, nearest

INTEGERS = (int, np.integer)


class Labels:
    """The names of the states, or of the actions, of a model, which may have none.

    Attributes:
        kind: "state" or "action".
        names: in order of their numbers, or None.
    """

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
        if _with_labels(given):
            return np.array([str(x) if isinstance(x, str) else int(x) for x in given], dtype=object)
    if raw.ndim != 1 or (raw.size and raw.dtype.kind not in "iu"):
        raise InvalidData(f"{name} must be a sequence of whole numbers, or of labels, got {value!r}")
    if raw.dtype.kind == "u" and raw.size and raw.max() > np.iinfo(np.int64).max:
        raise InvalidData(f"{name} holds {raw.max()}, which is no index")
    return raw.astype(np.int64)


def _with_labels(given: list[Any]) -> bool:
    """Whether labels, and beside them whole numbers only, are among these."""
    rest = [item for item in given if not isinstance(item, str)]
    return len(rest) < len(given) and all(
        isinstance(item, INTEGERS) and not isinstance(item, bool) for item in rest
    )
