"""How the worlds of the audit are made: a problem of constraints alone, and the same asked otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
from saver.problem.checks import child_seed
from saver.problem.guardrail import CONSTRAINT
from saver.problem.world import SHARED
from saver.scenarios import find_scenario
from saver.scenarios.assembly import always, forget, promised

Shown = Callable[[int, int, int], float]  # a constraint observation, from state, action and next state
NOISY, QUIET = 9.0, 0.01  # variances of rewards
FORMS = ("learned", "interval", "several")  # in which a world is guarded
WAYS = ("alpha", "allowance", "at_least")  # of saying what may be lost of a value that is learned
WIDTH = 0.2  # of an interval, in units of what may be given up
LEFT = 0.5  # of the baseline's value, at least, may be given up by who is `spending`


class Seen(NamedTuple):
    """The law of a constraint, and what is promised of it."""

    law: Law
    promise: SubGaussian | Bounded


def coins_of(chances: ArrayLike, *, next_state: bool = False) -> Seen:
    """1 with these chances, else 0."""
    return Seen(Bernoulli(chances), Bounded(0.0, 1.0, next_state=next_state))


def normal_of(
    means: ArrayLike,
    variance: float,
    floor: float = 0.0,
    ceiling: float = 1.0,
    *,
    next_state: bool = False,
) -> Seen:
    """Normal noise on means that lie between floor and ceiling."""
    promise = SubGaussian(math.sqrt(variance), floor, ceiling, next_state=next_state)
    return Seen(Gaussian(means, variance), promise)


def asked(
    mdp: Mdp,
    seen: Seen,
    *,
    alpha: float,
    episodes: int,
    baseline: ArrayLike | None = None,
    target: ArrayLike | None = None,
    shown: Shown | None = None,
) -> Scenario:
    """The baseline takes action 0, the target any. Rewards vary most where the constraint is poor, so that
    designs want what is unsafe. Where `shown` is given, noise is what the next state explains.
    """
    mean = np.array(seen.law.mean)
    reward = Gaussian(mean, np.where(mean < np.median(mean[:, 0]), NOISY, QUIET))

    def outcome(
        rng: np.random.Generator, step: int, state: int, action: int, next_state: int
    ) -> tuple[float, float]:
        assert shown is not None
        return reward.sample(rng, state, action), shown(state, action, next_state)

    world = World(mdp, reward, seen.law, outcome=None if shown is None else outcome)
    safe = always(mdp, 0) if baseline is None else np.asarray(baseline)
    problem = Problem(
        mdp,
        mdp.uniform if target is None else target,
        safe,
        alpha=alpha,
        baseline_value=world.constraint_value(safe),
        constraint=seen.promise,
        reward=promised(reward),
    )
    return Scenario("bandit" if mdp.states == 1 else "model", world, problem, episodes)


def grid(good: float, bad: float, **options: float) -> tuple[Scenario, Floats]:
    """A small gridworld, and these means for its actions forth and back."""
    made = find_scenario("gridworld", size=3, slip=0.2, **options)
    mean: Floats = np.where(np.array(made.world.constraint.mean) > 0.5, good, bad)
    return made, mean


# -- the same, asked otherwise -------------------------------------------------------------------------------


def changed(
    made: Scenario, *, world: Mapping[str, Any] = {}, problem: Mapping[str, Any] = {}, **own: Any
) -> Scenario:
    """The same but for these fields of its world, of its problem, and of its own."""
    return replace(made, world=replace(made.world, **world), problem=replace(made.problem, **problem), **own)


def with_constraints(made: Scenario, seen: Seen, episodes: int | None = None) -> Scenario:
    """The same with other constraints."""
    worth = value(made.world.mdp, made.problem.baseline, seen.law.mean)
    problem = {"constraint": seen.promise, "baseline_value": worth}
    return changed(made, world={"constraint": seen.law}, problem=problem, episodes=episodes or made.episodes)


def with_rewards(made: Scenario, law: Law, outcome: str | None = None) -> Scenario:
    """The same with other rewards, and what is true of them declared."""
    return changed(made, world={"reward": law, "outcome": outcome}, problem={"reward": promised(law)})


def one_outcome(made: Scenario) -> Scenario:
    """The same where what is observed is both the reward and the constraint."""
    return with_rewards(made, made.world.constraint, SHARED)


def spending(made: Scenario) -> Scenario:
    """The same where there is something to spend."""
    return changed(made, problem={"alpha": max(made.problem.alpha or 0.0, LEFT)})


def blind(made: Scenario, delta: float) -> Scenario:
    """The same with this delta, in a problem that does not know how states follow each other."""
    return changed(forget(made), problem={"delta": delta}, name=f"{made.name}, unknown")


def railed(made: Scenario, laws: dict[str, Law], *rails: Guardrail) -> Scenario:
    """The same with these guardrails in the place of its constraint."""
    problem = {"alpha": None, "baseline_value": None, "constraint": None, "guardrails": rails}
    return changed(made, world={"constraint": laws}, problem=problem)


def guarded(made: Scenario, form: str, number: int = 0, seed: int = 0) -> Scenario:
    """The same world, guarded in one of FORMS: a baseline value learned or bounded, or several at once.

    What is judged is the true line, which the campaign does not know. An interval has the truth at one of its
    ends. A learned value is said in turn by each of WAYS. Of several guardrails one is a cost, one is
    learned, and their laws differ.
    """
    rail, laws = made.problem.rails[0], {CONSTRAINT: made.world.constraint}
    promise, true, credit = rail.promise, rail.value, rail.credit
    if form == "learned":
        way = number % len(WAYS)
        said: dict[str, Any] = {WAYS[way]: (rail.alpha, credit, rail.required)[way]}
        rails = [Guardrail(CONSTRAINT, promise, **said)]
    elif form == "interval":
        ends = (true, true + WIDTH * credit) if number % 2 else (true - WIDTH * credit, true)
        rails = [Guardrail(CONSTRAINT, promise, allowance=credit, baseline_value=ends)]
    else:
        rng, mdp = np.random.default_rng(child_seed(seed, 7, number)), made.problem.mdp
        shape = mdp.states, mdp.actions
        cost = Bernoulli(rng.uniform(0.02, 0.6, shape))
        other = Gaussian(np.clip(rng.normal(size=shape), -3.0, 3.0), 0.04)
        costs, others = (value(mdp, made.problem.baseline, law.mean) for law in (cost, other))
        laws |= {"cost": cost, "other": other}
        rails = [
            Guardrail(CONSTRAINT, promise, alpha=rail.alpha, baseline_value=true),
            Guardrail("cost", Bounded(0.0, 1.0), cost=True, at_most=1.3 * costs, baseline_value=costs),
            Guardrail("other", SubGaussian(0.2, -3.0, 3.0), allowance=0.2 * (1.0 + abs(others))),
        ]
    return replace(railed(made, laws, *rails), name=f"{made.name} {form}")
