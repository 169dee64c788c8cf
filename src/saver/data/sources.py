"""Whatever holds a table -> Arrow batches of the columns that are needed, read piece by piece.

One adapter for each: tables in memory; CSV, where what cannot be read is named by its line; Parquet, which is
refused before it is unpacked if it claims more than fits.
"""

from __future__ import annotations

import csv
import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from saver.errors import InvalidData, SaverError

LABEL, WHOLE, NUMBER, FLAG = "label", "whole", "number", "flag"  # what a column must hold
TABLE = "the table"
ROWS = 50_000_000  # of one log, from any source
PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
PACKED[b"\x28\xb5\x2f\xfd"] = "zstd"
UTF16 = (b"\xff\xfe", b"\xfe\xff")


def needed(module: str, what: str, extra: str = "data") -> Any:
    """The module, or the error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.split(".", maxsplit=1)[0]
        raise SaverError(f"{what} needs {package}: pip install 'saver-rl[{extra}]'") from None


@dataclass(frozen=True)
class Source:
    """A table that is read once, in order."""

    name: str  # how messages call it
    parts: Iterator[Any]  # Arrow batches, as they are read
    broken: Callable[[Exception], InvalidData]  # the error for what is raised meanwhile
    meta: Mapping[bytes, bytes]  # what its schema says of it
    row: Callable[[int], str] = "row {}".format  # how messages call a row
    typed: bool = True  # whether the source itself says what is a text and what a number

    def batches(self) -> Iterator[Any]:
        import pyarrow as arrow

        try:
            yield from self.parts
        except (arrow.ArrowException, OSError) as cause:
            raise self.broken(cause) from None

    def wrong(self, row: int, column: str, what: str) -> InvalidData:
        """The error about one cell."""
        return InvalidData(f"{self.name}, {self.row(row)}, column {column!r}: {what}")


def open_source(source: Any, kinds: Mapping[str, str]) -> Source:
    """A source of these columns, {name: what it must hold}: a file, or anything that Arrow can read."""
    if isinstance(source, str | os.PathLike):
        return _open_file(Path(source), kinds)
    arrow, columns = needed("pyarrow", "reading a table"), list(kinds)
    if isinstance(source, Mapping):
        try:
            source = arrow.table(dict(source))
        except (arrow.ArrowException, TypeError, ValueError) as cause:
            raise _mixed(source, list(map(str, source)), cause) from None
    if not hasattr(source, "__arrow_c_stream__"):
        raise InvalidData(
            f"source is {type(source).__name__}; it must be the path of a CSV or Parquet file, a pandas or "
            "Polars table, or another that has __arrow_c_stream__"
        )
    names = getattr(source, "column_names", getattr(source, "columns", None))
    if names is not None:
        check_columns(TABLE, names, columns)
    if hasattr(source, "column_names") and hasattr(source, "select"):
        source = source.select(columns)  # others may hold what Arrow cannot read
    elif names is not None and hasattr(source, "__getitem__"):
        source = source[columns]
    try:
        stream = arrow.RecordBatchReader.from_stream(source)
    except (arrow.ArrowException, TypeError, ValueError) as cause:
        raise _mixed(source, columns, cause) from None
    check_columns(TABLE, stream.schema.names, columns)
    return Source(TABLE, stream, _unread, stream.schema.metadata or {})


def check_columns(name: str, found: Any, wanted: Any) -> None:
    """Refuse a table that lacks a column, or has it twice."""
    listed = [str(column) for column in found]
    for column in wanted:
        if listed.count(column) != 1:
            said = "has no column" if column not in listed else "has twice the column"
            raise InvalidData(f"{name} {said} {column!r}; its columns are {', '.join(listed[:50])}")


def check_rows(name: str, rows: int) -> None:
    """Refuse more rows than memory is meant for."""
    if rows > ROWS:
        raise InvalidData(f"{name} has {rows:,} rows; one log may have {ROWS:,}: split it by episodes")


def said(cause: Exception) -> str:
    """The first line of a message."""
    return (str(cause).splitlines() or [type(cause).__name__])[0][:300]


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
                    f"{TABLE}, row {row}, column {name!r}: {value!r} is {type(value).__name__}, and above it "
                    f"is {first.__name__}; all must be of one type"
                )
    return _unread(cause)


def _unread(cause: Exception) -> InvalidData:
    return InvalidData(f"{TABLE} cannot be read: {said(cause)}")


# -- files, told by their first bytes --


def _open_file(path: Path, kinds: Mapping[str, str]) -> Source:
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
    if head.startswith(UTF16):
        raise InvalidData(f"{path}, line 1: its encoding is UTF-16; write it in UTF-8")
    parquet = head.startswith(b"PAR1") or path.suffix.lower() in (".parquet", ".pq")
    return (open_parquet if parquet else open_csv)(path, kinds)


BATCH = 2**19  # rows
UNPACKED = 4 * 2**30  # bytes of the columns that are read
GROUP = 2**30  # bytes of one column in one row group, which is unpacked at once


def open_parquet(path: Path, kinds: Mapping[str, str]) -> Source:
    """A Parquet file, of which only these columns are read."""
    parquet, arrow = needed("pyarrow.parquet", f"reading {path}"), needed("pyarrow", f"reading {path}")
    labels = [name for name, kind in kinds.items() if kind == LABEL]

    def broken(cause: Exception) -> InvalidData:
        return InvalidData(f"{path} is no whole Parquet file, it was cut off or damaged: {said(cause)}")

    try:
        check_columns(str(path), parquet.read_schema(path).names, kinds)
        file = parquet.ParquetFile(path, read_dictionary=labels)
    except (arrow.ArrowException, OSError) as cause:
        raise broken(cause) from None
    _check_size(path, file.metadata, kinds)
    return Source(str(path), _unpacked(file, list(kinds)), broken, file.schema_arrow.metadata or {})


def _check_size(path: Path, meta: Any, kinds: Mapping[str, str]) -> None:
    check_rows(str(path), meta.num_rows)
    total = 0
    for group in range(meta.num_row_groups):
        part = meta.row_group(group)
        for column in map(part.column, range(part.num_columns)):
            if column.path_in_schema.split(".")[0] in kinds:
                size = column.total_uncompressed_size
                total += size
                if total > UNPACKED or size > GROUP:
                    raise InvalidData(
                        f"{path}, row group {group}, column {column.path_in_schema!r}: it unpacks to more "
                        f"than a log may hold ({size:,} bytes); split the file"
                    )


def _unpacked(file: Any, columns: list[str]) -> Iterator[Any]:
    with file:
        yield from file.iter_batches(batch_size=BATCH, columns=columns)


BLOCK = 2**23  # bytes; a line of CSV must be shorter
HEAD = 2**20  # bytes of the first line
AT = re.compile(r"Row #(\d+)")
COLUMN = re.compile(r"column #(\d+)")


def open_csv(path: Path, kinds: Mapping[str, str]) -> Source:
    """A CSV file in UTF-8, whose first line names the columns."""
    reader, arrow = needed("pyarrow.csv", f"reading {path}"), needed("pyarrow", f"reading {path}")
    check_columns(str(path), _names(path), kinds)
    types = {LABEL: arrow.string(), WHOLE: arrow.int64(), NUMBER: arrow.float64(), FLAG: arrow.bool_()}
    options = reader.ConvertOptions(
        column_types={name: types[kind] for name, kind in kinds.items()}, include_columns=list(kinds),
        null_values=[""], strings_can_be_null=True,
    )  # fmt: skip
    read = partial(_blocks, path, options)
    return Source(str(path), read(), partial(_place, path, read), {}, partial(line_of, path), typed=False)


def _names(path: Path) -> list[str]:
    with path.open("rb") as file:
        head = file.readline(HEAD)
    try:
        return next(csv.reader([head.decode("utf-8-sig").rstrip("\r\n")]))
    except (UnicodeDecodeError, csv.Error, StopIteration):
        raise InvalidData(
            f"{path}, line 1: it must name the columns, in UTF-8 and with commas between"
        ) from None


def _blocks(path: Path, options: Any, threads: bool = True) -> Iterator[Any]:
    from pyarrow import csv as reader

    how = reader.ReadOptions(block_size=BLOCK, use_threads=threads)
    with (
        path.open("rb") as file,  # an open file: its name must not say that it is packed
        reader.open_csv(file, read_options=how, convert_options=options) as found,
    ):
        yield from found


def _place(path: Path, read: Callable[..., Iterator[Any]], cause: Exception) -> InvalidData:
    """Which line it is: the slow reader says."""
    import pyarrow as arrow

    if "UTF8" in str(cause) or "UTF-8" in str(cause):
        return _not_utf8(path)
    try:
        for _ in read(threads=False):
            pass
    except (arrow.ArrowException, OSError) as again:
        cause = again
    text, names = said(cause), _names(path)
    at, column = AT.search(text), COLUMN.search(text)
    line = f", {line_of(path, int(at[1]) - 2)}" if at else ""
    where = f", column {names[int(column[1])]!r}" if column and int(column[1]) < len(names) else ""
    what = AT.sub("", text.rpartition("error: ")[2]).removeprefix(": ") if at else text
    what = re.sub(r"^.*CSV conversion error to ", "it is no ", what)
    return InvalidData(f"{path}{line}{where}: {what}")


def line_of(path: Path, row: int) -> str:
    """The line of a row; empty lines are none."""
    left, quoted = row + 1, False  # the names; a cell in quotes may go on in the next line
    for number, line in _lines(path):
        if line.strip(b"\r\n") and not quoted:
            if not left:
                return f"line {number}"
            left -= 1
        quoted ^= line.count(b'"') % 2 == 1
    return f"row {row}"


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers; one that is longer than a block comes in parts, to spare memory."""
    number = 1
    with path.open("rb") as file:
        while line := file.readline(BLOCK):
            yield number, line
            number += line.endswith(b"\n")


def _not_utf8(path: Path) -> InvalidData:
    for number, line in _lines(path):
        try:
            line.decode()
        except UnicodeDecodeError as cause:
            return InvalidData(
                f"{path}, line {number}: byte {line[cause.start]:#x} is not UTF-8; write it in UTF-8"
            )
    return InvalidData(f"{path} is not in UTF-8; write it so")
