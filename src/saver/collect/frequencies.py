"""From what is believed to a design where transitions are learned: the program in the model seen so far."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats, Ints
from saver.collect.collectors import Collector
from saver.collect.knowledge import Statistics
from saver.collect.planning import Designed, Designer, needed_pairs, safe_plan
from saver.design import Planner
from saver.errors import InvalidProblem
from saver.estimate.recursion import Answers, Prices, prices
from saver.kernels.believing import UNNEEDED, average, hope, shrunk, tried
from saver.play.foresight import Foresight
from saver.problem.bellman import by_step, question, visits, weights
from saver.problem.statement import Problem

DESIGNS = ("exact", "target", "baseline")


class Work(NamedTuple):
    """A program in the model that was seen."""

    planner: Planner
    model: Any
    found: Prices
    apart: bool  # last steps teach rewards and no moves
    size: Floats  # c, [S, A]
    reference: Floats
    seen: Floats  # constraint means, more is better, [m, S, A]
    hopes: Floats  # as they may be: see `hoped`

    @property
    def price(self) -> Floats:
        """What a visit is worth, of rewards and moves together."""
        return self.found.rewards + self.found.moves


class FrequencyDesigner(Designer):
    """Plans in the model of what was told; the target is followed where nothing was seen."""

    is_tree, planner, only_state = False, None, None

    def __init__(self, problem: Problem, collector: Collector, episodes: int) -> None:
        self.problem, self.collector, self.episodes = problem, collector, episodes
        self.paced = collector.design == "exact" and collector.promises  # told what the ledger can afford
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

    def _closed(self, statistics: Statistics, variance: Floats) -> Floats:
        """The baseline, or the targets."""
        followed: Floats = self.problem.first if len(self.problem.targets) == 1 else self.unseen
        return self.problem.baseline if self.collector.design == "baseline" else followed

    def _exact(
        self, statistics: Statistics, variance: Floats, required: Floats, paced: Floats, warm: Any
    ) -> Designed:
        """`warm` is the last design, as a table."""
        if not statistics.counts.any():
            return Designed(self._closed(statistics, variance))
        work = self.work(statistics, variance)
        hint = work.reference if warm is None else by_step(statistics.model, warm)
        policy, flow = self.solved(work, (required, paced), hint)
        counts = statistics.counts
        if "model" not in self.collector.knows:
            tried(policy, self.unseen, counts)
        to_come = (self.episodes - statistics.episode + 1) * flow.sum(axis=0)
        needed = np.where(to_come >= 1.0, UNNEEDED, needed_pairs(work.size, self.episodes))
        foresight = Foresight.of(statistics, work.seen)
        return Designed(policy, None, flow.sum(axis=2), needed, foresight, work.price, flow.sum(axis=0))

    def work(self, statistics: Statistics, variance: Floats) -> Work:
        """What a program needs of what was seen."""
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
        means = problem.means(statistics.constraint_mean)
        hopes = means if oracle else hoped(problem, means, counts)
        # what depends only on which moves were seen is kept from plan to plan
        planner = self._last = (self._last and self._last.moved(model)) or Planner(model)
        return Work(planner, model, found, moves.apart(counts), asked.size, asked.reference, means, hopes)

    def solved(
        self, work: Work, line: tuple[Floats, Floats], hint: Floats | None, less: Any = 1.0
    ) -> tuple[Floats, Floats]:
        """The policy, the target's where no behaviour can be, and where it goes, [L, S, A] each.

        Prices count `less`, a table.
        """
        planner, found, apart = work.planner, work.found, work.apart
        plan = safe_plan(
            planner, self.problem, less * np.maximum(found.rewards if apart else work.price, 0.0), work.hopes,
            line, lambda: weights(work.model, self.problem.baseline), hint,
            less * found.moves if apart else None,
        )  # fmt: skip
        policy, flow = planner.unroll(plan)
        off = np.ones(policy.shape[:2], dtype=bool)
        off[planner.nodes.step, planner.nodes.state] = False
        policy[off] = self.unseen[off]
        return policy, flow


def answers(problem: Problem) -> Answers:
    """What is asked, as policies with their signs."""
    against = None if problem.against is None else problem.baseline
    return Answers.of(list(problem.targets.values()), against)


def hoped(problem: Problem, means: Floats, counts: Ints) -> Floats:
    """Constraint means as they may be: half of their range above what was seen at first, and soon no more.

    No certificate rests on them, and the gate asks each trial. As bad as can be, which is what is said of
    pairs never seen, would keep the design where the baseline is; means of a few samples chase luck.
    """
    each = zip(problem.rails, means, strict=True)
    return np.array([hope(mean, counts, rail.promise.floor, rail.promise.ceiling) for rail, mean in each])
