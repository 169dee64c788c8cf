"""Labels of states, actions and episodes as numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from saver._types import Ints
from saver.data.needed import needed
from saver.errors import InvalidData

MOST = 10**6  # different labels of states, or of actions
META = b"saver"  # where tables that were written here keep their labels


class Labels:
    """The labels met so far, in the order in which they were met; a missing one is -1."""

    def __init__(self, known: Sequence[str] = (), most: int = MOST) -> None:
        self.codes = {label: code for code, label in enumerate(known)}
        self.most, self.given = most, len(self.codes)

    def encode(self, array: Any) -> Ints:
        """The codes of an Arrow array of texts or whole numbers."""
        arrow, compute = needed("pyarrow", "reading labels"), needed("pyarrow.compute", "reading labels")
        if not arrow.types.is_dictionary(array.type):
            array = compute.dictionary_encode(_texts(arrow, compute, array))
        try:
            words = _texts(arrow, compute, array.dictionary).to_pylist()
        except UnicodeDecodeError:
            raise InvalidData("it has labels that are not UTF-8") from None
        codes = self.codes
        place = np.fromiter(
            (-1 if word is None else codes.setdefault(word, len(codes)) for word in words),
            np.int64,
            len(words),
        )
        if len(codes) > self.most:
            raise InvalidData(f"it has more than {self.most:,} different labels")
        found = array.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        if len(found) and not 0 <= int(found.min()) <= int(found.max()) <= len(words):
            raise InvalidData("it has codes without a label: it was damaged")
        result: Ints = np.append(place, -1)[found]
        return result

    def odd(self) -> list[int]:
        """The codes of texts where the first label is a whole number, and the other way around."""
        kinds = [is_number(word) for word in self.codes]
        return [code for code, kind in enumerate(kinds) if kind != kinds[0]]

    def sorted(self) -> tuple[tuple[str, ...], Ints]:
        """All labels in order, numbers by size, and the new code of each old one; given ones come first."""
        words = list(self.codes)
        first, rest = words[: self.given], words[self.given :]
        rest.sort(key=int if all(map(is_number, rest)) else None)
        labels = (*first, *rest)
        codes = {label: code for code, label in enumerate(labels)}
        return labels, np.array([codes[word] for word in words], dtype=np.int64)


def _texts(arrow: Any, compute: Any, array: Any) -> Any:
    """Labels as text; numbers must be whole, because equal labels must look equal."""
    kind, types = array.type, arrow.types
    if types.is_floating(kind):
        array = compute.if_else(compute.is_nan(array), None, array)
        if compute.any(compute.not_equal(array, compute.floor(array))).as_py():
            raise InvalidData("it has broken numbers; labels must be texts or whole numbers")
        array = compute.cast(array, arrow.int64())
    elif not (
        types.is_integer(kind) or types.is_boolean(kind) or types.is_string(kind)
        or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind)
    ):  # fmt: skip
        raise InvalidData(f"it has the type {kind}; labels must be texts or whole numbers")
    return compute.cast(array, arrow.string())


def is_number(word: str) -> bool:
    """Whether a label is a whole number as one writes it."""
    return (word.removeprefix("-").isdecimal() and str(int(word)) == word) if word.isascii() else False


def kept(meta: Any, name: str) -> list[str]:
    """The labels that a table says it was written with."""
    try:
        found = json.loads(meta[META])[name]
    except (KeyError, TypeError, ValueError):
        return []
    plain = isinstance(found, list) and len(found) <= MOST and all(isinstance(item, str) for item in found)
    return found if plain and len(set(found)) == len(found) else []


def told(states: Sequence[str], actions: Sequence[str]) -> dict[bytes, bytes]:
    """What `kept` reads."""
    return {META: json.dumps({"states": list(states), "actions": list(actions)}).encode()}
