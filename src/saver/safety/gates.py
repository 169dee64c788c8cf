"""Whether the next episode may be designed."""

from __future__ import annotations

from typing import Any

from saver.play.stage import Play
from saver.safety.ledger import Ledger

ROUNDING = 1e-12  # of the ledger's unit


def retrospective(ledger: Ledger, book: Any, play: Play) -> bool:
    """The paper's: play the design iff Z(k - 1) >= 0. Breaks the promise by one episode's worth, at once."""
    return ledger.budget(book) >= -ROUNDING * ledger.unit


def prospective(ledger: Ledger, book: Any, play: Play) -> bool:
    """Play it iff the budget stays at or above 0 even at the candidate's lower value."""
    return ledger.after(book, ledger.lower(book, play)) >= -ROUNDING * ledger.unit


GATES = {"retrospective": retrospective, "prospective": prospective}
