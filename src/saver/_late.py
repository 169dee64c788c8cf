"""Names of a package that are loaded when they are used (PEP 562)."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


def late(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, as the stub beside it says, and of its rooms."""
    folder = os.path.dirname(str(sys.modules[package].__file__))
    places = dict(stated(os.path.join(folder, "__init__.pyi")))
    rooms = {room.name: f"{package}.{room.name}" for room in os.scandir(folder) if room.is_dir()}

    def load(name: str) -> Any:
        place = places.get(name) or (rooms.get(name) if name.isidentifier() else None)
        if place is None or name.startswith("_"):
            # said without the package itself, to which Python would add a guess of its own
            raise AttributeError(_missing(package, name, places), name=name)
        module, _, inside = place.partition(":")
        found = import_module(module)
        if inside:
            found = getattr(found, inside)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        shown = (name for name in rooms if not name.startswith("_"))
        return sorted({*places, *shown, *(name for name in vars(sys.modules[package]) if name != "late")})

    return load, names, sorted(places)


def stated(stub: str) -> Iterator[tuple[str, str]]:
    """The names that a stub imports, each with its place: "module:name", or a room."""
    folder = os.path.dirname(stub)
    with open(stub, encoding="utf-8") as file:
        body = ast.parse(file.read()).body
    for node in body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inside = str(node.module) == "saver" and os.path.basename(folder) == "saver"
                yield alias.asname or alias.name, f"{node.module}{'.' if inside else ':'}{alias.name}"


def moved(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """`__getattr__` of a package some of whose names stand elsewhere now: the error says where."""

    def refuse(name: str) -> Any:
        if name in places:  # `from package import name` would hide what an AttributeError says
            raise ImportError(f"{package}.{name} is {places[name]} now")
        raise AttributeError(_missing(package, name, places), name=name)

    return refuse


def renamed(**names: str) -> Callable[[Any, str], Any]:
    """`__getattr__` of a class some of whose fields have other names now: the error says which."""

    def refuse(self: Any, name: str) -> Any:
        said = f"; it is {names[name]} now" if name in names else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{said}", name=name)

    return refuse


def _missing(package: str, name: str, places: Mapping[str, str]) -> str:
    from difflib import get_close_matches

    near = [] if name.startswith("_") else get_close_matches(name, [*vars(sys.modules[package]), *places], 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"module {package!r} has no attribute {name!r}{hint}"
