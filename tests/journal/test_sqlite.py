"""What only a file can suffer."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from journal.stores import opened, told

import saver
from saver.errors import StoreFailed
from saver.journal import backup, restore, sqlite as store
from saver.journal.protocol import migrations
from saver.journal.sqlite import filesystem

DATA = Path(__file__).parents[1] / "data"

# workers of the test runner have threads
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def played(path, n=5, **options):
    with opened(path, **options) as campaign:
        for _ in range(n):
            trial = campaign.ask()
            campaign.tell(trial, *told(trial))
        return campaign.state()


def until_it_fails(campaign, answered):
    for _ in range(60):
        trial = campaign.ask()
        campaign.tell(trial, *told(trial))
        answered.append(trial.number)


def test_what_is_no_database_of_ours_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "text.db").write_text("hello, this is no database at all, not even nearly one" * 20)
    with pytest.raises(StoreFailed, match=r"text\.db is no SQLite database"):
        opened(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("create table mine (x)")
    other.commit()
    other.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(StoreFailed, match=r"other\.db is a database of something else"):
        opened(tmp_path / "other.db")
    assert (tmp_path / "other.db").read_bytes() == before
    with pytest.raises(StoreFailed, match="is a folder"):
        opened(tmp_path)
    with pytest.raises(StoreFailed, match=r"the folder .* is not there"):
        opened(tmp_path / "no" / "run.db")
    with pytest.raises(StoreFailed, match="is not there"):
        saver.open(tmp_path / "nothing.db", "shop")
    assert not (tmp_path / "nothing.db").exists()


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://run.db", "sqlite:///", "", "memory:x"])
def test_an_unknown_url_is_refused_with_those_that_are_known(url):
    with pytest.raises(StoreFailed, match=r"the URL is.*(sqlite:///file\.db|sqlite:////folder)"):
        opened(url)


def test_a_newer_schema_is_refused(tmp_path):
    played(tmp_path / "run.db")
    base = sqlite3.connect(tmp_path / "run.db")
    base.execute(f"pragma user_version = {len(migrations()) + 1}")
    base.close()
    with pytest.raises(StoreFailed, match=r"has schema 2, and this version of saver knows 1"):
        opened(tmp_path / "run.db")


MOUNTS = """overlay / overlay rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sda1 /home/ann/disk ext4 rw 0 0
//nas/my\\040files /mnt/my\\040files cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/tmp", "overlay"), ("/home/ann", "nfs4"), ("/home/ann/disk/x", "ext4"), ("/mnt/my files/a", "cifs")],
)
def test_the_file_system_of_a_folder_is_that_of_its_nearest_mount(folder, kind):
    assert filesystem(Path(folder), MOUNTS) == kind
    assert filesystem(Path(folder), "") == ""


def test_a_network_file_system_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("saver.journal.sqlite._mounts", lambda: f"nas:/x {tmp_path.resolve()} nfs4 rw 0 0")
    with pytest.raises(StoreFailed, match=r"network file system \(nfs4\).*postgresql://"):
        opened(tmp_path / "run.db")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_nothing_is_half_done_and_it_goes_on_afterwards(tmp_path):
    with opened(tmp_path / "run.db") as campaign:
        base = campaign._journal
        pages = int(base.run("pragma page_count")[0][0])
        base.run(f"pragma max_page_count = {pages}")
        answered = []
        with pytest.raises(StoreFailed, match=r"disk is full; nothing was written\. Free some space"):
            until_it_fails(campaign, answered)
        base.run("pragma max_page_count = 1000000")
        kept = len(campaign.records())
        assert campaign.last == kept
        assert campaign.verify().records == kept
        for trial in list(campaign.outstanding):
            assert campaign.tell(trial, *told(trial)) == "told"
        trial = campaign.ask()
        assert campaign.tell(trial, *told(trial)) == "told"
        numbers = [record.trial for record in campaign.records() if record.kind == "told"]
        assert numbers == sorted(set(numbers))
        assert set(answered) <= set(numbers)


@pytest.mark.parametrize("mode", ["embedded", "leader"])
def test_what_was_answered_is_on_the_disk_when_power_is_lost(tmp_path, monkeypatch, mode):
    """The disk holds what was there at the last flush; after every answer it is opened as it is then."""
    disk, real = tmp_path / "disk", store.to_disk

    def to_disk(log):
        real(log)
        disk.mkdir(exist_ok=True)
        for name in ("run.db", "run.db-wal"):
            shutil.copy(tmp_path / name, disk / name)

    def records():
        with saver.open(disk / "run.db", "shop", mode="read") as after:
            return [(record.kind, record.trial) for record in after.records()]

    monkeypatch.setattr(store, "to_disk", to_disk)
    with opened(tmp_path / "run.db", mode=mode) as campaign:
        assert records() == [("created", None)]
        for number in range(1, 6):
            trial = campaign.ask()
            assert records()[-1] == ("asked", number)
            campaign.tell(trial, *told(trial))
            assert records()[-1] == ("told", number)
        trials = campaign.ask(n=3)
        assert records()[-3:] == [("asked", trial.number) for trial in trials]
        campaign.abandon(trials[0])
        assert records()[-1] == ("abandoned", trials[0].number)


def test_an_answer_that_rests_on_what_another_has_just_written_is_on_the_disk(tmp_path, monkeypatch):
    flushed, real = [], store.to_disk
    monkeypatch.setattr(store, "to_disk", lambda log: (flushed.append(1), real(log)))
    with opened(tmp_path / "run.db") as one, opened(tmp_path / "run.db") as other:
        monkeypatch.setattr(one._journal, "flush", lambda: None)  # it is slow: its commit can be seen before
        trial = one.ask(key="mine")
        flushed.clear()
        assert other.ask(key="mine").number == trial.number  # nothing new is written
        assert flushed


def test_a_disk_that_fails_is_an_error_once_and_for_all_and_what_was_told_is_told_again(
    tmp_path, monkeypatch
):
    def broken(log):
        raise OSError(5, "Input/output error")

    with opened(tmp_path / "run.db") as campaign:
        trial = campaign.ask()
        with monkeypatch.context() as patched:
            patched.setattr(store, "to_disk", broken)
            with pytest.raises(
                StoreFailed, match=r"may not be on the disk \(Input/output error\); look after"
            ):
                campaign.tell(trial, *told(trial))
        with pytest.raises(StoreFailed, match="may not be on the disk"):
            campaign.ask()  # though flushing would seem to work now
        assert len(campaign.records()) == 3  # created, asked, told: the last ask has changed nothing
    with opened(tmp_path / "run.db") as campaign:
        assert campaign.tell(trial, *told(trial)) == "again"
        assert campaign.ask().number == 2


def test_flushing_is_for_power_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "to_disk", lambda log: pytest.fail("it was flushed"))
    played(tmp_path / "run.db", durability="process")


@pytest.mark.parametrize("column", ["body", "at", "kind", "actor", "chain"])
def test_a_record_that_was_changed_is_found(tmp_path, column):
    played(tmp_path / "run.db")
    base = sqlite3.connect(tmp_path / "run.db")
    new = {"body": b"{}", "at": 1.0, "kind": "late", "actor": "me", "chain": b"0" * 32}[column]
    base.execute(f"update event set {column} = ? where seq = 5", (new,))
    base.commit()
    base.close()
    with pytest.raises(StoreFailed, match=r"record 5 does not follow from those before it"):
        opened(tmp_path / "run.db")


def test_a_record_that_was_taken_out_is_found(tmp_path):
    played(tmp_path / "run.db")
    base = sqlite3.connect(tmp_path / "run.db")
    base.execute("delete from event where seq = 5")
    base.commit()
    base.close()
    with pytest.raises(StoreFailed, match=r"record 6 does not follow"):
        opened(tmp_path / "run.db")


def test_a_snapshot_that_was_changed_is_found_by_verify(tmp_path):
    played(tmp_path / "run.db")
    with opened(tmp_path / "run.db") as campaign:
        campaign.snapshot()
        image = campaign.image()
    base = sqlite3.connect(tmp_path / "run.db")
    from saver.journal.folding import pressed

    image["leases"] = {"7": [None, True]}
    base.execute("update snapshot set body = ?", (pressed(image),))
    base.commit()
    base.close()
    with (
        opened(tmp_path / "run.db") as campaign,
        pytest.raises(StoreFailed, match="snapshot of 'shop' after"),
    ):
        campaign.verify()


def test_a_copy_of_the_process_must_open_it_itself(tmp_path):
    with opened(tmp_path / "run.db") as campaign:
        child = os.fork()
        if not child:
            try:
                campaign.ask()
            except StoreFailed as error:
                os._exit(7 if "of which this one is a copy" in str(error) else 1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert campaign.ask().number == 1


def test_a_backup_of_a_live_campaign_goes_on_where_it_was_made(tmp_path):
    with opened(tmp_path / "run.db", mode="leader") as campaign:
        trial = campaign.ask()
        campaign.tell(trial, *told(trial))
        out = campaign.ask()
        campaign.snapshot()
        assert [header.name for header in backup(tmp_path / "run.db", tmp_path / "copy.db")] == ["shop"]
        state = campaign.state()
        campaign.tell(out, *told(out))
        after = campaign.state()
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]
    with pytest.raises(StoreFailed, match="is there already"):
        backup(tmp_path / "run.db", tmp_path / "copy.db")
    restore(tmp_path / "copy.db", tmp_path / "again.db")
    with pytest.raises(StoreFailed, match="has a campaign 'shop'"):
        restore(tmp_path / "copy.db", tmp_path / "again.db")
    with opened(tmp_path / "again.db") as again:
        assert again.state() == state
        assert again.verify().snapshots == 1
        assert again.tell(out, *told(out)) == "told"
        assert again.state() == after


def test_who_opens_a_file_twice_keeps_the_locks_of_both(tmp_path):
    """To open and close the file itself drops them: another process then removes what is not yet in it."""
    path = tmp_path / "run.db"
    with opened(path) as campaign:
        trial = campaign.ask()
        campaign.tell(trial, *told(trial))
        looking = opened(path, mode="read")
        elsewhere = "import sys, saver; saver.open(sys.argv[1], 'shop', mode='read').close()"
        subprocess.run([sys.executable, "-c", elsewhere, str(path)], check=True)
        assert (tmp_path / "run.db-wal").exists()
        for _ in range(3):
            trial = campaign.ask()
            assert campaign.tell(trial, *told(trial)) == "told"
        looking.close()
    with opened(path) as again:
        assert again.budget.episodes == 4
        assert again.verify().records == len(again.records())


def test_a_database_of_each_schema_opens(tmp_path):
    for number in range(1, len(migrations()) + 1):
        shutil.copy(DATA / f"campaign-{number}.db", tmp_path / "old.db")
        with saver.open(tmp_path / "old.db", "shop") as campaign:
            assert campaign.verify().records == 12
            old = next(record for record in campaign.records() if record.kind == "told")
            assert campaign.tell(old.trial, old.event.episode) == "again"  # however it was written then
            trial = campaign.ask()
            assert campaign.tell(trial, *told(trial)) == "told"


def test_what_earlier_versions_wrote_of_history_and_of_learned_values_is_what_it_was(tmp_path):
    # written before fields of `History`, `Logged` and `Tally` had other names; with snapshots, which are
    # compared with the records before them bit by bit
    shutil.copy(DATA / "campaign-history.db", tmp_path / "old.db")
    url, asked = f"sqlite:///{tmp_path / 'old.db'}", saver.load(DATA / "problem-history.json")
    assert asked.history.episodes == 12
    assert set(asked.history.rails) == {"calls", "costs"}
    with saver.open(url, "logged", asked, "saver-opt", episodes=60, seed=1) as campaign:
        assert campaign.verify().snapshots == 1
        assert campaign.budget.of == pytest.approx({"calls": -1.0348899816929964, "costs": 26.38464012194291})
        campaign.ask()
    with saver.open(url, "unknown", mode="read") as campaign:
        assert campaign.verify().snapshots == 1
    state = json.loads((DATA / "state-history.json").read_text(encoding="utf-8"))
    campaign = saver.Campaign.restore(asked, "saver-opt", state)
    assert campaign.state() == state
    saver.save(asked, tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(
        (DATA / "problem-history.json").read_text()
    )
