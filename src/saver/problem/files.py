"""Problems, collectors and worlds as files: JSON that says what it holds and runs nothing when read."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from saver._files import replacing
from saver.errors import InvalidData, SaverError
from saver.problem.codec import TAG, pack, unpack

FORMAT = 1
BROKEN = (
    KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError, RecursionError, zlib.error,
)  # fmt: skip


def save(value: Any, path: str | os.PathLike[str]) -> None:
    """Write a problem, a collector, a scenario or a part of one to a JSON file, whole or not at all."""
    if isinstance(value, str | os.PathLike):
        raise InvalidData(f"the first argument is the path {value!r}; call saver.save(value, path)")
    target = Path(path)
    text = _text({"saver": FORMAT, "holds": _typed(value)})
    try:
        with replacing(target) as partial:
            partial.write_text(text + "\n", encoding="utf-8")
    except OSError as cause:
        raise InvalidData(f"cannot write {target}: {cause.strerror}; give another path") from None


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` wrote."""
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as cause:
        raise InvalidData(f"cannot read {path}: {cause.strerror}; give another path") from None
    except (ValueError, RecursionError) as cause:
        raise InvalidData(f"{path} is not a file that saver.save wrote: {cause}") from None
    if not isinstance(plain, dict) or "saver" not in plain or "holds" not in plain:
        raise InvalidData(f"{path} is not a file that saver.save wrote: it does not say what it holds")
    if plain["saver"] != FORMAT:
        raise InvalidData(f"{path} has format {plain['saver']!r}; this version reads {FORMAT}")
    try:
        return unpack(plain["holds"])
    except SaverError as cause:
        raise InvalidData(f"{path} cannot be read: {cause}") from None
    except BROKEN as cause:
        raise InvalidData(f"{path} is not a file that saver.save wrote: {cause!r}") from None


def _text(plain: Any, indent: str = "\n") -> str:
    """JSON with a line for each entry of a dict, and lists of numbers side by side."""
    deeper = indent + " "
    if isinstance(plain, dict):
        lines = [f"{deeper}{json.dumps(key)}: {_text(item, deeper)}" for key, item in plain.items()]
        return f"{{{','.join(lines)}{indent}}}" if lines else "{}"
    if isinstance(plain, list) and any(isinstance(item, dict | list) for item in plain):
        return f"[{','.join(deeper + _text(item, deeper) for item in plain)}{indent}]"
    return json.dumps(plain, allow_nan=False)


def _typed(value: Any) -> dict[str, Any]:
    plain = pack(value)
    if not isinstance(plain, dict) or TAG not in plain:
        raise InvalidData(
            f"{type(value).__name__} was given; saver.save writes problems, collectors, scenarios and worlds"
        )
    return plain
