"""What the sources say of imports: which rooms a file imports, and which names a package loads late."""

import ast
import re
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"
PLACE = re.compile(r"saver\.(\w+)[\w.]*(?::\w+)?")  # of a late name


def rooms_imported(path):
    """The rooms that a file imports, anywhere in it, or reaches through the package: `saver.simulate`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in names_used(node):
            place = late_names("")[1].get(name, f"saver.{name}")
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
    """What the package `room` loads late, by its first half, which type checkers see, and by its second."""
    text = (SOURCES / "saver" / room / "__init__.py").read_text(encoding="utf-8")
    both = next((node for node in ast.parse(text).body if isinstance(node, ast.If)), None)
    if both is None:
        return {}, {}
    assert ast.unparse(both.test) == "TYPE_CHECKING"
    seen = {}
    for node in both.body:
        for alias in node.names:
            mark = "." if node.module == f"saver.{room}".rstrip(".") else ":"  # a room, or what is in one
            seen[alias.asname or alias.name] = f"{node.module}{mark}{alias.name}"
    (table,) = [node for node in ast.walk(both.orelse[0]) if isinstance(node, ast.Dict)]
    return seen, ast.literal_eval(table)
