"""`saver campaign`: each command prints a table or JSON, and one line where something is wrong."""

import json

import pyarrow.parquet as pq
import pytest
from journal.stores import BANDIT, told
from typer.testing import CliRunner

import saver
from saver.cli.commands import app
from saver.errors import InvalidProblem, SaverError, StoreFailed


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "run.db"
    with saver.open(path, "shop", BANDIT.problem, "saver-opt", 60, seed=3) as campaign:
        for _ in range(8):
            trial = campaign.ask()
            campaign.tell(trial, *told(trial))
        campaign.ask()
        campaign.abandon(campaign.ask())
    return path


def said(*words):
    found = CliRunner().invoke(app, ["campaign", *map(str, words)])
    if found.exception is not None:
        raise found.exception
    return found.stdout


def test_list_and_show_say_how_campaigns_stand(store, tmp_path):
    (row,) = json.loads(said("list", store, "--json"))
    assert {name: row[name] for name in ("name", "told", "out", "abandoned", "records")} == {
        "name": "shop", "told": 8, "out": 1, "abandoned": 1, "records": 20,
    }  # fmt: skip
    assert "shop" in said("list", store)
    facts = json.loads(said("show", store, "--json", "--plot", tmp_path / "shop.png"))
    with saver.open(store, "shop", mode="read") as campaign:
        assert facts["target"] == campaign.estimate().value
        assert facts["certified budget, constraint"] == campaign.budget.certified
    assert (tmp_path / "shop.png").read_bytes()[:4] == b"\x89PNG"
    assert "certified budget" in said("show", store, "shop")
    with pytest.raises(InvalidProblem, match=r"--plot is .*shop\.gif; its name must end in"):
        said("show", store, "--plot", tmp_path / "shop.gif")


def test_events_are_what_is_stored(store):
    found = json.loads(said("events", store, "--after", "17", "--json"))
    assert [(one["seq"], one["kind"], one["trial"]) for one in found] == [
        (18, "asked", 9), (19, "asked", 10), (20, "abandoned", 10),
    ]  # fmt: skip
    assert "abandoned" in said("events", store, "--after", "17")
    assert len(json.loads(said("events", store, "--most", "4", "--json"))) == 4


def test_verify_export_snapshot_backup_and_restore(store, tmp_path):
    found = json.loads(said("verify", store, "--json"))
    assert (found["records"], found["snapshots"]) == (20, 0)
    assert json.loads(said("snapshot", store, "--json"))["after"] == 20
    assert "20 records and 1 snapshots" in said("verify", store)
    said("export", store, "--out", tmp_path / "log.parquet")
    assert pq.read_table(tmp_path / "log.parquet").num_rows == 8
    said("backup", store, tmp_path / "copy.db")
    said("restore", tmp_path / "copy.db", tmp_path / "again.db")
    assert json.loads(said("verify", tmp_path / "again.db", "--json"))["chain"] == found["chain"]


def test_a_leader_can_be_looked_at(store):
    with saver.open(store, "shop", mode="leader") as campaign:
        campaign.ask()
        assert json.loads(said("list", store, "--json"))[0]["out"] == 2
        with pytest.raises(StoreFailed, match="a leader holds the campaign"):
            said("snapshot", store)
    with (
        saver.open(store, "shop", mode="read") as campaign,
        pytest.raises(StoreFailed, match='opened with mode="read"'),
    ):
        campaign.ask()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("list", "nowhere.db"), "is not there"),
        (("show", "mysql://x"), "the URL is"),
        (("backup", "nowhere.db", "x.db"), "is not there"),
    ],
)
def test_what_is_wrong_is_said(words, message):
    with pytest.raises(SaverError, match=message):
        said(*words)


def test_a_name_must_be_said_where_there_are_several(store):
    saver.open(store, "other", BANDIT.problem, "saver", 10).close()
    with pytest.raises(StoreFailed, match=r"has 2 campaigns \(shop, other\); say which"):
        said("show", store)
    with pytest.raises(StoreFailed, match="has no campaign 'shp'"):
        said("show", store, "shp")
