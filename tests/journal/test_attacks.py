"""What a stranger typed: each is refused in words, or does what was meant, and nothing is lost by it."""

import os
import sqlite3

import numpy as np
import pytest
from journal.stores import BANDIT, opened, told

import saver
from saver.errors import InvalidData, InvalidProblem, StoreFailed, TooManyOut
from saver.journal import restore
from saver.journal.postgres import masked
from saver_audit.manners import paths


def played(path, count=4, **options):
    """A campaign with a few trials told."""
    with opened(path, **options) as campaign:
        for _ in range(count):
            with campaign.trial() as trial:
                trial.tell(*told(trial))
    return path


def changed(path, statement, *values):
    with sqlite3.connect(path) as base:
        base.execute(statement, values)
    base.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update campaign set setup = replace(setup, '0.25', '0.9')", "is said to be made of was changed"),
        ("update campaign set fingerprint = 'x'", "is said to be made of was changed"),
        ("update campaign set setup = '{'", "is said to be made of was changed"),
        ("update campaign set setup = '[]'", "is said to be made of was changed"),
        ("delete from event", "the record of its making is missing"),
        ("delete from event where seq = 1", "the record of its making is missing"),
        ("update event set body = '{}' where seq = 1", "the record of its making is missing or was changed"),
        ("delete from event where seq = 3", "record 4 does not follow"),
    ],
)
def test_what_was_changed_is_refused_with_the_problem_and_without(tmp_path, statement, message):
    path = played(tmp_path / "run.db")
    changed(path, statement)
    with pytest.raises(StoreFailed, match=message):
        saver.open(path, "shop")
    with pytest.raises(StoreFailed, match=message):
        opened(path)


@pytest.mark.parametrize("body", [b"\0", b"", b"x\x9c\x03\0\0\0\0\1"])
def test_a_damaged_snapshot_costs_time_and_is_named(tmp_path, body):
    path = played(tmp_path / "run.db")
    with opened(path) as campaign:
        campaign.snapshot()
        state = campaign.state()
    changed(path, "update snapshot set body = ?", body)
    with opened(path) as campaign:
        assert campaign.state() == state
        with pytest.raises(StoreFailed, match="the snapshot of 'shop' after record 9 is not what"):
            campaign.verify()


@pytest.mark.parametrize(
    "url", [None, 3, b"x.db", "memory", ":memory:", "file:x.db", "sqlite:///x.db?mode=ro", "/dev/null"]
)
def test_what_is_no_url_makes_no_file(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreFailed, match=r"the URL is|is a device"):
        opened(url)
    assert not list(tmp_path.iterdir())


def test_nothing_is_made_beside_a_file_that_is_not_ours(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1" * 9)
    with pytest.raises(StoreFailed, match=r"a\.parquet is no SQLite database"):
        restore(tmp_path / "a.parquet", tmp_path / "y.db")
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    with pytest.raises(StoreFailed, match="memory: ends with the process"):
        restore(played(tmp_path / "run.db"), "memory:")


def test_a_leader_is_alone_however_its_file_is_called(tmp_path):
    os.symlink(tmp_path / "run.db", tmp_path / "link.db")
    with opened(tmp_path / "run.db", mode="leader") as leader:
        with pytest.raises(StoreFailed, match="a leader must be alone"):
            opened(tmp_path / "link.db", mode="leader")
        assert leader.ask().number == 1


def test_a_file_that_is_gone_or_another_is_noticed(tmp_path):
    with opened(tmp_path / "run.db") as campaign:
        trial = campaign.ask()
        (tmp_path / "run.db").rename(tmp_path / "moved.db")
        with pytest.raises(StoreFailed, match="was removed, or is another file now; nothing was written"):
            campaign.tell(trial, *told(trial))
        played(tmp_path / "other.db").rename(tmp_path / "run.db")
        with pytest.raises(StoreFailed, match="was removed, or is another file now"):
            campaign.ask()
        (tmp_path / "moved.db").rename(tmp_path / "run.db")
        assert campaign.tell(trial, *told(trial)) == "told"


def test_passwords_are_not_shown():
    assert masked("postgresql://me:secret@host/base") == "postgresql://me:***@host/base"
    assert masked("postgresql://me@host/base?x=1&password=secret&y=2") == (
        "postgresql://me@host/base?x=1&password=***&y=2"
    )


def test_reading_makes_nothing(tmp_path):
    with pytest.raises(StoreFailed, match="is not there"):
        opened(tmp_path / "fresh.db", mode="read")
    played(tmp_path / "run.db")
    with pytest.raises(StoreFailed, match="has no campaign 'shpo'"):
        saver.open(tmp_path / "run.db", "shpo", BANDIT.problem, "saver-opt", 60, mode="read")
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.name.startswith("fresh")) == []


@pytest.mark.parametrize(
    "given", [{"seed": 5}, {"episodes": 51}, {"collector": "saver"}, {"losses": "random"}, {"order": "asked"}]
)
def test_what_would_be_ignored_is_refused(tmp_path, given):
    with pytest.raises(InvalidProblem, match=f"{next(iter(given))} was given without a problem"):
        saver.open(played(tmp_path / "run.db"), "shop", **given)


def test_another_collector_is_called_by_its_name(tmp_path):
    with pytest.raises(StoreFailed, match='collector is "saver", and was "saver-opt"'):
        opened(played(tmp_path / "run.db"), collector="saver")


def test_a_trial_of_a_block_may_be_told_and_left_by_the_campaign(url):
    with opened(url) as campaign:
        with campaign.trial() as trial:
            assert campaign.tell(trial, *told(trial)) == "told"
        with campaign.trial() as trial:
            assert campaign.tell(trial.number, *told(trial)) == "told"
        with campaign.trial() as trial:
            campaign.cancel(trial)
        with campaign.trial() as trial:
            campaign.abandon(trial)
        assert campaign.given_up == {"abandoned": 1, "cancelled": 1}
        assert campaign.verify().records == len(campaign.records())


def test_a_key_gives_those_of_its_trials_that_are_still_out(url):
    with opened(url) as campaign:
        first, second, third = campaign.ask(n=3, key="a")
        campaign.tell(first, *told(first))
        campaign.abandon(third)
        assert [trial.number for trial in campaign.ask(n=3, key="a")] == [2]
        with pytest.raises(InvalidData, match="the key 'a' has asked with start=True"):
            campaign.ask(n=3, key="a", start=False)
        campaign.tell(second, *told(second))
        with pytest.raises(InvalidData, match="trial 1, which the key 'a' has asked for, was told, and none"):
            campaign.ask(n=3, key="a")


def test_a_late_key_says_one_thing_in_every_store(url):
    with opened(url) as campaign:
        trial = campaign.ask()
        states, actions, rewards, constraints = told(trial)
        campaign.abandon(trial)
        assert campaign.tell(trial, *told(trial), key="k") == "late"
        assert campaign.tell(trial, *told(trial), key="k") == "late"
        with pytest.raises(InvalidData, match="the key 'k' has told something else of trial 1"):
            campaign.tell(trial, states, actions, [rewards[0] + 1.0], constraints, key="k")
        assert [record.kind for record in campaign.records()].count("late") == 1


@pytest.mark.parametrize("key", ["\ud800", "a\0b", 3, "", "x" * 201])
def test_odd_keys_are_refused_alike(url, key):
    with opened(url) as campaign, pytest.raises(InvalidData, match="key is"):
        campaign.ask(key=key)


@pytest.mark.parametrize("trial", ["1", None, 1.0, [1]])
def test_what_is_no_trial_is_said(url, trial):
    with opened(url) as campaign:
        out = campaign.ask()
        for request in (campaign.renew, campaign.start, campaign.cancel, campaign.abandon):
            with pytest.raises(InvalidProblem, match=r"trial is .*; it must be a whole number"):
                request(trial)
        with pytest.raises(InvalidProblem, match=r"trial is .*; it must be a whole number"):
            campaign.tell(trial, *told(out))
        assert campaign.tell(np.int64(1), *told(out)) == "told"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda trial: (trial, *told(trial)), r"told\[0\] is Trial"),
        (lambda _: 5, "told is 5; it must hold"),
        (lambda _: None, "told is None"),
        (lambda _: "abc", "told is 'abc'"),
        (lambda _: [1], r"told\[0\] is 1; it must be \(trial, states"),
        (lambda _: [()], r"told\[0\] is \(\)"),
        (lambda trial: [(trial,)], r"told\[0\] is \(Trial"),
        (lambda trial: [(trial, [0], [99], [0.0], [0.0])], r"told\[0\], trial 1: actions\[0\] is 99"),
    ],
)
def test_what_is_no_list_of_what_was_told_is_said(url, given, message):
    with opened(url) as campaign:
        trial = campaign.ask()
        with pytest.raises(InvalidData, match=message):
            campaign.tell_all(given(trial))
        assert campaign.tell_all((one, *told(one)) for one in [trial]) == ["told"]


def test_records_are_asked_for_alike_in_every_store(url):
    with opened(url) as campaign:
        campaign.ask()
        assert [record.seq for record in campaign.records(1)] == [2]
        for wrong in ((-1,), ("a",), (0, -1), (0, 0), (10**30,)):
            with pytest.raises(InvalidProblem, match=r"after is|most is"):
                campaign.records(*wrong)
        with pytest.raises(TooManyOut, match="n is 999, and max_out is"):
            campaign.ask(n=999)


def test_what_was_closed_can_still_be_printed(url):
    campaign = opened(url)
    campaign.close()
    assert repr(campaign) == "DurableCampaign('shop', closed)"


def test_a_campaign_whose_certificate_was_another_one_can_only_be_read(tmp_path):
    """Bets on returns are new: before, delta was split otherwise for bounded observations on random paths."""
    coins = paths(coins=True)
    for problem, refused in ((coins.problem, True), (BANDIT.problem, False)):
        path = tmp_path / f"{refused}.db"
        given = {"problem": problem, "collector": "saver", "episodes": 20}
        with saver.open(path, "old", **given) as campaign:
            campaign.ask()
        changed(path, "update campaign set versions = '{}'")
        with saver.open(path, "old", mode="read") as campaign:
            assert len(campaign.outstanding) == 1
        if refused:
            with pytest.raises(StoreFailed, match=r'an earlier version of saver began it.*mode="read"'):
                saver.open(path, "old", **given)
        else:
            with saver.open(path, "old") as campaign:
                campaign.ask()
