"""Compiled functions whose disk cache is never stale.

numba's cache watches only the file of the function itself and would keep a caller after an edit of a
callee in another file. The cache folder is therefore named by a hash of the package, without the folders
that hold nothing compiled and nothing that compiled code uses.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from saver._files import sources

config: Any = numba.config
PLAIN = {"scenarios", "theory", "data", "experiments", "cli", "journal"}  # folders without compiled code
F = TypeVar("F", bound=Callable[..., Any])


@cache
def cache_folder() -> str | None:
    """A writable folder named by a hash of the sources, or None: then every process compiles anew."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(chosen) if chosen else Path.home() / ".cache"
        folder = home / "saver-rl" / sources(without=PLAIN)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except (OSError, RuntimeError) as cause:
        warnings.warn(
            f"saver cannot keep its compiled code ({cause}) and compiles it anew in every process, which "
            "takes about a minute; set NUMBA_CACHE_DIR to a folder that can be written",
            stacklevel=2,
        )
        return None


def jit(function: F) -> F:
    """Compile: no fast maths, no GIL, division as in NumPy, cached on disk where that is possible."""
    return _compiled(function, _nrt=True)


def brief(function: F) -> F:
    """`jit` for what Python calls again and again and is done at once: it keeps the GIL.

    Another thread would take it, and give it back late.
    """
    return _compiled(function, _nrt=True, nogil=False)


def loop(function: F) -> F:
    """`jit` for a hot loop that makes no arrays: it does not count references to those it is given."""
    return _compiled(function, _nrt=False)


def inner(function: F) -> F:
    """`jit` for a function that only compiled code calls: without the wrapper, it compiles sooner."""
    return _compiled(function, _nrt=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: F) -> F:
    """`loop` for a part of one: always copied into its caller, so that wide arguments cost nothing.

    It can be called from compiled code only.
    """
    return _compiled(function, _nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _compiled(function: F, **options: Any) -> F:
    folder = cache_folder()
    before = config.CACHE_DIR
    config.CACHE_DIR = folder or before
    try:
        usual: dict[str, Any] = {"nogil": True, "error_model": "numpy", "cache": folder is not None}
        made = numba.njit(**(usual | options))(function)
    finally:
        config.CACHE_DIR = before
    return cast(F, made)
