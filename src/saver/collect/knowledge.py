"""What a design is told: what was seen and is believed, or the truth where the collector knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.collect.collectors import Collector
from saver.errors import InvalidProblem
from saver.estimate.recursion import Moves
from saver.kernels.believing import HALF, SMALLEST_VARIANCE
from saver.problem import checks
from saver.problem.moments import Moments
from saver.problem.statement import Problem
from saver.safety.argument import first_width


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a design may use: samples so far, or the truth where the collector knows it.

    Attributes:
        problem: what is asked.
        episode: the number of the episode about to be asked.
        counts: samples of each pair, [S, A].
        mean, variance: of the rewards, [S, A].
        constraint_mean: [S, A]; of several guardrails {name: [S, A]}.
        model: the problem's, or, where transitions are learned, that of what was seen.
        moves: what was seen of moves, where they are learned.
    """

    problem: Problem
    episode: int
    counts: Ints
    mean: Floats
    variance: Floats
    constraint_mean: Any
    model: Any = None
    moves: Moves | None = None

    @classmethod
    def of(
        cls, problem: Problem, known: Knowledge, episode: int, rewards: Moments,
        constraints: Sequence[Moments], moves: Moves | None = None,
    ) -> Statistics:  # fmt: skip
        """What was seen, and the truth where it is known; an unseen constraint is as bad as can be."""
        found = {
            rail.name: np.where(seen.counts > 0, seen.mean, rail.sign * rail.promise.floor)
            for rail, seen in zip(problem.rails, constraints, strict=True)
        }
        constraint_mean = found if len(found) > 1 else next(iter(found.values()))
        model = problem.mdp if known.model is None else known.model
        if moves is not None and known.model is None:
            model = model.believed(moves.counts, moves.ends, moves.starts)
        return cls(
            problem, episode, rewards.counts.copy(),
            rewards.mean.copy() if known.mean is None else known.mean,
            rewards.variance if known.variance is None else known.variance,
            constraint_mean if known.constraint_mean is None else known.constraint_mean, model, moves,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Truths that may be given to a collector that says it `knows` them, [S, A] each.

    Of several guardrails `constraint_mean` is {name: [S, A]}; `model` is an `Mdp`.
    """

    mean: Any = None
    variance: Any = None
    constraint_mean: Any = None
    model: Any = None

    def limited(self, problem: Problem, knows: tuple[str, ...]) -> Knowledge:
        """Only what is named in `knows`, checked; anything else is dropped."""
        shape = (problem.mdp.states, problem.mdp.actions)
        kept: dict[str, Any] = {}
        for name in knows:
            value = getattr(self, name)
            if value is None:
                raise InvalidProblem(
                    f"the collector knows {name}, which was not given; pass knowledge=Knowledge({name}=...)"
                )
            if name == "model":
                kept[name] = _model(problem, value)
                continue
            if name == "constraint_mean":
                means = problem.means(value, name)
                tables = {
                    rail.name: rail.sign * mean for rail, mean in zip(problem.rails, means, strict=True)
                }
                value = tables if len(tables) > 1 else next(iter(tables.values()))
            if isinstance(value, dict):
                kept[name] = {key: checks.frozen(table) for key, table in value.items()}
            else:
                kept[name] = checks.frozen(checks.shaped(name, value, shape))
        if "variance" in kept:
            checks.within("variance", kept["variance"], 0.0)
        return Knowledge(**kept)


def _model(problem: Problem, given: Any) -> Any:
    """A model as large as the problem's."""
    checks.model(given)
    sizes = [(one.states, one.actions, one.horizon) for one in (given, problem.mdp)]
    if sizes[0] != sizes[1]:
        raise InvalidProblem(
            f"the model given as knowledge has (states, actions, horizon) = {sizes[0]}; it must be as large "
            f"as the problem's, {sizes[1]}"
        )
    return given


def extra(problem: Problem, collector: Collector, episodes: int) -> float:
    """What is added to a sample deviation after one sample: bonus widths, half a `reward_scale` of caution.

    The second keeps alive a pair whose samples were all equal, as those of a rare event are.
    """
    widths = collector.bonus * first_width(problem, episodes)
    return float((widths + HALF * collector.caution) * problem.reward_scale)


def floored(variance: Floats) -> Floats:
    """No variance below a millionth of the largest."""
    return np.maximum(variance, SMALLEST_VARIANCE * variance.max())
