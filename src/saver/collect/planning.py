"""What a design is told, and the design it becomes."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._jit import jit
from saver.collect.collectors import Collector
from saver.design import Planner, dag, is_tree, tree
from saver.design.onestate import one_decision
from saver.errors import InvalidProblem
from saver.problem import checks, weights
from saver.problem.checks import Floats, Ints
from saver.problem.moments import Moments
from saver.problem.statement import Problem
from saver.safety.widths import first_width

SMALLEST_VARIANCE = 1e-6  # of the largest
REPLAN_GAP = 1e-3
LOWEST_QUANTILE = 0.2  # cubed: no variance is raised by more than 125 times
ROOM = 1e-3  # kept below the best value that is believed attainable


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a design may use: samples so far, or the truth where the collector knows it.

    Attributes:
        problem: what is asked.
        episode: the number of the episode about to be asked.
        counts: samples of each pair, [S, A].
        mean, variance: of the rewards, [S, A].
        constraint_mean: [S, A].
    """

    problem: Problem
    episode: int
    counts: Ints
    mean: Floats
    variance: Floats
    constraint_mean: Floats

    @classmethod
    def of(
        cls, problem: Problem, known: Knowledge, episode: int, rewards: Moments, constraints: Moments
    ) -> Statistics:
        """What was seen, and the truth where it is known; the floor is the mean of an unseen constraint."""
        constraint_mean = np.where(constraints.counts > 0, constraints.mean, problem.constraint.floor)
        return cls(
            problem,
            episode,
            rewards.counts.copy(),
            rewards.mean.copy() if known.mean is None else known.mean,
            rewards.variance if known.variance is None else known.variance,
            constraint_mean if known.constraint_mean is None else known.constraint_mean,
        )


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Truths that may be given to a collector that says it `knows` them, [S, A] each."""

    mean: Any = None
    variance: Any = None
    constraint_mean: Any = None

    def limited(self, problem: Problem, knows: tuple[str, ...]) -> Knowledge:
        """Only what is named in `knows`, checked; anything else is dropped."""
        shape = (problem.mdp.states, problem.mdp.actions)
        kept = {}
        for name in knows:
            value = getattr(self, name)
            if value is None:
                raise InvalidProblem(
                    f"the collector knows {name}, which was not given; pass knowledge=Knowledge({name}=...)"
                )
            kept[name] = checks.frozen(checks.shaped(name, value, shape))
        if "variance" in kept:
            checks.within("variance", kept["variance"], 0.0)
        return Knowledge(**kept)


class Drawing:
    """Turns statistics into a design; keeps what does not change between plans."""

    def __init__(self, problem: Problem, collector: Collector) -> None:
        self.problem, self.collector = problem, collector
        self.weights = weights(problem.mdp, problem.target)
        self.is_tree = is_tree(problem.mdp)
        self.planner = Planner(problem.mdp) if collector.design == "exact" else None
        self.allowed = problem.mdp.available.copy()

    @property
    def fixed(self) -> bool:
        """Whether the design never changes."""
        needs = {"closed": {"variance"}, "printed": {"variance"}, "exact": {"variance", "constraint_mean"}}
        design = self.collector.design
        return (
            not callable(design) and not self.paced and needs.get(design, set()) <= set(self.collector.knows)
        )

    @property
    def paced(self) -> bool:
        """Whether the design is told what the ledger can afford."""
        return self.collector.design == "exact" and self.collector.promises

    def draw(self, statistics: Statistics, variance: Floats, required: float) -> Floats:
        """The design: [S, A], or [L, S, A] where it depends on the step. `required` is for the exact one."""
        problem, design = self.problem, self.collector.design
        if callable(design):
            made = checks.policy(problem.mdp, design(statistics), "the policy that the design returned")
            return np.array(made)  # a copy: the function may use its array again
        if design in ("closed", "printed") and self.is_tree:
            return tree(problem.mdp, problem.target, variance).policy
        if design in ("closed", "printed"):
            return dag(problem.mdp, problem.target, variance, time_indexed=design == "closed").policy
        if design == "exact":
            return self._exact(statistics, variance, required)
        if design == "uniform":
            return problem.mdp.uniform
        named: Floats = problem.target if design == "target" else problem.baseline
        return named

    def _exact(self, statistics: Statistics, variance: Floats, required: float) -> Floats:
        """The exact safe design for what is believed; as safe as can be where nothing reaches the bound."""
        assert self.planner is not None
        mean, w = statistics.constraint_mean, self.weights**2 * variance
        if (only := self.planner.only_state) is not None:
            policy = self.problem.mdp.uniform.copy()
            policy[only] = one_row(w[only], np.array(mean[only]), self.allowed[only], required)
            return policy
        top = self.planner.best_value(mean)
        required = attainable(required, top)
        plan = self.planner.solve(w, mean, required, tolerance=REPLAN_GAP, iterations=3000)
        return self.planner.unroll(plan)[0]

    def fresh(self) -> Drawing:
        """The same for another campaign, which starts its solves anew."""
        other = copy.copy(self)
        if self.planner is not None:
            other.planner = copy.copy(self.planner)
            other.planner.last = None
        return other

    def state(self) -> list[Any] | None:
        """Plain data: where the next solve would start."""
        return None if self.planner is None or self.planner.last is None else self.planner.last.tolist()

    def load(self, state: list[Any] | None) -> None:
        """Back from plain data."""
        if self.planner is not None and state is not None:
            self.planner.last = np.array(state)


@jit
def attainable(required: float, top: float) -> float:
    """What is required, or a little below the best that is believed attainable."""
    return min(required, top - ROOM * abs(top))


@jit
def one_row(w: Any, mean: Any, allowed: Any, required: float) -> Any:
    """The exact design of the only decision, [A]."""
    top = -np.inf
    for a in range(len(w)):
        if allowed[a]:
            top = max(top, mean[a])
    return one_decision(w, mean, allowed, attainable(required, top))


def believed_variance(
    problem: Problem, collector: Collector, known: Knowledge, episodes: int, rewards: Moments
) -> Floats:
    """(sample deviation + bonus width)^2, or the truth where it is known; floored."""
    if known.variance is not None:
        return floored(known.variance)
    believed, bonus = np.empty(rewards.mean.shape), float(collector.bonus * problem.reward_scale)
    width, caution = first_width(problem, episodes), float(collector.caution)
    believe(rewards.counts, rewards.squares, bonus, width, caution, believed)
    return floored(believed)


@jit
def believe(counts: Any, squares: Any, bonus: float, width: float, caution: float, out: Any) -> None:
    """The believed variance of every pair, before flooring."""
    top = 0.0
    for s in range(out.shape[0]):
        for a in range(out.shape[1]):
            out[s, a] = spread_believed(counts[s, a], squares[s, a], bonus, width, caution)
            if counts[s, a] >= 2:
                top = max(top, out[s, a])
    if caution > 0.0:
        for s in range(out.shape[0]):
            for a in range(out.shape[1]):
                if counts[s, a] < 2:
                    out[s, a] = max(out[s, a], top)


@jit
def spread_believed(T: float, squares: float, bonus: float, width: float, caution: float) -> Any:
    """(sample deviation + bonus width / sqrt(T))^2, the sample variance first raised by `caution`.

    It is divided by the quantile of chi^2 / (T - 1) that many standard deviations below the median, after
    Wilson and Hilferty (1931): (1 - 2/(9 (T-1)) - caution sqrt(2/(9 (T-1))))^3.
    """
    variance = squares / max(T - 1.0, 1.0)
    if caution > 0.0 and T >= 2.0:
        ninth = 2.0 / (9.0 * (T - 1.0))
        quantile = max(1.0 - ninth - caution * np.sqrt(ninth), LOWEST_QUANTILE)
        variance /= quantile * quantile * quantile
    d = np.sqrt(variance) + bonus * (width / np.sqrt(max(T, 1.0)))
    return d * d


def floored(variance: Floats) -> Floats:
    """No variance below a millionth of the largest."""
    result: Floats = np.maximum(variance, SMALLEST_VARIANCE * variance.max())
    return result
