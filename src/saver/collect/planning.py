"""What a design is told, and the design it becomes."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._jit import jit
from saver.collect.collectors import Collector
from saver.design import Planner, dag, is_tree, tree
from saver.design.onestate import one_decision
from saver.design.sepec import with_side_information, without_side_information
from saver.errors import InvalidPolicy, InvalidProblem
from saver.problem import checks, weights
from saver.problem.bellman import by_step
from saver.problem.checks import Floats, Ints
from saver.problem.moments import Moments
from saver.problem.statement import Problem
from saver.safety.widths import first_width, paper_lower, paper_width

SMALLEST_VARIANCE = 1e-6  # of the largest
REPLAN_GAP = 1e-3
TRUSTED = 4  # samples; two that happen to agree would starve a pair for thousands of episodes
LOWEST_QUANTILE = 0.2  # cubed: no variance is raised by more than 125 times
NEVER = 2.0**60  # the number of an episode that does not come
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

    def __init__(self, problem: Problem, collector: Collector, episodes: int) -> None:
        self.problem, self.collector, self.episodes = problem, collector, episodes
        self.weights = weights(problem.mdp, problem.target)
        self.is_tree = is_tree(problem.mdp)
        self.planner = Planner(problem.mdp) if collector.design == "exact" else None
        self.allowed = problem.mdp.available.copy()
        if collector.design == "sepec":
            self._check_sepec()
        if collector.design == "printed" and problem.target.ndim == 3 and not self.is_tree:
            raise InvalidPolicy(
                "target depends on the step, which the printed design for graphs does not know; use a "
                "collector with design='closed'"
            )

    @property
    def fixed(self) -> bool:
        """Whether the design never changes."""
        needs = {"closed": {"variance"}, "printed": {"variance"}, "exact": {"variance", "constraint_mean"}}
        needs["sepec"] = {"pilot"} if self.collector.side_information == "pilot" else set()
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
        if design == "sepec":
            return self._sepec(statistics)
        named: dict[str, Floats] = {
            "uniform": problem.mdp.uniform,
            "target": problem.target,
            "baseline": problem.baseline,
        }
        return named[design]

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

    def _check_sepec(self) -> None:
        mdp = self.problem.mdp
        if mdp.states > 1 or len(mdp.layers) > 1:
            raise InvalidProblem(
                f"sepec is for bandits, one state and one step; the model has {mdp.states} states and "
                f"{len(mdp.layers)} steps: use saver-opt"
            )
        if self.collector.side_information == "none" and self.problem.constraint.floor < 0:
            raise InvalidProblem(
                f"floor is {self.problem.constraint.floor:g}; sepec without side information is safe only "
                "where no constraint mean is below 0: use side_information='pilot'"
            )

    def _sepec(self, statistics: Statistics) -> Floats:
        """SEPEC's behaviour, [1, A]; lower bounds stand for constraint means that a pilot has estimated."""
        problem, mean = self.problem, statistics.constraint_mean
        target, baseline = by_step(problem.mdp, problem.target)[0, 0], by_step(problem.mdp, problem.baseline)
        if self.collector.side_information == "none":
            return without_side_information(target, baseline[0, 0], problem.alpha)[None]
        if self.collector.side_information == "pilot":
            width = paper_width(problem, self.episodes, statistics.counts)
            mean = paper_lower(problem, width, statistics.counts, mean)
        moment = statistics.variance[0] + statistics.mean[0] ** 2
        required = attainable(problem.required, float(mean[0].max()))
        return with_side_information(target, moment, mean[0], required)[None]

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
def next_plan(number: int, replan: float) -> int:
    """The episode at which the plan of episode `number` is replaced."""
    return max(number + 1, math.ceil(min(number * replan, NEVER)))


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
            if counts[s, a] >= TRUSTED:
                top = max(top, out[s, a])
    if caution > 0.0:
        for s in range(out.shape[0]):
            for a in range(out.shape[1]):
                if counts[s, a] < TRUSTED:
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
