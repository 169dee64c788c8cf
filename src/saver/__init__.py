"""Evaluate a new policy precisely and safely (SaVeR, ICML 2024).

A problem is stated -> a design says how often to visit each (state, action) -> a ledger says whether it can
be afforded -> a collector turns both into episodes -> an estimate comes out.
"""

from saver import _interrupt as _interrupt  # before what takes long
from saver import data, design, errors, estimate, experiments, journal, problem, safety, scenarios, theory
from saver.collect import (
    COLLECTORS,
    Campaign,
    Collector,
    Comparison,
    Knowledge,
    Precise,
    Statistics,
    Trial,
)
from saver.engine import Runs, simulate
from saver.journal import DurableCampaign
from saver.journal import open_campaign as open  # noqa: A004
from saver.problem import (
    END,
    Bernoulli,
    Bounded,
    Empirical,
    Episode,
    Gaussian,
    Guardrail,
    History,
    Mdp,
    Problem,
    Scenario,
    SubGaussian,
    Unknown,
    World,
)
from saver.problem.files import load, save
from saver.scenarios import SCENARIOS
from saver.simulator import Feedback, Player
from saver.theory import Diagnosis, diagnose

__version__ = "0.1.0"

__all__ = [
    "COLLECTORS",
    "END",
    "SCENARIOS",
    "Bernoulli",
    "Bounded",
    "Campaign",
    "Collector",
    "Comparison",
    "Diagnosis",
    "DurableCampaign",
    "Empirical",
    "Episode",
    "Feedback",
    "Gaussian",
    "Guardrail",
    "History",
    "Knowledge",
    "Mdp",
    "Player",
    "Precise",
    "Problem",
    "Runs",
    "Scenario",
    "Statistics",
    "SubGaussian",
    "Trial",
    "Unknown",
    "World",
    "data",
    "design",
    "diagnose",
    "errors",
    "estimate",
    "experiments",
    "journal",
    "load",
    "open",
    "problem",
    "safety",
    "save",
    "scenarios",
    "simulate",
    "theory",
]
