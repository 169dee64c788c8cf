"""`saver.open`: from a URL and a name to a campaign, made or found."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from saver._jit import plainly
from saver.collect import admit
from saver.collect.collectors import OWN, Collector, find_collector
from saver.collect.knowledge import Knowledge
from saver.collect.setup import Setup
from saver.collect.state import State
from saver.collect.stopping import Precise, check_stopping
from saver.errors import InvalidData, InvalidProblem, StoreFailed
from saver.journal.differences import differing, short
from saver.journal.durable import DurableCampaign
from saver.journal.folding import Stated
from saver.journal.memory import MemoryJournal
from saver.journal.protocol import Journal
from saver.journal.records import CREATED, FIRST, LEARNED, Header, Record, body_of
from saver.problem import checks
from saver.problem.codec import fingerprint, pack, unpack
from saver.problem.episode import Episode
from saver.problem.history import History
from saver.problem.statement import Problem
from saver.safety.shares import ARGUMENT

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MODES, EXISTS, DURABILITY = ("embedded", "leader", "read"), ("load", "refuse"), ("power", "process")
USUAL = {"seed": 0, "losses": "hostile", "order": "any"}
SCHEMES = "memory:, sqlite:///file.db, a path, or postgresql://user@host/database"


def open_campaign(
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
    given = None
    if problem is not None:
        given = Given(problem, collector, episodes, knowledge, history, seed, losses, order, until)
    else:
        _nothing_else(collector, episodes, knowledge, history, until, seed=seed, losses=losses, order=order)
    makes = problem is not None and mode != "read"
    journal = connect(url, durability, make=makes)
    try:
        header = next((one for one in journal.campaigns() if one.name == name), None)
        if header is None:
            header = _made(journal, name, given if makes else None)
        elif exists == "refuse":
            raise StoreFailed(
                f'{journal.name} has a campaign {name!r} already; give another name, or exists="load"'
            )
        check_made(journal, header)
        stated = stated_of(header, given)
        if mode != "read":
            journal.hold(header.id, alone=mode == "leader")
        return DurableCampaign(journal, header, stated, mode, lease, max_out)
    except BaseException:
        journal.close()
        raise


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
        from saver.journal.postgres import PostgresJournal

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
    from saver.journal.sqlite import SqliteJournal

    return SqliteJournal(Path(text), durability, make=make)


def _nothing_else(*others: Any, **defaults: Any) -> None:
    """Refuse what would be ignored: without a problem all is as it was stored."""
    named = dict(zip(("collector", "episodes", "knowledge", "history", "until"), others, strict=True))
    given = [name for name, value in named.items() if value is not None]
    given += [name for name, value in defaults.items() if value != USUAL[name]]
    if given:
        raise InvalidProblem(
            f"{given[0]} was given without a problem; give the problem too, and what differs is named, or "
            "neither, and the campaign is as it was made"
        )


class Given:
    """What a user says that a campaign is made of."""

    def __init__(
        self,
        problem: Problem,
        collector: Any,
        episodes: Any,
        knowledge: Knowledge | None,
        history: Any,
        seed: Any,
        losses: str,
        order: str,
        until: Precise | None,
    ) -> None:
        if collector is None or episodes is None:
            raise InvalidProblem(
                "a problem was given without a collector or a number of episodes; give all three"
            )
        self.seed = checks.whole("seed", seed, 0, 2**63 - 1)
        self.setup = setup = Setup(problem, collector, episodes, knowledge, losses, order, until)
        past = problem.history if history is None else history
        self.learned = None if past is None else admit.learned(setup, past)
        known = {name: pack(getattr(setup.knowledge, name)) for name in setup.collector.knows}
        self.plain: dict[str, Any] = {
            "problem": pack(problem),
            "collector": setup.collector.described(),
            "episodes": setup.episodes,
            "seed": self.seed,
            "losses": losses,
            "order": order,
            "until": pack(until),
            "knowledge": known,
            "history": None if self.learned is None else fingerprint(self.learned.history),
        }

    @property
    def stated(self) -> Stated:
        """For a campaign."""
        return Stated(self.setup.problem, self.setup.collector, self.begin)

    def begin(self) -> tuple[Setup, State]:
        """Before the first record."""
        with plainly(self.setup.small):
            return self.setup, State.begin(self.setup, self.seed)


def _made(journal: Journal, name: str, given: Given | None) -> Header:
    if given is None:
        known = ", ".join(one.name for one in journal.campaigns()) or "none"
        raise StoreFailed(
            f"{journal.name} has no campaign {name!r} (it has: {known}); to make it, give problem, collector "
            "and episodes"
        )
    check_stopping(given.setup.problem, given.setup.until)
    text = json.dumps(given.plain, sort_keys=True)
    now = journal.now()
    made = Header(0, name, fingerprint(given.plain), text, json.dumps(versions()), now)
    body = body_of(setup=made.fingerprint, text=_seal(made))
    first = [Record(1, CREATED, None, None, body, b"", now, "open").sealed(FIRST)]
    if given.learned is not None:
        second = Record(2, LEARNED, None, None, body_of(given.learned), b"", now, "open")
        first.append(second.sealed(first[0].chain))
    return journal.create(made, first)


def stated_of(header: Header, given: Given | None = None) -> Stated:
    """What a stored campaign is made of: as given, if that is the same, or as stored."""
    stored = _stored(header)
    if given is not None:
        if fingerprint(given.plain) != header.fingerprint:
            raise StoreFailed(
                f"the campaign {header.name!r} was made of something else: {differing(stored, given.plain)}; "
                "what a campaign promises is fixed before its first episode: give what it was made of, or "
                "another name"
            )
        return given.stated
    if stored["collector"].get("design") == OWN:
        raise StoreFailed(
            f"the design of the campaign {header.name!r} is a function, which is not stored; give problem, "
            "collector and episodes"
        )
    collector, problem = find_collector(unpack(stored["collector"])), unpack(stored["problem"])
    known = Knowledge(**{name: unpack(item) for name, item in stored["knowledge"].items()})

    def begin() -> tuple[Setup, State]:
        setup = Setup(
            problem,
            collector,
            stored["episodes"],
            known,
            stored["losses"],
            stored["order"],
            unpack(stored["until"]),
        )
        with plainly(setup.small):
            return setup, State.begin(setup, stored["seed"])

    return Stated(problem, collector, begin)


def _stored(header: Header) -> dict[str, Any]:
    """What a campaign was made of."""
    try:
        found: dict[str, Any] = json.loads(header.setup)
    except ValueError:
        raise _damaged(header) from None
    return found


def check_made(journal: Journal, header: Header) -> None:
    """Refuse a campaign that was not made of what stands there: what it promises hangs on that."""
    first = journal.records(header.id, 0, 1)
    if not first or first[0].kind != CREATED or first[0].sealed(FIRST).chain != first[0].chain:
        raise StoreFailed(
            f"{journal.name}, campaign {header.name!r}: the record of its making is missing or was changed; "
            "restore a backup"
        )
    told = first[0].told
    if told["setup"] != header.fingerprint or told.get("text", _seal(header)) != _seal(header):
        raise _damaged(header)


def _seal(header: Header) -> str:
    return hashlib.sha256(header.setup.encode()).hexdigest()


def _damaged(header: Header) -> StoreFailed:
    return StoreFailed(
        f"what the campaign {header.name!r} is said to be made of was changed or damaged since it was made; "
        "restore a backup"
    )


def versions() -> dict[str, str]:
    """Of what decides."""
    return {
        "argument": str(ARGUMENT),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba")},
    }
