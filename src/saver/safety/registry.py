"""The ledgers by name: adding one is adding a row, here or from outside (`safety.LEDGERS[name] = ...`)."""

from __future__ import annotations

from saver.safety.certified import Certified
from saver.safety.latest import Latest, Plugin
from saver.safety.ledger import Ledger
from saver.safety.paper import Paper

LEDGERS: dict[str, type[Ledger]] = {
    "certified": Certified,
    "latest": Latest,
    "plugin": Plugin,
    "paper": Paper,
}
