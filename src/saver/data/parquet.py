"""Parquet files, piece by piece; one that claims more than fits is refused before it is unpacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from saver.data.needed import needed
from saver.data.sources import LABEL, Source, check_columns, said
from saver.errors import InvalidData

ROWS = 50_000_000  # of one log, from any source
BATCH = 2**19  # rows
UNPACKED = 4 * 2**30  # bytes of the columns that are read
GROUP = 2**30  # bytes of one column in one row group, which is unpacked at once


def open_parquet(path: Path, kinds: Mapping[str, str]) -> Source:
    """A Parquet file, of which only these columns are read."""
    parquet = needed("pyarrow.parquet", f"reading {path}")
    arrow = needed("pyarrow", f"reading {path}")
    labels = [name for name, kind in kinds.items() if kind == LABEL]
    try:
        check_columns(str(path), parquet.read_schema(path).names, kinds)
        file = parquet.ParquetFile(path, read_dictionary=labels)
    except (arrow.ArrowException, OSError) as cause:
        raise _broken(path, cause) from None
    _check_size(path, file.metadata, kinds)
    return Source(str(path), _batches(arrow, path, file, list(kinds)), _row, file.schema_arrow.metadata or {})


def _check_size(path: Path, meta: Any, kinds: Mapping[str, str]) -> None:
    check_rows(str(path), meta.num_rows)
    total = 0
    for group in range(meta.num_row_groups):
        part = meta.row_group(group)
        for place in range(part.num_columns):
            column = part.column(place)
            if column.path_in_schema.split(".")[0] in kinds:
                total += column.total_uncompressed_size
                if total > UNPACKED or column.total_uncompressed_size > GROUP:
                    raise InvalidData(
                        f"{path}, row group {group}, column {column.path_in_schema!r}: it unpacks to more "
                        f"than a log may hold ({column.total_uncompressed_size:,} bytes); split the file"
                    )


def check_rows(name: str, rows: int) -> None:
    """Refuse more rows than memory is meant for."""
    if rows > ROWS:
        raise InvalidData(f"{name} has {rows:,} rows; one log may have {ROWS:,}: split it by episodes")


def _batches(arrow: Any, path: Path, file: Any, columns: list[str]) -> Iterator[Any]:
    try:
        yield from file.iter_batches(batch_size=BATCH, columns=columns)
    except (arrow.ArrowException, OSError) as cause:
        raise _broken(path, cause) from None
    finally:
        file.close()


def _broken(path: Path, cause: Exception) -> InvalidData:
    return InvalidData(f"{path} is no whole Parquet file, it was cut off or damaged: {said(cause)}")


def _row(row: int) -> str:
    return f"row {row}"
