"""What happens when: a test for each row of the table in docs/guides/production.md that no other file has."""

import os
import signal

import pytest
from journal.stores import opened, told

import saver
from saver.journal.sqlite import SqliteJournal

# workers of the test runner have threads
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def child(work):
    """A process of its own; the signal that ended it, or 0."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    return os.WTERMSIG(os.waitpid(pid, 0)[1])


def killed_at_commit(path, after):
    """Ask with a key, and be killed just before the commit, or just after it."""

    def work():
        campaign = opened(path)
        journal = campaign._journal
        plain = journal.run

        def run(statement, values=()):
            if statement != "commit":
                return plain(statement, values)
            if after:
                plain(statement, values)
            os.kill(os.getpid(), signal.SIGKILL)
            return []

        journal.run = run
        campaign.ask(key="mine")

    assert child(work) == signal.SIGKILL


def test_killed_before_the_commit_nothing_has_happened(tmp_path):
    opened(tmp_path / "run.db").close()
    killed_at_commit(tmp_path / "run.db", after=False)
    with opened(tmp_path / "run.db") as campaign:
        assert [record.kind for record in campaign.records()] == ["created"]
        assert campaign.ask(key="mine").number == 1


def test_killed_after_the_commit_it_has_happened_and_the_key_finds_it(tmp_path):
    opened(tmp_path / "run.db").close()
    killed_at_commit(tmp_path / "run.db", after=True)
    with opened(tmp_path / "run.db") as campaign:
        assert [record.kind for record in campaign.records()] == ["created", "asked"]
        trial = campaign.ask(key="mine")
        assert trial.number == 1
        assert campaign.tell(trial, *told(trial)) == "told"
        assert campaign.verify().records == 3


def test_a_worker_that_dies_with_a_trial_loses_it_when_its_lease_ends(tmp_path, monkeypatch):
    def work():
        opened(tmp_path / "run.db", lease=100.0).ask()
        os.kill(os.getpid(), signal.SIGKILL)

    opened(tmp_path / "run.db").close()
    assert child(work) == signal.SIGKILL
    with opened(tmp_path / "run.db") as campaign:
        assert [trial.number for trial in campaign.outstanding] == [1]
        real = SqliteJournal.now
        monkeypatch.setattr(SqliteJournal, "now", lambda journal: real(journal) + 101.0)
        assert campaign.expire() == [1]
        assert campaign._writing.fold.state.abandoned == {1}


def test_a_clock_that_jumps_ahead_ends_leases_and_one_that_jumps_back_ends_none(tmp_path, monkeypatch):
    real, jump = SqliteJournal.now, [0.0]
    monkeypatch.setattr(SqliteJournal, "now", lambda journal: real(journal) + jump[0])
    with opened(tmp_path / "run.db", lease=3600.0) as campaign:
        first = campaign.ask()
        jump[0] = -86_400.0
        second = campaign.ask()
        times = [record.at for record in campaign.records()]
        assert times == sorted(times)  # time stands still until the clock has come back
        assert campaign.tell(second, *told(second)) == "told"
        jump[0] = 7200.0
        assert campaign.tell(first, *told(first)) == "late"
        assert campaign._writing.fold.state.abandoned == {1}
        assert campaign.verify().records == 6  # created, two asked, told, abandoned, late


def test_with_order_asked_what_never_started_is_free_only_while_nothing_was_asked_after_it(tmp_path):
    with opened(tmp_path / "run.db", order="asked") as campaign:
        campaign.ask(n=3, start=False)
        campaign.start(1)
        for expired in ((2,), (1, 3)):
            for n in expired:
                campaign._writing.fold.leases[n] = saver.journal.Lease(0.0, campaign.leases[n].started)
            campaign.expire()
        kinds = {record.trial: record.kind for record in campaign.records() if record.trial}
        assert kinds == {1: "abandoned", 2: "abandoned", 3: "cancelled"}


def test_two_processes_keep_one_snapshot_of_one_place(tmp_path):
    with opened(tmp_path / "run.db") as one, opened(tmp_path / "run.db") as other:
        one.ask()
        assert one.snapshot() == other.snapshot() == 2
        assert other._journal.snapshots(1) == [2]
