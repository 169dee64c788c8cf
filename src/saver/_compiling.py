"""Nobody waits for the compiler in silence: it is said once, a bar moves, and Ctrl-C ends the wait at once.

The compiler works in a thread of its own, because a call into it lasts for seconds in which Python hears
nothing. After Ctrl-C it ends there by itself, before the next function; what it has made until then is kept.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from numba.core import event

from saver import _interrupt

SILENT = 2.0  # seconds of compiling, in all, before it is said
TICK = 0.1  # seconds
WIDTH, BLOCK = 24, 6  # of the bar, and of what moves in it
STACK = 64 * 2**20  # bytes: the compiler nests deeply, and some systems give threads little
LAST = 1.0  # seconds that the end of a process waits for a function that nobody wants any more
SAID = "saver: compiling for this processor, once for this version; `saver warm` does it beforehand"


class _Heard(event.Listener):  # type: ignore[misc]
    """Counts the functions that were compiled, and stops a thread that is not waited for before the next."""

    functions = 0

    def on_start(self, heard: Any) -> None:
        if getattr(threading.current_thread(), "unwanted", False):
            raise KeyboardInterrupt

    def on_end(self, heard: Any) -> None:
        self.functions += 1


_heard = _Heard()
_spent, _said = 0.0, False
_threads: list[_Work] = []  # that may still be at work


class _Work(threading.Thread):
    """One call in a thread."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(name="saver compiles", daemon=True)
        self.call, self.unwanted = call, False
        self.found: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.found = self.call()
        except BaseException as error:
            self.error = error


def watched(call: Callable[[], Any]) -> Any:
    """The result of a call that compiles."""
    global _spent
    if isinstance(threading.current_thread(), _Work):
        return call()
    work, began = _started(call), time.monotonic()
    try:
        while work.is_alive():
            work.join(TICK)
            _show(_spent + time.monotonic() - began)
            if _interrupt.noted():
                raise KeyboardInterrupt
    except BaseException:
        work.unwanted = True
        raise
    finally:
        _clear()
        _spent += time.monotonic() - began
    _threads.remove(work)
    if work.error is not None:
        raise work.error
    return work.found


def _started(call: Callable[[], Any]) -> _Work:
    if not _threads and not _heard.functions:
        event.register("numba:compile", _heard)
        atexit.register(_leave)
    work = _Work(call)
    before = threading.stack_size(STACK)
    try:
        work.start()
    finally:
        threading.stack_size(before)
    _threads.append(work)
    return work


def _show(seconds: float) -> None:
    """Say that it compiles, once, and move the bar where there is a terminal."""
    global _said
    if seconds < SILENT or sys.stderr is None:
        return
    if not _said:
        _said = True
        print(SAID, file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        place = abs(int(seconds / TICK) % (2 * (WIDTH - BLOCK)) - (WIDTH - BLOCK))
        bar = " " * place + "#" * BLOCK + " " * (WIDTH - BLOCK - place)
        told = f"{_heard.functions} functions, {seconds:.0f} s"
        print(f"\rsaver: [{bar}] {told}", end="", file=sys.stderr, flush=True)


def _clear() -> None:
    if _said and sys.stderr is not None and sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _leave() -> None:
    """At the end of the process: machine code must not be made while its compiler is taken down."""
    for work in _threads:
        work.unwanted = True
        if getattr(sys, "last_type", None) is KeyboardInterrupt or _interrupt.pressed():
            work.join(LAST)
            if work.is_alive():
                for stream in (sys.stdout, sys.stderr):
                    if stream is not None:
                        stream.flush()
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGINT)
        work.join()
