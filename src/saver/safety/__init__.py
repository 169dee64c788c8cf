"""Safety: boundaries, ledgers of what was earned, gates that decide what may be played."""

from saver.safety.certified import Certified
from saver.safety.gates import GATES
from saver.safety.ledgers import Episode, Latest, Ledger, Paper, Plugin
from saver.safety.plays import Play, Stage

__all__ = ["GATES", "Certified", "Episode", "Latest", "Ledger", "Paper", "Play", "Plugin", "Stage"]
