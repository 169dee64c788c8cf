"""Value types to plain data (numbers, strings, lists, dicts) and back: for files, states and events.

A type takes part by `@portable("name")`; its fields travel by name, and those at their default stay at home:
a field that is added later, with a default, changes neither a file nor a fingerprint; those that the
constructor does not take are derived, and stay too. Numbers come back bit
by bit. Arrays are written to be read (`pack(value)`: flat, without their zeros where most are zero) or to be
small (`pack(value, small=True)`), those of a `few` entries as they are, of one axis under the name of their
kind: that takes less time.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import os
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from saver._files import written
from saver.errors import InvalidData, SaverError

TAG = "~"
MOST = 2**28  # entries of an array
SPARSE = 0.5  # an array with fewer entries than this share is written without its zeros
NAMES: dict[type, str] = {}
STORED: dict[type, dict[str, str]] = {}
T = TypeVar("T")
Reader = Callable[[dict[str, Any]], Any]
_READERS: dict[str, Reader] = {}  # by the name that stands under TAG
PLAIN, NESTED = {type(None), bool, int, str}, (list, dict)  # of JSON
FORMAT = 1  # of files
BROKEN = (
    KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError, RecursionError, zlib.error,
)  # fmt: skip
DTYPES = {"f8": np.float64, "i8": np.int64, "u1": np.uint8, "u2": np.uint16, "b1": np.bool_}


def portable(name: str, **stored: str) -> Callable[[type[T]], type[T]]:
    """Let a dataclass be packed, under this name; `stored`: fields that travel under another name."""

    def register(cls: type[T]) -> type[T]:
        NAMES[cls], STORED[cls], _READERS[name] = name, stored, partial(_of_fields, cls)
        return cls

    return register


def pack(value: Any, *, small: bool = False, few: int = 0) -> Any:  # noqa: PLR0911  (one for each kind)
    """Plain data."""
    kind = type(value)
    if kind in PLAIN or (kind is float and math.isfinite(value)):
        return value
    if kind in NAMES:
        return _pack_fields(value, small, few)
    if isinstance(value, np.ndarray):
        labels = value.dtype.kind == "O"
        return pack(value.tolist()) if labels else _pack_array(value, small, few)
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {TAG: "number", "is": repr(float(value))}
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, list | tuple):
        return [pack(item, small=small, few=few) for item in value]
    if isinstance(value, set | frozenset):
        return {TAG: "set", "of": sorted(value)}
    if isinstance(value, dict):
        if all(isinstance(key, str) and key != TAG for key in value):
            return {key: pack(item, small=small, few=few) for key, item in value.items()}
        items = [[pack(key), pack(item, small=small, few=few)] for key, item in value.items()]
        return {TAG: "dict", "of": items}
    if sparse.issparse(value):
        return _pack_sparse(value)
    return _pack_fields(value, small, few)


def unpack(plain: Any) -> Any:
    """Back from plain data."""
    if isinstance(plain, list):
        return [unpack(item) if isinstance(item, NESTED) else item for item in plain]
    if not isinstance(plain, dict):
        return plain
    if isinstance(plain.get(TAG), str) and plain[TAG] in _ARRAYS:
        return _ARRAYS[plain[TAG]](plain)  # its entries are not looked at one by one
    return _made({key: unpack(item) if isinstance(item, NESTED) else item for key, item in plain.items()})


def read(text: str) -> Any:
    """Back from JSON: as `unpack` of what `json` reads, and sooner."""
    found, end = _decode(text)
    if end < len(text):
        raise InvalidData(f"something follows its end, after {end} characters")
    return found


def _made(plain: dict[str, Any]) -> Any:
    """What a dict stands for, all in it made before."""
    if TAG not in plain:
        return plain
    name = plain[TAG]
    if not isinstance(name, str) or name not in _READERS:
        raise InvalidData(f"it holds a {name!r}, which this version does not know")
    return _READERS[name](plain)


def fingerprint(*values: Any) -> str:
    """A hash of what the values say, whatever this version calls its defaults."""
    text = json.dumps([pack(value) for value in values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _pack_fields(value: Any, small: bool, few: int) -> dict[str, Any]:
    cls: Any = type(value)
    if cls not in NAMES:
        shown = getattr(value, "__name__", cls.__name__)
        raise InvalidData(f"{shown} cannot be written: a {cls.__name__} is no plain data")
    plain: dict[str, Any] = {TAG: NAMES[cls]}
    for field, named, default, usual in _layout(cls)[0]:
        item = getattr(value, field)
        if item is default:
            continue
        kind = type(item)
        if kind is not usual or kind is np.ndarray or item != default:
            plain[named] = item if kind in PLAIN else pack(item, small=small, few=few)
    return plain


@cache
def _layout(cls: Any) -> tuple[list[tuple[str, str, Any, type]], set[str], list[str]]:
    """The fields that travel, under which names, what they need not say, and of which type that is.

    And the names of all fields, and of those that are tuples, which JSON gives back as lists.
    """
    fields, absent = dataclasses.fields(cls), dataclasses.MISSING
    usual = [(f, f.default if f.default_factory is absent else f.default_factory()) for f in fields if f.init]
    stored = STORED.get(cls, {})
    written = [(f.name, stored.get(f.name, f.name), default, type(default)) for f, default in usual]
    tuples = [field.name for field in fields if str(field.type).startswith("tuple")]
    return written, {TAG, *(stored.get(field.name, field.name) for field in fields)}, tuples


def _of_fields(cls: type, plain: dict[str, Any]) -> Any:
    (_, known, tuples), given = _layout(cls), plain.copy()
    if not given.keys() <= known:
        other = next(name for name in given if name not in known)
        raise InvalidData(f"it has {other!r} in a {plain[TAG]}, which this version does not know")
    del given[TAG]
    for name, named in STORED.get(cls, {}).items():
        if named in given:
            given[name] = given.pop(named)
    for name in tuples:
        if name in given:
            given[name] = tuple(given[name])
    return cls(**given)


def _pack_array(value: Any, small: bool, few: int) -> dict[str, Any]:
    kind, flat = _kind(value.dtype), value.ravel()
    plain: dict[str, Any] = {TAG: "array", "kind": kind, "shape": list(value.shape)}
    if small and not (few and value.size <= few):
        data = np.ascontiguousarray(value).astype(f"<{kind}", copy=False).tobytes()
        return {**plain, "zip": base64.b64encode(zlib.compress(data, 1)).decode()}
    if small and value.ndim == 1:
        return {TAG: kind, "is": _numbers(value)}
    if not small and len(at := np.flatnonzero(flat)) < SPARSE * flat.size:
        return {**plain, "at": at.tolist(), "is": _numbers(flat[at])}
    return {**plain, "is": _numbers(flat)}


def _pack_sparse(value: Any) -> dict[str, Any]:
    rows = sparse.coo_array(value)
    return {
        TAG: "sparse", "shape": list(value.shape), "row": rows.coords[0].tolist(),
        "column": rows.coords[1].tolist(), "is": _numbers(rows.data),
    }  # fmt: skip


@cache
def _kind(dtype: Any) -> str:
    kind = f"{dtype.kind}{dtype.itemsize}"
    if kind not in DTYPES:
        raise InvalidData(f"an array of {dtype} cannot be written")
    return kind


def _numbers(values: Any) -> list[Any]:
    plain: list[Any] = values.tolist()
    if values.dtype.kind == "f" and not all(map(math.isfinite, plain)):
        return [pack(item) for item in plain]
    return plain


def _read_array(plain: dict[str, Any]) -> Any:
    dtype, shape = DTYPES[plain["kind"]], tuple(plain["shape"])
    if len(shape) == 1 and "is" in plain and len(plain["is"]) == shape[0]:
        return _entries(plain["is"], dtype)
    shape = tuple(map(int, shape))
    count = math.prod(shape)
    if min((*shape, 0)) < 0 or count > MOST:
        raise InvalidData(f"an array claims the shape {shape}")
    if "zip" in plain:
        room = count * np.dtype(dtype).itemsize
        data = zlib.decompressobj().decompress(base64.b64decode(plain["zip"], validate=True), room + 1)
        if len(data) != room:
            raise InvalidData(f"an array of the shape {shape} holds another number of bytes")
        return np.frombuffer(data, dtype=f"<{plain['kind']}").astype(dtype).reshape(shape)
    values = _entries(plain["is"], dtype)
    if "at" not in plain:
        return values.reshape(shape)
    flat: Any = np.zeros(count, dtype=dtype)
    flat[np.array(plain["at"], dtype=np.int64)] = values
    return flat.reshape(shape)


def _entries(given: Any, dtype: Any) -> Any:
    try:
        return np.array(given, dtype=dtype)
    except TypeError:  # some are no JSON numbers
        return np.array(unpack(given), dtype=dtype)


def _read_sparse(plain: dict[str, Any]) -> Any:
    rows, columns = map(int, plain["shape"])
    if rows < 0 or columns < 0 or rows > MOST or columns > MOST:
        raise InvalidData(f"a table claims the shape {(rows, columns)}")
    at = np.array(plain["row"], dtype=np.int64), np.array(plain["column"], dtype=np.int64)
    values = _entries(plain["is"], np.float64)
    return sparse.coo_array((values, at), shape=(rows, columns)).tocsr()


_ARRAYS: dict[str, Reader] = {
    "array": _read_array,
    "sparse": _read_sparse,
    **{kind: lambda plain: _entries(plain["is"], DTYPES[plain[TAG]]) for kind in DTYPES},
}
_READERS |= _ARRAYS | {
    "number": lambda plain: float(plain["is"]),
    "set": lambda plain: set(plain["of"]),
    "dict": lambda plain: {tuple(key) if isinstance(key, list) else key: item for key, item in plain["of"]},
}
_decode = json.JSONDecoder(object_hook=_made).raw_decode


# -- files: JSON that says what it holds and runs nothing when read --


def save(value: Any, path: str | os.PathLike[str]) -> None:
    """Write a problem, a collector, a scenario or a part of one to a JSON file, whole or not at all."""
    if isinstance(value, str | os.PathLike):
        raise InvalidData(f"the first argument is the path {value!r}; call saver.save(value, path)")
    plain = pack(value)
    if not isinstance(plain, dict) or TAG not in plain:
        raise InvalidData(
            f"{type(value).__name__} was given; saver.save writes problems, collectors, scenarios and worlds"
        )
    text = _text({"saver": FORMAT, "holds": plain})
    with written(Path(path)) as partial:
        partial.write_text(text + "\n", encoding="utf-8")


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
