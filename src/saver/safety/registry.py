"""The ledgers by name: adding one is adding a row, here or from outside (`safety.LEDGERS[name] = ...`)."""

from __future__ import annotations

from saver.safety.certified import Certified
from saver.safety.latest import Latest, Plugin
from saver.safety.learned import Learned
from saver.safety.ledger import Ledger, Terms
from saver.safety.paper import Paper

LEDGERS: dict[str, type[Ledger]] = {
    "certified": Certified,
    "latest": Latest,
    "plugin": Plugin,
    "paper": Paper,
}
LEARNED: dict[type[Ledger], type[Ledger]] = {Certified: Learned}  # their kinds where V0 is learned


def ledger_for(name: str, terms: Terms) -> Ledger:
    """The ledger of that name for a guardrail."""
    kind = LEDGERS[name]
    return (LEARNED.get(kind, kind) if terms.rail.learned else kind)(terms)
