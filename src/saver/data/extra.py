"""Packages that only some readers need: imported when they are used, and named when they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from saver.errors import SaverError


def gymnasium(part: str = "") -> Any:
    """Gymnasium, or a part of it such as "vector.utils"."""
    try:
        return importlib.import_module(f"gymnasium.{part}" if part else "gymnasium")
    except ImportError:
        raise SaverError("this needs Gymnasium 1.1 or newer: pip install 'saver-rl[gym]'") from None
