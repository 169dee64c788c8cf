"""Repeated solves of one model: each takes over what the one before has found and proved."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.design.balance import Balance, balanced
from saver.design.closed import limit_of
from saver.design.plan import Plan, Warm, carry
from saver.design.posing import constraints, pose, spans
from saver.design.walk import Walk
from saver.errors import InvalidProblem
from saver.kernels.solve.columns import width
from saver.kernels.solve.descent import LARGEST_MULTIPLIER, descend
from saver.kernels.solve.interior import several
from saver.kernels.solve.mixing import MIX, begun, made_safe
from saver.kernels.solve.onestate import ROUNDING, one_state
from saver.kernels.solve.passes import prices as price
from saver.kernels.solve.search import (
    ENDLESS,
    GOING,
    HELD,
    LEAST,
    MULTIPLIER,
    PAUSE,
    SHORT_PAUSE,
    STALL,
    STALL_IN_PHASES,
    Posed,
    Rules,
    Unrolled,
    begin_search,
)
from saver.problem import checks
from saver.problem.checks import read_only
from saver.problem.mdp import Mdp

TOLERANCE = 1e-6  # of a design asked for by name; replanning needs less
LONGEST_PAUSE = 100  # iterations, where there is a clock
RARE = 1e-6  # the probability of an action that can as well be left out


class Planner:
    """Repeated solves in one model: its structure is kept, and `warm` goes from one solve to the next.

    A solve depends on its arguments and on `warm`, and on nothing else unless it is given `seconds`.
    """

    def __init__(self, mdp: Mdp) -> None:
        checks.model(mdp)
        self.mdp = mdp
        self.walk = Walk(mdp)
        self.nodes = self.walk.nodes
        self.warm: Warm | None = None

    def moved(self, mdp: Mdp) -> Planner | None:
        """One of a model whose moves are the same, and have other chances; None if they are not."""
        ours, theirs = self.mdp.flow, mdp.flow
        same = (
            self.mdp.available is mdp.available
            and (self.mdp.horizon, self.mdp.discount) == (mdp.horizon, mdp.discount)
            and np.array_equal(ours.indptr, theirs.indptr)
            and np.array_equal(ours.indices, theirs.indices)
            and np.array_equal(self.mdp.start > 0, mdp.start > 0)
        )
        if not same:
            return None
        made = copy.copy(self)
        vars(mdp).update(layers=self.mdp.layers, reachable=self.mdp.reachable)  # they follow from the moves
        made.mdp, made.walk, made.warm = mdp, self.walk.moved(mdp), None
        made.nodes = made.walk.nodes
        return made

    @property
    def last(self) -> Floats | None:
        """`warm` as one vector."""
        return None if self.warm is None else self.warm.flat()

    @last.setter
    def last(self, flat: ArrayLike | None) -> None:
        self.warm = None if flat is None else Warm.of(flat, self.mdp.states, self.mdp.actions)

    def solve(
        self,
        w: Floats,
        constraint_mean: ArrayLike | None = None,
        required: float | ArrayLike = 0.0,
        *,
        onward: ArrayLike | None = None,
        anchor: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        hint: Floats | None = None,
        tolerance: float = TOLERANCE,
        settle: float = 0.0,
        iterations: int = ENDLESS,
        work: float | None = None,
        seconds: float = math.inf,
    ) -> Plan:
        """Minimise sum w / N, with V_c >= required if there is a `constraint_mean`.

        `onward`, [S, A], adds sum onward / N^-, N^- the visits before step L - 1: the price of learning moves
        where the state after the last action is not told.

        Several guardrails are a `constraint_mean` [m, S, A] with `required` [m]. What is not safe is then
        mixed with `anchor`, a policy that is (the baseline, say), or with one that is found if there is none
        or it has no room; `names` of guardrails are for the message if they cannot be met together.

        Starts from `hint` ([S, A] or [L, S, A]), or else from `warm`. Stops at a relative gap of `tolerance`,
        after `iterations`, after about `seconds`, or when nothing improves any more. For replanning it also
        stops when the limit improved by less than a share of `settle` since the last look, ten iterations
        before, or at a quota of `work` in flow updates; with either it does ten iterations at least. A long
        horizon with more than 100,000 flows is cut into phases; only without a quota does the solve go on
        step by step where they are not enough.
        """
        asked = self._asked(w, constraint_mean, required, anchor, names, onward)
        tolerance = checks.between("tolerance", tolerance, 0.0, math.inf, closed=(False, False))
        settle = checks.between("settle", settle, 0.0, 1.0, closed=(True, True))
        iterations = checks.whole("iterations", iterations, 0)
        quota = math.inf
        if work is not None:
            quota = checks.between("work", work, 0.0, math.inf, closed=(True, False))
        if seconds != math.inf:
            seconds = checks.between("seconds", seconds, 0.0, math.inf, closed=(True, False))
        start = None if hint is None else checks.policy(self.mdp, hint, "hint")
        if not np.any(asked.w > 0):
            return self._nothing(asked, start)
        if self.only_state is not None:
            return self._closed(asked)
        least = LEAST if settle > 0 or work is not None else 0
        rules = Rules(tolerance, settle, iterations, least, quota, STALL, PAUSE)
        return self._search(asked, start, rules, time.monotonic() + seconds)

    @property
    def only_state(self) -> int | None:
        """The state of the only decision, where there is no more than one."""
        return int(self.nodes.state[0]) if len(self.nodes.state) == 1 else None

    def best_value(self, mean: Floats) -> float:
        """The largest constraint value that any behaviour has."""
        mean = checks.shaped("mean", mean, (self.mdp.states, self.mdp.actions))
        return self.walk.best(np.zeros(mean.size), np.array(mean), 1.0)

    def unroll(self, plan: Plan) -> tuple[Floats, Floats]:
        """The policy, uniform where no behaviour can be, and the occupancy, [L, S, A] each."""
        occupancy = np.zeros((self.mdp.horizon, self.mdp.states, self.mdp.actions))
        policy, at = np.empty(occupancy.shape), (self.nodes.step, self.nodes.state)
        policy[:] = self.mdp.uniform
        policy[at] = self.walk.by_node(plan.behaviour)
        occupancy[at] = self.walk.follow(plan.behaviour, np.zeros((1, *policy.shape[1:])))[0]
        return policy, occupancy

    def balance(self, means: ArrayLike, required: ArrayLike, scales: ArrayLike | None = None) -> Balance:
        """The largest that min_i (V_i - required_i) / scale_i can be, means [m, S, A], and its certificate.

        Where it is negative, no behaviour meets all guardrails. Scales are by default how far the behaviour
        can move each value.
        """
        table, needed = constraints(self.mdp, means, required, "means")
        if scales is None:
            return balanced(self.walk, table, needed, spans(self.walk, table, needed))
        units = np.array(checks.numbers("scales", scales, len(needed)))
        if len(bad := np.flatnonzero(units <= 0)):
            raise InvalidProblem(f"scales[{bad[0]}] is {units[bad[0]]:g}; it must be above 0")
        return balanced(self.walk, table, needed, units)

    def is_safe(self, plan: Plan, mean: ArrayLike, required: float | ArrayLike) -> bool:
        """Whether the plan earns what is required by each guardrail, up to rounding."""
        means, needed = constraints(self.mdp, mean, required, "mean")
        _, N, earned = self.walk.follow(plan.behaviour, means)
        sizes = np.array([float(np.sum(N[0] * np.abs(c))) for c in means])
        return bool(np.all(earned >= needed - ROUNDING * (np.abs(needed) + sizes)))

    def _asked(
        self,
        w: Floats,
        constraint_mean: ArrayLike | None,
        required: Any,
        anchor: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        onward: ArrayLike | None = None,
    ) -> Posed:
        means, needed = constraints(self.mdp, constraint_mean, required, "constraint_mean")
        return pose(self.walk, self.mdp, w, means, needed, anchor, names, onward)

    def _begin(self, model: Unrolled, asked: Posed, hint: Floats | None) -> Floats:
        """The starting point, with a little of everything: `warm`, or else a hint mixed until it is safe."""
        if self.warm is not None and hint is None:
            b, even = self.warm.behaviour, self.walk.even(model)
            if len(b) != len(even):
                b = self.walk.by_row(model, self.walk.follow(b, asked.means)[0], even)
            return (1 - MIX) * b + MIX * even
        policy = self.mdp.uniform if hint is None else hint
        policy = read_only(policy if policy.ndim == 3 else policy[None])
        return begun(self.nodes, model.row, model.row_state, policy, read_only(self.mdp.uniform), asked)

    def _nothing(self, asked: Posed, hint: Floats | None) -> Plan:
        """Nothing to learn: a safe behaviour."""
        b = self._begin(self.walk.steps, asked, hint)
        none = np.zeros(len(asked.required))
        plan = self._feasible(self.walk.steps, asked, Plan(b, 0.0, 0.0, none))
        self.warm = Warm(plan.behaviour, np.zeros(asked.w.shape), asked.means[0], none[:1])
        return plan

    def _closed(self, asked: Posed) -> Plan:
        """One decision: the closed form or a few Newton steps, certified by the prices of its solution."""
        allowed = self.mdp.available[self.only_state]
        b = np.zeros((1, self.mdp.actions))
        root, means = np.sqrt(asked.w[0, self.only_state, allowed]), asked.means[:, self.only_state, allowed]
        if len(means) == 1:
            b[0, allowed], multiplier = one_state(root, means[0], asked.required[0])
            multipliers = np.array([min(float(multiplier), LARGEST_MULTIPLIER)])
        else:
            b[0, allowed], multipliers = several(root, means, asked.required)
        bound = self.bound(b, asked, multipliers)
        plan = self._feasible(self.walk.steps, asked, Plan(b, 0.0, bound, multipliers))
        self.warm = Warm(plan.behaviour, np.zeros(asked.w.shape), asked.means[0], np.zeros(1))
        return plan

    def bound(self, b: Floats, asked: Posed, multipliers: Floats) -> float:
        """f^2 / D, the dual bound with the prices of b."""
        N, g = self.walk.follow(b, asked.means, asked.apart)[1], np.zeros(asked.w.size)
        price(asked.w.ravel(), N.ravel(), g)
        if len(multipliers) == 1:
            top = self.walk.best(g, asked.means[0], multipliers[0])
        else:
            top = self.walk.best(g, np.tensordot(multipliers, asked.means, 1), 1.0)
        slack = top - float(np.sum(multipliers * asked.required))
        return limit_of(asked.w, N) ** 2 / slack if slack > 0 else 0.0

    def _search(self, asked: Posed, hint: Floats | None, rules: Rules, deadline: float) -> Plan:
        """Descend; where that is not enough, on from phases to steps, and from cut penalties to true ones."""
        walk, quota, iterations = self.walk, rules.work, rules.iterations
        stages = [(walk.phases or walk.steps, asked)]
        if walk.phases is not None and quota == math.inf:
            stages.append((walk.steps, asked))
        if asked.steer is not asked.means:
            stages.append((stages[-1][0], asked.by_true_means()))
        work, done, plans = 0.0, 0, []
        for model, program in stages:
            soon = model is walk.phases and quota == math.inf
            left = rules.left(done, work, STALL_IN_PHASES if soon else STALL)
            plans.append(self._descend(model, program, hint, left, deadline))
            work, done, hint = work + plans[-1].work, done + plans[-1].iterations, None
            over = done >= iterations or work >= quota or time.monotonic() > deadline
            if over or rules.settle > 0 or plans[-1].gap <= rules.tolerance:
                break
        best, bound = min(plans, key=lambda plan: plan.limit), max(plan.bound for plan in plans)
        return dataclasses.replace(best, bound=bound, iterations=done, work=work)

    def _descend(
        self, model: Unrolled, asked: Posed, hint: Floats | None, rules: Rules, deadline: float
    ) -> Plan:
        """Solve by `descend`, in units in which the largest w is 1, and keep what the next solve needs."""
        b, unit, m = self._begin(model, asked, hint), float(asked.w.max()), len(asked.means)
        search = begin_search(model, b, asked, width(m) if m > 1 else 0)
        carry(self.walk, model, search, asked, self.warm, unit)
        pause = max(1, int(PAUSE / model.work))
        if deadline < math.inf:
            pause = min(max(1, int(SHORT_PAUSE / model.work)), LONGEST_PAUSE)
        while descend(model, search, asked, rules.pausing(pause)) == GOING:
            if time.monotonic() > deadline:
                break
        n, rails = search.numbers[0], search.rails
        certified = unit * n["bound"] / n["slack"] if n["bound"] > 0 else 0.0
        held = certified * rails[HELD]
        kept = search.kept.reshape(b.shape)
        if asked.steer is not asked.means:  # what has a huge penalty and is hardly taken is not taken
            penalised = np.any(asked.steer > asked.means, axis=0)[model.row_state]
            kept = np.where((kept < RARE) & penalised, 0.0, kept)
            kept /= kept.sum(axis=1, keepdims=True)
        found = Plan(
            kept, 0.0, float(unit * n["bound"]), held if certified else unit * rails[MULTIPLIER],
            iterations=int(n["iteration"]), work=float(n["work"]),
        )  # fmt: skip
        plan = self._feasible(model, asked, found)
        prices = certified * search.certificate.reshape(asked.w.shape)
        mean = asked.steer[0] if len(held) == 1 else np.tensordot(held, asked.steer, 1)
        self.warm = Warm(plan.behaviour, prices, mean, held)
        return plan

    def _feasible(self, model: Unrolled, asked: Posed, found: Plan) -> Plan:
        """The plan made safe, with its limit."""
        b, N, sizes = made_safe(self.nodes, model.row, found.behaviour, asked)
        limit = limit_of(asked.w, N)
        parts = zip(found.multipliers.tolist(), sizes.tolist(), strict=True)
        part = sum(ROUNDING * held * size for held, size in parts) / limit if limit > 0 else 0.0
        rounding = part / (1.0 - part) if part < 1.0 else math.inf
        return dataclasses.replace(found, behaviour=b, limit=limit, rounding=rounding)
