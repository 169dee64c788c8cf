"""Safety: boundaries, ledgers of what was earned, gates that decide what may be played."""

from saver._late import moved
from saver.safety.ledger import GATES, LOSSES, ORDERS, Book, Ledger, Terms, Ticket
from saver.safety.registry import LEDGERS, ledger_for

__all__ = [
    "GATES", "LEDGERS", "LOSSES", "ORDERS", "Book", "Ledger", "Terms", "Ticket", "ledger_for",
]  # fmt: skip
MOVED = {name: f"saver.play.{name}" for name in ("Play", "Stage", "stage_of")}
MOVED |= {"learned": "saver.safety.learnedbaseline", "returns": "saver.safety.modelfree"}
__getattr__ = moved("saver.safety", MOVED)
