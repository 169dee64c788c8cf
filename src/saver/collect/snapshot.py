"""A campaign as plain data, and back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from typing import Any

import numpy as np

from saver.collect.collectors import Collector
from saver.collect.events import Trial
from saver.collect.knowledge import Knowledge
from saver.collect.setup import Setup, fingerprint_of
from saver.collect.state import State, settle
from saver.errors import InvalidData
from saver.play.policy import Policy
from saver.problem.codec import pack, unpack
from saver.problem.statement import Problem

FORMAT = 6
BROKEN = (KeyError, TypeError, AttributeError, ValueError, IndexError, AssertionError, zlib.error)


def dump(setup: Setup, state: State, events: list[Any] | None = None) -> dict[str, Any]:
    """Numbers, strings, lists and dicts only; `events` are kept beside the state if there are any."""
    known = setup.knowledge
    plain = {
        "format": FORMAT,
        "fingerprint": setup.fingerprint,
        "episodes": setup.episodes,
        "feedback": [setup.losses, setup.order],
        "knowledge": {name: pack(getattr(known, name), small=True) for name in setup.collector.knows},
        "state": pack(dataclasses.replace(state, out={}), small=True),
        "out": _dump_out(list(state.out.values())),
        "events": None if events is None else [pack(event, small=True) for event in events],
    }
    if setup.until is not None:
        plain["until"] = pack(setup.until)
    if setup.shown is not None:
        plain["shown"] = pack(setup.shown, small=True)
    return {**plain, "checksum": checksum(plain)}


def load(
    problem: Problem, collector: Collector | str, plain: dict[str, Any]
) -> tuple[Setup, State, list[Any] | None]:
    """What `dump` saw."""
    if not isinstance(plain, dict):
        raise InvalidData(
            f"the state is a {type(plain).__name__}; give the dict that Campaign.state() gave: json.loads of "
            "a text"
        )
    try:
        if plain["format"] != FORMAT:
            raise InvalidData(
                f"the state has format {plain['format']!r}; this version reads {FORMAT}. What a campaign "
                "promises is fixed before its first episode: finish it with the version that began it"
            )
        if plain["checksum"] != checksum({name: plain[name] for name in plain if name != "checksum"}):
            raise InvalidData("the state was changed or damaged since it was taken; restore an earlier one")
        if plain["fingerprint"] != fingerprint_of(problem, collector):
            raise InvalidData("the state is of another problem or collector; restore it with those")
        losses, order = plain["feedback"]
        known = Knowledge(**{name: unpack(item) for name, item in plain["knowledge"].items()})
        until = unpack(plain.get("until"))
        shown = unpack(plain.get("shown"))
        setup = Setup(problem, collector, plain["episodes"], known, losses, order, until, shown)
        state = unpack(plain["state"])
        state.out = _load_out(setup, plain["out"])
        for number, trial in state.out.items():
            for name, keeper in setup.keepers.items():
                keeper.resume(state.books[name], number, setup.promised(trial))
        settle(setup, state)
        events = None if plain["events"] is None else [unpack(event) for event in plain["events"]]
    except InvalidData:
        raise
    except BROKEN as cause:
        what = f"{type(cause).__name__}: {cause}"
        raise InvalidData(
            f"the state is not one that Campaign.state() gave for this collector ({what})"
        ) from None
    return setup, state, events


def checksum(plain: dict[str, Any]) -> str:
    """A hash of a state's content: what was damaged on the way must not go on."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _dump_out(trials: list[Trial]) -> dict[str, Any]:
    """Trials that are out: policies that differ little from one to the next are kept as differences."""
    tables = {trial.follows.key: trial.follows for trial in trials if not trial.follows.chosen}
    places = {key: place for place, key in enumerate(tables)}
    chosen: dict[bool, list[Any]] = {False: [], True: []}
    lines, drawn = [], [trial.draws for trial in trials if trial.draws is not None]
    for trial in trials:
        follows = trial.follows
        if follows.chosen:
            chosen[follows.by_step].append(follows.rows)
        place = -1 if follows.chosen else places[follows.key]
        lines.append([trial.number, trial.kind, follows.by_step, place, trial.draws is not None])
    return {
        "trials": lines,
        "tables": [[policy.by_step, pack(policy.rows, small=True)] for policy in tables.values()],
        "by state": pack(_differences(chosen[False]), small=True),
        "by node": pack(_differences(chosen[True]), small=True),
        "draws": pack(np.array(drawn), small=True),
    }


def _differences(rows: list[Any]) -> Any:
    """Each row with the bits in which it differs from the one before."""
    if not rows:
        return np.zeros((0, 0), dtype=np.uint8)
    table = np.array(rows)
    table[1:] ^= table[:-1].copy()
    return table


def _load_out(setup: Setup, plain: dict[str, Any]) -> dict[int, Trial]:
    grid = setup.stage.grid
    tables = [Policy(grid, by_step, unpack(rows)) for by_step, rows in plain["tables"]]
    chosen = {
        by_step: iter(np.bitwise_xor.accumulate(unpack(plain[name]), axis=0))
        for by_step, name in ((False, "by state"), (True, "by node"))
    }
    draws, out = iter(unpack(plain["draws"])), {}
    for number, kind, by_step, place, drawn in plain["trials"]:
        follows = tables[place] if place >= 0 else grid.choices(by_step, next(chosen[by_step]))
        out[number] = Trial(number, kind, follows, next(draws) if drawn else None)
    return out
