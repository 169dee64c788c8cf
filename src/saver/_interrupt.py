"""Ctrl-C: where it ends the command at once, and where it waits.

While the command `saver` is still being imported it ends it without a traceback: this file is imported before
everything else. What a command imports later is waited for, but not for long. Other programs that import the
package are left alone.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enums of numbers, which takes ten times as long
import os
import sys


def is_command(argv: list[str], asked: list[str]) -> bool:
    """Whether this process is the command: `saver ...`, or `python -m saver ...` as it was asked for."""
    module = "-m" in asked and asked[asked.index("-m") + 1 :][:1] == ["saver"]
    return module or os.path.splitext(os.path.basename("".join(argv[:1])))[0] == "saver"


SIGINT = int(_signal.SIGINT)
_held = is_command(sys.argv, sys.orig_argv) and _signal.getsignal(SIGINT) is _signal.default_int_handler
if _held:
    _signal.signal(SIGINT, _signal.SIG_DFL)

# ruff: noqa: E402  (from here on Ctrl-C is held)
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

AGAIN, PATIENCE = 0.02, 0.8  # seconds
CURSOR = "\x1b[?25h"  # shows it again: who draws progress hides it


def release() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again."""
    if _held:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: Any) -> None:
    """As usual, but not where an exception may be lost: in an import, or in what loads compiled code.

    Their end is waited for; an import that takes longer ends the command at once.
    """
    _presses.append(time.monotonic())
    frames = list(_frames(frame))
    importing = any(one.f_code.co_filename.startswith("<frozen importlib.") for one in frames)
    loading = any(one.f_globals.get("__name__", "").startswith("llvmlite.") for one in frames)
    if importing and _presses[-1] > _presses[0] + PATIENCE:
        _end(number)
    if importing or loading:
        again = threading.Timer(AGAIN, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    signal.default_int_handler(number, frame)


def _end(number: int) -> None:
    if sys.stderr.isatty():
        print(CURSOR, end="", file=sys.stderr, flush=True)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _frames(frame: Any) -> Iterator[Any]:
    """That of a call, of its caller, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def pressed() -> bool:
    """Whether the command was interrupted."""
    return bool(_presses)


def noted() -> bool:
    """Whether a block of `postponed` is asked to end: what can be given up there is given up."""
    return bool(_notes) and threading.get_ident() == threading.main_thread().ident


@contextmanager
def postponed(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C in the block calls `stop`, and is raised when the block has ended; a second one at once.

    A KeyboardInterrupt anywhere in the middle may leave locks taken and threads running in compiled code.
    """
    usual, waits = signal.default_int_handler, False
    main = threading.get_ident() == threading.main_thread().ident
    if not main or _signal.getsignal(SIGINT) is not usual:
        yield
        return

    def note(number: int, frame: Any) -> None:
        nonlocal waits
        waits = True
        _notes.append(number)
        _signal.signal(SIGINT, usual)
        stop()

    _signal.signal(SIGINT, note)
    try:
        yield
    finally:
        _signal.signal(SIGINT, usual)
        _notes.clear()
    if waits:
        raise KeyboardInterrupt


_presses: list[float] = []  # when
_notes: list[int] = []  # presses that blocks of `postponed` have still to raise
