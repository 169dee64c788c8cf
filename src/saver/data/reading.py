"""A log -> episodes: every cell is checked here, and what is broken is named by file, line and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.data.cells import Labels, is_number, kept, numbers
from saver.data.episodes import UNSEEN, Episodes
from saver.data.sources import FLAG, LABEL, NUMBER, ROWS, WHOLE, check_rows, open_source
from saver.errors import InvalidData
from saver.problem.checks import SUM_TOLERANCE
from saver.problem.model import END, NOT_SEEN

GUARDED = MappingProxyType({"complaint": "complaint"})
HOLDS = {"episode": LABEL, "step": WHOLE, "state": LABEL, "action": LABEL, "reward": NUMBER}
HOLDS |= {"propensity": NUMBER, "next_state": LABEL, "complete": FLAG, "kind": LABEL}


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
    guarded = _guarded(guardrails)
    roles = {"episode": episode, "step": step, "state": state, "action": action, "reward": reward}
    more = {"propensity": propensity, "next_state": next_state, "complete": complete, "kind": kind}
    roles |= {role: column for role, column in more.items() if column is not None}
    for role, column in roles.items():
        if not isinstance(column, str):
            raise InvalidData(f"{role} is {column!r}; it must be the name of a column")
    return Reader(source, roles, guarded).episodes()


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


class Reader:
    """Columns as they come in, as small as they can be; and the episodes that they are, in order."""

    def __init__(self, source: Any, roles: dict[str, str], guarded: dict[str, str]) -> None:
        self.guarded = {f"guardrail {name}": name for name in guarded}
        self.roles = roles | dict(zip(self.guarded, guarded.values(), strict=True))
        kinds: dict[str, str] = {}
        for role, column in self.roles.items():
            kind = HOLDS.get(role, NUMBER)
            if kinds.setdefault(column, kind) != kind:
                raise InvalidData(f"the column {column!r} is asked for as a {kind} and as something else")
        self.source, self.labels, self.rows = open_source(source, kinds), dict[str, Labels](), 0
        parts: dict[str, list[Any]] = {role: [] for role in self.roles}
        for batch in self.source.batches():
            check_rows(self.source.name, self.rows + batch.num_rows)
            for role, column in self.roles.items():
                parts[role].append(self._read(role, column, batch.column(column)))
            self.rows += batch.num_rows
        if not self.rows:
            raise InvalidData(f"{self.source.name} has no rows; it must have one for each step")
        self.whole = {role: np.concatenate(parts.pop(role)) for role in self.roles}

    def _read(self, role: str, column: str, array: Any) -> Any:
        """Numbers, or codes of labels; whole numbers of episodes stay as they are."""
        from pyarrow import types

        source, kind = self.source, HOLDS.get(role, NUMBER)
        if kind != LABEL:
            return numbers(source, self.rows, column, array, kind, may_miss=role in self.guarded)
        if role == "episode" and types.is_integer(array.type) and not array.null_count:
            return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        if role not in self.labels:
            known = kept(source.meta, f"{role}s") if role in ("state", "action") else ()
            self.labels[role] = Labels(known, ROWS) if role == "episode" else Labels(known)
        codes = self.labels[role].encode(f"{source.name}, column {column!r}", array)
        if role != "next_state" and len(bad := np.flatnonzero(codes < 0)):
            raise source.wrong(self.rows + int(bad[0]), column, "it is missing; every row must have one")
        return codes.astype(np.int32)

    def episodes(self) -> Episodes:
        if not self.source.typed:
            self._check_types()
        whole, labels = self.whole, self.labels
        steps, ids = whole.pop("step").astype(np.int64), whole.pop("episode")
        self.order, self.offsets = ordered(ids, steps)
        if self.order is not None:
            steps, ids = steps[self.order], ids[self.order]
            whole = self.whole = {role: part[self.order] for role, part in whole.items()}
        self._check_steps(steps)
        first, last = self.offsets[:-1], self.offsets[1:] - 1
        states, state_codes = labels["state"].sorted()
        actions, action_codes = labels["action"].sorted()
        told = state_codes[whole["state"]]
        return Episodes(
            self.offsets, told, action_codes[whole["action"]], whole["reward"],
            {name: self._measured(role) for role, name in self.guarded.items()},
            self._propensities(), self._finals(states, told),
            whole["complete"][last] != 0 if "complete" in whole else np.ones(len(last), bool),
            states, actions, self._said("episode", ids[first]),
            self._said("kind", whole["kind"][last]) if "kind" in whole else None,
        )  # fmt: skip

    def _said(self, role: str, codes: Any) -> Any:
        """The labels of these codes, as they are where they are no codes."""
        labels = self.labels.get(role)
        return codes if labels is None else np.array(list(labels.codes), dtype=object)[codes]

    def _wrong(self, place: int, role: str, what: str) -> InvalidData:
        """The error about a place in the ordered columns."""
        row = place if self.order is None else int(self.order[place])
        return self.source.wrong(row, self.roles[role], what)

    def _check_types(self) -> None:
        """Refuse a file of plain text in whose labels a text stands among numbers: it is hardly meant."""
        for role in ("state", "action"):
            words = list(self.labels[role].codes)
            kinds = [("a text", "a whole number")[is_number(word)] for word in words]
            if odd := [code for code, kind in enumerate(kinds) if kind != kinds[0]]:
                what = (
                    f"{words[odd[0]]!r} is {kinds[odd[0]]}, and {words[0]!r} above it is {kinds[0]}; all "
                    "must be of one type. Where all are texts, give a table that says so, such as "
                    "pandas.read_csv(path, dtype={column: str})"
                )
                row = int(np.argmax(np.isin(self.whole[role], odd)))
                raise self.source.wrong(row, self.roles[role], what)

    def _check_steps(self, steps: Ints) -> None:
        """Refuse an episode that does not begin at the first step, has a gap, or two rows for one step."""
        begin = steps[self.offsets[:-1]]
        base = int(begin.min())
        if base not in (0, 1):
            what = f"an episode begins at step {base}; steps must count from 0, or from 1"
            raise self._wrong(int(self.offsets[np.argmin(begin)]), "step", what)
        if len(late := np.flatnonzero(begin != base)):
            what = f"the episode begins at step {begin[late[0]]}; step {base} is missing"
            raise self._wrong(int(self.offsets[late[0]]), "step", what)
        apart = np.diff(steps)
        apart[self.offsets[1:-1] - 1] = 1
        if len(bad := np.flatnonzero(apart != 1)):
            before, at = steps[bad[0]], steps[bad[0] + 1]
            what = f"step {before + 1} of the episode is missing: after {before} comes {at}"
            if at == before:
                what = f"step {at} of the episode has two rows"
            raise self._wrong(int(bad[0]) + 1, "step", what)

    def _propensities(self) -> Floats | None:
        said = self.whole.get("propensity")
        if said is not None and len(bad := np.flatnonzero(~((said > 0) & (said <= 1 + SUM_TOLERANCE)))):
            what = f"it is {said[bad[0]]:g}; the probability of an action that was taken must be in (0, 1]"
            raise self._wrong(int(bad[0]), "propensity", what)
        return None if said is None else np.minimum(said, 1.0)

    def _measured(self, role: str) -> Floats:
        """What was seen of a guardrail: in all steps of an episode, or in none."""
        column: Floats = self.whole[role]
        missing = np.isnan(column)
        if missing.any():
            some, lengths = np.add.reduceat(missing, self.offsets[:-1]), np.diff(self.offsets)
            if len(bad := np.flatnonzero((some > 0) & (some < lengths))):
                first, end = self.offsets[bad[0]], self.offsets[bad[0] + 1]
                what = "it is missing, and other steps of the episode have it; give all of them, or none"
                raise self._wrong(int(first + np.argmax(missing[first:end])), role, what)
        return column

    def _finals(self, states: tuple[str, ...], told: Ints) -> Ints:
        """Where each episode's last step led; where others led must be where the next row is."""
        codes, last = self.whole.get("next_state"), self.offsets[1:] - 1
        if codes is None:
            return np.full(len(last), NOT_SEEN, dtype=np.int64)
        known = {label: code for code, label in enumerate(states)} | {UNSEEN: NOT_SEEN}
        words = list(self.labels["next_state"].codes)
        onward = np.array([*(known.get(word, END) for word in words), END])[codes]
        inside = np.ones(len(told) - 1, dtype=bool)
        inside[last[:-1]] = False
        if len(bad := np.flatnonzero(inside & (onward[:-1] != told[1:]))):
            shown = "missing" if codes[bad[0]] < 0 else repr(words[codes[bad[0]]])
            what = f"it is {shown}, but the next step of the episode is in {states[told[bad[0] + 1]]!r}"
            raise self._wrong(int(bad[0]), "next_state", what)
        return onward[last]


def ordered(ids: Any, steps: Ints) -> tuple[Any, Ints]:
    """The order of rows by episode, in order of first appearance, and step; and where episodes begin.

    The order is None where rows are in order already.
    """
    heads = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    named, late = ids[heads], np.flatnonzero(steps[1:] <= steps[:-1]) + 1
    apart = bool(np.all(named[1:] > named[:-1])) or len(np.unique(named)) == len(named)  # seen sooner if so
    if apart and np.isin(late, heads, assume_unique=True).all():
        return None, np.append(heads, len(ids))
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[place]
    return np.lexsort((steps, codes)), np.concatenate([[0], np.cumsum(np.bincount(codes))])
