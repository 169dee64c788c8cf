"""Factories of scenarios; every number of theirs is an argument."""

from collections.abc import Callable

from saver.problem import Scenario
from saver.scenarios.bandit import bandit
from saver.scenarios.gridworld import gridworld
from saver.scenarios.intractable import intractable
from saver.scenarios.movielens import movielens
from saver.scenarios.tree import lower_bound_pair, tree

SCENARIOS: dict[str, Callable[..., Scenario]] = {
    "bandit": bandit,
    "movielens": movielens,
    "tree": tree,
    "gridworld": gridworld,
    "intractable": intractable,
}

__all__ = ["SCENARIOS", "bandit", "gridworld", "intractable", "lower_bound_pair", "movielens", "tree"]
