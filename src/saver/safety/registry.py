"""The ledgers by name: adding one is adding a row, here or from outside (`safety.LEDGERS[name] = ...`)."""

from __future__ import annotations

from saver.errors import InvalidProblem
from saver.safety.certified import Certified
from saver.safety.learned import Learned
from saver.safety.ledger import Ledger, Terms
from saver.safety.paper import Latest, Paper, Plugin
from saver.safety.returns import LearnedReturns, PluginReturns, Returns

LEDGERS: dict[str, type[Ledger]] = {
    "certified": Certified,
    "latest": Latest,
    "plugin": Plugin,
    "paper": Paper,
}
BLIND: dict[type[Ledger], type[Ledger]] = {Certified: Returns, Plugin: PluginReturns}  # without a model
LEARNED: dict[type[Ledger], type[Ledger]] = {Certified: Learned, Returns: LearnedReturns}  # V0 is learned


def ledger_for(name: str, terms: Terms) -> Ledger:
    """The ledger of that name for a guardrail."""
    kind = LEDGERS[name]
    if not terms.problem.mdp.known:
        kind = BLIND.get(kind, kind)
        if issubclass(kind, Paper):
            raise InvalidProblem(
                f"the ledger {name!r} needs expected visits, and the transitions are Unknown; use 'certified'"
            )
    return (LEARNED.get(kind, kind) if terms.rail.learned else kind)(terms)
