"""`saver rehearse`, and `saver run` of a file: what is printed, written and refused."""

import csv
import json

import pytest
from test_cli import command

import saver
from saver import END, Bounded, Episode, Guardrail, History, Problem, Unknown

pytestmark = pytest.mark.slow
FEW = ("--episodes", "20", "--runs", "3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with problem.json, whose log has 60 episodes, and with others that cannot be rehearsed."""
    place = tmp_path_factory.mktemp("problems")
    guard = Guardrail("kept", Bounded(0, 1), alpha=0.2)
    stated = Problem(Unknown(1, 2, 1), [[0.2, 0.8]], [[0.5, 0.5]], guardrails=[guard])
    log = [Episode([0], [n % 2], [n % 3], [n % 4 > 0], final_state=END) for n in range(60)]
    saver.save(stated, place / "silent.json")
    made = History.of(stated, log)
    with_log = Problem(stated.mdp, stated.target, stated.baseline, guardrails=[guard], history=made)
    saver.save(with_log, place / "problem.json")
    saver.save(guard, place / "guard.json")
    return place


def test_a_rehearsal_is_printed_and_written(folder):
    done = command("rehearse", "problem.json", *FEW, "--out", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = saver.rehearse(saver.load(folder / "problem.json"), episodes=20, runs=3)
    last = "table:  out/rehearsal.csv\nfigure: out/rehearsal.png\n"
    assert done.stdout == found.report(110) + last
    rows = list(csv.DictReader((folder / "out" / "rehearsal.csv").read_text("utf-8").splitlines()))
    assert [float(row["half_width"]) for row in rows] == [row["half_width"] for row in found.rows()]
    assert (folder / "out" / "rehearsal.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_what_the_library_says(folder):
    done = command("rehearse", "problem.json", *FEW, "--as-seen", "--seed", "2", "--json", cwd=folder)
    found = saver.rehearse(
        saver.load(folder / "problem.json"), episodes=20, runs=3, seed=2, drawn=False
    ).to_dict()
    assert json.loads(done.stdout) == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rehearse", "bandit"], "PROBLEM is 'bandit', a scenario; a rehearsal is for the file of a problem"),
        (["rehearse", "nowhere.json"], "cannot read nowhere.json: No such file or directory"),
        (["rehearse", "silent.json"], "silent.json holds a problem without a history; make it from a log by"),
        (["rehearse", "guard.json"], "guard.json holds a Guardrail; it must hold a problem"),
        (["rehearse", "problem.json", "--collector", "savr"], "no collector 'savr'; did you mean 'saver'"),
        (["rehearse", "problem.json", "--collector", "saver"], "needs known transitions"),
        (["rehearse", "problem.json", "--runs", "0"], "'0' is not a whole number of at least 1"),
        (["rehearse", "problem.json", "--out", "problem.json"], "cannot make problem.json: File exists"),
        (["run", "nowhere.json"], "cannot read nowhere.json: No such file or directory"),
        (["run", "guard.json"], "guard.json holds a Guardrail; it must hold a problem"),
        (["run", "silent.json"], "the problem has no history, and no world can be made of it"),
        (["run", "problem.json", "--alpha", "0.1"], "alpha are of scenarios; the file problem.json says"),
        (["run", "problem.json", "--collectors", "saver"], "needs known transitions"),
    ],
)
def test_what_cannot_be_rehearsed_is_one_line(folder, words, message):
    before = sorted(folder.iterdir())
    done = command(*words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert sorted(folder.iterdir()) == before


def test_run_plays_a_file_in_the_world_as_its_log_shows_it(folder):
    words = ["run", "problem.json", "--collectors", "on-policy", "--runs", "2", "--episodes", "30"]
    done = command(*words, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["folder"] == "results-problem"
    text = (folder / "results-problem" / "manifest.json").read_text(encoding="utf-8")
    described = json.loads(text)["settings"]["experiment"]
    assert described["scenario"] == "problem.json"
    assert described["options"]["file"] == "problem.json"
    assert len(described["options"]["holds"]) == 64
