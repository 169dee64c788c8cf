"""Compiled functions: kept on disk, made before everybody's eyes, done without where little is to do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.dispatcher import OmittedArg
from numba.core.registry import CPUDispatcher
from numba.core.typing import typeof

from saver._compiling import WATCH
from saver._kept import Kept, Useless
from saver._plain import boxing, plain

config: Any = numba.config
typing, types, usual_class = cast(Any, typeof), cast(Any, numba.types), cast(Any, CPUDispatcher)
F = TypeVar("F", bound=Callable[..., Any])
PATIENCE = 50_000  # calls of `plainly` before a process compiles also what is small: 25,000 episodes


def kind_of(value: Any) -> Any:
    """The type of an argument."""
    return typing.typeof(value, typing.Purpose.argument)


class Compiled(usual_class):  # type: ignore[misc, valid-type]
    """A function that is compiled when it is first called with arguments of some types, or loaded."""

    content: str | None = None  # of `saver._content`
    _absent = False  # what was looked for, once, was not on disk

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        usual = {"nopython": True, "nogil": True, "error_model": "numpy", "boundscheck": None}
        super().__init__(py_func=function, locals={}, targetoptions=usual | options)
        self._cache = Kept(self)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """What is to be called with such arguments: the compiler of numba asks when it knows of nothing."""
        if _here.plain and self._absent:
            return self.boxed
        call = super()._compile_for_args
        if self._is_kept(args):
            with suppress(Useless):
                return call(*args, **kws)
        elif _here.plain:
            self._absent = True
            return self.boxed
        return WATCH.see(lambda: call(*args, **kws))

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What compiled code calls with such arguments: a number in the code has no twin of its own."""
        return super().get_call_template([types.unliteral(kind) for kind in args], kws)

    def _is_kept(self, args: tuple[Any, ...]) -> bool:
        """Whether such a call can be loaded."""
        kinds = tuple([types.Omitted(a.value) if isinstance(a, OmittedArg) else kind_of(a) for a in args])
        return self._cache.has(kinds, self.targetctx.codegen())

    @cached_property
    def plain(self) -> Any:
        """The same in plain Python, with all that it calls."""
        return plain(self.py_func)

    @cached_property
    def boxed(self) -> Any:
        """`plain` with results as compiled code gives them."""
        return boxing(self.plain)


class _Here(threading.local):
    plain = False


class _Count:
    calls = 0  # of `plainly`, in all threads


_here = _Here()


@contextmanager
def plainly(small: bool) -> Iterator[None]:
    """In this block what is not compiled yet is done in plain Python, if it is `small`, with the same bits.

    A process that does this often compiles in the end.
    """
    if not small or _here.plain or _Count.calls >= PATIENCE:
        yield
        return
    _Count.calls, _here.plain = _Count.calls + 1, True
    try:
        with np.errstate(all="ignore"):  # as in compiled code
            yield
    finally:
        _here.plain = False


def hurry() -> None:
    """From here on compile also what is small."""
    _Count.calls = PATIENCE


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
    return function if config.DISABLE_JIT else cast(F, Compiled(function, options))
