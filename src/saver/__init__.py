"""Evaluate a new policy precisely and safely (SaVeR, ICML 2024).

A problem is stated -> a design says how often to visit each (state, action) -> a ledger says whether it can
be afforded -> a collector turns both into episodes -> an estimate comes out.
"""

from saver import _interrupt as _interrupt  # before what takes long
from saver import design, errors, estimate, experiments, problem, scenarios, theory
from saver.collect import COLLECTORS, Campaign, Collector, Knowledge, Statistics, Trial
from saver.engine import Player, Runs, simulate
from saver.problem import (
    Bernoulli,
    Bounded,
    Empirical,
    Gaussian,
    Mdp,
    Problem,
    Scenario,
    SubGaussian,
    World,
)
from saver.scenarios import SCENARIOS
from saver.theory import Diagnosis, diagnose

__version__ = "0.1.0"

__all__ = [
    "COLLECTORS",
    "SCENARIOS",
    "Bernoulli",
    "Bounded",
    "Campaign",
    "Collector",
    "Diagnosis",
    "Empirical",
    "Gaussian",
    "Knowledge",
    "Mdp",
    "Player",
    "Problem",
    "Runs",
    "Scenario",
    "Statistics",
    "SubGaussian",
    "Trial",
    "World",
    "design",
    "diagnose",
    "errors",
    "estimate",
    "experiments",
    "problem",
    "scenarios",
    "simulate",
    "theory",
]
