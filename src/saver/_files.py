"""Files are written whole or not at all; and a hash of the package's own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from saver.errors import InvalidData

PARTIAL = ".part"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` when the block ends well."""
    partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def written(path: Path, remedy: str = "another path") -> Iterator[Path]:
    """As `replacing`; what the system refuses is said in words."""
    try:
        with replacing(path) as partial:
            yield partial
    except OSError as cause:
        raise InvalidData(f"cannot write {path}: {cause.strerror or cause}; give {remedy}") from None


def sources(*others: Path) -> str:
    """A hash of the package's sources, and of those in other folders."""
    digest = hashlib.sha256()
    for folder in (Path(__file__).parent, *others):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
