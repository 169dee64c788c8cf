"""The exact safe design: milliseconds per solve at a relative gap of 1e-3, all in one run on one core.

`first` solves from nothing, `again` after variances moved by about 10 % and constraint means by 0.02, as
between two plans of a campaign (median of 20 such moves); `replan` is the same to a gap of 3 %, or until ten
iterations improve the limit by less than 0.5 %, or with 2.5e6 flow updates. cvxpy calls Clarabel with
tol_gap_rel = 1e-3: `fresh` builds the model each time, `parametrised` once. `Clarabel` is its own interface,
assembled sparse once, at its default tolerances; `true gap` is what its policy has by our bound; `1e-5` and
`1e-6` are first solves of ours to these gaps. `-` means not run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import cvxpy
import numpy as np
from conic import Conic
from tables import Table, median_seconds

from saver import Mdp, scenarios
from saver._types import Floats
from saver.design import Plan, Planner
from saver.problem import minimising, weights

GAP = 1e-3
REPLAN: dict[str, Any] = {"tolerance": 0.03, "settle": 0.005, "work": 2.5e6}
cp: Any = cvxpy  # its names are not all typed
MOVES = 20


class Modelled:
    """The same program in cvxpy, with w and the constraint means as parameters."""

    def __init__(self, mdp: Mdp, required: float) -> None:
        S, A, L = mdp.states, mdp.actions, mdp.horizon
        self.w, self.mean = cp.Parameter(S * A, nonneg=True), cp.Parameter(S * A)
        x = [cp.Variable(S * A, nonneg=True) for _ in range(L)]
        out = np.kron(np.eye(S), np.ones((1, A)))
        rules = [out @ x[0] == mdp.start]
        rules += [out @ x[t + 1] == mdp.flow.T @ x[t] for t in range(L - 1)]
        rules.append(sum(mdp.discount**t * (self.mean @ x[t]) for t in range(L)) >= required)
        reached = np.flatnonzero(np.repeat(mdp.reachable, A))
        visits: Any = sum(x)
        cost = cp.sum(cp.multiply(self.w[reached], cp.inv_pos(visits[reached])))
        self.program = cp.Problem(cp.Minimize(cost), rules)

    def solve(self, w: Floats, mean: Floats) -> float:
        self.w.value, self.mean.value = w.ravel(), mean.ravel()
        self.program.solve(solver=cp.CLARABEL, tol_gap_rel=GAP, tol_gap_abs=1e-12)
        return float(self.program.value)


def moved(w: Floats, mean: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    nearby = np.clip(mean + 0.02 * rng.normal(size=mean.shape), 0.0, 1.0)
    return w * np.exp(0.1 * rng.normal(size=w.shape)), nearby


def again(solve: Callable[[Floats, Floats], Any], w: Floats, mean: Floats) -> float:
    """Median milliseconds of a solve after a move."""
    rng, seconds = np.random.default_rng(0), []
    solve(w, mean)
    for _ in range(MOVES):
        following = moved(w, mean, rng)
        began = time.perf_counter()
        solve(*following)
        seconds.append(time.perf_counter() - began)
    return 1e3 * statistics.median(seconds)


def compared(name: str, mdp: Mdp, w: Floats, mean: Floats, required: float) -> list[Any]:
    planner, conic, model = Planner(mdp), Conic(Planner(mdp).nodes), Modelled(mdp, required)

    def first(tolerance: float = GAP) -> None:
        Planner(mdp).solve(w, mean, required, tolerance=tolerance)

    def fresh(w: Floats, mean: Floats) -> None:
        Modelled(mdp, required).solve(w, mean)

    def direct(w: Floats, mean: Floats) -> None:
        conic.solve(w / w.max(), mean, required)

    ours, replan = ours_again(mdp, w, mean, required)
    built = again(fresh, w, mean)
    return [
        name,
        len(planner.nodes.state) * mdp.actions,
        1e3 * median_seconds(first),
        ours,
        replan,
        built,
        again(model.solve, w, mean),
        built / ours,
        1e3 * median_seconds(lambda: first(1e-5)),
        1e3 * median_seconds(lambda: first(1e-6)),
        again(direct, w, mean),
        true_gap(planner, conic, w, mean, required),
    ]


def ours_again(mdp: Mdp, w: Floats, mean: Floats, required: float) -> tuple[float, float]:
    """Median milliseconds of our solves after a move: to the gap, and of a replan."""
    proving, replanning = Planner(mdp), Planner(mdp)
    return (
        again(lambda w, mean: proving.solve(w, mean, required, tolerance=GAP), w, mean),
        again(lambda w, mean: replanning.solve(w, mean, required, **REPLAN), w, mean),
    )


def true_gap(planner: Planner, conic: Conic, w: Floats, mean: Floats, required: float) -> float:
    """The gap that our bound gives for the policy that Clarabel returns, made feasible by mixing."""
    found = conic.solve(w / w.max(), mean, required)
    if found is None:
        return float("inf")
    asked = planner._asked(w, mean, required)
    multipliers = np.array([found[1] * w.max()])
    given = Plan(found[0], 0.0, planner.bound(found[0], asked, multipliers), multipliers)
    return planner._feasible(planner.walk.steps, asked, given).gap


def graph(states: int, actions: int = 4, horizon: int = 20, successors: int = 5) -> tuple[Any, ...]:
    """A random graph with `successors` next states for each pair, and a bound at 90 % of the best value."""
    rng = np.random.default_rng(0)
    edges = []
    for s in range(states):
        for a in range(actions):
            chance = rng.dirichlet(np.ones(successors))
            edges += [
                (s, a, j, p) for j, p in zip(rng.choice(states, successors, False), chance, strict=True)
            ]
    mdp = Mdp.from_edges(edges, states, actions, horizon, discount=0.95)
    target = rng.dirichlet(np.ones(actions), size=states)
    w = weights(mdp, target) ** 2 * rng.exponential(size=(states, actions))
    mean = rng.random((states, actions))
    return mdp, w, mean, -0.9 * minimising(mdp, -mean)[1]


def alone(states: int) -> list[Any]:
    mdp, w, mean, required = graph(states)
    flows = len(Planner(mdp).nodes.state) * mdp.actions
    first = 1e3 * median_seconds(lambda: Planner(mdp).solve(w, mean, required, tolerance=GAP), 3)
    return [f"graph of {states} states", flows, first, *ours_again(mdp, w, mean, required), *["-"] * 7]


def table() -> Table:
    rows = []
    for name in ("bandit", "tree", "gridworld"):
        asked = scenarios.SCENARIOS[name]()
        w = weights(asked.problem.mdp, asked.problem.target) ** 2 * asked.world.reward.variance
        mean = np.array(asked.world.constraint.mean)
        rows.append(compared(name, asked.problem.mdp, w, mean, asked.problem.required))
    rows.append(compared("graph of 30 states, 10 steps", *graph(30, horizon=10)))
    rows += [alone(200), alone(1000)]
    columns = ("model", "flows", "first", "again", "replan", "cvxpy fresh", "cvxpy parametrised",
               "fresh / again", "1e-5", "1e-6", "Clarabel", "Clarabel's true gap")  # fmt: skip
    return Table("exact", __doc__ or "", columns, rows)
