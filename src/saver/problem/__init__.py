"""State a problem: the model, the policies, what is asked, and what is true in simulation."""

from saver.problem.bellman import (
    minimising,
    occupancy,
    return_variance,
    value,
    values,
    visits,
    weights,
)
from saver.problem.laws import Bernoulli, Empirical, Gaussian, Law
from saver.problem.mdp import Mdp
from saver.problem.statement import Bounded, Problem, Scenario, SubGaussian, World

__all__ = [
    "Bernoulli",
    "Bounded",
    "Empirical",
    "Gaussian",
    "Law",
    "Mdp",
    "Problem",
    "Scenario",
    "SubGaussian",
    "World",
    "minimising",
    "occupancy",
    "return_variance",
    "value",
    "values",
    "visits",
    "weights",
]
