"""What a newcomer runs: computations that write tables, and what is drawn and said of them."""

from typing import TYPE_CHECKING

from saver._late import late
from saver.experiments.catalogue import EXPERIMENTS, Experiment
from saver.experiments.face import Audit, Outcome, audit, plot, reproduce, run

if TYPE_CHECKING:
    from saver.experiments import auditing as auditing
else:
    __getattr__, __dir__ = late(__name__, {"auditing": "saver.experiments.auditing"})

__all__ = ["EXPERIMENTS", "Audit", "Experiment", "Outcome", "audit", "plot", "reproduce", "run"]
