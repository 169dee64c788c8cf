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
ROOMS = [  # each imports only from those before it
    *("problem", "play", "kernels", "design", "safety", "estimate", "figures", "monitors", "collect"),
    *("simulator", "engine", "scenarios", "theory", "data", "experiments", "journal", "service", "cli"),
]
FREE = {"errors"}  # as are the underscored files of the package: any room imports them


def modules(path):
    """The packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
    return found


def against_the_flow(package):
    """Imports between rooms that go against the one order, and files of rooms that are in none."""
    for path in sorted(package.rglob("*.py")):
        *folders, name = path.relative_to(package).parts
        here = folders[0] if folders else name.removesuffix(".py")
        if folders and here not in ROOMS:
            yield f"{path.relative_to(package)} stands in no room"
        for room in sorted(set(rooms_imported(path)) - {here}):
            if room in ROOMS:
                allowed = here in ROOMS and ROOMS.index(room) < ROOMS.index(here)
            else:
                allowed = room.startswith("_") or room in FREE
            if not allowed and here not in ("__init__", "__main__"):  # the faces of all
                yield f"{path.relative_to(package)} imports {room}"


def test_every_room_imports_only_from_rooms_before_it():
    assert list(against_the_flow(ROOT / "src" / "saver")) == []


def test_an_import_against_the_flow_is_found_wherever_it_is(tmp_path):
    for place, text in {
        "collect/state.py": "def f():\n    from saver.simulator.player import Player\n",
        "simulator/truth.py": "import saver.journal.memory\n",
        "journal/memory.py": "from saver.problem import Episode, checks\nimport saver._jit\n",
        "attic/old.py": "from saver.errors import InvalidData\n",
        "_late.py": "from saver.problem import Mdp\n",
    }.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    assert list(against_the_flow(tmp_path)) == [
        "_late.py imports problem",
        "attic/old.py stands in no room",
        "collect/state.py imports simulator",
        "simulator/truth.py imports journal",
    ]


def test_no_import_hides_from_the_test_of_arrows(tmp_path):
    path = tmp_path / "file.py"
    path.write_text(
        "import saver, saver.cli.main\nfrom saver import simulate\nplace = 'saver.journal.sql:x'\n"
        "def f():\n    from saver.data import fit\n    return saver.diagnose, 'saver.save of words'\n"
    )
    assert set(rooms_imported(path)) == {"cli", "engine", "journal", "data", "theory"}


def test_the_audit_is_imported_where_it_is_run_and_nowhere_else():
    package = ROOT / "src" / "saver"
    found = {path.relative_to(package) for path in package.rglob("*.py") if "saver_audit" in modules(path)}
    assert found == {Path("experiments", "face.py"), Path("cli", "commands.py")}


def test_all_that_the_wheel_holds_is_given_to_the_image():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    dockerfile, seen = (
        (ROOT / name).read_text(encoding="utf-8").splitlines() for name in ("Dockerfile", ".dockerignore")
    )
    for package in map(Path, told["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]):
        assert (ROOT / package / "__init__.py").exists()
        top = package.parts[0]
        assert f"COPY {top} ./{top}" in dockerfile
        assert f"!{top}" in seen


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
