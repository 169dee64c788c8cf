"""CSV files, block by block; what cannot be read is named by its line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from saver.data.needed import needed
from saver.data.sources import FLAG, LABEL, NUMBER, WHOLE, Source, check_columns, said
from saver.errors import InvalidData

BLOCK = 2**23  # bytes; a line must be shorter
HEAD = 2**20  # bytes of the first line
AT = re.compile(r"Row #(\d+)")
COLUMN = re.compile(r"column #(\d+)")


def open_csv(path: Path, kinds: Mapping[str, str]) -> Source:
    """A CSV file in UTF-8, whose first line names the columns."""
    reader, arrow = needed("pyarrow.csv", f"reading {path}"), needed("pyarrow", f"reading {path}")
    names = _names(path)
    check_columns(str(path), names, kinds)
    types = {LABEL: arrow.string(), WHOLE: arrow.int64(), NUMBER: arrow.float64(), FLAG: arrow.bool_()}
    options = reader.ConvertOptions(
        column_types={name: types[kind] for name, kind in kinds.items()}, include_columns=list(kinds),
        null_values=[""], strings_can_be_null=True,
    )  # fmt: skip
    batches = _batches(reader, arrow, path, options)
    return Source(str(path), batches, lambda row: line_of(path, row), {}, typed=False)


def _names(path: Path) -> list[str]:
    with path.open("rb") as file:
        head = file.readline(HEAD)
    try:
        return next(csv.reader([head.decode("utf-8-sig").rstrip("\r\n")]))
    except (UnicodeDecodeError, csv.Error, StopIteration):
        raise InvalidData(
            f"{path}, line 1: it must name the columns, in UTF-8 and with commas between"
        ) from None


def _batches(reader: Any, arrow: Any, path: Path, options: Any) -> Iterator[Any]:
    try:
        yield from _read(reader, path, options, True)
    except (arrow.ArrowException, OSError) as cause:
        raise _place(reader, arrow, path, options, cause) from None


def _read(reader: Any, path: Path, options: Any, threads: bool) -> Iterator[Any]:
    how = reader.ReadOptions(block_size=BLOCK, use_threads=threads)
    with (
        path.open("rb") as file,  # an open file: its name must not say that it is packed
        reader.open_csv(file, read_options=how, convert_options=options) as found,
    ):
        yield from found


def _place(reader: Any, arrow: Any, path: Path, options: Any, cause: Exception) -> InvalidData:
    """Which line it is: the slow reader says."""
    if "UTF8" in str(cause) or "UTF-8" in str(cause):
        return _not_utf8(path)
    try:
        for _ in _read(reader, path, options, False):
            pass
    except (arrow.ArrowException, OSError) as again:
        cause = again
    text = said(cause)
    at, column = AT.search(text), COLUMN.search(text)
    line = f", {line_of(path, int(at[1]) - 2)}" if at else ""
    names = _names(path)
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
