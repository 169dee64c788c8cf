"""Ctrl-C while the command `saver` is still being imported ends it at once, without a traceback.

It is imported before everything else. Other programs that import the package are left alone.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path


def is_command(argv: list[str], asked: list[str]) -> bool:
    """Whether this process is the command: `saver ...`, or `python -m saver ...` as it was asked for."""
    module = "-m" in asked and asked[asked.index("-m") + 1 :][:1] == ["saver"]
    return module or Path("".join(argv[:1])).stem == "saver"


def release() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again."""
    if _held:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_held = is_command(sys.argv, sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _held:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
