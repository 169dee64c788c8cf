"""A campaign as plain data, and back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from saver.collect.collectors import Collector
from saver.collect.knowledge import Knowledge
from saver.collect.trial import Trial
from saver.errors import InvalidData
from saver.problem.moments import Moments
from saver.problem.statement import Problem

if TYPE_CHECKING:
    from saver.collect.campaign import Campaign

FORMAT = 1


def dump(campaign: Campaign) -> dict[str, Any]:
    """Numbers, strings, lists and dicts only."""
    known = campaign._knowledge
    state = {
        "format": FORMAT,
        "fingerprint": fingerprint(campaign.problem, campaign.collector),
        "episodes": campaign.episodes,
        "knowledge": {name: getattr(known, name).tolist() for name in campaign.collector.knows},
        "rng": campaign._rng.bit_generator.state,
        "log": campaign._log.state(),
        "constraints": campaign._constraints.state(),
        "ledgers": {name: ledger.state() for name, ledger in campaign._ledgers.items()},
        "counts": {kind: counts.tolist() for kind, counts in campaign._counts.items()},
        "design": None if campaign._design is None else campaign._design.tolist(),
        "planner": campaign._drawing.state(),
        "next_plan": campaign._next_plan,
        "asked": campaign._asked,
        "explore_asked": campaign._explore_asked,
        "told": dict(campaign._told),
        "out": [trial.state() for trial in campaign._out.values()],
        "abandoned": sorted(campaign._abandoned),
    }
    return {**state, "checksum": checksum(state)}


def load(make: type[Campaign], problem: Problem, collector: Collector, state: dict[str, Any]) -> Campaign:
    """The campaign that `dump` saw."""
    try:
        if state["format"] != FORMAT:
            raise InvalidData(f"the state has format {state['format']!r}; this version reads {FORMAT}")
        if state["fingerprint"] != fingerprint(problem, collector):
            raise InvalidData("the state is of another problem or collector; restore it with those")
        if state["checksum"] != checksum({name: state[name] for name in state if name != "checksum"}):
            raise InvalidData("the state was changed or damaged since it was taken; restore an earlier one")
        campaign = make(problem, collector, state["episodes"], knowledge=Knowledge(**state["knowledge"]))
        campaign._rng.bit_generator.state = state["rng"]
        campaign._log.load(state["log"])
        moments = Moments.load(state["constraints"])
        campaign._constraints.counts, campaign._constraints.mean = moments.counts, moments.mean
        campaign._constraints.squares = moments.squares
        for name, ledger in campaign._ledgers.items():
            ledger.load(state["ledgers"][name])
        campaign._counts = {kind: np.array(counts) for kind, counts in state["counts"].items()}
        campaign._design = None if state["design"] is None else np.array(state["design"])
        campaign._drawing.load(state["planner"])
        campaign._next_plan, campaign._asked = state["next_plan"], state["asked"]
        campaign._explore_asked, campaign._told = state["explore_asked"], dict(state["told"])
        campaign._out = {item["number"]: Trial.load(item) for item in state["out"]}
        campaign._abandoned = set(state["abandoned"])
    except InvalidData:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as cause:
        raise InvalidData(
            f"the state is not one that Campaign.state() gave for this collector: {cause!r}"
        ) from None
    return campaign


def checksum(state: dict[str, Any]) -> str:
    """A hash of a state's content: what was damaged on the way must not go on."""
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def fingerprint(problem: Problem, collector: Collector) -> str:
    """A hash of everything that a state relies on; a user's own design counts as such, whatever it does."""
    mdp, digest = problem.mdp, hashlib.sha256()
    arrays = (mdp.transitions.data, mdp.transitions.indices, mdp.transitions.indptr, mdp.start, mdp.available)
    for values in (*arrays, problem.target, problem.baseline):
        digest.update(str(values.shape).encode() + np.asarray(values, dtype=np.float64).tobytes())
    own = "own" if callable(collector.design) else collector.design
    numbers = (problem.alpha, problem.baseline_value, problem.constraint, problem.delta, problem.reward_scale)
    text = repr(
        (
            mdp.horizon,
            mdp.discount,
            mdp.terminal,
            numbers,
            dataclasses.replace(collector, design="target"),
            own,
        )
    )
    digest.update(text.encode())
    return digest.hexdigest()
