"""From a URL to campaigns: `saver.open` makes or finds one; a store is copied to a backup, and back."""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from saver._files import replacing
from saver.collect import admit
from saver.collect.collectors import COLLECTORS, OWN, Collector, find_collector
from saver.collect.knowledge import Knowledge
from saver.collect.setup import Precise, Setup, check_stopping
from saver.collect.showing import shown_by
from saver.errors import InvalidData, InvalidProblem, StoreFailed
from saver.journal.durable import DurableCampaign
from saver.journal.folding import Stated, made_of
from saver.journal.memory import MemoryJournal
from saver.journal.postgres import PostgresJournal
from saver.journal.protocol import CREATED, FIRST, RECALLED, Header, Journal, Record, body_of, in_parts
from saver.journal.requests import short
from saver.journal.sqlite import SqliteJournal
from saver.problem import checks
from saver.problem.codec import fingerprint, pack, unpack
from saver.problem.episode import Episode
from saver.problem.history import History
from saver.problem.statement import Problem
from saver.safety.argument import ARGUMENT

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MODES, EXISTS, DURABILITY = ("embedded", "leader", "read"), ("load", "refuse"), ("power", "process")
USUAL = {"seed": 0, "losses": "hostile", "order": "any"}  # None is usual for all others
SCHEMES = "memory:, sqlite:///file.db, a path, or postgresql://user@host/database"
MOST = 3  # differences that are said


def open(  # noqa: A001  (as the package names it)
    url: str | os.PathLike[str],
    name: str,
    problem: Problem | None = None,
    collector: Collector | str | None = None,
    episodes: int | None = None,
    *,
    knowledge: Knowledge | None = None,
    history: History | Iterable[Episode] | None = None,
    seed: int = 0,
    losses: str = "hostile",
    order: str = "any",
    until: Precise | None = None,
    exists: str = "load",
    mode: str = "embedded",
    lease: float | None = 3600.0,
    max_out: int = 32,
    durability: str = "power",
) -> DurableCampaign:
    """A campaign that survives: made in a store, or found there by its name.

    Args:
        url: where: "memory:", "sqlite:///run.db" or a path, "postgresql://user@host/database".
        name: letters, digits, ".", "_" and "-".
        problem: as of `Campaign`, and so are the next eight. A campaign that is there must be of the same;
            without a problem it must be there.
        collector: how data are collected.
        episodes: how many.
        knowledge: what the collector knows.
        history: logged baseline episodes.
        seed: a whole number.
        losses: who chooses what is told.
        order: which trials can have run.
        until: how precise an answer ends the campaign.
        exists: "load" it, or "refuse".
        mode: "embedded", any number of processes share it; "leader", this one owns it; "read", this one
            looks only, whoever holds it.
        lease: seconds after which a trial that was not told is given up; None: never.
        max_out: how many trials may be out at once.
        durability: what is told survives a loss of "power", or, faster, the end of a "process".
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidData(
            f"the name is {short(name)}; it must be letters, digits, '.', '_' and '-', at most 100, the "
            "first a letter or a digit"
        )
    checks.choice("exists", exists, EXISTS)
    checks.choice("mode", mode, MODES)
    checks.choice("durability", durability, DURABILITY)
    if lease is not None:
        lease = checks.between("lease", lease, 0.0, math.inf, closed=(False, False))
    checks.whole("max_out", max_out, 1)
    rest = {
        **{"collector": collector, "episodes": episodes, "knowledge": knowledge, "history": history},
        **{"until": until, "seed": seed, "losses": losses, "order": order},
    }
    given = _given(problem, rest)
    makes = given is not None and mode != "read"
    journal = connect(url, durability, make=makes)
    try:
        header = next((one for one in journal.campaigns() if one.name == name), None)
        if header is None:
            header = _made(journal, name, given if makes else None)
        elif exists == "refuse":
            raise StoreFailed(
                f'{journal.name} has a campaign {name!r} already; give another name, or exists="load"'
            )
        stated = _stated(journal, header, given)
        if mode != "read":
            journal.hold(header.id, alone=mode == "leader")
        return DurableCampaign(journal, header, stated, mode, lease, max_out)
    except BaseException:
        journal.close()
        raise


# -- what a campaign is made of: as given, and as stored -----------------------------------------------------


def _given(problem: Problem | None, rest: dict[str, Any]) -> Stated | None:
    """What a user says, if anything; what would be ignored is refused: without a problem all is as stored."""
    if problem is None:
        for name, value in rest.items():
            if (value != USUAL[name]) if name in USUAL else (value is not None):
                raise InvalidProblem(
                    f"{name} was given without a problem; give the problem too, and what differs is named, "
                    "or neither, and the campaign is as it was made"
                )
        return None
    if rest["collector"] is None or rest["episodes"] is None:
        raise InvalidProblem(
            "a problem was given without a collector or a number of episodes; give all three"
        )
    history, seed = rest.pop("history"), checks.whole("seed", rest.pop("seed"), 0, 2**63 - 1)
    past = problem.history if history is None else history
    learned = None if past is None else admit.recalled(problem, past)
    shown = shown_by(problem, None if learned is None else learned.history)
    setup = Setup(problem, **rest, shown=shown)
    plain = {
        "problem": pack(problem),
        "collector": setup.collector.described(),
        "episodes": setup.episodes,
        "seed": seed,
        "losses": setup.losses,
        "order": setup.order,
        "until": pack(setup.until),
        "knowledge": {name: pack(getattr(setup.knowledge, name)) for name in setup.collector.knows},
        "history": None if learned is None else fingerprint(learned.history),
    }
    if shown is not None and shown is not getattr(problem.history, "shown", None):
        plain["shown"] = pack(shown)
    return Stated(problem, setup.collector, lambda: setup, plain, learned)


def _made(journal: Journal, name: str, given: Stated | None) -> Header:
    if given is None:
        known = ", ".join(one.name for one in journal.campaigns()) or "none"
        raise StoreFailed(
            f"{journal.name} has no campaign {name!r} (it has: {known}); to make it, give problem, collector "
            "and episodes"
        )
    check_stopping(given.problem, given.setup().until)
    text, now = json.dumps(given.plain, sort_keys=True), journal.now()
    versions = {"argument": str(ARGUMENT), "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "numba")}
    header = Header(0, name, fingerprint(given.plain), text, json.dumps(versions), now)
    body = body_of(setup=header.fingerprint, text=header.seal)
    records = [Record(1, CREATED, None, None, body, b"", now, "open").sealed(FIRST)]
    if given.learned is not None:
        learned = Record(2, RECALLED, None, None, body_of(given.learned), b"", now, "open")
        records.append(learned.sealed(records[0].chain))
    return journal.create(header, records)


def _stated(journal: Journal, header: Header, given: Stated | None) -> Stated:
    """What a campaign that is there is made of: as given, if that is the same, or as stored."""
    plain = made_of(journal, header)
    if given is not None:
        if fingerprint(given.plain) != header.fingerprint:
            raise StoreFailed(
                f"the campaign {header.name!r} was made of something else: {differing(plain, given.plain)}; "
                "what a campaign promises is fixed before its first episode: give what it was made of, or "
                "another name"
            )
        return given
    if plain["collector"].get("design") == OWN:
        raise StoreFailed(
            f"the design of the campaign {header.name!r} is a function, which is not stored; give problem, "
            "collector and episodes"
        )
    problem, collector = unpack(plain["problem"]), find_collector(unpack(plain["collector"]))
    knowledge = Knowledge(**{name: unpack(item) for name, item in plain["knowledge"].items()})
    shown = unpack(plain.get("shown"))
    if shown is None and problem.history is not None and plain["history"] == fingerprint(problem.history):
        shown = shown_by(problem, problem.history)
    rest = knowledge, plain["losses"], plain["order"], unpack(plain["until"]), shown
    setup = functools.partial(Setup, problem, collector, plain["episodes"], *rest)
    return Stated(problem, collector, setup, plain)


def differing(stored: Any, given: Any) -> str:
    """The first differences between two pieces of plain data."""
    found = list(_paths(_spoken(stored), _spoken(given), ""))
    rest = f", and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + rest


def _spoken(plain: Any) -> Any:
    """With the name of its collector in the place of what that is made of."""
    names = {json.dumps(row.described(), sort_keys=True): name for name, row in COLLECTORS.items()}
    name = names.get(json.dumps(plain.get("collector"), sort_keys=True)) if isinstance(plain, dict) else None
    return plain if name is None else {**plain, "collector": name}


def _paths(stored: Any, given: Any, at: str) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(given, dict):
        for name in sorted({*stored, *given}):
            yield from _paths(stored.get(name), given.get(name), f"{at}.{name}" if at else name)
    elif isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        for place, (one, other) in enumerate(zip(stored, given, strict=True)):
            yield from _paths(one, other, f"{at}[{place}]")
    elif stored != given:
        yield f"{at} is {_short(given)}, and was {_short(stored)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return "the default" if value is None else text if len(text) < 60 else f"{text[:57]}..."


# -- the journal at a URL, and copies of it ------------------------------------------------------------------


def connect(url: Any, durability: str = "power", *, make: bool = False) -> Journal:
    """The journal at a URL."""
    if not isinstance(url, str | os.PathLike):
        raise StoreFailed(f"the URL is {short(url)}; it must be {SCHEMES}")
    text = os.fspath(url)
    if text == "memory:":
        return MemoryJournal()
    if not isinstance(text, str) or text in ("memory", ":memory:") or text.startswith("file:"):
        raise StoreFailed(
            f"the URL is {short(text)}; it must be {SCHEMES} (a file of an odd name: with its folder)"
        )
    scheme = urlsplit(text).scheme
    if scheme in ("postgresql", "postgres"):
        return PostgresJournal(text, durability)
    if scheme == "sqlite":
        if not text.startswith("sqlite:///") or len(text) == len("sqlite:///"):
            raise StoreFailed(f"the URL is {text!r}; write sqlite:///file.db, or sqlite:////folder/file.db")
        text = text.removeprefix("sqlite:///")
        if "?" in text:
            raise StoreFailed(f"the URL is sqlite:///{text}; it takes no options: leave out what follows '?'")
    elif "://" in text or scheme == "memory":
        raise StoreFailed(f"the URL is {text!r}; it must be {SCHEMES}")
    if not text:
        raise StoreFailed(f"the URL is empty; it must be {SCHEMES}")
    return SqliteJournal(Path(text), durability, make=make)


def backup(url: str | os.PathLike[str], path: Path) -> list[Header]:
    """Write all campaigns of a store, as they are now, to a new SQLite file; they may go on meanwhile."""
    if path.exists():
        raise StoreFailed(f"{path} is there already; give another path, nothing is written over")
    with closing(connect(url)) as source, replacing(path) as partial:
        try:
            with closing(SqliteJournal(partial, "power")) as target:
                return copy(source, target)
        finally:
            for rest in ("-line", "-lock", "-wal", "-shm"):
                Path(f"{partial}{rest}").unlink(missing_ok=True)


def restore(path: Path, url: str | os.PathLike[str]) -> list[Header]:
    """Bring the campaigns of a backup into a store that has none of their names."""
    if str(url) == "memory:":
        raise StoreFailed("memory: ends with the process; restore to a file, or to postgresql://")
    file = Path(str(path).removeprefix("sqlite:///"))
    with (
        closing(SqliteJournal(file, "power", make=False)) as source,
        closing(connect(url, make=True)) as target,
    ):
        there = {header.name for header in target.campaigns()}
        for header in source.campaigns():
            if header.name in there:
                raise StoreFailed(f"{target.name} has a campaign {header.name!r}; nothing is written over")
        return copy(source, target)


def copy(source: Journal, target: Journal) -> list[Header]:
    """Record by record, as they were sealed, and the last snapshot, if it belongs to them."""
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
