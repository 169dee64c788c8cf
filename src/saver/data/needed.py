"""Packages that only this room needs, asked for when they are used."""

from __future__ import annotations

import importlib
from typing import Any

from saver.errors import SaverError


def needed(module: str, what: str, extra: str = "data") -> Any:
    """The module, or the error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.split(".", maxsplit=1)[0]
        raise SaverError(f"{what} needs {package}: pip install 'saver-rl[{extra}]'") from None
