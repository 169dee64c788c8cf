"""Evaluate a new policy precisely and safely (SaVeR, ICML 2024).

A problem is stated -> a design says how often to visit each (state, action) -> a ledger says whether it can
be afforded -> a collector turns both into episodes -> an estimate comes out.
"""

from saver import _interrupt as _interrupt  # before what takes long

# isort: split
from typing import TYPE_CHECKING

from saver._late import late

if TYPE_CHECKING:  # what is said here for type checkers, and below for Python, a test compares
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
    from saver.engine.runs import Runs
    from saver.engine.simulate import simulate
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
else:
    __getattr__, __dir__ = late(
        __name__,
        {
            "Bernoulli": "saver.problem:Bernoulli",
            "Bounded": "saver.problem:Bounded",
            "COLLECTORS": "saver.collect:COLLECTORS",
            "Campaign": "saver.collect:Campaign",
            "Collector": "saver.collect:Collector",
            "Comparison": "saver.collect:Comparison",
            "Diagnosis": "saver.theory:Diagnosis",
            "DurableCampaign": "saver.journal:DurableCampaign",
            "END": "saver.problem:END",
            "Empirical": "saver.problem:Empirical",
            "Episode": "saver.problem:Episode",
            "Feedback": "saver.simulator:Feedback",
            "Gaussian": "saver.problem:Gaussian",
            "Guardrail": "saver.problem:Guardrail",
            "History": "saver.problem:History",
            "Knowledge": "saver.collect:Knowledge",
            "Mdp": "saver.problem:Mdp",
            "Player": "saver.simulator:Player",
            "Precise": "saver.collect:Precise",
            "Problem": "saver.problem:Problem",
            "Runs": "saver.engine.runs:Runs",
            "SCENARIOS": "saver.scenarios:SCENARIOS",
            "Scenario": "saver.problem:Scenario",
            "Statistics": "saver.collect:Statistics",
            "SubGaussian": "saver.problem:SubGaussian",
            "Trial": "saver.collect:Trial",
            "Unknown": "saver.problem:Unknown",
            "World": "saver.problem:World",
            "collect": "saver.collect",
            "data": "saver.data",
            "design": "saver.design",
            "diagnose": "saver.theory:diagnose",
            "engine": "saver.engine",
            "errors": "saver.errors",
            "estimate": "saver.estimate",
            "experiments": "saver.experiments",
            "figures": "saver.figures",
            "journal": "saver.journal",
            "load": "saver.problem.files:load",
            "open": "saver.journal:open_campaign",
            "problem": "saver.problem",
            "safety": "saver.safety",
            "save": "saver.problem.files:save",
            "scenarios": "saver.scenarios",
            "simulate": "saver.engine.simulate:simulate",
            "simulator": "saver.simulator",
            "theory": "saver.theory",
        },
    )

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
