"""Factories of scenarios; every number of theirs is an argument."""

import inspect
from collections.abc import Callable
from typing import Any

from saver.errors import no_such
from saver.problem import Scenario
from saver.scenarios.assembly import forget
from saver.scenarios.bandit import bandit, contexts, intractable
from saver.scenarios.gridworld import gridworld, unknown_gridworld
from saver.scenarios.lake import lake
from saver.scenarios.movielens import movielens
from saver.scenarios.shop import shop
from saver.scenarios.taxi import taxi
from saver.scenarios.tree import lower_bound_pair, tree

SCENARIOS: dict[str, Callable[..., Scenario]] = {
    "bandit": bandit,
    "movielens": movielens,
    "tree": tree,
    "gridworld": gridworld,
    "intractable": intractable,
    "lake": lake,
    "taxi": taxi,
    "shop": shop,
    "contexts": contexts,
    "unknown-gridworld": unknown_gridworld,
}


def find_scenario(name: str, /, **options: Any) -> Scenario:
    """The scenario of that name, with these arguments of its factory."""
    if name not in SCENARIOS:
        raise no_such("scenario", name, SCENARIOS)
    known = inspect.signature(SCENARIOS[name]).parameters
    for option in options:
        if option not in known:
            raise no_such(f"argument of {name}", option, known)
    return SCENARIOS[name](**options)


__all__ = [
    "SCENARIOS", "bandit", "contexts", "find_scenario", "forget", "gridworld", "intractable", "lake",
    "lower_bound_pair", "movielens", "shop", "taxi", "tree", "unknown_gridworld",
]  # fmt: skip
