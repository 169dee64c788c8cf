"""Policies as users have them: arrays, or tables of (state, action, probability) in labels."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from saver._types import Floats
from saver.data.naming import Labels
from saver.data.needed import needed
from saver.data.sources import LABEL, NUMBER, open_source
from saver.errors import InvalidData, InvalidPolicy
from saver.problem.checks import tolerance

COLUMNS = {"state": LABEL, "action": LABEL, "probability": NUMBER}


def read_policy(source: Any, states: Sequence[str], actions: Sequence[str], ends: int = 0) -> Any:
    """A policy for these labels, [S, A]: an array as it is, or a table; the last `ends` states need no row.

    A table has the columns state, action, probability; what it leaves out has probability 0.
    """
    if not _is_table(source):
        table = np.asarray(source)
        if ends and table.ndim in (2, 3) and table.shape[-2] == len(states) - ends:
            return _with_ends(table, ends)
        return source
    opened = open_source(source, COLUMNS)
    parts = [_rows(opened, batch) for batch in opened.batches]
    codes = {"state": _known(states), "action": _known(actions)}
    found, seen, row = np.zeros((len(states), len(actions))), np.zeros((len(states), len(actions)), bool), 0
    for state, action, probability in (cells for part in parts for cells in part):
        for column, word in (("state", state), ("action", action)):
            if word not in codes[column]:
                raise opened.wrong(row, column, _unknown(column, word, codes[column]))
        at = codes["state"][state], codes["action"][action]
        if seen[at]:
            raise opened.wrong(row, "probability", f"{action!r} in {state!r} has two rows")
        if probability is None or not 0.0 <= probability <= 1.0:
            raise opened.wrong(row, "probability", f"it is {probability}; it must be in [0, 1]")
        found[at], seen[at], row = probability, True, row + 1
    return _checked(opened.name, found, states, ends)


def read_policies(source: Any, states: Sequence[str], actions: Sequence[str], ends: int = 0) -> Any:
    """One policy, or several by name."""
    if isinstance(source, Mapping) and not _is_table(source):
        return {name: read_policy(one, states, actions, ends) for name, one in source.items()}
    return read_policy(source, states, actions, ends)


def _is_table(source: Any) -> bool:
    if isinstance(source, Mapping):
        return set(COLUMNS) <= set(source)
    return isinstance(source, str | os.PathLike) or hasattr(source, "__arrow_c_stream__")


def _known(labels: Sequence[str]) -> dict[str, int]:
    return {label: code for code, label in enumerate(labels)}


def _rows(opened: Any, batch: Any) -> Any:
    """(state, action, probability) of each row, as text and number."""
    arrow, compute = needed("pyarrow", "reading a policy"), needed("pyarrow.compute", "reading a policy")
    columns: list[list[Any]] = []
    for column in ("state", "action"):
        labels = Labels()
        try:
            codes = labels.encode(batch.column(column))
        except InvalidData as cause:
            raise InvalidData(f"{opened.name}, column {column!r}: {cause}") from None
        words = [*labels.codes, None]
        columns.append([words[code] for code in codes])
    try:
        numbers = compute.cast(batch.column("probability"), arrow.float64()).to_pylist()
    except arrow.ArrowException as cause:
        raise InvalidData(f"{opened.name}, column 'probability': {cause}") from None
    return zip(*columns, numbers, strict=True)


def _unknown(kind: str, word: Any, known: Mapping[str, int]) -> str:
    near = difflib.get_close_matches(str(word), list(known), 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    shown = ", ".join(list(known)[:20])
    return f"there is no {kind} {word!r} in the log; {hint}known: {shown}; others are added by new_{kind}s"


def _checked(name: str, found: Floats, states: Sequence[str], ends: int) -> Floats:
    sums = found.sum(axis=1)[: len(states) - ends]
    if len(lost := np.flatnonzero(sums == 0.0)):
        more = f" and {len(lost) - 1} other states" if len(lost) > 1 else ""
        raise InvalidPolicy(f"{name} has no row for state {states[lost[0]]!r}{more}; say what is done there")
    if len(bad := np.flatnonzero(np.abs(sums - 1.0) > tolerance(found.shape[1]))):
        raise InvalidPolicy(
            f"{name}: the probabilities in {states[bad[0]]!r} sum to {sums[bad[0]]:.10g}, not 1"
        )
    return _with_ends(found[: len(states) - ends], ends)


def _with_ends(table: Any, ends: int) -> Floats:
    """The same with any row for states in which nothing is done."""
    rows = np.zeros((*table.shape[:-2], ends, table.shape[-1]))
    rows[..., 0] = 1.0
    found: Floats = np.concatenate([table, rows], axis=-2)
    return found
