"""The exact design: one convex program over state-action flows, with or without the safety constraint.

    minimise sum c^2 variance / N,  N = sum_t x_t,  over flows x_t(s,a) >= 0 of the model,
    subject to sum_t discount^t x_t . constraint_mean >= (1 - alpha) baseline_value.

The paper says that no closed form exists for graphs and for the safe optimum. There is none, but no safe
behaviour has a smaller limit than the value of this program.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from saver.design import flows
from saver.design.closed import dag
from saver.design.flows import Nodes
from saver.design.onestate import one_state
from saver.design.parts import Design, check_variance, limit_of
from saver.errors import Infeasible, InvalidProblem
from saver.problem import checks
from saver.problem.bellman import by_step, weights
from saver.problem.checks import Floats, Ints
from saver.problem.mdp import Mdp
from saver.problem.statement import Problem

TOLERANCE = 1e-6  # of a design asked for by name; replanning needs less
CHUNKS = (10, 100)  # iterations between two looks at the clock, for large and for small models
LARGE = 5000  # flows
STALL = 20_000  # iterations without progress after which rounding is all that is left
SMALL_GAP = 1e-3  # up to which two limits can be called equal
ROUNDING = 4 * float(np.finfo(float).eps)
MIX = 1e-4  # of uniform play in a starting point


@dataclass(frozen=True, eq=False)
class ExactDesign:
    """The optimum of the program, certified by a dual feasible point.

    Attributes:
        policy: [L, S, A], a distribution in every state at every step.
        occupancy: x_t(s,a) of the policy, [L, S, A].
        limit: sum c^2 variance / N of this policy, in units of one episode.
        price: the limit over that of the unconstrained optimum; 1 exactly where the two cannot be told
            apart within their gaps, if these are at most 1e-3.
        gap: the limit is at most 1 + gap times the smallest possible one.
    """

    policy: Floats
    occupancy: Floats
    limit: float
    price: float
    gap: float


@dataclass(frozen=True, eq=False)
class Plan:
    """One solve: a behaviour at every node with its flow, the certificate and the multiplier of safety."""

    behaviour: Floats
    flow: Floats
    limit: float
    bound: float
    multiplier: float
    rounding: float = 0.0  # of the limit, from rounding in the constraint value

    @property
    def gap(self) -> float:
        """limit / bound - 1, and what rounding may hide."""
        if self.limit <= self.bound:
            return self.rounding
        return self.limit / self.bound - 1.0 + self.rounding if self.bound > 0 else math.inf


def exact(
    problem: Problem,
    variance: ArrayLike,
    constraint_mean: ArrayLike | None = None,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 60.0,
) -> ExactDesign:
    """The best behaviour for these variances; safe for these constraint means if they are given.

    Stops at a relative gap of `tolerance` or after about `seconds` of solving, whichever comes first; `gap`
    says what was reached. Raises `Infeasible` if no behaviour earns (1 - alpha) baseline_value.
    """
    return exact_pair(problem, variance, constraint_mean, tolerance=tolerance, seconds=seconds)[1]


def exact_pair(
    problem: Problem,
    variance: ArrayLike,
    constraint_mean: ArrayLike | None = None,
    *,
    tolerance: float = TOLERANCE,
    seconds: float = 60.0,
) -> tuple[ExactDesign, ExactDesign]:
    """The unconstrained optimum and the safe one, from one pair of solves: see `exact`."""
    began = time.monotonic()
    checks.kind("problem", problem, Problem)
    seconds = checks.between("seconds", seconds, 0.0, math.inf, closed=(True, False))
    mdp, planner = problem.mdp, Planner(problem.mdp)
    w = weights(mdp, problem.target) ** 2 * check_variance(mdp, variance)
    hint = dag(mdp, problem.target, variance, time_indexed=True).policy
    free = plan = planner.solve(w, hint=hint, tolerance=tolerance, seconds=seconds / 2)
    if constraint_mean is not None:
        mean = checks.shaped("constraint_mean", constraint_mean, (mdp.states, mdp.actions))
        if not planner.is_safe(free, mean, problem.required):
            left = max(0.0, seconds - (time.monotonic() - began))
            plan = planner.solve(w, mean, problem.required, tolerance=tolerance, seconds=left)
    price = max(1.0, plan.limit / free.limit) if free.limit > 0 else 1.0  # below 1 only if `free` was stopped
    equal = price <= (1.0 + plan.gap) * (1.0 + free.gap) * (1.0 + ROUNDING)
    if equal and max(plan.gap, free.gap) <= SMALL_GAP:
        price = 1.0
    first = ExactDesign(*planner.unroll(free), free.limit, 1.0, free.gap)
    return first, ExactDesign(*planner.unroll(plan), plan.limit, price, plan.gap)


def coverage(mdp: Mdp, *, tolerance: float = 1e-3, iterations: int = 20_000) -> Design:
    """The behaviour that minimises sum 1 / N over every reachable pair: it explores what uniform play misses.

    Its spread is the expected number of visits to each state, by which its flow is normalised. The effort is
    bounded by `iterations`, never by the clock: the same model gives the same policy.
    """
    planner = Planner(mdp)
    w = (mdp.available & mdp.reachable[:, None]).astype(float)
    policy, occupancy = planner.unroll(planner.solve(w, tolerance=tolerance, iterations=iterations))
    return Design(policy, occupancy.sum(axis=(0, 2)))


class Asked(NamedTuple):
    """One program: the objective, the constraint, and the safest behaviour with its visits and value."""

    w: Floats
    mean: Floats
    required: float
    safest: Floats
    safest_visits: Floats
    safest_value: float

    def in_units(self, weight: float, value: float) -> Asked:
        """The same with weights and constraint values in these units."""
        return self._replace(
            w=self.w / weight,
            mean=self.mean / value,
            required=self.required / value,
            safest_value=self.safest_value / value,
        )


class Planner:
    """Repeated solves in one model: structure and last solution are kept from one call to the next."""

    def __init__(self, mdp: Mdp) -> None:
        checks.model(mdp)
        self.mdp = mdp
        self.nodes = Nodes.of(mdp)
        self.last: Floats | None = None

    def solve(
        self,
        w: Floats,
        constraint_mean: ArrayLike | None = None,
        required: float = 0.0,
        *,
        hint: Floats | None = None,
        tolerance: float = TOLERANCE,
        iterations: int = 10**9,
        seconds: float = math.inf,
    ) -> Plan:
        """Minimise sum w / N, with V_c >= required if there is a `constraint_mean`.

        Starts from `hint` ([S, A] or [L, S, A]), or else from the last solution; stops at a relative gap of
        `tolerance`, after about `iterations` or `seconds`, or when nothing improves any more.
        """
        asked = self._asked(w, constraint_mean, required)
        tolerance = checks.between("tolerance", tolerance, 0.0, math.inf, closed=(False, False))
        iterations = checks.whole("iterations", iterations, 0)
        if seconds != math.inf:
            seconds = checks.between("seconds", seconds, 0.0, math.inf, closed=(True, False))
        start = self._begin(None if hint is None else checks.policy(self.mdp, hint, "hint"))
        if not np.any(asked.w > 0):
            plan = self._feasible(start, asked, 0.0, 0.0)
        elif self.only_state is not None:
            plan = self._closed(asked)
        else:
            plan = self._descend(asked, start, tolerance, iterations, seconds)
        self.last = plan.behaviour
        return plan

    @property
    def only_state(self) -> int | None:
        """The state of the only decision, where there is no more than one."""
        return int(self.nodes.state[0]) if len(self.nodes.state) == 1 else None

    def best_value(self, mean: Floats) -> float:
        """The largest constraint value that any behaviour has."""
        return self._extreme(np.array(checks.shaped("mean", mean, (self.mdp.states, self.mdp.actions))))[1]

    def unroll(self, plan: Plan) -> tuple[Floats, Floats]:
        """The policy, uniform where no behaviour can be, and the occupancy, [L, S, A] each."""
        policy = by_step(self.mdp, self.mdp.uniform).copy()
        occupancy = np.zeros(policy.shape)
        policy[self.nodes.step, self.nodes.state] = plan.behaviour
        occupancy[self.nodes.step, self.nodes.state] = plan.flow
        return policy, occupancy

    def is_safe(self, plan: Plan, mean: Floats, required: float) -> bool:
        """Whether the plan earns what is required."""
        shape = (self.mdp.states, self.mdp.actions)
        return self._follow(plan.behaviour, np.array(checks.shaped("mean", mean, shape)))[2] >= required

    def _asked(self, w: Floats, constraint_mean: ArrayLike | None, required: float) -> Asked:
        shape = (self.mdp.states, self.mdp.actions)
        w = np.array(checks.within("w", checks.shaped("w", w, shape), 0.0))  # writable copies: numba compiles
        if constraint_mean is None:  # anew for each kind of array
            mean, required = np.zeros(shape), -1.0
        else:
            mean = np.array(checks.shaped("constraint_mean", constraint_mean, shape))
            required = checks.number("required", required)
        if len(bad := np.argwhere((w > 0) & ~(self.mdp.available & self.mdp.reachable[:, None]))):
            s, a = bad[0]
            raise InvalidProblem(
                f"w[{s}, {a}] is {checks.show(w[s, a])}, but no behaviour can take "
                f"{self.mdp.action_label(a)} in {self.mdp.state_label(s)}; set it to 0"
            )
        choice, top = self._extreme(mean)
        if not top >= required - 1e-9 * abs(required):
            raise Infeasible(
                f"no behaviour reaches the required constraint value {required:g}: the best attainable is "
                f"{top:g}; raise alpha, or correct constraint_mean or baseline_value"
            )
        safest = np.zeros((len(choice), self.mdp.actions))
        safest[np.arange(len(choice)), choice] = 1.0
        return Asked(w, mean, min(required, top), safest, self._follow(safest, mean)[1], top)

    def _extreme(self, mean: Floats) -> tuple[Ints, float]:
        """The choice at each node that earns most, and what it earns."""
        choice = np.zeros(len(self.nodes.state), dtype=np.int64)
        return choice, float(flows.best(self.nodes, np.zeros(mean.shape), mean, 1.0, choice))

    def _begin(self, hint: Floats | None) -> Floats:
        """The starting point, with a little of everything."""
        even = self.mdp.uniform[self.nodes.state]
        b = even if self.last is None else self.last
        if hint is not None:
            b = by_step(self.mdp, hint)[self.nodes.step, self.nodes.state]
        return (1 - MIX) * b + MIX * even

    def _follow(self, b: Floats, mean: Floats) -> tuple[Floats, Floats, float]:
        """The flow, the visits and the constraint value of b."""
        mass, N = np.zeros(len(b)), np.zeros(mean.shape)
        earned = flows.forward(self.nodes, b, mean, mass, N)
        return mass[:, None] * b, N, float(earned)

    def _closed(self, asked: Asked) -> Plan:
        """One decision: the closed form."""
        s = self.only_state
        allowed = self.mdp.available[s]
        b = np.zeros((1, self.mdp.actions))
        root = np.sqrt(asked.w[s, allowed])
        b[0, allowed], multiplier = one_state(root, asked.mean[s, allowed], asked.required)
        return self._feasible(b, asked, self._bound(b, asked, multiplier), multiplier)

    def _descend(self, asked: Asked, b: Floats, tolerance: float, iterations: int, seconds: float) -> Plan:
        """Solve in units in which the largest w and the span of the constraint value are 1."""
        unit, span = asked.w.max(), asked.safest_value + self._extreme(-asked.mean)[1]
        length = span if span > 0 else 1.0
        scaled = asked.in_units(unit, length)
        numbers = np.zeros(flows.NUMBERS)
        numbers[flows.MOMENTUM] = numbers[flows.STEP] = 1.0
        if span > 0:
            N = self._follow(b, asked.mean)[1]
            numbers[flows.SCALE] = flows.objective(scaled.w, N, N, 0.0)
        search = flows.Search(b, b.copy(), b.copy(), numbers)
        deadline, done, best, best_at = time.monotonic() + seconds, 0, math.inf, 0
        while True:
            chunk = min(CHUNKS[b.size < LARGE], iterations - done)
            if flows.descend(self.nodes, search, scaled, tolerance, chunk):
                break
            done += chunk
            ratio = numbers[flows.LIMIT] / max(numbers[flows.BOUND], np.finfo(float).tiny)
            if ratio - 1 < 0.99 * best:
                best, best_at = ratio - 1, done
            if done >= iterations or done - best_at > STALL or time.monotonic() > deadline:
                break
        bound, multiplier = numbers[flows.BOUND] * unit, numbers[flows.MULTIPLIER] * unit / length
        return self._feasible(search.y, asked, float(bound), float(multiplier))

    def _feasible(self, b: Floats, asked: Asked, bound: float, multiplier: float) -> Plan:
        """The plan of b with just enough of the safest flow mixed in for the constraint to hold."""
        flow, N, earned = self._follow(b, asked.mean)
        if earned < asked.required:
            gain = asked.safest_value - earned
            share = min(1.0, (asked.required - earned) / gain) if gain > 0 else 1.0
            flow = (1 - share) * flow + share * self._follow(asked.safest, asked.mean)[0]
            N = (1 - share) * N + share * asked.safest_visits
            mass = flow.sum(axis=1, keepdims=True)
            b = np.where(mass > 0, flow / np.where(mass > 0, mass, 1.0), b)
        found = limit_of(asked.w, N)
        size = abs(asked.required) + float(np.sum(N * np.abs(asked.mean)))
        rounding = ROUNDING * multiplier * size / found if found > 0 else 0.0
        return Plan(b, flow, found, bound, multiplier, rounding)

    def _bound(self, b: Floats, asked: Asked, multiplier: float) -> float:
        """f^2 / D, the dual bound with the prices of b."""
        _, N, _ = self._follow(b, asked.mean)
        gain, choice = np.zeros(asked.w.shape), np.zeros(len(b), dtype=np.int64)
        flows.prices(asked.w, N, gain)
        top = float(flows.best(self.nodes, gain, asked.mean, multiplier, choice))
        slack = top - multiplier * asked.required
        return limit_of(asked.w, N) ** 2 / slack if slack > 0 else 0.0
