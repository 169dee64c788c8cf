"""saver fit, saver diagnose of a file, saver evaluate: from a log to a verdict in a terminal."""

import json

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from data_room.logs import Shop

import saver
from saver.cli.main import _run
from saver.cli.options import guardrails_of, policies_of
from saver.errors import InvalidProblem

SHOP = Shop.drawn(4, 2, 3, seed=8)
GUARD = ["--guardrail", "complaint:alpha=0.3,cost"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("logs")
    table = SHOP.log(2000, 1)
    pq.write_table(table, place / "log.parquet")
    pyarrow.csv.write_csv(table, place / "log.csv")
    rows = [f"page-{s:02d},offer b,1" for s in range(4)]
    (place / "target.csv").write_text("\n".join(["state,action,probability", *rows]) + "\n")
    return place


def run(capsys, *words):
    code = _run([str(word) for word in words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.slow
@pytest.mark.parametrize("log", ["log.parquet", "log.csv"])
def test_from_a_log_to_a_diagnosis_and_a_verdict(folder, tmp_path, capsys, log):
    out = tmp_path / "problem.json"
    words = ["fit", folder / log, "--target", folder / "target.csv", *GUARD, "--out", out]
    code, shown, _ = run(capsys, *words, "--column", "next_state=next_state")
    assert code == 0
    assert "2,000 episodes" in shown
    assert f"problem: {out}" in shown
    stated = saver.load(out)
    assert stated.mdp.horizon == 3
    assert stated.history.episodes == 2000
    assert stated.first.tolist() == [[0.0, 1.0]] * 4
    code, shown, _ = run(capsys, "diagnose", out, "--episodes", "500", "--seconds", "1")
    assert code == 0
    assert shown.startswith("2,000 logged episodes, 500 to come, with saver-opt\n")
    code, shown, _ = run(capsys, "evaluate", out, folder / log, "--json")
    assert code == 0
    found = json.loads(shown)["target"]
    truth = SHOP.value(stated.first, SHOP.reward)
    assert found["certainty"]["interval"][0] < truth < found["certainty"]["interval"][1]
    apart = truth - SHOP.value(stated.baseline, SHOP.reward)
    assert found["difference"]["interval"][0] < apart < found["difference"]["interval"][1]
    assert found["guardrails"]["complaint"]["required"] > 0
    code, shown, _ = run(capsys, "evaluate", out, folder / log)
    assert "against the baseline:" in shown
    assert "complaint:" in shown
    assert "is required" in shown


def test_fit_for_programs(folder, tmp_path, capsys):
    out = tmp_path / "problem.json"
    words = ["fit", folder / "log.parquet", "--target", folder / "target.csv", *GUARD, "--out", out, "--json"]
    code, shown, _ = run(capsys, *words, "--horizon", "2", "--discount", "0.9", "--delta", "0.1")
    assert code == 0
    found = json.loads(shown)
    assert found["episodes"] == 2000
    assert found["horizon"] == 2
    assert found["actions"] == ["offer a", "offer b"]
    assert found["targets"]["target"]["effective"] > 0
    assert saver.load(out).delta == 0.1


WRONG = {
    "no such column": (["--column", "reward=gain"], "log.csv has no column 'gain'"),
    "no such role": (["--column", "page=x"], "--column page=... is neither a part of a step nor guarded"),
    "broken --column": (["--column", "page"], "--column is 'page'; it must be WHAT=NAME"),
    "model": (["--model", "magic"], "model is 'magic'; it must be 'unknown' or 'mdp'"),
    "cut": (["--cut", "keep"], "cut is 'keep'; it must be one of refuse, drop"),
    "twice": (["--guardrail", "complaint:alpha=1"], "each name once"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_users_can_mend_is_one_line_and_exit_code_2_and_nothing_is_written(
    folder, tmp_path, capsys, case
):
    words, message = WRONG[case]
    out = tmp_path / "problem.json"
    fit = ["fit", folder / "log.csv", "--target", folder / "target.csv", *GUARD, "--out", out, *words]
    code, shown, error = run(capsys, *fit)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1
    assert shown == ""
    assert list(tmp_path.iterdir()) == []


def test_errors_name_file_line_and_column(folder, tmp_path, capsys):
    lines = (folder / "log.csv").read_text().splitlines()
    cells = lines[6].split(",")
    cells[4] = "much"
    (tmp_path / "bad.csv").write_text("\n".join([*lines[:6], ",".join(cells), *lines[7:]]) + "\n")
    code, _, error = run(capsys, "fit", tmp_path / "bad.csv", "--target", folder / "target.csv", *GUARD)
    assert code == 2
    assert "bad.csv, line 7, column 'reward': it is no double: invalid value 'much'" in error
    (tmp_path / "target.csv").write_text("state,action,probability\npage-00,offer z,1\n")
    code, _, error = run(capsys, "fit", folder / "log.csv", "--target", tmp_path / "target.csv", *GUARD)
    assert code == 2
    assert "target.csv, line 2, column 'action': there is no action 'offer z' in the log" in error


def test_a_file_that_holds_no_problem_and_options_that_it_has_itself_are_refused(folder, tmp_path, capsys):
    code, _, error = run(capsys, "diagnose", tmp_path / "none.json")
    assert code == 2
    assert "cannot read" in error
    saver.save(saver.SCENARIOS["bandit"](), tmp_path / "bandit.json")
    code, _, error = run(capsys, "evaluate", tmp_path / "bandit.json", folder / "log.csv")
    assert code == 2
    assert "holds a Scenario; it must hold a problem" in error
    code, _, error = run(capsys, "diagnose", tmp_path / "bandit.json", "--alpha", "0.1")
    assert code == 2
    assert "alpha are of scenarios" in error


def test_guardrails_in_words():
    found = guardrails_of(
        ["complaint:alpha=0.05,cost", "euro:at_least=3,low=0,high=9", "x:allowance=1,scale=2"]
    )
    assert found["complaint"] == {"alpha": 0.05, "cost": True}
    assert found["euro"] == {"at_least": 3.0, "promise": saver.Bounded(0, 9)}
    assert found["x"] == {"allowance": 1.0, "promise": saver.SubGaussian(2.0)}
    for wrong in ("complaint", ":alpha=1", "c:alpha", "c:alpha=x", "c:beta=1", "c:low=0", "c:low=0,scale=1"):
        with pytest.raises(InvalidProblem, match="--guardrail is"):
            guardrails_of([wrong])


def test_targets_in_words():
    assert policies_of(["new.csv"]) == "new.csv"
    assert policies_of(["a=x.csv", "b=y.csv"]) == {"a": "x.csv", "b": "y.csv"}
    with pytest.raises(InvalidProblem, match="each must be NAME=FILE"):
        policies_of(["x.csv", "y.csv"])
