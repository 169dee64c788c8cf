"""State a problem: the model, the policies, what is asked, and what is true in simulation."""

from saver.problem.bellman import minimising, occupancy, return_variance, value, values, visits, weights
from saver.problem.episode import Episode
from saver.problem.guardrail import Guardrail
from saver.problem.history import History
from saver.problem.mdp import Mdp, Unknown
from saver.problem.model import END
from saver.problem.promise import Bounded, SubGaussian
from saver.problem.statement import Problem
from saver.problem.world import Bernoulli, Empirical, Gaussian, Law, Scenario, World

__all__ = [
    "END", "Bernoulli", "Bounded", "Empirical", "Episode", "Gaussian", "Guardrail", "History", "Law", "Mdp",
    "Problem", "Scenario", "SubGaussian", "Unknown", "World", "minimising", "occupancy", "return_variance",
    "value", "values", "visits", "weights",
]  # fmt: skip
