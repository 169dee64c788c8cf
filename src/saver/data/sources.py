"""Whatever holds a table -> Arrow batches of the columns that are needed, read piece by piece."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saver.data.needed import needed
from saver.errors import InvalidData

LABEL, WHOLE, NUMBER, FLAG = "label", "whole", "number", "flag"  # what a column must hold
TABLE = "the table"
PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True)
class Source:
    """A table that is read once, in order.

    Attributes:
        name: how messages call it.
        batches: its parts.
        row: how messages call a row.
        meta: what its schema says of it.
        typed: whether the source itself says what is a text and what a number.
    """

    name: str
    batches: Iterator[Any]
    row: Callable[[int], str]
    meta: Mapping[bytes, bytes]
    typed: bool = True

    def wrong(self, row: int, column: str, what: str) -> InvalidData:
        """The error about one cell."""
        return InvalidData(f"{self.name}, {self.row(row)}, column {column!r}: {what}")


def open_source(source: Any, kinds: Mapping[str, str]) -> Source:
    """A source of these columns, {name: what it must hold}: a file, or anything that Arrow can read."""
    if isinstance(source, str | os.PathLike):
        return _open_file(Path(source), kinds)
    arrow = needed("pyarrow", "reading a table")
    if isinstance(source, Mapping):
        source = _as_table(arrow, source)
    if not hasattr(source, "__arrow_c_stream__"):
        raise InvalidData(
            f"source is {type(source).__name__}; it must be the path of a CSV or Parquet file, a pandas or "
            "Polars table, or another that has __arrow_c_stream__"
        )
    check_columns(TABLE, columns_of(source), kinds)
    chosen = _chosen(source, list(kinds))
    try:
        stream = arrow.RecordBatchReader.from_stream(chosen)
    except (arrow.ArrowException, TypeError, ValueError) as cause:
        raise _mixed(chosen, list(kinds), cause) from None
    check_columns(TABLE, stream.schema.names, kinds)
    return Source(TABLE, _guarded(arrow, TABLE, stream), _row, stream.schema.metadata or {})


def check_columns(name: str, found: Any, kinds: Mapping[str, str]) -> None:
    """Refuse a table that lacks a column, or has it twice."""
    if found is None:
        return
    listed = [str(column) for column in found]
    for column in kinds:
        if listed.count(column) != 1:
            said = "has no column" if column not in listed else "has twice the column"
            raise InvalidData(f"{name} {said} {column!r}; its columns are {', '.join(listed[:50])}")


def _open_file(path: Path, kinds: Mapping[str, str]) -> Source:
    """A file, told by its first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as cause:
        raise InvalidData(f"cannot read {path}: {cause.strerror}; give another path") from None
    if not head:
        raise InvalidData(f"{path} is empty; it must hold a table with a row for each step")
    for mark, kind in PACKED.items():
        if head.startswith(mark):
            raise InvalidData(f"{path} is packed ({kind}); unpack it, or write it as Parquet")
    for mark, kind in WIDE.items():
        if head.startswith(mark):
            raise InvalidData(f"{path}, line 1: its encoding is {kind}; write it in UTF-8")
    if head.startswith(b"PAR1") or path.suffix.lower() in (".parquet", ".pq"):
        from saver.data.parquet import open_parquet

        return open_parquet(path, kinds)
    from saver.data.csvfile import open_csv

    return open_csv(path, kinds)


def columns_of(source: Any) -> Any:
    """The names of a table's columns, if it says them."""
    found = getattr(source, "column_names", None)
    return getattr(source, "columns", None) if found is None else found


def _as_table(arrow: Any, columns: Mapping[Any, Any]) -> Any:
    try:
        return arrow.table(dict(columns))
    except (arrow.ArrowException, TypeError, ValueError) as cause:
        raise _mixed(columns, [str(name) for name in columns], cause) from None


def _chosen(source: Any, columns: list[str]) -> Any:
    """The columns that are needed: others may hold what Arrow cannot read."""
    if hasattr(source, "select") and hasattr(source, "column_names"):
        return source.select(columns)
    if columns_of(source) is not None and hasattr(source, "__getitem__"):
        return source[columns]
    return source


def _mixed(source: Any, columns: list[str], cause: Exception) -> InvalidData:
    """Which cell differs in type from the first of its column."""
    for name in columns:
        first: Any = None
        for row, value in enumerate(source[name]):
            if value is None or value != value:  # noqa: PLR0124  (NaN)
                continue
            first = type(value) if first is None else first
            if type(value) is not first:
                return InvalidData(
                    f"{TABLE}, {_row(row)}, column {name!r}: {value!r} is {type(value).__name__}, and above "
                    f"it is {first.__name__}; all must be of one type"
                )
    return InvalidData(f"{TABLE} cannot be read: {said(cause)}")


def _guarded(arrow: Any, name: str, batches: Any) -> Iterator[Any]:
    try:
        yield from batches
    except (arrow.ArrowException, OSError) as cause:
        raise InvalidData(f"{name} cannot be read: {said(cause)}") from None


def said(cause: Exception) -> str:
    """The first line of a message."""
    return (str(cause).splitlines() or [type(cause).__name__])[0][:300]


def _row(row: int) -> str:
    return f"row {row}"
