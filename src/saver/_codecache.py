"""Compiled code on disk, found by what it was made of: not by the path of a file, nor by its time.

A second clone, another environment or a moved package compiles nothing; an edit of what a function uses makes
another entry. Machine code is trusted like a program: an entry that others can have written, or that is
damaged, is never loaded.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

import llvmlite
import numba
import numpy as np
from numba.core import serialize, sigutils, types as kinds
from numba.core.caching import CompileResultCacheImpl, _Cache

from saver._compiling import working

written, plain, signatures = (cast(Any, part) for part in (CompileResultCacheImpl, serialize, sigutils))
types: Any = kinds
HEAD, SIZE = b"saver code 3\n", hashlib.sha256().digest_size
SUFFIX, PARTIAL = ".code", ".part"
DAY, UNUSED = 86400.0, 90 * 86400.0  # seconds; what nobody has loaded for so long is removed
FAULTS = {
    "lost": "saver cannot keep its compiled code ({what}) and compiles it anew in every process; set "
    "NUMBA_CACHE_DIR to a folder that can be written and has room",
    "damaged": "compiled code in {place} is damaged ({what}, perhaps others too) and is made anew",
    "foreign": "compiled code in {place} can have been written by others and is not loaded: remove what is "
    "not yours",
}
VERSIONS = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__
PLAIN = bool, int, float, complex, str, bytes, np.generic, np.dtype, types.Type
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
        with suppress(OSError):  # it may belong to whoever made the image
            os.utime(path)
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


@cache
def _prune(place: Path) -> None:
    """Remove what nobody has used for long: of earlier versions, and what a killed process began."""
    old = time.time() - UNUSED
    for path in [*place.glob(f"*{SUFFIX}"), *place.glob(f".*{PARTIAL}")]:
        with suppress(OSError):  # another process was first
            if path.stat().st_mtime < old:
                path.unlink()


# -- what machine code depends on, as a hash: a function, all compiled functions that it calls, and types --
#
# A function is its bytecode, its constants and what it names: numbers, arrays and records by their values,
# other compiled functions likewise, everything else of this package by the file that it stands in. Comments,
# docstrings, lines and paths do not matter, nor does any function that is not called.


def digest(*parts: Any) -> str:
    """A hash of plain data."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:40]


def content(function: Any) -> str:
    """A hash of a compiled function; made once, and late, when all that it names is there."""
    found: str | None = function.content
    if found is None:
        reached: dict[int, Any] = {}
        _reach(function, reached)
        parts = sorted(repr(list(_parts(one))) for one in reached.values())
        function.content = found = digest(_name(function.py_func), parts)
    return found


def described(kind: Any) -> Any:
    """A type as plain data: tuples with the names of their fields, which the compiler leaves out."""
    if isinstance(kind, types.BaseNamedTuple):
        return _name(kind.instance_class), kind.fields, [described(part) for part in kind]
    if isinstance(kind, types.BaseTuple):
        return [described(part) for part in kind]
    return type(kind).__name__, str(kind)


def _reach(function: Any, reached: dict[int, Any]) -> None:
    """Add a function and all compiled ones that it can call."""
    if id(function) not in reached:
        reached[id(function)] = function
        for _, value in _named(function.py_func):
            if hasattr(value, "py_func"):
                _reach(value, reached)


def _parts(function: Any) -> Iterator[Any]:
    """What one function says itself; other compiled ones only by name."""
    of = function.py_func
    yield _name(of), sorted((name, repr(value)) for name, value in function.targetoptions.items())
    yield [_value(default) for default in of.__defaults__ or ()]
    yield [_value(cell.cell_contents) for cell in of.__closure__ or ()]
    yield list(_code(of.__code__, of.__doc__))
    yield [(name, _value(value)) for name, value in _named(of)]


def _code(code: CodeType, without: str | None = None) -> Iterator[Any]:
    yield code.co_code.hex(), code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield list(_code(constant))
        elif constant != without or without is None:
            yield repr(constant)


def _named(of: Any) -> Iterator[tuple[str, Any]]:
    """The globals that a function names, and what it may name of modules of ours."""
    names = sorted(set(_names(of.__code__)))
    for name in names:
        if name in of.__globals__:
            value = of.__globals__[name]
            yield name, value
            if isinstance(value, ModuleType) and _is_ours(value.__name__):
                yield from ((f"{name}.{part}", vars(value)[part]) for part in names if part in vars(value))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __package__


def _value(value: Any) -> Any:  # noqa: PLR0911  (one for each kind)
    """What a function names, as plain data."""
    if value is None or isinstance(value, PLAIN):
        return type(value).__name__, repr(value)
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes().hex()
    if isinstance(value, tuple):
        return _name(type(value)), [_value(part) for part in value]
    if isinstance(value, ModuleType):
        return value.__name__
    if hasattr(value, "py_func"):
        return _name(value.py_func)
    if isinstance(value, type) and issubclass(value, tuple):
        return _name(value), getattr(value, "_fields", ())
    module = str(getattr(value, "__module__", None) or getattr(type(value), "__module__", ""))
    return _name(value), _file(module) if _is_ours(module) else ""


@cache
def _file(module: str) -> str:
    path = getattr(sys.modules.get(module), "__file__", None)
    return digest(Path(path).read_bytes()) if path else ""


def _name(of: Any) -> str:
    """Where something is from; what has no name is told by its kind."""
    named = of if hasattr(of, "__qualname__") or hasattr(of, "__name__") else type(of)
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', named.__name__)}"
