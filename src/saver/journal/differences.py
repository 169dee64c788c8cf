"""What differs between two pieces of plain data, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from saver.collect.collectors import COLLECTORS

MOST = 3  # differences that are said
LONGEST = 60  # characters of a value


def differing(stored: Any, given: Any) -> str:
    """The first differences."""
    found = list(_paths(_spoken(stored), _spoken(given), ""))
    rest = f", and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + rest


def _spoken(plain: Any) -> Any:
    """With the name of its collector in the place of what that is made of."""
    names = {json.dumps(row.described(), sort_keys=True): name for name, row in COLLECTORS.items()}
    name = names.get(json.dumps(plain.get("collector"), sort_keys=True)) if isinstance(plain, dict) else None
    return plain if name is None else {**plain, "collector": name}


def short(value: Any) -> str:
    """A value as it is said in a message."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


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
