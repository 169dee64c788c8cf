"""The ledgers by name: adding one is adding a row, here or from outside (`safety.LEDGERS[name] = ...`)."""

from __future__ import annotations

from saver.errors import InvalidProblem
from saver.safety.certified import Certified
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
MODEL_FREE: dict[type[Ledger], type[Ledger]] = {
    Certified: ModelFree,
    Plugin: PluginModelFree,
}  # without a model
LEARNED_BASELINE: dict[type[Ledger], type[Ledger]] = {
    Certified: LearnedBaseline,
    ModelFree: LearnedModelFree,
}  # V0 is learned


def ledger_for(name: str, terms: Terms) -> Ledger:
    """The ledger of that name for a guardrail."""
    kind = LEDGERS[name]
    if not terms.problem.mdp.known:
        kind = MODEL_FREE.get(kind, kind)
        if issubclass(kind, Paper):
            raise InvalidProblem(
                f"the ledger {name!r} needs expected visits, and the transitions are Unknown; use 'certified'"
            )
    return (LEARNED_BASELINE.get(kind, kind) if terms.rail.learned else kind)(terms)
