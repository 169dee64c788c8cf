"""Campaigns in PostgreSQL: for many machines. Locks and inserts are of one connection.

A leader whose connection is gone has lost its lock and cannot insert; the key (campaign, seq) stops a second
writer whatever happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from saver.errors import StoreFailed
from saver.journal.protocol import Journal, Waiting, held_by

SPACE = 0x53615665  # the first number of our advisory locks; the second is a campaign, 0 the schema
HELD = 0x53615666  # the same of who holds a campaign
SYNCHRONOUS = {"power": "on", "process": "off"}
PATIENCE = 10  # seconds to connect


class PostgresJournal(Journal):
    """A database of a server; its tables are made in the schema `saver`."""

    def __init__(self, url: str, durability: str) -> None:
        self.name, self.url, self.durability = masked(url), url, durability
        self._held: list[tuple[int, bool]] = []
        self._base: Any = None
        self._inside = False  # a transaction: what is lost then is lost with it
        self._connect()

    def _connect(self) -> None:
        """A connection is used only with all the locks that are held."""
        psycopg = _driver()
        try:
            self._base = psycopg.connect(self.url, autocommit=True, connect_timeout=PATIENCE)
            self._base.execute(f"set synchronous_commit = {SYNCHRONOUS[self.durability]}")
            self._base.execute("set search_path = saver")
            self._prepare()
            for campaign, alone in self._held:
                self._lock(campaign, alone)
        except (psycopg.Error, StoreFailed) as cause:
            self.close()
            if isinstance(cause, StoreFailed):
                raise
            raise StoreFailed(
                f"cannot connect to {self.name}: {_said(cause)}; check the URL, or call again when the "
                "server is back"
            ) from None

    def _prepare(self) -> None:
        """Bring the schema up to date, one process at a time."""
        with self._base.transaction():
            self._base.execute("select pg_advisory_xact_lock(%s, 0)", (SPACE,))
            self._base.execute("create schema if not exists saver")
            self._base.execute("create table if not exists version (number bigint not null)")
            found = self._base.execute("select coalesce(max(number), 0) from version").fetchone()[0]
            for number, step in enumerate(self.steps_from(found), found + 1):
                self._base.execute(step)
                self._base.execute("insert into version values (%s)", (number,))

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows; a connection that was lost is made anew, outside of a transaction."""
        if not self._inside and self._lost:
            self._connect()
        try:
            found = self._base.execute(statement.replace("?", "%s"), values)
            return found.fetchall() if found.description else []
        except _driver().Error as cause:
            raise self._failed(cause) from None

    @property
    def _lost(self) -> bool:
        return self._base is None or self._base.closed

    @contextmanager
    def writing(self, campaign: int, meanwhile: Waiting = None) -> Iterator[Journal]:
        """By a lock that ends with the transaction."""
        if self._lost:
            self._connect()
        if meanwhile is not None:
            meanwhile()
        try:
            with self._base.transaction():
                self._inside = True
                self.run("select pg_advisory_xact_lock(?, ?)", (SPACE, campaign))
                self._campaign = campaign
                yield self
        except _driver().Error as cause:
            raise self._failed(cause) from None
        finally:
            self._inside = False

    def now(self) -> float:
        """The server's clock."""
        return float(self.run("select extract(epoch from clock_timestamp())")[0][0])

    def hold(self, campaign: int, *, alone: bool) -> None:
        """By a lock that ends with the connection."""
        self._lock(campaign, alone)
        self._held.append((campaign, alone))

    def _lock(self, campaign: int, alone: bool) -> None:
        kind = "" if alone else "_shared"
        found = self._base.execute(f"select pg_try_advisory_lock{kind}(%s, %s)", (HELD, campaign))
        if not found.fetchone()[0]:
            raise held_by("another connection", alone)

    def close(self) -> None:
        if self._base is not None:
            self._base.close()

    def _failed(self, cause: Any) -> StoreFailed:
        lost = self._lost
        if lost:
            self.close()
        remedy = (
            "the connection is gone: call again when the server is back" if lost else "nothing was written"
        )
        return StoreFailed(f"{self.name}: {_said(cause) or type(cause).__name__}; {remedy}")


def masked(url: str) -> str:
    """Without its password."""
    url = re.sub(r"//([^:/@]*):[^@/]*@", r"//\1:***@", url)
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1***", url)


def _said(cause: Any) -> str:
    return " ".join(str(cause).split())


def _driver() -> Any:
    try:
        import psycopg  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise StoreFailed("PostgreSQL needs psycopg: pip install 'saver-rl[postgres]'") from None
    return psycopg
