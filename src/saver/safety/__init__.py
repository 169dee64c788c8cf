"""Safety: boundaries, ledgers of what was earned, gates that decide what may be played."""

from saver.safety.gates import GATES
from saver.safety.ledger import LOSSES, ORDERS, Book, Ledger, Terms, Ticket
from saver.safety.plays import Play, Stage, stage_of
from saver.safety.registry import LEDGERS, ledger_for

__all__ = [
    "GATES",
    "LEDGERS",
    "LOSSES",
    "ORDERS",
    "Book",
    "Ledger",
    "Play",
    "Stage",
    "Terms",
    "Ticket",
    "ledger_for",
    "stage_of",
]
