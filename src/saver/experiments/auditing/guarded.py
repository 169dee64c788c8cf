"""Random worlds once more, with guardrails: a baseline value that is learned or bounded, several at once.

What is judged is the true line, which the campaign does not know. An interval has the truth at one of its
ends. A learned value is said in turn by alpha, by an allowance and by at_least. Of several guardrails one is
a cost, one is learned, and their laws differ.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from saver._types import Floats
from saver.problem import (
    Bernoulli,
    Bounded,
    Gaussian,
    Guardrail,
    Law,
    Mdp,
    Problem,
    Scenario,
    SubGaussian,
    World,
    value,
)
from saver.problem.guardrail import CONSTRAINT
from saver.problem.seeds import child_seed
from saver.scenarios.assembly import promised

FORMS = ("learned", "interval", "several")
WAYS = ("alpha", "allowance", "at_least")
WIDTH = 0.2  # of an interval, in units of what may be given up
EDGE = 0.97  # of what is required: just below the line


def guarded(scenario: Scenario, form: str, number: int = 0, seed: int = 0) -> Scenario:
    """The same world, guarded in one of FORMS."""
    rail = scenario.problem.rails[0]
    promise, true = rail.promise, rail.value
    rails: list[Guardrail]
    said = dict(zip(WAYS, (rail.alpha, rail.credit, rail.required), strict=True))
    way = WAYS[number % len(WAYS)]
    laws: dict[str, Law] = {CONSTRAINT: scenario.world.constraint}
    if form == "learned":
        rails = [Guardrail(CONSTRAINT, promise, **{way: said[way]})]  # type: ignore[arg-type]
    elif form == "interval":
        ends = (true, true + WIDTH * rail.credit) if number % 2 else (true - WIDTH * rail.credit, true)
        rails = [Guardrail(CONSTRAINT, promise, allowance=rail.credit, baseline_value=ends)]
    else:
        rng = np.random.default_rng(child_seed(seed, 7, number))
        mdp, baseline = scenario.problem.mdp, scenario.problem.baseline
        shape = mdp.states, mdp.actions
        more: dict[str, Law] = {
            "cost": Bernoulli(rng.uniform(0.02, 0.6, shape)),
            "other": Gaussian(np.clip(rng.normal(size=shape), -3.0, 3.0), 0.04),
        }
        costs, others = (value(mdp, baseline, law.mean) for law in more.values())
        laws, noise = laws | more, SubGaussian(0.2, -3.0, 3.0)
        rails = [
            Guardrail(CONSTRAINT, promise, alpha=rail.alpha, baseline_value=true),
            Guardrail("cost", Bounded(0.0, 1.0), cost=True, at_most=1.3 * costs, baseline_value=costs),
            Guardrail("other", noise, allowance=0.2 * (1.0 + abs(others))),
        ]
    problem = dataclasses.replace(
        scenario.problem, alpha=None, baseline_value=None, constraint=None, guardrails=tuple(rails)
    )
    world = dataclasses.replace(scenario.world, constraint=laws)
    return Scenario(f"{scenario.name} {form}", world, problem, scenario.episodes)


def at_the_edge(way: str = "alpha", noise: float = 0.1) -> Scenario:
    """A bandit whose target earns just less than what is required of a learned value, with noisy rewards.

    Whoever believes a little too much of V0 plays it too often, at once.
    """
    mdp = Mdp(np.zeros((1, 2, 1)), 1)
    means: Floats = np.array([[0.5, EDGE * 0.375]])
    law = Gaussian(means, noise**2)
    said = {"alpha": 0.25, "allowance": 0.125, "at_least": 0.375}
    rail = Guardrail(CONSTRAINT, SubGaussian(noise), **{way: said[way]})  # type: ignore[arg-type]
    reward = Gaussian(means, np.array([[0.01, 9.0]]))
    problem = Problem(mdp, [[0.0, 1.0]], [[1.0, 0.0]], guardrails=(rail,), reward=promised(reward))
    return Scenario(f"edge {way}", World(mdp, reward, {CONSTRAINT: law}), problem, 400)
