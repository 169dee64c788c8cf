"""The cells of a table -> numbers, codes of labels, policies; what is broken is named by its place."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.data.sources import FLAG, LABEL, NUMBER, WHOLE, Source, open_source
from saver.errors import InvalidData, InvalidPolicy
from saver.problem.checks import LARGEST, tolerance

MOST = 10**6  # different labels of states, or of actions
META = b"saver"  # where tables that were written here keep their labels
COLUMNS = {"state": LABEL, "action": LABEL, "probability": NUMBER}  # of a policy


class Labels:
    """The labels met so far, in the order in which they were met; a missing one is -1."""

    def __init__(self, known: Sequence[str] = (), most: int = MOST) -> None:
        self.codes = {label: code for code, label in enumerate(known)}
        self.most, self.given = most, len(self.codes)

    def encode(self, place: str, array: Any) -> Ints:
        """The codes of an Arrow array of texts or whole numbers."""
        from pyarrow import compute, types

        if not types.is_dictionary(array.type):
            array = compute.dictionary_encode(_texts(place, array))
        try:
            words = _texts(place, array.dictionary).to_pylist()
        except UnicodeDecodeError:
            raise InvalidData(f"{place}: it has labels that are not UTF-8") from None
        codes = self.codes
        known = [-1 if word is None else codes.setdefault(word, len(codes)) for word in words]
        if len(codes) > self.most:
            raise InvalidData(f"{place}: it has more than {self.most:,} different labels")
        found = array.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        if len(found) and not 0 <= int(found.min()) <= int(found.max()) <= len(words):
            raise InvalidData(f"{place}: it has codes without a label: it was damaged")
        return np.array([*known, -1], dtype=np.int64)[found]

    def sorted(self) -> tuple[tuple[str, ...], Ints]:
        """All labels in order, numbers by size, and the new code of each old one; given ones come first."""
        words = list(self.codes)
        first, rest = words[: self.given], words[self.given :]
        rest.sort(key=int if all(map(is_number, rest)) else None)
        labels = (*first, *rest)
        codes = {label: code for code, label in enumerate(labels)}
        return labels, np.array([codes[word] for word in words], dtype=np.int64)


def _texts(place: str, array: Any) -> Any:
    """Labels as text; numbers must be whole, because equal labels must look equal."""
    import pyarrow as arrow
    from pyarrow import compute

    if arrow.types.is_floating(array.type):
        array = compute.if_else(compute.is_nan(array), None, array)
        if compute.any(compute.not_equal(array, compute.floor(array))).as_py():
            raise InvalidData(f"{place}: it has broken numbers; labels must be texts or whole numbers")
        array = compute.cast(array, arrow.int64())
    elif not _is(array.type, "integer", "boolean", "string", "large_string", "string_view", "null"):
        raise InvalidData(f"{place}: it has the type {array.type}; labels must be texts or whole numbers")
    return compute.cast(array, arrow.string())


def _is(kind: Any, *names: str) -> bool:
    """Whether an Arrow type is one of these."""
    from pyarrow import types

    return any(getattr(types, f"is_{name}")(kind) for name in names)


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


def numbers(source: Source, before: int, column: str, array: Any, kind: str, may_miss: bool = False) -> Any:
    """An Arrow array of the rows after so many, as finite numbers, all of them there or `may_miss`."""
    import pyarrow as arrow
    from pyarrow import compute

    if arrow.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not _is(array.type, "null", "boolean", "primitive", "decimal") or _is(array.type, "temporal"):
        raise source.wrong(before, column, f"it has the type {array.type}; it must hold numbers")
    if arrow.types.is_boolean(array.type):
        array = compute.cast(array, arrow.int8())
    found = compute.cast(array, arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    wrong = np.abs(found) > LARGEST if may_miss else ~(np.abs(found) <= LARGEST)
    if kind != NUMBER:
        wrong |= found != np.floor(found)
    if kind == FLAG:
        wrong |= (found != 0.0) & (found != 1.0)
    if len(bad := np.flatnonzero(wrong)):
        at = int(bad[0])
        shown = "missing" if array[at].as_py() is None else f"{found[at]:g}"
        wanted = {WHOLE: "a whole number", FLAG: "True or False"}.get(kind, "a finite number")
        raise source.wrong(before + at, column, f"it is {shown}; it must be {wanted}")
    return found.astype(np.int32) if kind == WHOLE and np.all(np.abs(found) < 2**31) else found


def read_policy(source: Any, model: Any, several: bool = False) -> Any:
    """A policy of a model with labels, [S, A]: an array as it is, or a table; or `several`, {name: either}.

    A table has the columns state, action, probability; what it leaves out has probability 0. Terminal states,
    which come last, need no row.
    """
    states, ends = model.state_names, len(model.terminal)
    acting = len(states) - ends
    if not _is_table(source):
        if several and isinstance(source, Mapping):
            return {name: read_policy(one, model) for name, one in source.items()}
        table = np.asarray(source)
        given = ends and table.ndim in (2, 3) and table.shape[-2] == acting
        return _with_ends(table, ends) if given else source
    opened = open_source(source, COLUMNS)
    cells = [cell for batch in opened.batches() for cell in _cells(opened, batch)]
    codes = {
        column: {label: code for code, label in enumerate(names)}
        for column, names in (("state", states), ("action", model.action_names))
    }
    found = np.full((len(states), model.actions), np.nan)
    for row, (state, action, probability) in enumerate(cells):
        for column, word in (("state", state), ("action", action)):
            if word not in codes[column]:
                raise opened.wrong(row, column, _unknown(column, word, list(codes[column])))
        at = codes["state"][state], codes["action"][action]
        if not np.isnan(found[at]):
            raise opened.wrong(row, "probability", f"{action!r} in {state!r} has two rows")
        if probability is None or not 0.0 <= probability <= 1.0:
            raise opened.wrong(row, "probability", f"it is {probability}; it must be in [0, 1]")
        found[at] = probability
    policy = np.nan_to_num(found[:acting])
    _check_sums(opened.name, policy, states)
    return _with_ends(policy, ends)


def _is_table(source: Any) -> bool:
    if isinstance(source, Mapping):
        return set(COLUMNS) <= set(source)
    return isinstance(source, str | os.PathLike) or hasattr(source, "__arrow_c_stream__")


def _cells(opened: Source, batch: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(state, action, probability) of each row, as text and number."""
    import pyarrow as arrow

    columns = []
    for column in ("state", "action"):
        labels = Labels()
        codes = labels.encode(f"{opened.name}, column {column!r}", batch.column(column))
        words = [*labels.codes, None]
        columns.append([words[code] for code in codes])
    try:
        chances = batch.column("probability").cast(arrow.float64()).to_pylist()
    except arrow.ArrowException as cause:
        raise InvalidData(f"{opened.name}, column 'probability': {cause}") from None
    return zip(*columns, chances, strict=True)


def _unknown(kind: str, word: Any, known: list[str]) -> str:
    near = difflib.get_close_matches(str(word), known, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    shown = ", ".join(known[:20])
    return f"there is no {kind} {word!r} in the log; {hint}known: {shown}; others are added by new_{kind}s"


def _check_sums(name: str, policy: Floats, states: Sequence[str]) -> None:
    sums = policy.sum(axis=1)
    if len(lost := np.flatnonzero(sums == 0.0)):
        more = f" and {len(lost) - 1} other states" if len(lost) > 1 else ""
        raise InvalidPolicy(f"{name} has no row for state {states[lost[0]]!r}{more}; say what is done there")
    if len(bad := np.flatnonzero(np.abs(sums - 1.0) > tolerance(policy.shape[1]))):
        raise InvalidPolicy(
            f"{name}: the probabilities in {states[bad[0]]!r} sum to {sums[bad[0]]:.10g}, not 1"
        )


def _with_ends(table: Any, ends: int) -> Floats:
    """The same with any row for states in which nothing is done."""
    rows = np.zeros((*table.shape[:-2], ends, table.shape[-1]))
    rows[..., 0] = 1.0
    return np.concatenate([table, rows], axis=-2)
