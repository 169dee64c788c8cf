"""The experiments, as data: what is run on what, for how long, and how often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from saver.problem import Scenario
from saver.scenarios import find_scenario

LEVELS = ("quick", "default", "full")
SAFE = ("saver-opt", "saver", "safe-oracle", "safe-on-policy")


@dataclass(frozen=True)
class Experiment:
    """Campaigns of some collectors in one scenario.

    Attributes:
        name: of the experiment.
        title: above its figure.
        scenario: a name in SCENARIOS, made with `options`.
        collectors: names in COLLECTORS, in the order of the legend.
        episodes: K of every campaign.
        runs: how many campaigns, for each of LEVELS.
        figure: the figure that it is a panel of, beside one of its own; "" for none.
    """

    name: str
    title: str
    scenario: str
    collectors: tuple[str, ...]
    episodes: int
    runs: tuple[int, int, int]
    figure: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Scenario:
        """The scenario."""
        return find_scenario(self.scenario, **self.options)


_PAPER = (*SAFE, "saver-paper")
_ALL = [
    Experiment("bandit", "Bandit", "bandit", (*_PAPER, "sepec"), 240, (200, 4000, 40_000), "paper"),
    Experiment("movielens", "MovieLens", "movielens", (*_PAPER, "sepec"), 30_000, (20, 100, 400), "paper"),
    Experiment("tree", "Tree", "tree", _PAPER, 480, (50, 600, 6000), "paper"),
    Experiment("gridworld", "Gridworld", "gridworld", _PAPER, 200, (20, 120, 1500), "paper"),
    Experiment("bandit-long", "Bandit", "bandit", (*SAFE, "sepec"), 5000, (100, 1000, 20_000), "long"),
    Experiment("tree-long", "Tree", "tree", SAFE, 5000, (20, 200, 2000), "long"),
    Experiment("gridworld-long", "Gridworld", "gridworld", SAFE, 5000, (6, 30, 400), "long"),
    Experiment("lake", "FrozenLake", "lake", SAFE, 1000, (4, 40, 400)),
    Experiment("taxi", "Taxi", "taxi", SAFE, 1000, (2, 4, 20)),
    Experiment("intractable-long", "Intractable", "intractable", SAFE, 5000, (100, 1000, 10_000), "long"),
]
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


@dataclass(frozen=True)
class Rate:
    """One measurement of the regret's exponent; `runs` for each of LEVELS."""

    scenario: str
    collector: str
    against: str
    budgets: tuple[int, ...]
    runs: tuple[int, int, int]

    @property
    def name(self) -> str:
        """For files."""
        return f"{self.scenario}-{self.collector}-{self.against}"


_BUDGETS = (4000, 8000, 16_000, 32_000, 64_000, 128_000)
RATES = [
    Rate("bandit", "saver-opt", "safe", _BUDGETS, (40, 200, 1000)),
    Rate("bandit", "exact-oracle", "safe", _BUDGETS, (40, 200, 1000)),
    Rate("bandit", "saver", "safe", _BUDGETS, (40, 200, 1000)),
    Rate("intractable", "saver-opt", "unconstrained", _BUDGETS, (40, 200, 1000)),
    Rate("intractable", "saver", "unconstrained", _BUDGETS, (40, 200, 1000)),
]
PRICES = ("bandit", "tree", "gridworld", "movielens", "intractable")  # scenarios of the price of safety
ALPHAS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DESIGNS = ("tree", "gridworld")  # scenarios whose designs are drawn
