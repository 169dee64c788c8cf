"""Campaigns from one store to another: a backup is a store of its own, and so is what it is restored to."""

from __future__ import annotations

import os
from pathlib import Path

from saver._files import replacing
from saver.errors import StoreFailed
from saver.journal.opening import connect
from saver.journal.protocol import Journal, in_parts
from saver.journal.records import Header
from saver.journal.sqlite import SqliteJournal


def backup(url: str | os.PathLike[str], path: Path) -> list[Header]:
    """Write all campaigns of a store, as they are now, to a new SQLite file; they may go on meanwhile."""
    if path.exists():
        raise StoreFailed(f"{path} is there already; give another path, nothing is written over")
    source = connect(url)
    try:
        with replacing(path) as partial:
            target = SqliteJournal(partial, "power")
            try:
                return copy(source, target)
            finally:
                target.close()
                for rest in ("-line", "-lock", "-wal", "-shm"):
                    Path(f"{partial}{rest}").unlink(missing_ok=True)
    finally:
        source.close()


def restore(path: Path, url: str | os.PathLike[str]) -> list[Header]:
    """Bring the campaigns of a backup into a store that has none of their names."""
    if str(url) == "memory:":
        raise StoreFailed("memory: ends with the process; restore to a file, or to postgresql://")
    source = SqliteJournal(Path(str(path).removeprefix("sqlite:///")), "power", make=False)
    try:
        target = connect(url, make=True)
        try:
            there = {header.name for header in target.campaigns()}
            for header in source.campaigns():
                if header.name in there:
                    raise StoreFailed(
                        f"{target.name} has a campaign {header.name!r}; nothing is written over"
                    )
            return copy(source, target)
        finally:
            target.close()
    finally:
        source.close()


def copy(source: Journal, target: Journal) -> list[Header]:
    """Record by record, as they were sealed, and the snapshots that belong to them."""
    made = []
    for header in source.campaigns():
        first = source.records(header.id, 0, 1)
        there = target.create(header, first)
        last = len(first)
        for part in in_parts(source, header.id, last):
            with target.writing(there.id) as writer:
                writer.append(part)
            last = part[-1].seq
        for place in source.snapshots(header.id)[-1:]:
            if place <= last:
                with target.writing(there.id) as writer:
                    writer.keep(place, source.snapshot(header.id, place))
        made.append(there)
    target.flush()
    return made
