"""Ctrl-C: where it ends the command at once, and where it waits.

While the command `saver` is still being imported it ends it without a traceback: this file is imported before
everything else. Other programs that import the package are left alone.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enums of numbers, which takes ten times as long
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

AGAIN = 0.02  # seconds
SIGINT = int(signal.SIGINT)


def is_command(argv: list[str], asked: list[str]) -> bool:
    """Whether this process is the command: `saver ...`, or `python -m saver ...` as it was asked for."""
    module = "-m" in asked and asked[asked.index("-m") + 1 :][:1] == ["saver"]
    return module or Path("".join(argv[:1])).stem == "saver"


def release() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again."""
    if _held:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: Any) -> None:
    """As usual, but not while compiled code is loaded: an exception in a callback from C is lost there."""
    _presses.append(number)
    if _is_loading(frame):
        again = threading.Timer(AGAIN, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    signal.default_int_handler(number, frame)


def _is_loading(frame: Any) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite."):
            return True
        frame = frame.f_back
    return False


def pressed() -> bool:
    """Whether the command was interrupted."""
    return bool(_presses)


def noted() -> bool:
    """Whether a block of `postponed` is asked to end: what can be given up there is given up."""
    return _noted > 0 and threading.get_ident() == threading.main_thread().ident


@contextmanager
def postponed(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C in the block calls `stop`, and is raised when the block has ended; a second one at once.

    A KeyboardInterrupt anywhere in the middle may leave locks taken and threads running in compiled code.
    """
    global _noted
    usual, waits = signal.default_int_handler, False
    main = threading.get_ident() == threading.main_thread().ident
    if not main or _signal.getsignal(SIGINT) is not usual:
        yield
        return

    def note(number: int, frame: Any) -> None:
        global _noted
        nonlocal waits
        waits, _noted = True, _noted + 1
        _signal.signal(SIGINT, usual)
        stop()

    _signal.signal(SIGINT, note)
    try:
        yield
    finally:
        _signal.signal(SIGINT, usual)
        _noted -= waits
    if waits:
        raise KeyboardInterrupt


_presses: list[int] = []
_noted = 0
_held = is_command(sys.argv, sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _held:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
