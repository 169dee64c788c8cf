"""What machine code depends on, as a hash: a function, all compiled functions that it calls, and types.

A function is its bytecode, its constants and what it names: numbers, arrays and records by their values,
other compiled functions likewise, everything else of this package by the file that it stands in. Comments,
docstrings, lines and paths do not matter, nor does any function that is not called.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import types as kinds

types: Any = kinds
VERSIONS = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__
PLAIN = bool, int, float, complex, str, bytes, np.generic, np.dtype, types.Type


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
            if _is_ours(value):
                yield from ((f"{name}.{part}", vars(value)[part]) for part in names if part in vars(value))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_ours(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == __package__


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
    own = module.partition(".")[0] == __package__
    return _name(value), _file(module) if own else ""


@cache
def _file(module: str) -> str:
    path = getattr(sys.modules.get(module), "__file__", None)
    return digest(Path(path).read_bytes()) if path else ""


def _name(of: Any) -> str:
    """Where something is from; what has no name is told by its kind."""
    named = of if hasattr(of, "__qualname__") or hasattr(of, "__name__") else type(of)
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', named.__name__)}"
