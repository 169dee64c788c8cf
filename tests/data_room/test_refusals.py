"""What a stranger tried: each is refused with its place and its remedy, and nothing is written or run."""

import json

import gymnasium
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from data_room.logs import SMALL
from typer.testing import CliRunner

import saver
from saver import Campaign
from saver.cli.commands import app
from saver.data import from_campaign, from_gymnasium, play_many, read_log, world_from_gymnasium
from saver.errors import InvalidData, InvalidProblem, SaverError

LAKE = "FrozenLake-v1"


def log_of(n=60, **columns):
    """One step an episode: half of the actions, half of them complained about."""
    even = np.arange(n) % 2
    table = {"episode": np.arange(n), "step": 0, "state": "s", "action": np.where(even, "a", "b")}
    table |= {"reward": np.arange(n) % 3 * 1.0, "complaint": (np.arange(n) % 4 == 0) * 1.0}
    return pd.DataFrame(table | columns)


def fit(
    folder, *more, log="log.csv", target="target.csv", out="problem.json", guard="complaint:alpha=0.5,cost"
):
    words = ["fit", str(folder / log), "--target", str(folder / target), "--guardrail", guard]
    return CliRunner().invoke(app, [*words, "--out", str(folder / out), *more])


@pytest.fixture
def folder(tmp_path):
    log_of().to_csv(tmp_path / "log.csv", index=False)
    log_of().to_parquet(tmp_path / "log.parquet")
    pd.DataFrame({"state": ["s"], "action": ["a"], "probability": [1.0]}).to_csv(
        tmp_path / "target.csv", index=False
    )
    return tmp_path


@pytest.mark.parametrize("name", ["log.csv", "target.csv"])
def test_what_is_read_is_never_written_over(folder, name):
    before = (folder / name).read_bytes()
    found = fit(folder, out=name)
    assert isinstance(found.exception, InvalidData)
    assert "which is read" in str(found.exception)
    assert (folder / name).read_bytes() == before


def test_something_else_is_never_written_over_and_an_older_problem_is(folder):
    (folder / "notes.txt").write_text("mine")
    found = fit(folder, out="notes.txt")
    assert "holds no problem" in str(found.exception)
    assert (folder / "notes.txt").read_text() == "mine"
    assert fit(folder).exit_code == 0
    assert fit(folder).exit_code == 0


def test_a_misspelt_column_of_a_parquet_file_is_named(folder):
    with pytest.raises(
        InvalidData, match=r"log\.parquet has no column 'whre'; its columns are episode, step"
    ):
        read_log(folder / "log.parquet", state="whre")
    found = fit(folder, "--column", "state=whre", log="log.parquet")
    assert isinstance(found.exception, InvalidData)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: gymnasium.wrappers.TransformReward(env, lambda reward: 10 * reward),
        lambda env: gymnasium.wrappers.TransformObservation(env, lambda seen: seen, env.observation_space),
        lambda env: gymnasium.wrappers.StickyAction(env, 0.5),
    ],
)
def test_a_wrapper_that_may_change_what_the_table_says_is_refused(wrap):
    with gymnasium.make(LAKE) as env:
        for make in (from_gymnasium, world_from_gymnasium):
            with pytest.raises(InvalidProblem, match=r"is wrapped in \w+, and its table says .*unknown_from"):
                make(wrap(env), horizon=20)
        assert from_gymnasium(gymnasium.wrappers.RecordEpisodeStatistics(env), horizon=20).states == 17


def test_importance_has_no_end_where_the_log_lacks_what_the_target_does():
    fitted = read_log(log_of()).fit(1, new_actions=["free"])
    nothing = fitted.off_policy([[0.0, 0.0, 1.0]])
    assert np.isnan(nothing.importance.value)
    assert nothing.importance.interval == (-np.inf, np.inf)
    assert "nothing of what the target does" in nothing.notes[-1]
    half = fitted.off_policy([[0.5, 0.0, 0.5]])
    assert half.importance.interval == (-np.inf, np.inf)
    assert half.importance.stderr == np.inf
    assert half.importance.covered == pytest.approx(0.5)


def test_a_line_is_counted_with_the_newlines_inside_of_cells(tmp_path):
    rows = "".join(f'{i},0,"in\nbox ""A""",a,1.0,0\n' for i in range(10))
    (tmp_path / "log.csv").write_text(
        f'episode,step,state,action,reward,complaint\n{rows}10,0,"in\nbox",a,,0\n'
    )
    with pytest.raises(InvalidData, match=r"line 22, column 'reward'"):  # 1 + 10 of two lines, and one
        read_log(tmp_path / "log.csv")


def test_a_log_of_several_kinds_is_no_baseline():
    kinds = np.where(np.arange(60) < 50, "baseline", "design")
    log = read_log(log_of(who=kinds), kind="who")
    with pytest.raises(InvalidData, match=r"kinds 'baseline', 'design'.*log\.select\('baseline'\)\.fit"):
        log.fit(1)
    assert len(log.select("baseline").fit(1).history) == 50


@pytest.mark.parametrize("name", ["shop", "../x-v0", 3, "a b-v0", ""])
def test_a_name_that_minari_does_not_take_is_refused_before_anything_is_made(tmp_path, monkeypatch, name):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    with pytest.raises(InvalidData, match="the name is"):
        read_log(log_of()).to_minari(name)
    assert list(tmp_path.iterdir()) == []


def test_what_is_required_is_what_the_problem_says_whatever_log_is_evaluated():
    fitted = read_log(log_of()).fit(1)
    problem = fitted.problem([[1.0, 0.0]], {"complaint": {"alpha": 0.5, "cost": True}})
    angry = log_of(complaint=1.0)
    for log in (log_of(), angry):
        found = saver.data.evaluate(problem, read_log(log))["target"]
        assert found.required["complaint"] == pytest.approx(1.5 * 0.25)
    with pytest.raises(
        InvalidData, match=r"episode 0, step 0: complaint is 7, and the problem promises \[0, 1\]"
    ):
        saver.data.evaluate(problem, read_log(log_of(complaint=7.0)))


def test_a_damaged_history_is_refused(folder):
    assert fit(folder).exit_code == 0
    text = (folder / "problem.json").read_text()
    plain = json.loads(text)
    plain["holds"]["history"]["sums"]["rewards"]["counts"]["is"][0] = -5
    (folder / "problem.json").write_text(json.dumps(plain))
    with pytest.raises(InvalidData, match="history has -5 samples of"):
        saver.load(folder / "problem.json")


@pytest.mark.parametrize(
    ("more", "guard"),
    [
        ((), "complaint:alpha=0.3,alpha=0.4"),
        ((), "complaint:cost,alpha=0.4,cost"),
        (("--column", "state=state", "--column", "state=action"), "complaint:alpha=0.4,cost"),
    ],
)
def test_what_is_said_twice_is_refused(folder, more, guard):
    found = fit(folder, *more, guard=guard)
    assert isinstance(found.exception, InvalidProblem)
    assert "twice" in str(found.exception) or "once" in str(found.exception)


@pytest.mark.parametrize("log", ["log.csv", None, pd.DataFrame()])
def test_what_is_no_log_is_no_log(log):
    problem = read_log(log_of()).fit(1).problem([[1.0, 0.0]], {"complaint": {"alpha": 0.5, "cost": True}})
    with pytest.raises(InvalidData, match=r"give what saver\.data\.read_log gave"):
        saver.data.evaluate(problem, log)


def test_wrong_types_are_named():
    with pytest.raises(SaverError, match=r"campaign is NoneType; it must be a saver\.Campaign"):
        from_campaign(None)
    with pytest.raises(InvalidProblem, match="horizon is '5'"):
        from_gymnasium(LAKE, horizon="5")
    with pytest.raises(InvalidData, match=r"state is \['state'\]; it must be the name of a column"):
        read_log(pa.table(SMALL), state=["state"])
    with pytest.raises(InvalidData, match="the path is 3"):
        read_log(pa.table(SMALL)).to_parquet(3)
    with pytest.raises(InvalidData, match="column 'whole': it is 2; it must be True or False"):
        read_log(pa.table(SMALL | {"whole": [1.0, 1.0, 1.0, 1.0, 2.0]}), complete="whole")
    fitted = read_log(log_of()).fit(1)
    with pytest.raises(
        InvalidProblem, match="no option of the guardrail 'complaint': 'alfa'; did you mean 'alpha'"
    ):
        fitted.problem([[1.0, 0.0]], {"complaint": {"alfa": 0.4}})


def test_a_line_that_even_the_baseline_misses_is_named():
    fitted = read_log(log_of(400)).fit(1)
    problem = fitted.problem([[1.0, 0.0]], {"complaint": {"at_most": 0.1, "cost": True}})
    assert (
        "complaint must be at most 0.1 in an episode, and the baseline's is 0.25"
        in fitted.against(problem)[0]
    )


def test_guardrails_are_checked_before_an_episode_runs():
    with gymnasium.make(LAKE, max_episode_steps=10) as env:
        mdp = from_gymnasium(env)
        problem = saver.Problem(
            mdp, mdp.uniform, mdp.uniform, guardrails=[
                saver.Guardrail("fell", saver.Bounded(0, 1), alpha=0.5, cost=True, baseline_value=0.9)
            ],
        )  # fmt: skip
        campaign = Campaign(problem, "safe-on-policy", 5)
        with pytest.raises(InvalidProblem, match="no guardrail 'fel'; did you mean 'fell'"):
            play_many(env, campaign, guardrails={"fel": "reward"})
        assert not campaign.outstanding
        with pytest.raises(InvalidData, match=r"says nothing of what is guarded.*give guardrails="):
            play_many(env, campaign)
        with pytest.raises(InvalidData, match=r"guardrails\['fell'\] gave 'x'; it must give a number"):
            play_many(env, campaign, guardrails={"fell": lambda *_: "x"})
