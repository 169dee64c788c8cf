"""The command as a user types it: one line for what goes wrong, JSON for programs, whole files."""

import contextlib
import fcntl
import importlib
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

import saver
from saver import _interrupt
from saver._interrupt import is_command, postponed
from saver.cli import main, show
from saver.cli.main import _run

pytestmark = pytest.mark.slow


def command(*words, cwd=None):
    """What a command prints and its exit code, run here: a process of its own takes seconds to begin."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd or "."), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _run(list(words))
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def process(*words):
    """The same in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "saver", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["diagnose", "bandti"],
            "no scenario 'bandti'; did you mean 'bandit'? known: bandit, movielens, tree",
        ),
        (
            ["run", "bandit", "--collectors", "savr"],
            "no collector 'savr'; did you mean 'saver'? known: saver",
        ),
        (["run", "bandit", "--collectors", ","], "--collectors is empty"),
        (["run", "tree", "--set", "depht=3"], "no argument of tree 'depht'; did you mean 'depth'?"),
        (["run", "tree", "--set", "depth"], "--set is 'depth'; it must be NAME=VALUE"),
        (["diagnose", "tree", "--losses", "1"], "losses is 1; it must be in [0, 1)"),
        (["diagnose", "tree", "--alpha", "3"], "alpha is 3; it must be in (0, 1]"),
        (["reproduce", "--quick", "--full"], "--quick and --full were both given"),
        (["reproduce", "--seed", "x"], "--seed"),
        (["reproduce", "--jobs", "0"], "--jobs"),
        (["plot", "nowhere"], "nowhere holds no results"),
        (["design", "tree", "--picture", "a.gif"], "its name must end in .png, .pdf, .svg"),
        (["reproduse"], "(saver --help)"),
        (["run"], "SCENARIO"),
        (["run"], "(saver run --help)"),
        (["run", "bandit", "--runs", "x"], "(saver run --help)"),
        (["audit", "--sed", "3"], "(saver audit --help)"),
        (["run", "bandit", "--episodes", "1.5"], "'1.5' is not a whole number of at least 1"),
        (["run", "bandit", "--episodes", "0"], "'0' is not a whole number of at least 1"),
        (["run", "bandit", "--episodes", "1e400"], "'1e400' is not a whole number"),
        (["diagnose", "bandit", "--episodes", "many"], "'many' is not a whole number of at least 1, such as"),
        (["run", "bandit", "--runs", "1"], "'1' is not a whole number of at least 2"),
        (["design", "tree", "--picture", "new/a.png"], "--picture is new/a.png, but there is no folder new;"),
        (["design", "tree", "--picture", "a/b.png/../../c.PNG"], "there is no folder a/b.png/../..;"),
        (["design", "tree", "--picture", "no/such/folder.txt"], "must end in"),
        (["design", "tree", "--set", "name=5"], "no argument of tree 'name'"),
        (["run", "bandit", "--runs", "99999999", "--episodes", "1000000000"], "GB of memory"),
    ],
)
def test_what_goes_wrong_is_one_line_and_exit_code_2(tmp_path, words, message):
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("saver: ")
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["reproduce", "--help"], ["run", "--help"], ["design", "--help"]]
)
def test_help_shows_examples(words):
    shown = command(*words).stdout
    assert "saver" in shown
    assert words[:1] in ([], ["--help"]) or "For example:" in shown


def test_list_names_everything():
    listed = json.loads(command("list", "--json").stdout)
    assert list(listed["scenarios"]) == list(saver.SCENARIOS)
    assert list(listed["collectors"]) == list(saver.COLLECTORS)
    assert listed["collectors"]["saver-opt"]["promises"] is True
    text = command("list").stdout
    assert all(name in text for name in (*saver.SCENARIOS, *saver.COLLECTORS))


def test_diagnose_prints_the_report_or_json():
    made = saver.SCENARIOS["tree"](alpha=0.1, depth=3)
    words = ["diagnose", "tree", "--episodes", "700", "--alpha", "0.1", "--set", "depth=3", "--stderr", "0.1"]
    found = saver.diagnose(made, 700, stderr=0.1)
    assert command(*words).stdout == found.report()
    assert json.loads(command(*words, "--json").stdout) == found.to_dict()


def test_diagnose_takes_lost_and_late_feedback():
    words = ["diagnose", "bandit", "--episodes", "500", "--losses", "0.05", "--out-at-once", "2e1"]
    words += ["--declared", "random", "--order", "asked", "--ran", "--json"]
    found = json.loads(command(*words).stdout)
    assert found["feedback"] == {"lost": 0.05, "out": 20, "losses": "random", "order": "asked", "ran": True}
    assert found["ways"]["exact"]["at_budget"] > found["at_once"]["exact"]["at_budget"]


def test_the_version():
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"saver {saver.__version__}\n", "")


def test_a_process_ends_with_the_code_and_the_line_of_its_command():
    done, here = process("reproduse"), command("reproduse")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", here.stderr)
    assert process("list", "--json").stdout == command("list", "--json").stdout


def test_episodes_may_be_written_with_an_exponent():
    words = ["diagnose", "bandit", "--seconds", "1", "--json", "--episodes"]
    assert command(*words, "2e3").stdout == command(*words, "2000").stdout


def test_json_has_true_booleans_and_integers():
    found = json.loads(command("diagnose", "bandit", "--stderr", "0.1", "--json").stdout)
    assert type(found["episodes"]) is int
    assert found["tractability"]["derived"]["holds"] is True
    for way in found["ways"].values():
        assert [type(way[name]) for name in ("safe", "certificate", "episodes")] == [bool, int, int]
    designs = json.loads(command("design", "bandit", "--json").stdout)
    assert {type(row["safe"]) for row in designs["designs"]} == {bool}
    assert [type(cell) for cell in designs["visits"][0]] == [str, int, int, float]


def test_a_picture_that_cannot_be_written_is_named_as_it_was_given(tmp_path):
    name = 248 * "a" + ".png"  # which leaves no room for the name of an unfinished file
    done = command("design", "bandit", "--picture", name, cwd=tmp_path)
    assert done.stderr == f"saver: cannot write {name}: File name too long; give another path\n"
    assert list(tmp_path.iterdir()) == []


def on_a_terminal(columns, *words, cwd=None):
    """What the command shows on a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "saver", *words],
        stdout=slave,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        env={**environment, "TERM": "xterm"},
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal that is gone
        while part := os.read(master, 4096):
            shown += part
    os.close(master)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")


def words_of(text):
    return {word.rstrip(",:") for word in text.split()}


@pytest.mark.parametrize("words", [["list"], ["diagnose", "bandit"], ["design", "bandit"]])
@pytest.mark.parametrize("columns", [60, 80])
def test_a_narrow_terminal_breaks_no_words(words, columns):
    wide, narrow = command(*words).stdout, on_a_terminal(columns, *words)
    assert max(map(len, narrow.splitlines())) <= columns
    assert words_of(narrow) - {60 * "─", 80 * "─"} <= words_of(wide)
    assert "safe-on-policy" in narrow or words[0] == "design"


def test_columns_share_the_room_and_keep_words_whole():
    rows = [("name", "what"), ("a", "two words and more"), ("bbbbbb", "x")]
    assert show.column_widths(rows, 30) == [6, 18]
    assert show.column_widths(rows, 15) == [6, 9]
    assert show.column_widths(rows, 11) == [6, 5]
    assert show.column_widths(rows, 10) is None


def sleeping_import(tmp_path):
    """A package that takes the place of numba, says that it is being imported, and takes long."""
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text(
        "import pathlib, time\npathlib.Path(__file__).with_name('begun').touch()\ntime.sleep(60)\n"
    )
    return tmp_path / "numba" / "begun"


def heed_ctrl_c():
    """As in a terminal, even if the tests themselves run in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def heeded():
    """The same in this process."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.parametrize("kind", ["module", "script"])
def test_ctrl_c_during_the_import_says_nothing(tmp_path, kind):
    begun = sleeping_import(tmp_path)
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "saver"
    script.write_text("import sys\nfrom saver.cli import main\nsys.exit(main())\n")
    place = str(Path(saver.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, *(["-m", "saver"] if kind == "module" else [str(script)]), "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{place}"},
        preexec_fn=heed_ctrl_c,  # noqa: PLW1509  (no other thread holds a lock here)
    )
    deadline = time.monotonic() + 30
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == -signal.SIGINT


def test_ctrl_c_waits_for_the_end_of_a_short_import(tmp_path, monkeypatch):
    (tmp_path / "short_room.py").write_text(
        "import signal, time\n"
        "try:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    time.sleep(0.1)\n"
        "    whole = True\n"
        "except BaseException:\n"
        "    whole = False  # there are packages that go on\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_interrupt, "_presses", [])
    held = signal.signal(signal.SIGINT, _interrupt._interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            importlib.import_module("short_room")
            time.sleep(5)
    finally:
        signal.signal(signal.SIGINT, held)
    assert sys.modules["short_room"].whole


def test_ctrl_c_while_an_error_is_said_leaves_no_traceback(monkeypatch, capsys):
    def run(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["saver.cli.main"], "_run", run)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err.startswith("saver: stopped; nothing is half-written")


def test_help_and_what_is_misspelt_load_nothing_that_computes():
    words = [["--version"], ["--help"], ["run", "--help"], ["campaign", "show", "--help"], ["bandti"]]
    words += [
        ["run", "bandit", "--sed", "1"],
        ["audit", "--quick", "--full"],
        ["run", "tree", "--set", "depth"],
    ]
    code = f"import sys; from saver.cli.main import _run; codes = [_run(words) for words in {words}]; "
    code += (
        "print(codes, {'numpy', 'numba', 'scipy', 'matplotlib', 'sqlite3', 'saver.errors'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0, 2, 2, 2, 2] {'saver.errors'}"


def test_other_programs_keep_their_ctrl_c():
    code = "import signal, saver; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    done = subprocess.run([sys.executable, "-c", code], check=False, preexec_fn=heed_ctrl_c)
    assert done.returncode == 0
    assert is_command(["/usr/bin/saver", "list"], [])
    assert is_command(["-m", "list"], ["python", "-X", "dev", "-m", "saver", "list"])
    assert not is_command(["-m"], ["python", "-m", "pytest", "saver"])
    assert not is_command([""], ["python"])


def test_plain_saver_prints_its_help():
    done = process()
    assert done.returncode == 0
    assert "reproduce" in done.stdout + done.stderr


@pytest.mark.parametrize(("kind", "head"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_pictures_of_other_kinds(tmp_path, kind, head):
    assert command("design", "bandit", "--picture", f"a.{kind}", cwd=tmp_path).returncode == 0
    assert (tmp_path / f"a.{kind}").read_bytes().startswith(head)


@pytest.mark.parametrize("scenario", ["tree", "gridworld", "bandit"])
def test_design_prints_limits_and_draws(tmp_path, scenario):
    done = command("design", scenario, "--picture", "picture.png", "--json", cwd=tmp_path)
    rows = {row["design"]: row for row in json.loads(done.stdout)["designs"]}
    made = saver.SCENARIOS[scenario]()
    exact = saver.design.exact(made.problem, made.world.reward.variance, made.world.constraint.mean)
    assert rows["exact safe"]["limit"] == pytest.approx(exact.limit, rel=1e-6)
    assert rows["exact safe"]["safe"] is True
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    shown = command("design", scenario).stdout
    assert "exact safe" in shown
    assert "required" in shown


def test_run_writes_a_folder_and_plot_draws_it_again(tmp_path):
    words = [
        "run",
        "intractable",
        "--collectors",
        "saver-opt, uniform,saver-opt",
        "--episodes",
        "5e1",
        "--runs",
        "5",
    ]
    done = command(*words, "--json", "--out", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    numbers = json.loads(done.stdout)["numbers"]
    assert [row["collector"] for row in numbers] == ["saver-opt", "uniform"]
    assert [type(numbers[0][name]) for name in ("runs", "episodes")] == [int, int]
    assert numbers[0]["runs"] == 5
    assert numbers[0]["episodes"] == 50
    assert numbers[0]["k_mse"] > 0
    mine = tmp_path / "mine"
    names = sorted(path.name for path in mine.iterdir())
    assert names == [
        "figures",
        "limits.csv",
        "manifest.json",
        "parts",
        "report.html",
        "report.md",
        "table.csv",
    ]
    picture = mine / "figures" / "intractable.png"
    before = picture.read_bytes()
    picture.unlink()
    again = command("plot", "mine", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert picture.read_bytes() == before
    assert "saver-opt" in again.stdout
    refused = command(*words, "--seed", "5", "--out", "mine", cwd=tmp_path)
    assert refused.returncode == 2
    assert "seed differs" in refused.stderr


def test_design_shows_every_guardrail_of_the_shop(tmp_path):
    shown = command("design", "shop").stdout
    for head in ("complaints, at most 0.3063", "latency, at most 1.058", "refunds, at most 2"):
        assert head in shown
    assert re.search(r"target +0\.1143 +0\.3142 +1\.191 +0\.6828 +no", shown)
    learned = command("design", "shop", "--set", "learned=True", "--picture", "picture.png", cwd=tmp_path)
    assert learned.stdout.startswith(shown.rstrip())


@pytest.mark.parametrize("learned", ["False", "True"])
def test_run_prints_the_budget_of_every_guardrail_true_and_believed(tmp_path, learned):
    words = ["run", "shop", "--collectors", "saver,uniform", "--episodes", "10", "--runs", "2"]
    words += ["--set", f"learned={learned}", "--out", "mine"]
    done = command(*words, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["guardrails"]
    rails = ["complaints", "latency", "refunds"]
    assert [(row["collector"], row["guardrail"]) for row in found] == [
        (collector, rail) for collector in ("saver", "uniform") for rail in rails
    ]
    assert [row["required"] for row in found[:3]] == pytest.approx([1.75 * 0.175, 1.058, 2.0])
    assert [row["baseline_value"] for row in found[:3]] == pytest.approx([0.175, 0.738, 0.17])
    # what ten visits of the baseline save: 10 (.30625 - .175), 10 * .32, 10 (2 - .17)
    assert [row["budget"] for row in found[:3]] == pytest.approx([1.3125, 3.2, 18.3])
    assert all(row["believed"] <= row["budget"] + 1e-9 for row in found[:3])
    assert found[3]["violation_rate"] == 1.0  # nobody guards `uniform`
    again = command("plot", "mine", cwd=tmp_path)
    assert re.search(r"saver +latency +0\.738 +at most 1\.058 +3\.2 ± 0", again.stdout)
    assert (tmp_path / "mine" / "guardrails.csv").exists()
    assert "## Guardrails at the end" in (tmp_path / "mine" / "report.md").read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    done = command("reproduce", "--full", "--out", "file/below", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write to file/below" in done.stderr


def test_an_interrupt_is_raised_when_the_work_has_ended(heeded):
    done = []

    def work(presses):
        with postponed(lambda: done.append("stop")):
            for press in range(presses):
                signal.raise_signal(signal.SIGINT)
                done.append(press)

    with pytest.raises(KeyboardInterrupt):
        work(1)
    assert done == ["stop", 0]
    with pytest.raises(KeyboardInterrupt):
        work(3)
    assert done == ["stop", 0, "stop", 0]  # who presses twice means it
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_waits_while_compiled_code_is_loaded(monkeypatch):
    monkeypatch.setattr(_interrupt, "_presses", [])
    held = signal.signal(signal.SIGINT, _interrupt._interrupt)
    scope = {"__name__": "llvmlite.binding.somewhere", "signal": signal, "time": time, "seen": []}
    exec(
        "def load():\n    signal.raise_signal(signal.SIGINT)\n    time.sleep(0.1)\n    seen.append(1)", scope
    )

    def run():
        scope["load"]()
        time.sleep(5)

    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        signal.signal(signal.SIGINT, held)
    assert scope["seen"] == [1]
