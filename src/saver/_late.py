"""Names of a package that are loaded when they are used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late(package: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, from the place of each name: "module:name", or a module."""

    def load(name: str) -> Any:
        if name not in places:
            # said without the package itself, to which Python would add a guess of its own
            raise AttributeError(_missing(package, name, places), name=name)
        module, _, inside = places[name].partition(":")
        found = import_module(module)
        if inside:
            found = getattr(found, inside)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*places, *(name for name in vars(sys.modules[package]) if name not in HIDDEN)})

    return load, names


def moved(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """`__getattr__` of a package some of whose names stand elsewhere now: the error says where."""

    def refuse(name: str) -> Any:
        if name in places:  # `from package import name` would hide what an AttributeError says
            raise ImportError(f"{package}.{name} is {places[name]} now")
        raise AttributeError(_missing(package, name, places), name=name)

    return refuse


HIDDEN = ("TYPE_CHECKING", "late")  # which a package has only to do this


def _missing(package: str, name: str, places: Mapping[str, str]) -> str:
    from difflib import get_close_matches

    near = [] if name.startswith("_") else get_close_matches(name, [*vars(sys.modules[package]), *places], 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"module {package!r} has no attribute {name!r}{hint}"
