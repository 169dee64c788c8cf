"""Runs a command; whatever goes wrong is one line and an exit code."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Any

import typer

from saver import _interrupt
from saver.errors import SaverError

USAGE, BUG, STOPPED = 2, 70, 130
_Refused: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def main() -> None:
    """The entry point."""
    _interrupt.release()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign shows another
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:  # while it was said how the command ended
        code = _stopped()
    sys.exit(code)


def _run(arguments: list[str]) -> int:  # noqa: PLR0911  (one for each kind of end)
    """0 if all went well, 2 for what the user can mend, 70 for a bug, 130 after Ctrl-C."""
    try:
        from saver.cli.commands import app

        code = app(arguments, prog_name="saver", standalone_mode=False)
        if code == STOPPED:  # some versions of typer turn Ctrl-C into this
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except _Refused as refused:
        message = " ".join(refused.format_message().split())
        place = getattr(getattr(refused, "ctx", None), "command_path", "saver")
        return _say(f"{message} ({place} --help)") if message else 0
    except SaverError as error:
        return _say(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}")
    except MemoryError as error:
        return _say(f"not enough memory: {error or 'give fewer runs or episodes'}")
    except (KeyboardInterrupt, typer.Abort):
        return _stopped()
    except Exception as bug:
        if _interrupt.pressed():
            return _stopped()
        if os.environ.get("SAVER_DEBUG"):
            raise
        _say(f"a bug: {type(bug).__name__}: {bug}; SAVER_DEBUG=1 shows where")
        return BUG


def _stopped() -> int:
    _say("stopped; nothing is half-written, and a folder of results goes on from there")
    return STOPPED


def _say(text: str) -> int:
    print(f"saver: {text}", file=sys.stderr)
    return USAGE
