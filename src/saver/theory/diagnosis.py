"""What the paper's theory and the exact design say about a problem, before any episode is run."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from saver._types import Floats
from saver.collect.stopping import Precise
from saver.design.exact import ExactDesign, exact_pair
from saver.design.limits import check_variance
from saver.errors import Infeasible
from saver.problem import checks, weights
from saver.problem.small import light
from saver.problem.statement import Problem
from saver.problem.world import Scenario
from saver.theory.believed import believed_scenario, known_twin
from saver.theory.bounds import SMALLEST_DEVIATION, Bounds, bounds, sizes_of
from saver.theory.delivery import AT_ONCE, Delivery
from saver.theory.hardness import Hardness, hardness
from saver.theory.nodewise import Nodewise, Number, Undefined, closed_design, nodewise, per_state
from saver.theory.prediction import Forecast, Way
from saver.theory.tractability import Tractability, tractability
from saver.theory.verdict import Verdict, costs_of, judge, remarks, reported, stops, toll, unattainable


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """One scenario at one budget. `report()` is for people, `to_dict()` for programs.

    Attributes:
        scenario: its name.
        episodes: K; `samples` is n = K L.
        stderr: the standard error that `Way.episodes` is for: the one asked for, or else what the exact safe
            design reaches at this budget.
        spread: M(s), [S] on a tree, B_t(s) of Algorithm 2, [L, S], on a graph; NaN where nothing can be.
        spread_total: M, their sum.
        spread_root: M(s_1)^2, on trees the smallest limit of all.
        unconstrained: the limit of the exact design without safety, with its `unconstrained_gap`.
        price: the safe limit over the unconstrained one; `gap` is how far the safe limit may be from optimal.
        costs: which guardrail costs what: by how many per cent one per cent more of what may be given up
            lowers the safe limit, by name.
        feedback: what will come back of the trials.
        ways: what each way of collecting will cost, by name.
        at_once: the same if everything came back at once.
        notes: what is odd about this problem.
    """

    scenario: str
    episodes: int
    samples: int
    stderr: Number
    spread: Floats
    spread_total: float
    spread_root: float
    tractability: Tractability
    hardness: Hardness
    bounds: Bounds
    unconstrained: float
    unconstrained_gap: float
    price: Number
    gap: Number
    costs: dict[str, float]
    feedback: Delivery
    ways: dict[str, Way]
    at_once: dict[str, Way]
    verdict: Verdict
    notes: tuple[str, ...]

    def report(self, width: int = 110) -> str:
        """Everything, in words and numbers, in lines of at most `width` characters where words allow it."""
        from saver.theory.prose import report

        return report(self, min(width, 110))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON: None for what is not finite, {"not defined, because": ...} for others."""
        plain: dict[str, Any] = _plain(self)
        return plain


@light
def diagnose(
    scenario: Scenario | Problem,
    episodes: int | None = None,
    *,
    stderr: float | None = None,
    seconds: float = 20.0,
    losses: float = 0.0,
    out: int = 1,
    declared: str = "hostile",
    order: str = "any",
    ran: bool = False,
    until: Precise | None = None,
) -> Diagnosis:
    """Diagnose `scenario` with `episodes` (its default) before it is run, from the truth of its world.

    A problem with history (`Problem(history=...)`) can stand in its place: its world is then what was logged.

    `stderr` is a standard error that is wanted; the exact design stops after about `seconds` and says how far
    it got.

    Of a share `losses` of the trials nothing will ever be told, and `out` trials will be out at once, told in
    the order of asking. `declared` and `order` are what the campaign will be told of both, as `losses` and
    `order` of `Campaign`; `ran` says that lost trials will be abandoned with `ran=True`. `Way.at_budget`,
    `certificate` and `episodes` hold what that costs, `limit` and `baseline_share` do not.

    `until` is what the campaign will stop by; the verdict says when, and warns of what is out of reach.
    """
    assumed: tuple[str, ...] = ()
    stated = scenario if isinstance(scenario, Problem) else _problem(scenario)
    promised = stated.reward is not None
    known = promised, 0 if stated.history is None else stated.history.episodes
    if isinstance(scenario, Problem):
        scenario, assumed = believed_scenario(scenario)
    if not scenario.problem.mdp.known:
        scenario, assumed = known_twin(scenario)
    K = checks.whole("episodes", scenario.episodes if episodes is None else episodes, 1)
    if stderr is not None:
        stderr = checks.between("stderr", stderr, 0.0, math.inf, closed=(False, False))
    seconds = checks.between("seconds", seconds, 0.0, math.inf, closed=(True, False))
    if until is not None:
        checks.kind("until", until, Precise)
    feedback = Delivery.checked(losses, out, declared, order, ran)
    problem, world = scenario.problem, scenario.world
    n = K * problem.mdp.horizon
    variance = np.array(check_variance(problem.mdp, world.reward.variance))
    mean, rail = scenario.means[0], scenario.rails[0]
    closed = closed_design(problem, variance)
    at, design = nodewise(problem, closed), closed.policy
    root = float(np.sum(problem.mdp.start[at.state] * at.spread**2 * (at.step == 0)))
    forecast = Forecast(scenario, K, feedback, *known)
    free, safe = _exact(scenario, variance, seconds)
    ways, wanted = _ways(forecast, problem, design, free, safe, stderr)
    at_once = ways
    if not feedback.complete:
        goal = None if isinstance(wanted, Undefined) else wanted
        at_once, _ = _ways(Forecast(scenario, K, AT_ONCE, *known), problem, design, free, safe, goal)
    earned = float(np.sum(weights(problem.mdp, design) * mean))
    hard = hardness(problem, rail, variance, mean, at, earned)
    eta = max(float(np.abs(table[at.state][at.allowed]).max()) for table in (world.reward.mean, mean))
    terms = tractability(problem, rail, mean, at, n)
    found = bounds(problem, at, hard, sizes_of(problem, at, n, root, eta), _presumed(at, variance, terms))
    if isinstance(safe, Undefined):
        verdict = unattainable(safe)
    else:
        verdict = judge(scenario, K, stderr, ways, (free, safe), forecast.cost, feedback)
        verdict = replace(verdict, feedback=toll(ways, at_once, feedback), interval=reported(ways))
        if until is not None:
            verdict = replace(verdict, until=stops(ways, K, until, promised))
    return Diagnosis(
        scenario=scenario.name,
        episodes=K,
        samples=n,
        stderr=wanted,
        spread=per_state(problem, at, at.spread),
        spread_total=float(at.spread.sum()),
        spread_root=root,
        tractability=terms,
        hardness=hard,
        bounds=found,
        unconstrained=free.limit,
        unconstrained_gap=free.gap,
        price=safe if isinstance(safe, Undefined) else safe.price,
        gap=safe if isinstance(safe, Undefined) else safe.gap,
        costs={} if isinstance(safe, Undefined) else costs_of(scenario, safe),
        feedback=feedback,
        ways=ways,
        at_once=at_once,
        verdict=verdict,
        notes=assumed or remarks(scenario),
    )


def _problem(scenario: Scenario) -> Problem:
    checks.kind("scenario", scenario, Scenario)
    return scenario.problem


def _exact(
    scenario: Scenario, variance: Floats, seconds: float
) -> tuple[ExactDesign, ExactDesign | Undefined]:
    """The unconstrained and the safe optimum, if there is one."""
    problem = scenario.problem
    try:
        return exact_pair(problem, variance, scenario.constraint_mean, seconds=seconds)
    except Infeasible as cause:
        return exact_pair(problem, variance, seconds=seconds)[0], Undefined(str(cause))


def _ways(
    forecast: Forecast,
    problem: Problem,
    design: Floats,
    free: ExactDesign,
    safe: ExactDesign | Undefined,
    stderr: float | None,
) -> tuple[dict[str, Way], Number]:
    """The ways, and the standard error that their episodes are for."""
    wanted: Number = stderr if stderr is not None else Undefined("there is no safe design to take it from")
    if stderr is None and not isinstance(safe, Undefined):
        error = forecast.way(safe.policy, None, safe=True, earns=True).at_budget
        wanted = error if isinstance(error, Undefined) else math.sqrt(error / forecast.episodes)
    goal = None if isinstance(wanted, Undefined) or wanted == 0.0 else wanted
    ways = {
        "on-policy": forecast.way(problem.question.reference, goal, safe=False, drawn=True),
        "unconstrained": forecast.way(free.policy, goal, safe=False),
    }
    if not isinstance(safe, Undefined):
        ways["safe-on-policy"] = forecast.way(problem.question.reference, goal, safe=True, drawn=True)
        ways["paper"] = forecast.way(design, goal, safe=True, explores=True)
        ways["exact"] = forecast.way(safe.policy, goal, safe=True, earns=True)
    return ways, wanted


def _presumed(at: Nodewise, variance: Floats, terms: Tractability) -> dict[str, bool]:
    """What Theorem 1 presumes."""
    even = at.allowed / at.allowed.sum(axis=1, keepdims=True)
    deviations = np.sqrt(variance[at.state][at.allowed])
    return {
        "the target takes every action alike": bool(np.allclose(at.target, even, atol=1e-9)),
        "every deviation is at least 1/16": bool(deviations.min() >= SMALLEST_DEVIATION),
        "the problem is tractable, as printed": terms.printed.holds is True,
    }


def _plain(value: Any) -> Any:
    """Plain data, by what it is."""
    if isinstance(value, Undefined):
        return {"not defined, because": value.because}
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
