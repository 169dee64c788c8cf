"""A log -> episodes: every cell is checked here, and what is broken is named by file, line and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.data.episodes import UNSEEN, Episodes
from saver.data.naming import Labels, is_number, kept
from saver.data.needed import needed
from saver.data.ordering import check_steps, ordered
from saver.data.parquet import ROWS, check_rows
from saver.data.sources import FLAG, LABEL, NUMBER, WHOLE, Source, open_source
from saver.errors import InvalidData
from saver.problem.checks import LARGEST, SUM_TOLERANCE
from saver.problem.columns import NOT_SEEN
from saver.problem.model import END

GUARDED = MappingProxyType({"complaint": "complaint"})


def read_log(
    source: Any,
    *,
    episode: str = "episode",
    step: str = "step",
    state: str = "state",
    action: str = "action",
    reward: str = "reward",
    guardrails: Mapping[str, str] | Iterable[str] = GUARDED,
    propensity: str | None = None,
    next_state: str | None = None,
    complete: str | None = None,
    kind: str | None = None,
) -> Episodes:
    """Read logged episodes, one row for each step, in any order.

    Args:
        source: the path of a CSV (UTF-8) or Parquet file, a pandas or Polars table, or anything else that
            Arrow can read.
        episode: the column that says which episode a row is of; a text or a whole number.
        step: the number of the step, from 0 or from 1.
        state: a label, a text or a whole number.
        action: likewise.
        reward: a number.
        guardrails: {name: column} of what is guarded; an episode in which all are missing was not measured.
        propensity: the probability with which the action was taken, in (0, 1].
        next_state: where the action led. Missing, or a label that is never a state: the episode ended there.
            Without this column nobody saw where the last step of an episode led.
        complete: False for episodes that were cut off and went on; True or False in the last row.
        kind: a text for each episode, such as which policy was run.
    """
    names = _guarded(guardrails)
    roles = {"episode": episode, "step": step, "state": state, "action": action, "reward": reward}
    more = {"propensity": propensity, "next_state": next_state, "complete": complete, "kind": kind}
    roles |= {role: column for role, column in more.items() if column is not None}
    for role, column in roles.items():
        if not isinstance(column, str):
            raise InvalidData(f"{role} is {column!r}; it must be the name of a column")
    reader = Reader(roles, names)
    opened = open_source(source, reader.kinds)
    for batch in opened.batches:
        reader.take(opened, batch)
    return reader.episodes(opened)


def _guarded(given: Any) -> dict[str, str]:
    if isinstance(given, str):
        given = (given,)
    if not isinstance(given, Iterable):
        raise InvalidData(f"guardrails is {given!r}; it must be {{name: column}}, or names of columns")
    found = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
    for name, column in found.items():
        if not isinstance(name, str) or not isinstance(column, str):
            raise InvalidData(f"guardrails has {name!r}: {column!r}; it must be {{name: column}}, both texts")
    return found


HOLDS = {"episode": LABEL, "step": WHOLE, "state": LABEL, "action": LABEL, "reward": NUMBER}
HOLDS |= {"propensity": NUMBER, "next_state": LABEL, "complete": FLAG, "kind": LABEL}


class Reader:
    """Columns as they come in, as small as they can be."""

    def __init__(self, roles: dict[str, str], guardrails: dict[str, str]) -> None:
        self.roles, self.guardrails, self.kinds = roles, guardrails, dict[str, str]()
        for column, kind in [
            *((column, HOLDS[role]) for role, column in roles.items()),
            *((column, NUMBER) for column in guardrails.values()),
        ]:
            if self.kinds.setdefault(column, kind) != kind:
                raise InvalidData(f"the column {column!r} is asked for as a {kind} and as something else")
        self.labels: dict[str, Labels] = {}
        self.parts: dict[str, list[Any]] = {name: [] for name in (*roles, *map(_key, guardrails))}
        self.rows = 0

    def take(self, source: Source, batch: Any) -> None:
        """One batch more."""
        check_rows(source.name, self.rows + batch.num_rows)
        for role, column in self.roles.items():
            array = batch.column(column)
            if HOLDS[role] == LABEL:
                part = self._labels(source, role, column, array)
            else:
                part = _numbers(source, column, array, self.rows, HOLDS[role])
            self.parts[role].append(part)
        for name, column in self.guardrails.items():
            part = _numbers(source, column, batch.column(column), self.rows, NUMBER, may_miss=True)
            self.parts[_key(name)].append(part)
        self.rows += batch.num_rows

    def _labels(self, source: Source, role: str, column: str, array: Any) -> Any:
        """Codes; whole numbers of episodes stay as they are."""
        arrow = needed("pyarrow", "reading a log")
        may_miss = role == "next_state"
        if role == "episode" and arrow.types.is_integer(array.type) and not array.null_count:
            return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        if role not in self.labels:
            most = {"most": ROWS} if role == "episode" else {}
            given = {"state": "states", "action": "actions"}.get(role)
            self.labels[role] = Labels(kept(source.meta, given) if given else (), **most)
        try:
            codes = self.labels[role].encode(array)
        except InvalidData as cause:
            raise InvalidData(f"{source.name}, column {column!r}: {cause}") from None
        if not may_miss and len(bad := np.flatnonzero(codes < 0)):
            raise source.wrong(self.rows + int(bad[0]), column, "it is missing; every row must have one")
        return codes.astype(np.int32)

    def _check_types(self, source: Source, whole: dict[str, Any]) -> None:
        """Refuse a file of plain text in whose labels a text stands among numbers: it is hardly meant."""
        for role in () if source.typed else ("state", "action"):
            words = list(self.labels[role].codes)
            if odd := self.labels[role].odd():
                row = int(np.argmax(np.isin(whole[role], odd)))
                kinds = [("a text", "a whole number")[is_number(words[at])] for at in (odd[0], 0)]
                what = (
                    f"{words[odd[0]]!r} is {kinds[0]}, and {words[0]!r} above it is {kinds[1]}; all must be "
                    "of one type. Where all are texts, give a table that says so, such as "
                    "pandas.read_csv(path, dtype={column: str})"
                )
                raise source.wrong(row, self.roles[role], what)

    def episodes(self, source: Source) -> Episodes:
        """All that was read, in order."""
        if not self.rows:
            raise InvalidData(f"{source.name} has no rows; it must have one for each step")
        whole = {name: np.concatenate(self.parts.pop(name)) for name in list(self.parts)}
        self._check_types(source, whole)
        steps, column = whole.pop("step").astype(np.int64), self.roles["step"]
        ids = whole.pop("episode")
        order, offsets = ordered(ids, steps)
        if order is not None:
            steps, ids = steps[order], ids[order]
            whole = {name: part[order] for name, part in whole.items()}
        check_steps(steps, offsets, order, column, source.wrong)
        return Found(self, source, whole, order, offsets, ids[offsets[:-1]]).episodes()


class Found:
    """Columns in order, made into episodes."""

    def __init__(
        self, reader: Reader, source: Source, whole: dict[str, Any], order: Any, offsets: Ints, ids: Any
    ) -> None:
        self.reader, self.source, self.whole, self.order = reader, source, whole, order
        self.offsets, self.ids = offsets, ids

    def wrong(self, place: int, role: str, what: str) -> InvalidData:
        """The error about a place in the ordered columns."""
        column = self.reader.roles.get(role) or self.reader.guardrails[role]
        row = place if self.order is None else int(self.order[place])
        return self.source.wrong(row, column, what)

    def episodes(self) -> Episodes:
        labels, whole, last = self.reader.labels, self.whole, self.offsets[1:] - 1
        states, state_codes = labels["state"].sorted()
        actions, action_codes = labels["action"].sorted()
        told = state_codes[whole["state"]]
        guarded = {name: self._guarded(name) for name in self.reader.guardrails}
        complete, kinds = whole.get("complete"), whole.get("kind")
        names = np.array(list(labels["kind"].codes), dtype=object) if kinds is not None else None
        episode = np.array(list(labels["episode"].codes), dtype=object) if "episode" in labels else None
        return Episodes(
            self.offsets, told, action_codes[whole["action"]], whole["reward"], guarded,
            self._propensities(), self._finals(states, told),
            np.ones(len(last), bool) if complete is None else complete[last] != 0, states, actions,
            self.ids if episode is None else episode[self.ids],
            None if names is None or kinds is None else names[kinds[last]],
        )  # fmt: skip

    def _propensities(self) -> Floats | None:
        said = self.whole.get("propensity")
        if said is not None and len(bad := np.flatnonzero(~((said > 0) & (said <= 1 + SUM_TOLERANCE)))):
            what = f"it is {said[bad[0]]:g}; the probability of an action that was taken must be in (0, 1]"
            raise self.wrong(int(bad[0]), "propensity", what)
        return None if said is None else np.minimum(said, 1.0)

    def _guarded(self, name: str) -> Floats:
        column: Floats = self.whole[_key(name)]
        missing = np.isnan(column)
        if missing.any():
            some = np.add.reduceat(missing, self.offsets[:-1])
            lengths = np.diff(self.offsets)
            if len(bad := np.flatnonzero((some > 0) & (some < lengths))):
                first, end = self.offsets[bad[0]], self.offsets[bad[0] + 1]
                place = int(first + np.argmax(missing[first:end]))
                what = "it is missing, and other steps of the episode have it; give all of them, or none"
                raise self.wrong(place, name, what)
        return column

    def _finals(self, states: tuple[str, ...], told: Ints) -> Ints:
        """Where each episode's last step led; where others led must be where the next row is."""
        codes, last = self.whole.get("next_state"), self.offsets[1:] - 1
        if codes is None:
            return np.full(len(last), NOT_SEEN, dtype=np.int64)
        known = {label: code for code, label in enumerate(states)}
        words = self.reader.labels["next_state"].codes
        place = np.array([NOT_SEEN if w == UNSEEN else known.get(w, END) for w in words] + [END])
        onward = place[codes]
        inside = np.ones(len(told) - 1, dtype=bool)
        inside[last[:-1]] = False
        if len(bad := np.flatnonzero(inside & (onward[:-1] != told[1:]))):
            shown = "missing" if codes[bad[0]] < 0 else repr(list(words)[codes[bad[0]]])
            what = f"it is {shown}, but the next step of the episode is in {states[told[bad[0] + 1]]!r}"
            raise self.wrong(int(bad[0]), "next_state", what)
        finals: Ints = onward[last]
        return finals


def _numbers(
    source: Source, column: str, array: Any, before: int, kind: str, *, may_miss: bool = False
) -> Any:
    """An Arrow array as numbers, all of them there and finite."""
    arrow, compute = needed("pyarrow", "reading a log"), needed("pyarrow.compute", "reading a log")
    types = arrow.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not (types.is_null(array.type) or types.is_boolean(array.type) or types.is_primitive(array.type)
            or types.is_decimal(array.type)) or types.is_temporal(array.type):  # fmt: skip
        raise source.wrong(before, column, f"it has the type {array.type}; it must hold numbers")
    if types.is_boolean(array.type):
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


def _key(guardrail: str) -> str:
    return f"guardrail {guardrail}"
