"""Compiled code on disk, found by what it was made of: not by the path of a file, nor by its time.

A second clone, another environment or a moved package compiles nothing; an edit of what a function uses makes
another entry. Machine code is trusted like a program: an entry that others can have written, or that is
damaged, is never loaded.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any, cast

from numba.core import serialize, sigutils
from numba.core.caching import CompileResultCacheImpl, _Cache

from saver._compiling import working
from saver._content import VERSIONS, content, described, digest

written, plain, signatures = (cast(Any, part) for part in (CompileResultCacheImpl, serialize, sigutils))
HEAD, SIZE = b"saver code 2\n", hashlib.sha256().digest_size
SUFFIX, PARTIAL = ".code", ".part"
DAY, UNUSED = 86400.0, 90 * 86400.0  # seconds; what nobody has loaded for so long is removed
FAULTS = {
    "lost": "saver cannot keep its compiled code ({what}) and compiles it anew in every process; set "
    "NUMBA_CACHE_DIR to a folder that can be written and has room",
    "damaged": "compiled code in {place} is damaged ({what}, perhaps others too) and is made anew",
    "foreign": "compiled code in {place} can have been written by others and is not loaded: remove what is "
    "not yours",
}
OTHERS = 0o022  # the bits by which a group or anybody may write
_told: set[tuple[str, Path | None]] = set()  # of which folders which fault


@cache
def folder() -> Path | None:
    """Where entries are, or None where there is no such folder and none can be made."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        found = (Path(chosen).absolute() if chosen else Path.home() / ".cache") / "saver-rl" / "code"
        found.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as cause:
        _warn("lost", None, str(cause))
        return None
    return found


def _warn(fault: str, place: Path | None, what: str = "") -> None:
    """Of a folder, of each fault once: where it has one it often has hundreds."""
    if (fault, place) not in _told:
        _told.add((fault, place))
        warnings.warn(FAULTS[fault].format(place=place, what=what), RuntimeWarning, stacklevel=3)


class Useless(Exception):
    """An entry is there and cannot be used, and nobody watches: ask again, and it is compiled."""


class Kept(_Cache):
    """The entries of one function, one for each kind of arguments."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.useless: set[Path] = set()  # entries that were tried

    def has(self, signature: Any, codegen: Any) -> bool:
        """Whether there is an entry that may be of use."""
        path = self.path(signature, codegen)
        return path is not None and path not in self.useless and path.exists()

    @property
    def cache_path(self) -> str:
        """The folder, as the compiler's statistics ask for it."""
        return str(folder() or "")

    def path(self, signature: Any, codegen: Any) -> Path | None:
        """Where the entry for such arguments is, or would be."""
        place, of = folder(), self.function.py_func
        if place is None:
            return None
        arguments, declared = signatures.normalize_signature(signature)
        kinds = [described(kind) for kind in (*arguments, declared)]
        name = digest(HEAD, VERSIONS, codegen.magic_tuple(), content(self.function), kinds)
        return place / f"{of.__module__.rpartition('.')[2]}.{of.__name__}-{name}{SUFFIX}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types, or None."""
        target_context.refresh()
        path = self.path(sig, target_context.codegen())
        if path is None or path in self.useless or not path.exists():
            return None
        data = read(path)
        try:
            if data is not None:
                return written.rebuild(None, target_context, pickle.loads(data))
        except Exception as cause:
            _warn("damaged", path.parent, f"{path.name}: {cause!r}")
        self.useless.add(path)
        if not working():
            raise Useless
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled."""
        path = self.path(sig, data.codegen)
        if path is None or data.lifted or data.library.has_dynamic_globals:
            return
        try:
            write(path, plain.dumps(written.reduce(None, data)))
        except OSError as cause:
            _warn("lost", None, f"{cause.strerror or cause}: {path.parent}")

    def enable(self) -> None:
        """It always is."""

    disable = flush = enable  # what was compiled stays: it is what it is called


def read(path: Path) -> bytes | None:
    """What an entry holds; None if it is missing, damaged, another's name, or may be somebody else's."""
    try:
        if not path.is_file():  # or it is waited for
            return None
        with path.open("rb") as file:
            status, held = os.fstat(file.fileno()), file.read()
    except OSError:
        return None
    if hasattr(os, "geteuid") and (status.st_uid not in (os.geteuid(), 0) or status.st_mode & OTHERS):
        _warn("foreign", path.parent)
        return None
    data = held[len(HEAD) + SIZE :]
    if held[: len(HEAD) + SIZE] != _head(path, data):
        _warn("damaged", path.parent, path.name)
        return None
    if time.time() - status.st_mtime > DAY:
        _touch(path)
    return data


def _head(path: Path, data: bytes) -> bytes:
    """What an entry begins with: under another name it is another's."""
    return HEAD + hashlib.sha256(path.name.encode() + b"\n" + data).digest()


def write(path: Path, data: bytes) -> None:
    """An entry, whole or not at all: other processes may write it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _prune(path.parent)
    handle, partial = tempfile.mkstemp(PARTIAL, ".", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_head(path, data) + data)
        Path(partial).chmod(0o644)  # others may read it
        Path(partial).replace(path)
    finally:
        Path(partial).unlink(missing_ok=True)


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # it belongs to whoever made the image
        return


@cache
def _prune(place: Path) -> None:
    """Remove what nobody has used for long: of earlier versions, and what a killed process began."""
    old = time.time() - UNUSED
    for path in [*place.glob(f"*{SUFFIX}"), *place.glob(f".*{PARTIAL}")]:
        try:
            if path.stat().st_mtime < old:
                path.unlink()
        except OSError:  # another process was first
            continue
