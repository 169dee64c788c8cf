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
from contextlib import suppress
from typing import Any

from numba.core import event as events

from saver._interrupt import noted, pressed

event: Any = events
SILENT = 2.0  # seconds of compiling, in all, before it is said
TICK = 0.1  # seconds
WIDTH, BLOCK = 24, 6  # of the bar, and of what moves in it
STACK = 64 * 2**20  # bytes: the compiler nests deeply, and some systems give threads little
LAST = 1.0  # seconds that the end of a process waits for a function that nobody wants any more
SAID = "saver: compiling for this processor, once for this version; `saver warm` does it beforehand"


class _Work(threading.Thread):
    """One call in a thread."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(name="saver compiles", daemon=True)
        self.call, self.unwanted = call, False
        self.ended = threading.Event()  # an interrupted `join` takes a thread for ended that is not
        self.found: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """The call."""
        try:
            self.found = self.call()
        except BaseException as error:
            self.error = error
        finally:
            self.ended.set()


def working() -> bool:
    """Whether this is a thread that compiles, while another waits and tells."""
    return isinstance(threading.current_thread(), _Work)


def _is_terminal() -> bool:
    """Whether standard error is one, and nobody else draws on it."""
    stream = sys.__stderr__
    with suppress(ValueError):  # it was closed
        return stream is not None and sys.stderr is stream and stream.isatty()
    return False


def _say(text: str) -> None:
    """On standard error, if there is one that can be written: nobody's work ends because it cannot."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            print(text, end="", file=sys.stderr, flush=True)


class Watch(event.Listener):  # type: ignore[misc]
    """What is said of all compiling in this process."""

    def __init__(self) -> None:
        self.functions, self.seconds, self.said = 0, 0.0, False
        self.silent = False  # where somebody else says it
        self.works: list[_Work] = []  # that may not have ended
        self.drawn: Callable[[str], None] | None = None  # by whom: told how far it is, "" at the end

    def on_start(self, heard: Any) -> None:
        """Before a function is compiled: a thread that nobody waits for ends here."""
        if getattr(threading.current_thread(), "unwanted", False):
            raise KeyboardInterrupt

    def on_end(self, heard: Any) -> None:
        """A function was compiled."""
        self.functions += 1

    def see(self, call: Callable[[], Any]) -> Any:
        """The result of a call that compiles."""
        if working():
            return call()
        work, usual = _Work(call), threading.stack_size(STACK)
        try:
            work.start()
        finally:
            threading.stack_size(usual)
        self.works.append(work)
        began, before = time.monotonic(), self.seconds
        try:
            while not work.ended.wait(TICK):
                self.seconds = before + time.monotonic() - began
                self._show()
                if noted():
                    raise KeyboardInterrupt
        except BaseException:
            work.unwanted = True
            raise
        finally:
            self._draw()
        self.works.remove(work)
        if work.error is not None:
            raise work.error
        return work.found

    def _show(self) -> None:
        """Say that it compiles, once, and move the bar where there is a terminal."""
        if not self.said and not self.silent and self.seconds >= SILENT:
            self.said = True
            _say(f"{SAID}\n")
        told, free = f"{self.functions} functions, {self.seconds:.0f} s", WIDTH - BLOCK
        place = abs(int(self.seconds / TICK) % (2 * free) - free)
        bar = " " * place + "#" * BLOCK + " " * (free - place)
        self._draw(f"compiling: {told}", f"\rsaver: [{bar}] {told}")

    def _draw(self, text: str = "", line: str = "\r\033[K") -> None:
        """A text for whoever draws it, or else a line on a terminal; nothing is left of both at the end."""
        if self.said and self.drawn is not None:
            self.drawn(text)
        elif self.said and _is_terminal():
            _say(line)

    def leave(self) -> None:
        """At the end of the process: machine code must not be made while its compiler is taken down."""
        ended = getattr(sys, "last_type", None) is KeyboardInterrupt or pressed()
        for work in self.works:
            work.unwanted = True
            work.ended.wait(LAST if ended else None)
        if not all(work.ended.is_set() for work in self.works):
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):  # as in `_say`
                    if stream is not None:
                        stream.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)


WATCH = Watch()
event.register("numba:compile", WATCH)
atexit.register(WATCH.leave)
