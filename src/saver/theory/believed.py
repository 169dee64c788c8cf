"""A problem with logged episodes as a scenario: what is diagnosed where no world is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from saver._types import Floats
from saver.collect.learning import answers, average
from saver.errors import InvalidProblem
from saver.estimate.log import seen_moves
from saver.estimate.pricing import prices
from saver.estimate.recursion import Moves
from saver.problem.bellman import visits
from saver.problem.guardrail import Rail
from saver.problem.laws import Gaussian
from saver.problem.moments import Moments
from saver.problem.question import question
from saver.problem.statement import Problem
from saver.problem.world import Scenario, World

EPISODES = 1000  # by default, where no scenario says how many


def believed_scenario(problem: Problem) -> tuple[Scenario, tuple[str, ...]]:
    """The world as its history shows it, and what had to be assumed for that.

    Pairs that the baseline never visits are taken to be like the average of those it does. Where transitions
    are unknown they are those seen, and rewards vary as much more as learning the moves costs: by
    Var[c r + u] / c^2 in the place of the variance, so that the program is the same.
    """
    history = problem.history
    if history is None or not history.episodes:
        raise InvalidProblem(
            "the problem has no history, and nothing can be foreseen of it; diagnose a saver.Scenario, or a "
            "problem with history=saver.History.of(problem, episodes)"
        )
    sums, moves = history.sums, seen_moves(problem.mdp, history.sums)
    model = problem.mdp
    if not model.known:
        model = model.believed(moves.counts, moves.ends, moves.starts)
    asked = question(model, problem.targets, problem.baseline, problem.estimand)
    seen = sums.rewards.counts > 0
    mean = np.where(seen, sums.rewards.mean, average(sums.rewards.mean, sums.rewards.counts, asked.size))
    variance = _variance(sums.rewards)
    known = problem.mdp.known
    notes: tuple[str, ...] = (_taken(history.episodes, asked.size, seen),)
    if not known:
        variance, more = _with_moves(problem, model, asked.size, mean, variance, moves)
        notes += more
    laws = {
        rail.name: _law(rail, history.guarded[rail.name].seen, visits(model, problem.baseline))
        for rail in problem.rails
    }
    reward = problem.reward if known else None
    world = World(model, Gaussian(mean, variance), laws if len(laws) > 1 else next(iter(laws.values())))
    stated = replace(problem, mdp=model, reward=reward, history=None)
    return Scenario(f"history of {history.episodes:,} episodes", world, stated, EPISODES), notes


def known_twin(scenario: Scenario) -> tuple[Scenario, tuple[str, ...]]:
    """A scenario with the transitions of its world known, whose program is that of the one given, and notes.

    Where they are unknown, rewards vary as much more as learning the moves costs.
    """
    problem, world = scenario.problem, scenario.world
    if problem.mdp.known:
        return scenario, ()
    asked = question(world.mdp, problem.targets, problem.baseline, problem.estimand)
    variance, notes = _with_moves(problem, world.mdp, asked.size, world.reward.mean, world.reward.variance)
    twin = replace(world, reward=Gaussian(world.reward.mean, variance), outcome=None)
    return replace(scenario, world=twin, problem=replace(problem, mdp=world.mdp, reward=None)), notes


def _with_moves(
    problem: Problem, model: Any, size: Floats, mean: Floats, variance: Floats, moves: Moves | None = None
) -> tuple[Floats, tuple[str, ...]]:
    """Var[c r + u] / c^2 in the place of variances, and what is to be said of it."""
    found = prices(model, answers(problem), mean, variance, moves)
    weight, notes = np.maximum(found.rewards + found.moves, 0.0), []
    if problem.mdp.start is None:
        notes.append(f"to each K * MSE the start adds {found.start:.4g}, whatever is collected")
    notes.append(
        "transitions are unknown: limits count learning them, but baseline episodes are foreseen as if "
        "they were known, and a campaign needs more of them"
    )
    return np.divide(weight, size**2, out=np.array(variance), where=size > 0.0), tuple(notes)


def _variance(moments: Moments) -> Floats:
    """Sample variances; those of pairs seen less than twice are taken to be the average of the others."""
    counts = moments.counts
    often = counts > 1
    usual = float(np.average(moments.variance[often], weights=counts[often])) if often.any() else 1.0
    return np.where(often, moments.variance, usual)


def _law(rail: Rail, seen: Moments, usual: Floats) -> Gaussian:
    """What is guarded, as it was told; unseen pairs are like the average of what the baseline does."""
    mean = np.where(seen.counts > 0, seen.mean, average(seen.mean, seen.counts, usual))
    return Gaussian(rail.sign * np.clip(mean, rail.promise.floor, rail.promise.ceiling), _variance(seen))


def _taken(episodes: int, size: Floats, seen: Any) -> str:
    lost = int(np.sum((size > 0.0) & ~seen))
    if not lost:
        return f"all is as {episodes:,} logged episodes show it"
    return (
        f"all is as {episodes:,} logged episodes show it; {lost} pairs that the target needs are not in "
        "them, and are taken to be like the average of the others"
    )
