"""What the sources say of imports: which rooms a file imports, and which names a package loads late."""

import ast
import re
from functools import cache
from pathlib import Path

from saver._late import stated

SOURCES = Path(__file__).parents[1] / "src"
PLACE = re.compile(r"saver\.(\w+)[\w.]*(?::\w+)?")  # of a late name


def rooms_imported(path):
    """The rooms that a file imports, anywhere in it, or reaches through the package: `saver.simulate`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in names_used(node):
            place = late_names("").get(name, f"saver.{name}")
            yield re.split(r"[.:]", place)[1]


def names_used(node):
    """Of the package `saver`, by one piece of a program."""
    match node:
        case ast.ImportFrom(module="saver", names=aliases):
            return [alias.name for alias in aliases]
        case ast.ImportFrom(module=str(module)) if module.startswith("saver."):
            return [module.split(".")[1]]
        case ast.Import(names=aliases):
            return [alias.name.split(".")[1] for alias in aliases if alias.name.startswith("saver.")]
        case ast.Attribute(value=ast.Name(id="saver"), attr=name):
            return [name]
        case ast.Constant(value=str(text)) if place := PLACE.fullmatch(text):
            return [place[1]]
    return []


@cache
def late_names(room):
    """What the package `room` loads late: the place of each name of its stub."""
    return dict(stated(str(SOURCES / "saver" / room / "__init__.pyi")))
