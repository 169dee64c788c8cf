"""Evaluate a new policy precisely and safely (SaVeR, ICML 2024).

A problem is stated -> a design says how often to visit each (state, action) -> a ledger says whether it can
be afforded -> a collector turns both into episodes -> an estimate comes out.
"""

from saver import _interrupt as _interrupt  # before what takes long

# isort: split
from saver._late import late

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = late(__name__)
