"""The runner, the claims, the figures and the report: whole files, the same bytes, computed verdicts."""

import hashlib
import json
import math
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from catalogues import small_catalogue

from saver import experiments
from saver.errors import InvalidData, InvalidProblem
from saver.experiments import catalogue
from saver.experiments.catalogue import EXPERIMENTS, LEVELS, SAFE, Experiment
from saver.experiments.claims import FAILED, HELD, OPEN, Claim, claims
from saver.experiments.face import compute
from saver.experiments.folder import Folder, Results
from saver.experiments.work import named_seed

pytestmark = pytest.mark.slow

SMALL = Experiment("small", "Small", "bandit", ("saver-opt", "safe-on-policy"), 60, (4, 6, 8))


def tables(out, experiment, *, seed=0, jobs=None, force=False):
    """The tables of one experiment, without figures and report."""
    return compute(out, catalogue.plan_run(experiment, seed, jobs), force=force)


def files_of(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def test_the_catalogue_holds_the_papers_budgets():
    paper = {e.scenario: e.episodes for e in EXPERIMENTS.values() if e.figure == "paper"}
    assert paper == {"bandit": 240, "movielens": 30_000, "tree": 480, "gridworld": 200}
    for experiment in EXPERIMENTS.values():
        assert len(experiment.runs) == len(LEVELS)
        assert list(experiment.runs) == sorted(experiment.runs)
        assert set(SAFE) <= set(experiment.collectors)
        assert experiment.make().name == experiment.scenario


def test_all_is_drawn_again_from_the_tables_alone_with_the_same_bytes(tmp_path, monkeypatch):
    small_catalogue(monkeypatch)
    outcome = experiments.reproduce(tmp_path / "out", level="quick")
    folder = Folder.find(outcome.folder)
    before = files_of(folder.path / "figures")
    assert experiments.plot(folder.path) == outcome
    assert files_of(folder.path / "figures") == before


def test_the_same_seed_gives_the_same_table_whatever_the_jobs(tmp_path):
    one = tables(tmp_path / "one", SMALL, jobs=1).path
    two = tables(tmp_path / "two", SMALL, jobs=2).path
    other = tables(tmp_path / "other", SMALL, seed=1).path
    assert (one / "table.csv").read_bytes() == (two / "table.csv").read_bytes()
    assert (one / "table.csv").read_bytes() != (other / "table.csv").read_bytes()


def test_a_collectors_numbers_do_not_depend_on_the_others(tmp_path):
    both = Results(tables(tmp_path / "both", SMALL)).curve("small", "safe-on-policy")
    alone = Results(tables(tmp_path / "alone", replace(SMALL, collectors=("safe-on-policy",))))
    assert alone.curve("small", "safe-on-policy").rows == both.rows


def test_the_table_says_what_simulate_says(tmp_path):
    import saver

    rows = tables(tmp_path, SMALL).read("campaigns")
    seed = named_seed(0, "small", "saver-opt")
    found = saver.simulate(saver.SCENARIOS["bandit"](), "saver-opt", episodes=60, runs=6, seed=seed)
    chosen = [row for row in rows if row["collector"] == "saver-opt"]
    assert [int(row["episode"]) for row in chosen] == found.checkpoints.tolist()
    assert [float(row["mse"]) for row in chosen] == found.mse()[0].tolist()
    assert [float(row["violation"]) for row in chosen] == (-found.budget.mean(axis=0)).tolist()
    assert float(chosen[-1]["allowance"]) == pytest.approx(60 * 0.25 * 0.5)


def test_what_is_complete_is_not_done_again(tmp_path):
    folder = tables(tmp_path, SMALL)
    whole, part = files_of(tmp_path), tmp_path / "parts" / "small.saver-opt.csv"
    (tmp_path / "table.csv").unlink()
    before = part.stat().st_mtime_ns
    (tmp_path / "parts" / "small.safe-on-policy.csv").unlink()
    tables(tmp_path, SMALL)
    assert part.stat().st_mtime_ns == before
    assert files_of(tmp_path) == whole
    assert folder.manifest()["settings"]["seed"] == 0


def test_an_interrupted_run_goes_on_and_ends_the_same(tmp_path):
    command = [sys.executable, "-m", "saver", "run", "tree", "--collectors", "saver,safe-oracle,saver-opt"]
    command += ["--episodes", "300", "--runs", "150", "--jobs", "1", "--out"]
    process = subprocess.Popen(
        [*command, str(tmp_path / "stopped")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    parts = tmp_path / "stopped" / "parts"
    deadline = time.monotonic() + 300
    while not list(parts.glob("*.csv")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    shown = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "goes on from there" in shown
    assert "Traceback" not in shown
    assert 1 <= len(list(parts.glob("*.csv"))) < 4
    assert not list((tmp_path / "stopped").rglob("*.part"))
    for name in ("stopped", "whole"):
        subprocess.run([*command, str(tmp_path / name)], check=True, capture_output=True)
    assert (tmp_path / "stopped" / "table.csv").read_bytes() == (
        tmp_path / "whole" / "table.csv"
    ).read_bytes()


def test_a_folder_of_other_settings_is_kept_unless_forced(tmp_path):
    tables(tmp_path, SMALL)
    before = files_of(tmp_path)
    with pytest.raises(InvalidData, match=r"seed differs\); give another --out, or --force"):
        tables(tmp_path, SMALL, seed=7)
    assert files_of(tmp_path) == before
    (tmp_path / "notes.txt").write_text("mine")
    for name in ("figures", "parts"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "mine.csv").write_text("mine")
    tables(tmp_path, SMALL, seed=7, force=True)
    for name in ("notes.txt", "figures/mine.csv", "parts/mine.csv"):
        assert (tmp_path / name).read_text() == "mine"
    assert json.loads((tmp_path / "manifest.json").read_text())["settings"]["seed"] == 7


def test_a_folder_with_a_table_of_someone_else_is_refused(tmp_path):
    (tmp_path / "table.csv").write_text("my,own\n1,2\n")
    with pytest.raises(InvalidData, match=r"has a table\.csv that is not ours"):
        tables(tmp_path, SMALL)
    assert (tmp_path / "table.csv").read_text() == "my,own\n1,2\n"


@pytest.mark.parametrize("content", [b"", b"a,b\n1\n", b"a,b\n1,2,3\n", b"\xff\xfe\x00", None])
def test_a_damaged_part_is_done_again_and_a_damaged_table_is_refused(tmp_path, content):
    tables(tmp_path, SMALL)
    whole, part = files_of(tmp_path), tmp_path / "parts" / "small.saver-opt.csv"
    damaged = part.read_bytes()[:-40] if content is None else content
    part.write_bytes(damaged)
    (tmp_path / "table.csv").write_bytes(damaged)
    with pytest.raises(InvalidData, match=r"table\.csv was changed or damaged since it was written"):
        Results(Folder.find(tmp_path))
    tables(tmp_path, SMALL)
    assert files_of(tmp_path) == whole


def test_another_collectors_part_under_a_wrong_name_is_done_again(tmp_path):
    tables(tmp_path, SMALL)
    whole, parts = files_of(tmp_path), tmp_path / "parts"
    (parts / "small.saver-opt.csv").write_bytes((parts / "small.safe-on-policy.csv").read_bytes())
    tables(tmp_path, SMALL)
    assert files_of(tmp_path) == whole


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"settings": 3, "digests": {}}'])
def test_a_broken_manifest_is_named_and_replaced_by_force(tmp_path, content):
    tables(tmp_path, SMALL)
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InvalidData, match=r"manifest\.json cannot be read"):
        tables(tmp_path, SMALL)
    tables(tmp_path, SMALL, force=True)
    assert Results(Folder.find(tmp_path)).experiments == ["small"]


def test_a_folder_that_was_stopped_before_its_manifest_is_gone_on_with(tmp_path, monkeypatch):
    """Killed at its first file: nothing is there yet that the next run would take for somebody else's."""

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "write_text", stopped)
        with pytest.raises(KeyboardInterrupt):
            Folder.begin(tmp_path, {})
    Folder.begin(tmp_path, {}).release()
    assert (tmp_path / "manifest.json").exists()


def test_two_processes_do_not_write_to_one_folder(tmp_path):
    first = Folder.begin(tmp_path, {})
    code = "import sys; from pathlib import Path; from saver.experiments.folder import Folder; "
    code += "Folder.begin(Path(sys.argv[1]), {})"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "another process is writing" in done.stderr
    first.release()
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_what_cannot_run_is_said_before_anything_is_removed(tmp_path):
    tables(tmp_path, SMALL)
    before = files_of(tmp_path)
    with pytest.raises(InvalidProblem, match="sepec is for bandits"):
        tables(tmp_path, replace(SMALL, scenario="tree", collectors=("sepec",)), force=True)
    assert files_of(tmp_path) == before


def test_an_estimate_without_noise_is_drawn_too(tmp_path):
    quiet = {"good_variance": 0.0, "noisy_variance": 0.0}
    figures = experiments.run(tmp_path, replace(SMALL, options=quiet)).figures
    assert all(path.stat().st_size > 1000 for path in figures)


def change(folder, where, column, to):
    """Write the table again with some cells changed."""
    rows = folder.read("campaigns")
    for row in rows:
        if all(row[key] == value for key, value in where.items()):
            row[column] = to(row[column])
    folder.write("campaigns", [list(row.values()) for row in rows])


def test_a_word_in_the_place_of_a_number_is_named(tmp_path):
    folder = tables(tmp_path, SMALL)
    change(folder, {}, "violation", lambda cell: "much")
    with pytest.raises(InvalidData, match=r"table\.csv has 'much' for violation, which must be a number"):
        Results(folder)


@pytest.mark.parametrize(
    ("value", "error", "low", "high", "verdict"),
    [
        (0.9, 0.04, 0.0, 1.0, HELD),
        (0.9, 0.06, 0.0, 1.0, OPEN),
        (1.1, 0.04, 0.0, 1.0, FAILED),
        (1.1, 0.06, 0.0, 1.0, OPEN),
        (3.0, 0.4, 2.0, math.inf, HELD),
        (-1.5, 0.05, -1.65, -1.35, HELD),
        (-1.0, 0.05, -1.65, -1.35, FAILED),
        (math.nan, 0.1, 0.0, 1.0, OPEN),
        (0.5, math.nan, 0.0, 1.0, OPEN),
    ],
)
def test_a_claim_is_decided_by_two_standard_errors(value, error, low, high, verdict):
    assert Claim("paper", "x", "y", value, error, low, high).verdict == verdict


def test_claims_follow_the_table(tmp_path, monkeypatch):
    """Change one number of the table: the claims about it change, the others do not."""
    small_catalogue(monkeypatch)
    folder = compute(tmp_path, catalogue.plan_reproduce("quick"))
    before = claims(Results(folder))
    where = {"experiment": "gridworld", "collector": "saver"}
    change(folder, where, "conditional_mse", lambda cell: repr(1e3 * float(cell)))
    after = claims(Results(Folder.find(tmp_path)))
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert [claim.claim.split(" (")[0] for claim in changed] == [
        "Gridworld, 60 episodes: `saver` has a lower MSE than `safe-on-policy`",
        "Gridworld, 60 episodes: `saver` matches `safe-oracle`",
    ]
    assert [claim.verdict for claim in changed] == [FAILED, FAILED]


def test_reading_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InvalidData, match=r"holds no results: there is no manifest\.json"):
        Folder.find(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidData, match="cannot write to"):
        Folder.begin(Path(tmp_path / "file" / "below"), {})


@pytest.mark.parametrize(
    "words", [["run", "tree", "--collectors", "saver,safe-oracle,safe-on-policy"], ["audit"]]
)
def test_killed_at_random_moments_it_ends_as_if_it_had_not_been(tmp_path, words):
    """SIGKILL, five times; what was reported complete stays as it was, and the tables come out the same."""
    options = ["--episodes", "400", "--runs", "200"] if words[0] == "run" else []
    code = "import sys, saver_audit.count as count; from saver.cli.main import _run; "
    code += "size = count.Size({'bandit': 3, 'tree': 1, 'graph': 1}, {'bandit': 20, 'tree': 4, 'graph': 4}, "
    code += (
        "{'bandit': 4, 'tree': 1, 'graph': 1}, dict.fromkeys(('bandit', 'movielens', 'tree', 'gridworld', "
    )
    code += "'intractable'), 2), {'one way': 2, 'random': 1, 'outcome': 1}, 1); "
    code += "count.AUDITS['quick'] = size; count.CASES = count.CASES[:2]; "
    code += "count.HOSTILE = ('tiny alpha', 'noise x 10', 'next state'); sys.exit(_run(sys.argv[1:]))"
    base = [sys.executable, "-c", code, *words, *options, "--jobs", "1", "--out"]
    rng, killed, seen = np.random.default_rng(0), tmp_path / "killed", {}
    for _ in range(5):
        process = subprocess.Popen([*base, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=float(rng.uniform(0.8, 3.0)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        manifest = killed / "manifest.json"
        digests = json.loads(manifest.read_text())["digests"] if manifest.exists() else {}
        for name, digest in digests.items():
            assert hashlib.sha256((killed / name).read_bytes()).hexdigest() == digest
            assert seen.setdefault(name, digest) == digest
    for name in ("killed", "whole"):
        done = subprocess.run([*base, str(tmp_path / name)], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for name in json.loads((tmp_path / "whole" / "manifest.json").read_text())["digests"]:
        assert (killed / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not list(killed.rglob("*.part"))


def test_a_full_disk_is_said_before_anything_runs(tmp_path, monkeypatch):
    import shutil

    full = shutil.disk_usage(tmp_path)._replace(free=3_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(InvalidData, match="only 3 MB are free"):
        tables(tmp_path / "new", SMALL)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_disk_that_fills_up_later_leaves_whole_files(tmp_path, monkeypatch):
    """The third file cannot be written: what was written before stays, and the next run goes on."""
    from saver.experiments import folder as module

    whole, written = module.replacing, []

    @contextmanager
    def failing(path):
        if path.suffix == ".csv" and len(written) >= 1:
            raise OSError(28, "No space left on device")
        written.append(path)
        with whole(path) as partial:
            yield partial

    monkeypatch.setattr(module, "replacing", failing)
    with pytest.raises(OSError, match="No space left"):
        tables(tmp_path, SMALL)
    monkeypatch.setattr(module, "replacing", whole)
    tables(tmp_path, SMALL)
    fresh = tables(tmp_path.with_name("fresh"), SMALL).path
    assert (tmp_path / "table.csv").read_bytes() == (fresh / "table.csv").read_bytes()
