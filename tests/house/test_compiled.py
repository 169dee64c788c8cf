"""Compiled code is found by what it was made of, and loaded whole or not at all; nobody waits in silence."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from saver._codecache import HEAD, SIZE, content, described, read
from saver.kernels.keeping import NOW

SOURCES = Path(__file__).parents[2] / "src"
TOYS = '''
"""Functions that take no time to compile."""
import math
from saver._jit import inner, jit
RATE, SHAPE = 2.0, (1, 2)

@inner
def twice(x):
    return RATE * x

@jit
def thrice(x, more=0.0):
    """Three times x."""
    return twice(x) + x + more  # with a comment

@jit
def other(x):
    return math.exp(x)
'''
SLOW = """
import time, saver._compiling as c; from numba.core import event
class Slow(event.Listener):
    def on_start(self, e): time.sleep(.4)
    def on_end(self, e): pass
c.SILENT = 0.0; event.register('numba:compile', Slow())
"""
PROGRESS = "import toys; from saver.cli import show\nwith show.progress():\n    toys.thrice(1.5)\n"
TELL = "import toys; from saver._compiling import WATCH; print(toys.thrice(1.5), WATCH.functions)"


def module(source):
    found = ModuleType("toys")
    exec(source, vars(found))
    return found


def thrice(*changes):
    source = TOYS
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    return content(module(source).thrice)


def test_comments_docstrings_lines_and_what_is_not_called_change_no_content():
    assert thrice() == thrice(
        ("Three times x.", "Thrice."), ("  # with a comment", ""), ("\n@jit", "\n\n\n@jit")
    )
    assert thrice() == thrice(("math.exp(x)", "math.exp(x) + 1.0"), ("(1, 2)", "(2, 1)"))


@pytest.mark.parametrize(
    "change",
    [
        ("RATE, SHAPE = 2.0", "RATE, SHAPE = 2.5"),  # a number that a callee names
        ("RATE * x", "RATE * x * x"),  # a callee
        ("+ x + more", "- x + more"),
        ("more=0.0", "more=1.0"),
        ("@jit\ndef thrice", "from saver._jit import brief\n@brief\ndef thrice"),  # how it is compiled
        ("RATE * x", "x * SHAPE[0]"),
    ],
)
def test_what_a_function_is_made_of_changes_its_content(change):
    assert thrice(change) != thrice()


def test_types_are_told_apart_by_the_names_of_fields():
    from collections import namedtuple

    from numba import typeof

    first, second = namedtuple("Pair", "a b"), namedtuple("Pair", "b a")
    assert described(typeof(first(1, 2.0))) != described(typeof(second(1, 2.0)))
    record = np.zeros(1, NOW)
    renamed = np.zeros(1, [("changed" if n == "row" else n, NOW[n]) for n in NOW.names])
    assert described(typeof(record)) != described(typeof(renamed))
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    assert (
        len({str(described(typeof(a))) for a in (fixed, np.zeros(2), np.zeros((2, 2)), np.zeros(2, int))})
        == 4
    )


def test_contents_are_the_same_in_every_process_whatever_was_imported_first():
    code = """
import gc, hashlib
{}
import saver.engine.simulate, saver.collect, saver.theory
from saver._codecache import content
from saver._jit import Compiled
found = sorted((one.py_func.__module__, one.py_func.__name__, content(one)) for one in gc.get_objects()
               if isinstance(one, Compiled))
assert len(found) > 250
print(hashlib.sha256(repr(found).encode()).hexdigest())
"""
    first = ("", "import saver.journal, saver.kernels.ledgers, saver.experiments")
    told = [
        python(code.format(text), PYTHONHASHSEED=str(seed), PYTHONPATH=str(SOURCES)).stdout
        for seed, text in enumerate(first)
    ]
    assert told[0] == told[1]


def python(code, **environment):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def toys(tmp_path):
    """Runs TELL, or what is given, with a cache of its own."""
    (tmp_path / "toys.py").write_text(TOYS)

    def run(code=TELL, **environment):
        usual = {"PYTHONPATH": f"{tmp_path}:{SOURCES}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        return python(code, **(usual | environment))

    run.folder = tmp_path / "cache" / "saver-rl" / "code"
    return run


def path_of(toys, name):
    """Where the entry of a function of one number is kept."""
    code = (
        f"import toys, numba; f = toys.{name}; print(f._cache.path((numba.float64,), f.targetctx.codegen()))"
    )
    return toys(code).stdout.strip()


AGAIN = """
import pathlib, toys, warnings
from saver._compiling import WATCH
from saver._codecache import HEAD, _told, write

(entry,) = pathlib.Path({folder!r}).glob("toys.thrice-*")
whole = entry.read_bytes()

def told():
    scope, before = {{"__name__": "toys"}}, WATCH.functions
    exec(pathlib.Path(toys.__file__).read_text(), scope)  # functions that have loaded nothing yet
    _told.clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        value = scope["thrice"](1.5)
    texts = [str(one.message) for one in said]
    return value, WATCH.functions - before, [entry.name in text or text[-6:] for text in texts]
"""


def test_a_damaged_entry_or_one_that_others_can_write_is_said_and_made_anew(toys):
    assert toys().stdout == "4.5 2\n"
    (entry,) = toys.folder.glob("toys.thrice-*")
    assert (toys().stdout, toys().stderr) == ("4.5 0\n", "")
    whole = entry.read_bytes()
    assert read(entry) == whole[len(HEAD) + SIZE :]
    code = """
flipped = bytearray(whole)
flipped[-9] ^= 1
for damage in (b"", whole[:99], whole[:-1], bytes(flipped)):
    entry.write_bytes(damage)
    print(told(), entry.read_bytes()[:len(HEAD)] == HEAD, told())
entry.chmod(0o666)
print(told())
"""
    fine, anew = (4.5, 0, []), (4.5, 1, [True])  # the entry is named
    *damaged, foreign = toys(AGAIN.format(folder=str(toys.folder)) + code).stdout.splitlines()
    assert damaged == 4 * [f"{anew} True {fine}"]
    assert foreign == "(4.5, 1, [' yours'])"
    entry.chmod(0o644)
    others = entry.with_name(entry.name.replace("thrice", "other"))
    others.write_bytes(whole)  # whole, but of another function
    swapped = "import toys; from saver._compiling import WATCH; print(toys.other(0.0), WATCH.functions)"
    others = others.rename(path_of(toys, "other"))
    done = toys(swapped)
    assert (done.stdout, done.stderr.count("perhaps others too) and is made anew")) == ("1.0 1\n", 1)
    entry.chmod(0o666)
    done = toys()
    assert done.stdout == "4.5 1\n"
    assert done.stderr.count("RuntimeWarning") == 1
    assert "can have been written by others and is not loaded" in done.stderr


def test_an_entry_that_another_version_wrote_is_said_and_made_anew(toys):
    toys()
    code = """
import pickle
write(entry, pickle.dumps(("of", "another", "version")))
value, made, said = told()
print(value, made, said, told())
"""
    assert toys(AGAIN.format(folder=str(toys.folder)) + code).stdout == "4.5 1 [True] (4.5, 0, [])\n"


def test_processes_that_start_cold_at_once_do_not_damage_what_the_others_keep(toys, tmp_path):
    usual = os.environ | {"PYTHONPATH": f"{tmp_path}:{SOURCES}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", TELL]
    several = [subprocess.Popen(command, env=usual, stdout=-1, stderr=-1) for _ in range(4)]
    for process in several:
        out, err = process.communicate()
        assert out.startswith(b"4.5 ")
        assert b"Warning" not in err  # on a busy machine it says that it compiles
    kept = list(toys.folder.iterdir())
    assert sorted(path.name.partition("-")[0] for path in kept) == ["toys.thrice", "toys.twice"]
    assert all(read(path) is not None for path in kept)
    assert toys().stdout == "4.5 0\n"


def test_on_a_full_disk_it_is_said_once_and_work_goes_on(toys):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (999, 999)); "
    done = toys(full + TELL)
    assert done.stdout == "4.5 2\n"
    assert done.stderr.count("saver cannot keep its compiled code (File too large: ") == 1
    assert list(toys.folder.iterdir()) == []


def test_a_folder_that_is_removed_is_made_again_and_a_relative_one_stays_where_it_was(toys, tmp_path):
    code = f"""
import os, shutil; os.chdir({str(tmp_path)!r}); import toys
toys.thrice(1.5); shutil.rmtree("near"); os.chdir("/"); print(toys.other(0.0))
"""
    assert toys(code, NUMBA_CACHE_DIR="near").stderr == ""
    kept = (tmp_path / "near" / "saver-rl" / "code").iterdir()
    assert [path.name.partition("-")[0] for path in kept] == ["toys.other"]


@pytest.mark.parametrize("stream", ["os.close(2)", "sys.stderr.close()", "sys.stderr = None"])
def test_where_nothing_can_be_said_the_work_is_done(toys, stream):
    assert toys(f"{SLOW}import os, sys; {stream}; {TELL}").stdout == "4.5 2\n"


def test_what_is_damaged_is_made_anew_before_everybodys_eyes(toys):
    toys()
    for entry in toys.folder.iterdir():
        entry.write_bytes(b"")
    shown = toys(SLOW + TELL)
    assert shown.stdout == "4.5 2\n"
    assert "saver: compiling for this processor" in shown.stderr


def test_without_a_writable_folder_nothing_is_kept_nothing_fails_and_it_is_said_once(toys, tmp_path):
    closed = tmp_path / "toys.py" / "below"
    show = "; import saver.figures.style as style; style.figure(1, 1, 1, 1).__enter__()"
    done = toys(TELL + show, NUMBA_CACHE_DIR=str(closed), XDG_CACHE_HOME=str(closed), HOME=str(closed))
    assert done.stdout == "4.5 2\n"
    assert done.stderr.count("cannot") == 1
    assert f"saver cannot keep its compiled code ([Errno 20] Not a directory: '{closed}" in done.stderr
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in done.stderr
    assert "atplotlib" not in done.stderr


def test_a_second_clone_compiles_nothing(tmp_path):
    code = """
import saver, numpy as np; from saver._compiling import WATCH; from saver._jit import hurry
hurry()
for name in ("bandit", "gridworld"):
    made = saver.SCENARIOS[name]()
    print(saver.simulate(made, "saver-opt", episodes=40, runs=1, seed=1).estimates.tolist())
    campaign = saver.Campaign(made.problem, "saver-opt", 20, seed=1)
    for _ in range(3):
        trial = campaign.ask()
        campaign.tell(trial, *saver.Player(made.world, seed=2).run(trial))
    print(campaign.estimate().value, saver.__file__)
print(WATCH.functions)
"""
    here = python(code, PYTHONPATH=str(SOURCES)).stdout
    copied = tmp_path / "elsewhere"
    shutil.copytree(SOURCES, copied)  # with files that are newer
    for path in copied.rglob("*.py"):
        os.utime(path)
    there = python(code, PYTHONPATH=str(copied)).stdout
    assert there.splitlines()[:-1] == here.replace(str(SOURCES), str(copied)).splitlines()[:-1]
    assert there.splitlines()[-1] == "0"


def test_whoever_waits_is_told_once(toys):
    patient = "import saver._compiling as c; c.SILENT = {}; "
    several = "; import toys; toys.other(1.0); toys.other(1)"
    done = toys(patient.format(0.0) + TELL + several)
    assert done.stderr.splitlines() == [
        "saver: compiling for this processor, once for this version; `saver warm` does it beforehand"
    ]
    assert toys(patient.format(0.0) + TELL).stderr == ""  # it is not compiled, it is loaded


@pytest.mark.parametrize(
    ("code", "start"),
    [
        (TELL, "saver: ["),
        (f"{PROGRESS}{TELL}", "compiling: "),
    ],
)
def test_on_a_terminal_a_bar_moves_and_goes(tmp_path, code, start):
    (tmp_path / "toys.py").write_text(TOYS)
    usual = os.environ | {"PYTHONPATH": f"{tmp_path}:{SOURCES}", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SLOW + code], env=usual, stdout=-1, stderr=theirs)
    os.close(theirs)
    shown = b""
    while process.poll() is None or select.select([ours], [], [], 0.1)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other side was closed
                break
    os.close(ours)
    assert process.communicate()[0] == b"4.5 2\n"
    text = shown.decode()
    bars = [part for part in re.split(r"[\r\n]|\x1b\[2K", text) if part.startswith(start)]
    assert len(set(bars)) >= 3
    rest = text.rpartition(start)[2]
    assert rest.count("\x1b[2K" if start == "compiling: " else "\x1b[K") == 1  # it is gone


@pytest.mark.slow
def test_small_campaigns_without_a_compiler_decide_and_answer_the_same_bit_by_bit(tmp_path):
    """In all collectors, in worlds of one step, trees and graphs, with losses; and what is diagnosed."""
    program = str(Path(__file__).parents[1] / "plainly.py")

    def told(how, **environment):
        usual = os.environ | {"PYTHONPATH": f"{SOURCES}:{SOURCES.parent / 'tests'}"} | environment
        done = subprocess.run([sys.executable, program, how], env=usual, capture_output=True, check=True)
        return json.loads(done.stdout)

    plain, compiled = told("plain", NUMBA_CACHE_DIR=str(tmp_path)), told("compiled")
    assert set(plain["compiled"]) <= {"below", "follow", "lawful"}  # which check models before anybody asks
    assert len(compiled["compiled"]) > 40
    for name, found in plain["made"].items():
        assert found == compiled["made"][name], name


@pytest.mark.slow
def test_a_program_that_catches_ctrl_c_ends_as_it_wants(tmp_path):
    code = """
import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)
import saver
try:
    saver.simulate(saver.SCENARIOS["bandit"](), "saver-opt", episodes=10, runs=1)
except KeyboardInterrupt:
    sys.exit(3)
"""
    usual = os.environ | {"PYTHONPATH": str(SOURCES), "NUMBA_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", code], env=usual, stderr=-1)
    process.stderr.readline()
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    rest = process.communicate()[1]
    assert (process.returncode, rest) == (3, b"")


@pytest.mark.slow
def test_ctrl_c_ends_the_wait_at_once_and_what_is_kept_stays_whole(tmp_path):
    code = """
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)
import saver; saver.simulate(saver.SCENARIOS["bandit"](), "saver-opt", episodes=10, runs=1)
"""
    usual = os.environ | {"PYTHONPATH": str(SOURCES), "NUMBA_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", code], env=usual, stderr=-1)
    said = process.stderr.readline()
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    rest = process.communicate()[1]
    assert time.monotonic() - began < 2.0
    assert process.returncode == -signal.SIGINT
    assert said.startswith(b"saver: compiling for this processor")
    assert rest.splitlines()[-1] == b"KeyboardInterrupt"
    kept = list((tmp_path / "saver-rl" / "code").glob("*.code"))
    assert kept
    assert all(read(path) is not None for path in kept)
