"""The project's own promises: imports follow the flow, the import is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOW = [
    "problem",
    "design",
    "safety",
    "estimate",
    "figures",
    "collect",
    "engine",
    "scenarios",
    "theory",
    "experiments",
    "data",
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


def rooms_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "saver":
            rest = node.module.split(".")[1:]
            names = rest[:1] or [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".")[1] for alias in node.names if alias.name.startswith("saver.")]
        yield from names


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


@pytest.mark.parametrize(
    ("heavy", "rooms"), [("rich", {"cli"}), ("typer", {"cli"}), ("matplotlib", {"figures"})]
)
def test_terminals_and_pictures_are_known_to_one_room_each(heavy, rooms):
    package = ROOT / "src" / "saver"
    found = {path.relative_to(package).parts[0] for path in package.rglob("*.py") if heavy in modules(path)}
    assert found == rooms


@pytest.mark.parametrize(
    "heavy", ["matplotlib", "typer", "scipy.stats", "pandas", "pyarrow", "minari", "gymnasium"]
)
def test_importing_saver_leaves_heavy_packages_alone(heavy):
    code = f"import sys, saver; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
