"""Whether the next episode may be designed."""

from __future__ import annotations

from saver.safety.ledgers import Ledger
from saver.safety.plays import Play

ROUNDING = 1e-12  # of baseline_value


def retrospective(ledger: Ledger, play: Play) -> bool:
    """The paper's: play the design iff Z(k - 1) >= 0. Breaks the promise by one episode's worth, at once."""
    return ledger.budget() >= -ROUNDING * ledger.problem.baseline_value


def prospective(ledger: Ledger, play: Play) -> bool:
    """Play it iff the budget stays at or above 0 even at the candidate's lower value."""
    after = ledger.budget() + ledger.lower(play) - ledger.problem.required
    return after >= -ROUNDING * ledger.problem.baseline_value


GATES = {"retrospective": retrospective, "prospective": prospective}
