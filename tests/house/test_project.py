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
    "play",
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


def test_the_dockerfile_passes_its_linter():
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
