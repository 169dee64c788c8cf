"""Episodes as Arrow tables and Parquet files, which `read_log` reads back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from saver._files import replacing
from saver.data.episodes import UNSEEN, Episodes
from saver.data.models import END_LABEL
from saver.data.naming import told
from saver.data.needed import needed
from saver.errors import InvalidData
from saver.problem.columns import NOT_SEEN
from saver.problem.model import END

RESERVED = ("episode", "step", "state", "action", "reward", "propensity", "next_state", "complete", "kind")


def table(many: Episodes) -> Any:
    """One row for each step.

    Columns: episode, step, state, action, reward, one for each guardrail; propensity where recorded;
    next_state where any episode tells its last one (missing where it ended), complete where one was cut off,
    kind where known.
    """
    arrow = needed("pyarrow", "to_arrow")
    for name in many.constraints:
        if name in RESERVED:
            raise InvalidData(f"a guardrail has the name {name!r}, as a column of the table; rename it")
    columns: dict[str, Any] = {
        "episode": arrow.array(np.repeat(many.ids, many.lengths)),
        "step": many.steps,
        "state": _labels(arrow, many.states, many.state_labels),
        "action": _labels(arrow, many.actions, many.action_labels),
        "reward": many.rewards,
    }
    for name, column in many.constraints.items():
        columns[name] = arrow.array(column, from_pandas=True)  # NaN: not measured
    if many.propensities is not None:
        columns["propensity"] = many.propensities
    if (many.final_states != NOT_SEEN).any():
        columns["next_state"] = _next_states(arrow, many)
    if not many.complete.all():
        columns["complete"] = np.repeat(many.complete, many.lengths)
    if many.kinds is not None:
        columns["kind"] = arrow.array(np.repeat(many.kinds, many.lengths)).dictionary_encode()
    return arrow.table(columns).replace_schema_metadata(told(many.state_labels, many.action_labels))


def write_parquet(many: Episodes, path: str | os.PathLike[str]) -> None:
    """The table in a file, whole or not at all."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidData(f"the path is {path!r}; give the path of a file")
    parquet = needed("pyarrow.parquet", "to_parquet")
    target, rows = Path(path), table(many)
    try:
        with replacing(target) as partial:
            parquet.write_table(rows, partial)
    except OSError as cause:
        raise InvalidData(f"cannot write {target}: {cause.strerror or cause}; give another path") from None


def _labels(arrow: Any, codes: Any, labels: tuple[str, ...], missing: Any = None) -> Any:
    indices = arrow.array(codes.astype(np.int32), mask=missing)
    return arrow.DictionaryArray.from_arrays(indices, arrow.array(labels, arrow.string()))


def _next_states(arrow: Any, many: Episodes) -> Any:
    """The state after each row; missing where the episode ended."""
    if UNSEEN in many.state_labels or END_LABEL in many.state_labels:
        raise InvalidData(f"a state has the label {UNSEEN!r} or {END_LABEL!r}, which mean something else")
    onward = np.empty(many.rows, dtype=np.int64)
    onward[:-1] = many.states[1:]
    onward[many.last] = many.final_states
    unseen = len(many.state_labels)
    return _labels(
        arrow, np.where(onward == NOT_SEEN, unseen, np.maximum(onward, 0)), (*many.state_labels, UNSEEN),
        onward == END,
    )  # fmt: skip
