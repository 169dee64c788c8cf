"""The ledgers by name: adding one is adding a row, here or from outside (`safety.LEDGERS[name] = ...`)."""

from __future__ import annotations

from saver.errors import InvalidProblem
from saver.safety.certified import Certified
from saver.safety.fromlog import FromLog
from saver.safety.learnedbaseline import LearnedBaseline
from saver.safety.ledger import Ledger, Terms
from saver.safety.modelfree import LearnedModelFree, ModelFree, PluginModelFree
from saver.safety.paper import Latest, Paper, Plugin

LEDGERS: dict[str, type[Ledger]] = {
    "certified": Certified,
    "latest": Latest,
    "plugin": Plugin,
    "paper": Paper,
}
Instead = dict[type[Ledger], type[Ledger]]  # what takes the place of a ledger
MODEL_FREE: Instead = {Certified: ModelFree, Plugin: PluginModelFree}
LEARNED_BASELINE: Instead = {Certified: LearnedBaseline, ModelFree: LearnedModelFree}


def ledger_for(name: str, terms: Terms) -> Ledger:
    """The ledger of that name for a guardrail."""
    kind = LEDGERS[name]
    if not terms.problem.mdp.known:
        kind = MODEL_FREE.get(kind, kind)
        if issubclass(kind, Paper):
            raise InvalidProblem(
                f"the ledger {name!r} needs expected visits, and the transitions are Unknown; use 'certified'"
            )
    if terms.rail.learned:
        kind = LEARNED_BASELINE.get(kind, kind)
        if kind.certifies and kind.values is Ledger.values:
            raise InvalidProblem(
                f"the ledger {name!r} certifies, and the baseline's value of {terms.rail.name!r} is learned, "
                "of which it bounds nothing: give baseline_value, or a ledger with its own `values`"
            )
    if terms.shown is not None and issubclass(kind, ModelFree):
        return FromLog(terms, kind)
    return kind(terms)
