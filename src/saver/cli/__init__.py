"""The command `saver`."""

from saver.cli.main import main

__all__ = ["main"]
