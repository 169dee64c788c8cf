"""Files are written whole or not at all; and a hash of the package's own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

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


def sources(without: Collection[str] = ()) -> str:
    """A hash of the package's sources, but for these folders of it."""
    package, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in without:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
