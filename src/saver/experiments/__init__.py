"""What a newcomer runs: computations that write tables, and what is drawn and said of them."""

from saver._late import moved
from saver.experiments.catalogue import EXPERIMENTS, Experiment
from saver.experiments.face import Audit, Outcome, audit, plot, reproduce, run

__all__ = ["EXPERIMENTS", "Audit", "Experiment", "Outcome", "audit", "plot", "reproduce", "run"]
__getattr__ = moved(__name__, {"auditing": "saver_audit"})
