"""From what is believed to a design where transitions are learned: the program in the model seen so far."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import jit
from saver._types import Floats, Ints
from saver.collect.collectors import Collector
from saver.collect.foresight import Foresight
from saver.collect.knowledge import Statistics
from saver.collect.planning import UNNEEDED, Designed, needed_pairs, safe_plan
from saver.design import Planner
from saver.errors import InvalidProblem
from saver.estimate.pricing import Answers, Prices, prices
from saver.problem import checks
from saver.problem.bellman import by_step, visits, weights
from saver.problem.question import question
from saver.problem.statement import Problem

DESIGNS = ("exact", "target", "baseline")
HOPE = 8.0  # visits after which hardly more is hoped of a constraint mean than was seen
TRUSTED = 8.0  # visits after which half of what is believed of a pair is its own
SMALLEST = 1e-6  # of a price, in units of what a pair of as many visits has


class Learner:
    """Plans in the model of what was told; the target is followed where nothing was seen."""

    is_tree, planner, exact_on_graph = False, None, False

    def __init__(self, problem: Problem, collector: Collector, episodes: int) -> None:
        self.problem, self.collector, self.episodes = problem, collector, episodes
        design = collector.design
        if not callable(design) and design not in DESIGNS:
            raise InvalidProblem(
                f"the design {design!r} needs known transitions, and the model is a saver.Unknown; use "
                "saver-opt, safe-on-policy, on-policy, baseline or model-oracle, or give a saver.Mdp"
            )
        if collector.estimate == "importance" or collector.explore == "coverage":
            raise InvalidProblem(
                f"estimate is {collector.estimate!r} and explore is {collector.explore!r}; where transitions "
                "are learned, use estimate='certainty' and explore='none' or 'uniform'"
            )
        self.unseen = np.mean([by_step(problem.mdp, one) for one in problem.targets.values()], axis=0)
        self.needed: Ints = np.full((problem.mdp.states, problem.mdp.actions), UNNEEDED)
        self.answers = answers(problem)
        self._last: Planner | None = None

    @property
    def fixed(self) -> bool:
        """Whether the design never changes."""
        return self.collector.design in ("target", "baseline")

    @property
    def paced(self) -> bool:
        """Whether the design is told what the ledger can afford."""
        return self.collector.design == "exact" and self.collector.promises

    def design(
        self, statistics: Statistics, variance: Floats, required: Floats, paced: Floats, warm: Any = None
    ) -> Designed:
        """The design for what is believed; `warm` is the last one, as a table."""
        problem, design = self.problem, self.collector.design
        if callable(design):
            made = checks.policy(
                problem.mdp, design(statistics), "the policy that the design returned", known=False
            )
            return Designed(np.array(made))
        if design == "baseline":
            return Designed(problem.baseline)
        if self.fixed or not statistics.counts.any():
            return Designed(problem.first if len(problem.targets) == 1 else self.unseen)
        return self._exact(statistics, variance, required, paced, warm)

    def _exact(
        self, statistics: Statistics, variance: Floats, required: Floats, paced: Floats, warm: Any
    ) -> Designed:
        problem, model, moves = self.problem, statistics.model, statistics.moves
        assert moves is not None
        asked = question(model, problem.targets, problem.baseline, problem.estimand)
        counts = statistics.counts
        plain = model.discount == 1.0 and asked.reference is problem.first
        usual = asked.size if plain else visits(model, asked.reference)
        mean = np.where(counts > 0, statistics.mean, average(statistics.mean, counts, asked.size))
        oracle = "model" in self.collector.knows
        found = prices(model, self.answers, mean, variance, None if oracle else moves)
        if not oracle:
            by_reward, by_move = (shrunk(price, usual, counts) for price in found[:2])
            found = Prices(by_reward, by_move, found.start)
        apart = moves.apart(counts)
        planner, means = self._planner(model), problem.means(statistics.constraint_mean)
        plan = safe_plan(
            planner,
            problem,
            np.maximum(found.rewards if apart else found.rewards + found.moves, 0.0),
            means if oracle else hoped(problem, means, counts),
            (required, paced),
            lambda: weights(model, problem.baseline),
            asked.reference if warm is None else by_step(model, warm),
            found.moves if apart else None,
        )
        policy, flow = planner.unroll(plan)
        off = np.ones(policy.shape[:2], dtype=bool)
        off[planner.nodes.step, planner.nodes.state] = False
        policy[off] = self.unseen[off]
        if not oracle:
            tried(policy, self.unseen, counts)
        needed = self._unplanned(asked.size, flow, statistics.episode)
        return Designed(policy, None, flow.sum(axis=2), needed, Foresight.of(statistics, means))

    def _planner(self, model: Any) -> Planner:
        """What depends only on which moves were seen is kept from plan to plan."""
        last = self._last
        self._last = made = (last and last.moved(model)) or Planner(model)
        return made

    def _unplanned(self, size: Floats, flow: Floats, number: int) -> Ints:
        """What comes first: pairs with weight that the plan will not visit by itself."""
        to_come = (self.episodes - number + 1) * flow.sum(axis=0)
        return np.where(to_come >= 1.0, UNNEEDED, needed_pairs(size, self.episodes))


def answers(problem: Problem) -> Answers:
    """What is asked, as policies with their signs."""
    against = None if problem.against is None else problem.baseline
    return Answers.of(list(problem.targets.values()), against)


@jit
def average(mean: Any, counts: Any, size: Any) -> Any:
    """The average reward of the seen, by weight: what stands for a pair never seen."""
    total, earned = 0.0, 0.0
    for s in range(size.shape[0]):
        for a in range(size.shape[1]):
            if counts[s, a] > 0:
                total += size[s, a]
                earned += size[s, a] * mean[s, a]
    return earned / total if total > 0.0 else 0.0


def hoped(problem: Problem, means: Floats, counts: Ints) -> Floats:
    """Constraint means as they may be: half of their range above what was seen at first, and soon no more.

    No certificate rests on them, and the gate asks each trial. As bad as can be, which is what is said of
    pairs never seen, would keep the design where the baseline is; means of a few samples chase luck.
    """
    each = zip(problem.rails, means, strict=True)
    return np.array([hope(mean, counts, rail.promise.floor, rail.promise.ceiling) for rail, mean in each])


@jit
def hope(mean: Any, counts: Any, floor: float, ceiling: float) -> Any:
    """`hoped`, of one guardrail."""
    found = np.empty(mean.shape)
    for s in range(mean.shape[0]):
        for a in range(mean.shape[1]):
            share = HOPE / (counts[s, a] + HOPE)
            seen = mean[s, a] if counts[s, a] > 0 else ceiling
            found[s, a] = min(seen + (ceiling - floor) / 2.0 * (share * share), ceiling)
    return found


@jit
def tried(policy: Any, usual: Any, counts: Any) -> None:
    """Follow what is usual, [L, S, A], where a pair was seen seldom: less with every visit, up to TRUSTED.

    A plan may put all of a pair's visits into steps that few episodes reach, in truth fewer than it believes.
    """
    for t in range(policy.shape[0]):
        for s in range(policy.shape[1]):
            total = 0.0
            for a in range(policy.shape[2]):
                share = max(1.0 - counts[s, a] / TRUSTED, 0.0)
                policy[t, s, a] = (1.0 - share) * policy[t, s, a] + share * usual[t, s, a]
                total += policy[t, s, a]
            for a in range(policy.shape[2] if total > 0.0 else 0):
                policy[t, s, a] /= total


@jit
def shrunk(price: Any, usual: Any, counts: Any) -> Any:
    """Prices of pairs seen seldom, drawn to those at which the target's own visits are the best.

    Visits x are the best for prices that are proportional to x^2. So each price over x^2 is averaged with the
    mean of all, which counts as TRUSTED visits: the design leaves the target as it learns why.
    """
    own, found, total, weighed = np.zeros(price.shape), np.zeros(price.shape), 0.0, 0.0
    for s in range(price.shape[0]):
        for a in range(price.shape[1]):
            if usual[s, a] > 0.0:
                own[s, a] = price[s, a] / (usual[s, a] * usual[s, a])
                total += counts[s, a]
                weighed += counts[s, a] * own[s, a]
    common = max(weighed / total, 0.0) if total > 0.0 else 1.0
    for s in range(price.shape[0]):
        for a in range(price.shape[1]):
            believed = (counts[s, a] * own[s, a] + TRUSTED * common) / (counts[s, a] + TRUSTED)
            found[s, a] = usual[s, a] * usual[s, a] * max(believed, SMALLEST * common)
    return found
