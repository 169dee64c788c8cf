"""From what is believed to a design."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats, Ints
from saver.collect.collectors import Collector
from saver.collect.knowledge import Statistics
from saver.design import Planner, dag, is_tree, tree
from saver.design.closed import with_side_information, without_side_information
from saver.design.plan import Plan as Solved
from saver.errors import InvalidPolicy, InvalidProblem
from saver.kernels.believing import GAP, QUOTA, ROOM, SETTLED, attainable, need, one_row
from saver.problem import checks
from saver.problem.bellman import by_step, weights
from saver.problem.checks import read_only
from saver.problem.statement import Problem
from saver.safety.argument import paper_lower, paper_width

SMALLEST = 1e-9  # span of a value
NEEDS = {"closed-form": {"variance"}, "as-printed": {"variance"}, "exact": {"variance", "constraint_mean"}}


class Designed(NamedTuple):
    """A design, [S, A], or [L, S, A] where it depends on the step, and where the next solve may start."""

    policy: Floats
    warm: Any = None
    reach: Any = None  # the probability of each (step, state), [L, S], where the model is learned
    needed: Any = None  # what comes first, [S, A], likewise
    foresight: Any = None  # what is believed of the world, likewise
    price: Any = None  # what visits are worth, [S, A], likewise
    flow: Any = None  # and how many there are in an episode, [S, A]


class Designer:
    """Turns statistics into a design; keeps what does not change between plans."""

    def __init__(self, problem: Problem, collector: Collector, episodes: int) -> None:
        self.problem, self.collector, self.episodes = problem, collector, episodes
        self.paced = collector.design == "exact" and collector.promises  # told what the ledger can afford
        self.asked = problem.question
        self.needed = needed_pairs(self.asked.size, episodes)
        self.is_tree = is_tree(problem.mdp)
        self.planner = Planner(problem.mdp) if collector.design == "exact" else None
        self.only_state = self.planner.only_state if self.planner is not None else None
        self.allowed = problem.mdp.available.copy()
        self.safe = weights(problem.mdp, problem.baseline)
        if collector.design == "sepec":
            self._check_sepec()
        if collector.design == "as-printed" and self.asked.reference.ndim == 3 and not self.is_tree:
            raise InvalidPolicy(
                "what is asked depends on the step, which the printed design for graphs does not know; use a "
                "collector with design='closed-form'"
            )

    @cached_property
    def fixed(self) -> bool:
        """Whether the design never changes."""
        design, piloted = self.collector.design, self.collector.side_information == "pilot"
        if callable(design) or self.paced or (design == "sepec" and piloted):
            return False
        return NEEDS.get(design, set()) <= set(self.collector.knows)

    @property
    def exact_on_graph(self) -> bool:
        """Whether the exact program is solved, for more than one decision."""
        return self.planner is not None and self.only_state is None

    def design(
        self, statistics: Statistics, variance: Floats, required: Floats, paced: Floats, warm: Any = None
    ) -> Designed:
        """The design for what is believed; `required` and `paced`, of each guardrail, and `warm`, where the
        last solve ended, if it is exact.
        """
        if callable(self.collector.design):
            return Designed(self._own(statistics))
        if self.collector.design == "exact":
            return self._exact(statistics, variance, required, paced, warm)
        return Designed(self._closed(statistics, variance))

    def _closed(self, statistics: Statistics, variance: Floats) -> Floats:
        problem, design = self.problem, self.collector.design
        if design in ("closed-form", "as-printed") and self.is_tree:
            return tree(problem.mdp, self.asked.reference, self.asked.factor * variance).policy
        if design in ("closed-form", "as-printed"):
            reference, costs = self.asked.reference, self.asked.factor * variance
            return dag(problem.mdp, reference, costs, time_indexed=design == "closed-form").policy
        if design == "sepec":
            return self._sepec(statistics, variance)
        named: dict[str, Floats] = {
            "uniform": problem.mdp.uniform,
            "target": self.asked.reference,
            "baseline": problem.baseline,
        }
        return named[str(design)]

    def _own(self, statistics: Statistics) -> Floats:
        """The user's design; a copy: the function may use its array again."""
        made, mdp = self.collector.design(statistics), self.problem.mdp  # type: ignore[operator]
        return np.array(checks.policy(mdp, made, "the policy that the design returned", mdp.known))

    def _exact(
        self, statistics: Statistics, variance: Floats, required: Floats, paced: Floats, warm: Any
    ) -> Designed:
        """The exact safe design for what is believed; as safe as can be where nothing reaches the bound."""
        assert self.planner is not None
        means, w = self.problem.means(statistics.constraint_mean), self.asked.size**2 * variance
        if (only := self.only_state) is not None:
            policy = self.problem.mdp.uniform.copy()
            here = np.array(means[:, only])
            several = len(here) > 1 or None
            policy[only] = one_row(w[only], here, self.allowed[only], required, paced, several)
            return Designed(policy)
        planner = copy.copy(self.planner)  # solves of several campaigns may run at once
        planner.last = warm
        hint = self.asked.reference if warm is None else None
        plan = safe_plan(planner, self.problem, w, means, (required, paced), lambda: self.safe, hint)
        return Designed(planner.unroll(plan)[0], planner.last)

    def _check_sepec(self) -> None:
        mdp = self.problem.mdp
        if mdp.states > 1 or len(mdp.layers) > 1:
            raise InvalidProblem(
                f"sepec is for bandits, one state and one step; the model has {mdp.states} states and "
                f"{len(mdp.layers)} steps: use saver-opt"
            )
        if len(self.problem.rails) > 1 or not self.problem.rails[0].exact:
            raise InvalidProblem(
                "sepec is for one guardrail against a known baseline value; the problem has "
                f"{', '.join(rail.name for rail in self.problem.rails)}: use saver-opt"
            )
        floor = self.problem.rails[0].promise.floor
        if self.collector.side_information == "none" and floor < 0:
            raise InvalidProblem(
                f"floor is {floor:g}; sepec without side information is safe only where no constraint mean "
                "is below 0: use side_information='pilot'"
            )

    def _sepec(self, statistics: Statistics, variance: Floats) -> Floats:
        """SEPEC's behaviour, [1, A]; lower bounds stand for constraint means that a pilot has estimated."""
        problem, rail = self.problem, self.problem.rails[0]
        mean = problem.means(statistics.constraint_mean)[0]
        target, baseline = by_step(problem.mdp, problem.first)[0, 0], by_step(problem.mdp, problem.baseline)
        if self.collector.side_information == "none":
            share = rail.credit_at(rail.value) / rail.value
            return without_side_information(target, baseline[0, 0], share)[None]
        if self.collector.side_information == "pilot":
            width = paper_width(problem, self.episodes, statistics.counts)
            mean = paper_lower(rail.promise, width, statistics.counts, mean)
        moment, allowed = variance[0] + statistics.mean[0] ** 2, self.allowed[0]
        required = attainable(rail.required, rail.required, float(mean[0][allowed].max()))
        return with_side_information(target, moment, mean[0], required, allowed)[None]


def safe_plan(
    planner: Planner, problem: Problem, w: Floats, means: Floats, line: tuple[Floats, Floats],
    safe: Callable[[], Floats], hint: Floats | None, onward: Floats | None = None,
) -> Solved:  # fmt: skip
    """The exact design for what is required and paced, or as near to that as can be; `safe` are c_0."""
    tops = [planner.best_value(mean) for mean in means]
    wanted = [attainable(*each) for each in zip(*line, tops, strict=True)]
    more: dict[str, Any] = {} if onward is None else {"onward": onward}
    return planner.solve(
        w, means, _together(planner, means, wanted, safe), hint=hint,
        anchor=problem.baseline if len(means) > 1 else None,
        tolerance=GAP, settle=SETTLED, work=QUOTA, **more,
    )  # fmt: skip


def _together(planner: Planner, means: Floats, wanted: list[float], safe: Callable[[], Floats]) -> Floats:
    """What to ask of all guardrails at once: as wanted, or of each a little less than is attainable."""
    asked = np.array(wanted)
    if len(asked) == 1 or np.all(np.sum(safe() * means, axis=(1, 2)) > asked):
        return asked
    spans = [planner.best_value(mean) + planner.best_value(-mean) for mean in means]
    scales = np.maximum(spans, SMALLEST * np.maximum(np.abs(asked), 1.0))
    worst = planner.balance(means, asked, scales).worst
    return asked if worst >= ROOM else asked - (ROOM - worst) * scales


def needed_pairs(c: Floats, episodes: int) -> Ints:
    """From which half of a campaign on a pair must be seen, [S, A]: 1, 2, or UNNEEDED.

    From the first on all with weight but the lightest, which together cannot move the answer; from the second
    on those too, because no interval is bounded while a pair with weight is unseen.

    If rewards vary by sigma, the error of K episodes is about sigma sqrt(sum c / K), and pairs of total
    weight w that are never seen leave a bias of about sigma w. Left out are the lightest for which
    w^2 <= NEGLIGIBLE sum c / K.
    """
    needed = np.empty(c.shape, dtype=np.int64)
    need(read_only(c.ravel()), episodes, needed.ravel())
    return needed
