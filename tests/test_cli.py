"""The command as a user types it: one line for what goes wrong, JSON for programs, whole files."""

import json
import subprocess
import sys

import pytest

import saver


def command(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "saver", *words], capture_output=True, text=True, check=False, cwd=cwd
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
        (["diagnose", "tree", "--alpha", "3"], "alpha is 3; it must be in (0, 1]"),
        (["reproduce", "--quick", "--full"], "--quick and --full were both given"),
        (["reproduce", "--seed", "x"], "--seed"),
        (["reproduce", "--jobs", "0"], "--jobs"),
        (["plot", "nowhere"], "nowhere holds no results"),
        (["design", "tree", "--picture", "a.gif"], "its name must end in .png, .pdf, .svg"),
        (["reproduse"], "reproduse"),
        (["run"], "SCENARIO"),
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


def test_plain_saver_prints_its_help():
    done = command()
    assert done.returncode == 0
    assert "reproduce" in done.stdout + done.stderr


@pytest.mark.parametrize(("kind", "head"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_pictures_of_other_kinds(tmp_path, kind, head):
    assert command("design", "bandit", "--picture", f"a.{kind}", cwd=tmp_path).returncode == 0
    assert (tmp_path / f"a.{kind}").read_bytes().startswith(head)


@pytest.mark.parametrize("scenario", ["tree", "gridworld", "bandit"])
def test_design_prints_limits_and_draws(tmp_path, scenario):
    done = command("design", scenario, "--picture", "new/picture.png", "--json", cwd=tmp_path)
    rows = {row["design"]: row for row in json.loads(done.stdout)["designs"]}
    made = saver.SCENARIOS[scenario]()
    exact = saver.design.exact(made.problem, made.world.reward.variance, made.world.constraint.mean)
    assert rows["exact safe"]["limit"] == pytest.approx(exact.limit, rel=1e-6)
    assert rows["exact safe"]["safe"] is True
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")
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
        "50",
        "--runs",
        "5",
    ]
    done = command(*words, "--json", "--out", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    numbers = json.loads(done.stdout)["numbers"]
    assert [row["collector"] for row in numbers] == ["saver-opt", "uniform"]
    assert numbers[0]["runs"] == 5
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


def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    done = command("reproduce", "--full", "--out", "file/below", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot write to file/below" in done.stderr
