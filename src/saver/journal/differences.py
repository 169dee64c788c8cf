"""What differs between two pieces of plain data, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MOST = 3  # differences that are said


def differing(stored: Any, given: Any) -> str:
    """The first differences."""
    found = list(_paths(stored, given, ""))
    rest = f", and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + rest


def _paths(stored: Any, given: Any, at: str) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(given, dict):
        for name in sorted({*stored, *given}):
            yield from _paths(stored.get(name), given.get(name), f"{at}.{name}" if at else name)
    elif isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        for place, (one, other) in enumerate(zip(stored, given, strict=True)):
            yield from _paths(one, other, f"{at}[{place}]")
    elif stored != given:
        yield f"{at} is {_short(given)}, and was {_short(stored)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return "the default" if value is None else text if len(text) < 60 else f"{text[:57]}..."
