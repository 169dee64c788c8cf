"""What only a server can suffer."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from journal.stores import empty, opened, server, told

from saver.errors import StoreFailed


def cut_all(uri, url):
    """End every connection to a database but one's own, as a failing network would."""
    name = url.split("/")[3].split("?")[0]
    with psycopg.connect(uri, autocommit=True) as base:
        base.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (name,))


def test_a_lost_connection_is_an_error_and_the_next_call_goes_on(uri, tmp_path):
    url = empty("postgres", tmp_path, uri)
    with opened(url) as campaign:
        trial = campaign.ask()
        cut_all(uri, url)
        with pytest.raises(StoreFailed, match="the connection is gone: call again when the server is back"):
            campaign.tell(trial, *told(trial))
        assert campaign.tell(trial, *told(trial)) == "told"
        assert campaign.ask().number == 2
        assert campaign.verify().records == 4
        with pytest.raises(StoreFailed, match="open elsewhere"):
            opened(url, mode="leader")  # it is held again


def test_a_leader_that_lost_its_connection_writes_nothing_once_another_leads(uri, tmp_path):
    url = empty("postgres", tmp_path, uri)
    old = opened(url, mode="leader")
    trial = old.ask()
    cut_all(uri, url)
    with opened(url, mode="leader") as new:
        for _ in range(3):
            with pytest.raises(StoreFailed, match=r"the connection is gone|open elsewhere"):
                old.tell(trial, *told(trial))
        assert new.tell(trial, *told(trial)) == "told"
        assert new.verify().records == 3
    assert old.tell(trial, *told(trial)) == "again"  # it leads again, and has read what happened
    old.close()


def test_a_server_that_restarts_in_the_middle_is_an_error_and_then_goes_on(tmp_path):
    import pgserver

    with server() as uri:
        url = empty("postgres", tmp_path, uri)
        with opened(url) as campaign:
            trial = campaign.ask()
            data = uri.partition("host=")[2]
            control = Path(pgserver.__file__).parent / "pginstall" / "bin" / "pg_ctl"
            command = [str(control), "-D", data, "-m", "immediate", "-w"]
            user = {} if sys.platform == "win32" else {"user": Path(data).owner()}
            subprocess.run([*command, "restart", "-l", f"{data}/again.log"], check=True, cwd="/", timeout=60,
                           stdout=subprocess.DEVNULL, **user)  # fmt: skip
            with pytest.raises(StoreFailed, match="the connection is gone"):
                campaign.ask()
            assert campaign.tell(trial, *told(trial)) == "told"
            assert [record.kind for record in campaign.records()] == ["created", "asked", "told"]
            assert campaign.verify().records == 3


def test_wrong_credentials_are_named_without_the_password(uri):
    with pytest.raises(StoreFailed, match=r"postgresql://ann:\*\*\*@localhost:1/x.*refused") as found:
        opened("postgresql://ann:secret@localhost:1/x")
    assert "secret" not in str(found.value)
    with pytest.raises(StoreFailed, match=r'role "nobody" does not exist'):
        opened(uri.replace("postgres:@", "nobody:@"))


def test_a_newer_schema_is_refused(uri, tmp_path):
    url = empty("postgres", tmp_path, uri)
    opened(url).close()
    with psycopg.connect(url, autocommit=True) as base:
        base.execute("insert into saver.version values (99)")
    with pytest.raises(StoreFailed, match="has schema 99, and this version of saver knows 1"):
        opened(url)
