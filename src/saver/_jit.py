"""Compiled functions: kept on disk, made before everybody's eyes, done without where little is to do."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from types import FunctionType, SimpleNamespace
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import _helperlib as helpers
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler
from numba.core.dispatcher import OmittedArg
from numba.core.registry import CPUDispatcher
from numba.core.typing import typeof

from saver._codecache import Kept, Useless
from saver._compiling import WATCH

config: Any = numba.config
typing, types, usual_class = cast(Any, typeof), cast(Any, numba.types), cast(Any, CPUDispatcher)
usual_code, usual_generator = cast(Any, JITCodeLibrary), cast(Any, JITCPUCodegen)
usual_compiler: Any = Compiler
F = TypeVar("F", bound=Callable[..., Any])
PATIENCE = 50_000  # calls of `plainly` before a process compiles also what is small: 25,000 episodes


def kind_of(value: Any) -> Any:
    """The type of an argument."""
    return typing.typeof(value, typing.Purpose.argument)


class Part(usual_code):  # type: ignore[misc, valid-type]
    """Code that only compiled code calls: it goes into its callers, and becomes machine code there alone."""

    serialize_using_object_code = usual_code.serialize_using_bitcode  # what is kept on disk

    def _finalize_specific(self) -> None: ...

    def _optimize_final_module(self) -> None:
        """Cheaply: its callers are optimised as a whole."""
        self._codegen.optimised(self._final_module)


class Parts(usual_generator):  # type: ignore[misc, valid-type]
    """The usual generator of code, for parts: they need no address, and reach no objects of Python."""

    _library_class = Part

    def __init__(self, usual: Any) -> None:
        self.__dict__.update(usual.__dict__)

    def _add_module(self, module: Any) -> None: ...

    def optimised(self, module: Any) -> None:
        """The cheap ones of the usual passes."""
        options = {"loop_vectorize": self._loopvect, "slp_vectorize": False, "opt": self._opt_level}
        passes, builder = self._module_pass_manager(**options, cost="cheap")
        passes.run(module, builder)

    def set_env(self, name: str, env: Any) -> None: ...


@cache
def of_parts(context: Any) -> Any:
    """The same context, with that generator."""
    return context.subtarget(_internal_codegen=Parts(context.codegen()))


def parts_compiler(typing: Any, context: Any, *more: Any) -> Any:
    """The usual compiler, with that context."""
    return usual_compiler(typing, of_parts(context), *more)


class Compiled(usual_class):  # type: ignore[misc, valid-type]
    """A function that is compiled when it is first called with arguments of some types, or loaded."""

    content: str | None = None  # of `saver._codecache`
    _absent = False  # what was looked for, once, was not on disk

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        usual = {"nopython": True, "nogil": True, "error_model": "numpy", "boundscheck": None}
        part = "no_cpython_wrapper" in options
        super().__init__(function, {}, usual | options, parts_compiler if part else usual_compiler)
        self.targetctx: Any = of_parts(self.targetctx) if part else self.targetctx
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
        of = self.py_func
        names = _names(of.__globals__)
        return FunctionType(of.__code__, names, of.__name__, of.__defaults__, of.__closure__)

    @cached_property
    def boxed(self) -> Any:
        """`plain` with results as compiled code gives them: numbers of Python, not of NumPy."""
        function = self.plain
        return lambda *args: _boxed(function(*args))


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


def bare(function: F) -> F:
    """`inner` for a function that makes no arrays: it does not count references, as `loop` does not.

    If it returns arrays (or tuples of them), only those who do not count may call it: others free them.
    """
    return _compiled(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: F) -> F:
    """`bare` for a part of one: always copied into its caller, so that wide arguments cost nothing."""
    return _compiled(function, _nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _compiled(function: F, **options: Any) -> F:
    return function if config.DISABLE_JIT else cast(F, Compiled(function, options))


# -- without a compiler, bit by bit what it makes of functions --
#
# A function is run as it stands, with the names of its module changed. Compiled functions become themselves
# in plain Python; those parts of NumPy and `math` become others that round in another way than machine code
# (NumPy adds up eight numbers at a time and has logarithms of its own, Python another gamma function) or that
# raise where it does not. What cannot be had so is written out: x * x for x**2, `raised` for x**k.

_worlds: dict[int, dict[str, Any]] = {}  # of modules


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
