"""Compiled functions in plain Python, bit by bit what the compiler makes of them.

A function is run as it stands, with the names of its module changed. Compiled functions become themselves in
plain Python; those parts of NumPy and `math` become others that round in another way than machine code (NumPy
adds up eight numbers at a time and has logarithms of its own, Python another gamma function) or that raise
where it does not. What cannot be had so is written out in the functions: x * x for x**2, `raised` for x**k.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numba import _helperlib as helpers

_worlds: dict[int, dict[str, Any]] = {}  # of modules


def plain(function: Any) -> Any:
    """A function with all that it calls, in plain Python."""
    names = _names(function.__globals__)
    return FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


def boxing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with results as compiled code gives them: numbers of Python, not of NumPy."""

    def call(*args: Any) -> Any:
        return _boxed(function(*args))

    return call


def _names(given: dict[str, Any]) -> dict[str, Any]:
    """What stands for the names of a module, made once."""
    found = _worlds.get(id(given))
    if found is None:
        found = _worlds[id(given)] = dict(given)  # before it is filled: modules name each other
        for name, value in given.items():
            if hasattr(value, "py_func"):
                found[name] = value.plain
            elif value is np or value is math:
                found[name] = ARRAYS if value is np else NUMBERS
    return found


def _boxed(found: Any) -> Any:
    if isinstance(found, np.generic):
        return found.item()
    if not isinstance(found, tuple):
        return found
    parts = [_boxed(part) for part in found]
    return tuple(parts) if type(found) is tuple else type(found)(*parts)


def _sum(values: Any) -> Any:
    """One after the other."""
    return np.cumsum(values)[-1] if np.size(values) else 0.0


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf if x == 0.0 else math.nan


def _log1p(x: float) -> float:
    return math.log1p(x) if x > -1.0 else -math.inf if x == -1.0 else math.nan


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else math.nan


_helpers: Any = helpers
_lgamma = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(_helpers.c_helpers["lgamma"])  # the compiler's
ROUNDED = {"exp": _exp, "log": _log, "log1p": _log1p}
ARRAYS = SimpleNamespace(**(vars(np) | ROUNDED | {"sum": _sum}))
NUMBERS = SimpleNamespace(**(vars(math) | ROUNDED | {"sqrt": _sqrt, "lgamma": _lgamma}))
