"""The project's own promises: imports follow the flow, and compiled code is kept while it is right."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rooms import rooms_imported

import saver

ROOT = Path(__file__).parents[2]
FLOW = [
    "problem",
    "design",
    "safety",
    "estimate",
    "figures",
    "collect",
    "simulator",
    "engine",
    "scenarios",
    "theory",
    "experiments",
    "data",
    "journal",
    "cli",
]


def modules(path):
    """The packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
    return found


def test_every_folder_imports_only_from_folders_to_its_left():
    package = ROOT / "src" / "saver"
    wrong = [
        f"{path.relative_to(package)} imports {room}"
        for path in package.rglob("*.py")
        if (here := path.relative_to(package).parts[0]) in FLOW
        for room in rooms_imported(path)
        if room in FLOW and FLOW.index(room) > FLOW.index(here)
    ]
    assert wrong == []


def test_no_import_hides_from_the_test_of_arrows(tmp_path):
    path = tmp_path / "file.py"
    path.write_text(
        "import saver, saver.cli.main\nfrom saver import simulate\nplace = 'saver.journal.sql:x'\n"
        "def f():\n    from saver.data import fit\n    return saver.diagnose, 'saver.save of words'\n"
    )
    assert set(rooms_imported(path)) == {"cli", "engine", "journal", "data", "theory"}


def test_the_version_stands_in_the_package_alone():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in told["project"]
    assert told["project"]["dynamic"] == ["version"]
    source = ROOT / told["tool"]["hatch"]["version"]["path"]
    assert re.findall(r'^__version__ = "(.+)"$', source.read_text("utf-8"), re.M) == [saver.__version__]


@pytest.mark.parametrize(
    ("heavy", "rooms"), [("rich", {"cli"}), ("typer", {"cli"}), ("matplotlib", {"figures"})]
)
def test_terminals_and_pictures_are_known_to_one_room_each(heavy, rooms):
    package = ROOT / "src" / "saver"
    found = {path.relative_to(package).parts[0] for path in package.rglob("*.py") if heavy in modules(path)}
    assert found == rooms


def python(package_root, code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "", "PYTHONPATH": str(package_root), **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def cache_folder(package_root, **environment):
    code = "from saver._jit import cache_folder; print(cache_folder())"
    return python(package_root, code, **environment).stdout.strip()


def test_an_edit_of_a_watched_source_moves_the_cache_of_compiled_code(tmp_path):
    package = tmp_path / "saver"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name in ("_jit.py", "_files.py"):
        (package / name).write_text((ROOT / "src" / "saver" / name).read_text())
    (package / "callee.py").write_text("x = 1\n")
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    before = cache_folder(tmp_path, **home)
    assert before.startswith(str(tmp_path / "cache"))
    assert cache_folder(tmp_path, **home) == before
    (package / "theory").mkdir()
    (package / "theory" / "plain.py").write_text("x = 1\n")
    assert cache_folder(tmp_path, **home) == before  # nothing there is compiled
    (package / "callee.py").write_text("x = 2\n")
    assert cache_folder(tmp_path, **home) != before


def test_folders_that_the_cache_does_not_watch_hold_nothing_compiled():
    from saver._jit import PLAIN

    watched = [room for room in FLOW if room not in PLAIN]
    for room in PLAIN:
        for path in (ROOT / "src" / "saver" / room).rglob("*.py"):
            assert "saver._jit" not in path.read_text(encoding="utf-8"), path
    for room in watched:
        for path in (ROOT / "src" / "saver" / room).rglob("*.py"):
            assert PLAIN.isdisjoint(rooms_imported(path)), path


def test_without_a_writable_folder_nothing_is_cached_nothing_fails_and_it_is_said_once(tmp_path):
    (tmp_path / "file").write_text("")
    closed = tmp_path / "file" / "below"
    code = "import saver; from saver._jit import cache_folder; print(cache_folder())"
    code += "; import saver.figures.style as style; style.figure(1, 1, 1, 1).__enter__()"
    done = python(ROOT / "src", code, XDG_CACHE_HOME=str(closed), HOME=str(closed))
    assert done.stdout == "None\n"
    assert done.stderr.count("cannot") == 1
    assert f"saver cannot keep its compiled code ([Errno 20] Not a directory: '{closed}" in done.stderr
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in done.stderr
    assert "atplotlib" not in done.stderr
