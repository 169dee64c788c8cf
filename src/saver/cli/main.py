"""Runs a command; whatever goes wrong is one line and an exit code."""

from __future__ import annotations

import sys
from typing import Any

import typer

from saver.cli.commands import app
from saver.errors import SaverError

USAGE, STOPPED = 2, 130
_Refused: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def main() -> None:
    """The entry point."""
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    """0 if all went well, 2 for what the user can mend, 130 after Ctrl-C."""
    try:
        code = app(arguments, prog_name="saver", standalone_mode=False)
        if code == STOPPED:  # some versions of typer turn Ctrl-C into this
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except _Refused as refused:
        return _say(f"{' '.join(refused.format_message().split())} (saver --help)")
    except SaverError as error:
        return _say(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}")
    except (KeyboardInterrupt, typer.Abort):
        _say("stopped; what is complete is kept, and the same command goes on from there")
        return STOPPED


def _say(text: str) -> int:
    print(f"saver: {text}", file=sys.stderr)
    return USAGE
