"""Rooms are loaded when they are used, and nobody can tell but by the time."""

import importlib
import json
import subprocess
import sys

import pytest
from rooms import SOURCES, late_names

import saver

LATE = ("", "data")
HEAVY = {"matplotlib", "typer", "rich", "scipy.stats", "pandas", "pyarrow", "minari", "gymnasium"}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_saver_loads_nothing_and_its_names_no_more_than_they_need():
    code = """
import json, sys
loaded = []
for step in ("import saver", "saver.Campaign, saver.SCENARIOS, saver.Player",
             "[getattr(saver, name) for name in saver.__all__]"):
    exec(step)
    loaded.append(sorted(sys.modules))
print(json.dumps(loaded))
"""
    bare, used, whole = map(set, json.loads(run(code)))
    assert {name for name in bare if name.startswith("saver")} == {"saver", "saver._interrupt", "saver._late"}
    assert bare.isdisjoint({"numpy", "numba", "scipy", "importlib.metadata", "difflib"} | HEAVY)
    assert used.isdisjoint({"saver.experiments", "saver.figures", "saver.journal", "saver.theory"} | HEAVY)
    assert whole.isdisjoint({"saver_audit", "saver.cli"} | HEAVY)


@pytest.mark.parametrize("room", LATE)
def test_a_package_has_the_names_of_its_stub_which_type_checkers_read(room):
    package, names = importlib.import_module(f"saver.{room}".rstrip(".")), late_names(room)
    assert package.__all__ == sorted(names)
    assert {*names} <= {*dir(package)}
    assert all(getattr(package, name) is not None for name in names)
    hidden = {"collect", "engine", "figures", "simulator"} if not room else set()
    assert hidden <= {*dir(package)} - {*package.__all__}


@pytest.mark.parametrize("room", LATE)
def test_late_names_are_no_files_whose_import_would_take_their_place(room):
    folder = SOURCES / "saver" / room
    files = {path.stem for path in folder.iterdir()}
    for name, place in late_names(room).items():
        assert (name in files) == (":" not in place), name


def test_all_packages_with_late_names_are_compared():
    packages = [path.parent for path in (SOURCES / "saver").rglob("__init__.py")]
    late = {path for path in packages if "late(" in (path / "__init__.py").read_text(encoding="utf-8")}
    assert late == {SOURCES / "saver" / room for room in LATE}


@pytest.mark.parametrize(
    "first",
    ["", "import saver.engine.simulate, saver.data.fitting, saver.design.exact, saver.journal.opening"],
)
def test_names_are_what_they_were_whatever_was_imported_before(first):
    code = f"""
import sys
{first}
import saver
assert set(saver.__all__) < set(dir(saver))
for name, place in {late_names("")!r}.items():
    module, _, inside = place.partition(":")
    found = getattr(saver, name)
    assert found is (getattr(sys.modules[module], inside) if inside else sys.modules[module]), name
    assert vars(saver)[name] is found, name
import saver.engine.simulate, saver.theory.diagnosis, saver.problem.codec
from saver import *
assert globals().keys() >= set(saver.__all__)
for made in (simulate, saver.engine.simulate, diagnose, open, load, save, data.problem, design.exact):
    assert type(made) is type(lambda: 0), made
"""
    run(code)


def test_a_misspelt_name_is_an_attribute_error_that_knows_a_near_one():
    with pytest.raises(AttributeError) as caught:
        saver.Campain  # noqa: B018
    assert str(caught.value) == "module 'saver' has no attribute 'Campain'; did you mean 'Campaign'?"
    assert caught.value.obj is None  # or Python adds its own guess
    with pytest.raises(AttributeError, match=r"^module 'saver.data' has no attribute 'zzz'$"):
        saver.data.zzz  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Campain' from 'saver'"):
        from saver import Campain  # noqa: F401
    assert not hasattr(saver, "__wrapped__")


def test_a_name_that_moved_says_where_it_is():
    with pytest.raises(ImportError, match=r"^saver.safety.Stage is saver.play.Stage now$"):
        from saver.safety import Stage  # noqa: F401
    with pytest.raises(AttributeError, match=r"no attribute 'LEDGER'; did you mean 'LEDGERS'"):
        saver.safety.LEDGER  # noqa: B018


def test_the_audit_has_a_package_of_its_own_which_is_imported_when_it_runs():
    with pytest.raises(ImportError, match=r"^saver.experiments.auditing is saver_audit now$"):
        from saver.experiments import auditing  # noqa: F401
    code = "import sys, saver, saver.cli.commands; [getattr(saver, name) for name in saver.__all__]"
    assert run(f"{code}; print('saver_audit' in sys.modules)") == "False\n"


def test_the_audit_makes_its_worlds_when_they_are_used():
    code = """
from saver.problem import Bernoulli, Empirical, Gaussian, Mdp, Problem, World
def refuse(self, *arguments, **options):
    raise AssertionError("made while it is imported")
for kind in (Bernoulli, Empirical, Gaussian, Mdp, Problem, World):
    kind.__init__ = refuse
import saver_audit
"""
    run(code)
