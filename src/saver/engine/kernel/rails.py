"""What the loop for several guardrails is told of them, and keeps: plain arrays, [guardrails, ...]."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats, Ints
from saver.collect import Setup
from saver.engine.kernel.laws import lay_law
from saver.problem.guardrail import Rail
from saver.problem.statement import Problem
from saver.problem.world import Scenario
from saver.safety.gates import ROUNDING
from saver.safety.noise import RATES, Rule
from saver.simulator import Truth

DESIGNED, BOX, SAFE = range(3)  # whose noise a `Rule` is about

# One guardrail, as compiled code reads it: `rails.fixed[i].floor`.
FIXED = np.dtype(
    [
        ("learned", "i8"),  # V0 is
        ("bounded", "i8"),  # observations are
        ("paths", "i8"),  # where episodes go, the baseline's included where V0 is learned, is left to chance
        ("crosses", "i8"),  # then noise and paths are also bounded together
        ("sign", "f8"),
        ("r0", "f8"),
        ("r1", "f8"),
        ("c0", "f8"),
        ("c1", "f8"),
        ("unit", "f8"),  # of rounding
        ("tolerance", "f8"),  # of the gate
        ("low", "f8"),  # of V0, as given
        ("high", "f8"),
        ("floor", "f8"),
        ("ceiling", "f8"),
        ("least", "f8"),  # outside of these an observation is refused
        ("most", "f8"),
        ("proxy", "f8"),  # scale^2
        ("start", "f8"),  # of the boundary of noise and paths together
        ("scale", "f8"),
        ("level", "f8"),
        ("joint_level", "f8"),  # where V0 is learned: see `Learned`
        ("value_level", "f8"),
        ("rho", "f8"),
        ("safe_rho", "f8"),
        ("length", "f8"),  # of the longest episode
        ("first_proxy", "f8"),  # what stands for the last trial before there is one
        ("first_longest", "f8"),
        ("first_low", "f8"),
        ("true_value", "f8"),  # of the baseline
        ("true_required", "f8"),
        ("true_unit", "f8"),  # in which true budgets are compared
    ]
)

# What is kept of one guardrail between two episodes, and of the episode.
KEPT = np.dtype(
    [
        (name, "f8")
        for name in (
            "gained", "proxy", "length", "bound", "sum_x", "sum_v",  # of designed trials
            "last_proxy", "last_longest", "last_low",
            "count", "safe_gained", "safe_proxy", "safe_length",  # of baseline trials, where V0 is learned
            "value_low", "value_high",
            "earned", "worst",  # truly
            "worth", "value",  # of the candidate, and of what is played, truly
            "low", "centre", "spread",  # V(b; lower ends), V(b; m) and V(b; h^2)
            "total", "guess",  # of the episode: sum discount^t C, and sum discount^t m
        )
    ]
)  # fmt: skip


class Rails(NamedTuple):
    """What never changes."""

    certified: bool  # else the plug-in ledger is kept, behind no gate
    drawn: bool  # what a trial is worth is decided by its draws
    paths: bool  # some guardrail asks where designed trials were expected, and were
    history: int  # logged baseline episodes
    fixed: Any  # [m], records of FIXED
    order: Ints  # the guardrails as the world draws them
    kinds: Ints  # of the laws
    where: Floats  # [m, pairs]
    scale: Floats
    data: Floats
    means: Floats  # true, [m, pairs]
    known: Floats  # the same where the collector knows them, else no rows
    numbers: Floats  # [3, m, 5]: the numbers of each `Rule`
    rates: Floats  # [3, m, RATES]
    growth: Floats
    weights: Floats


class Guards(NamedTuple):
    """The guardrails of one run."""

    rails: Rails
    state: Any  # [m], records of KEPT
    cells: Floats  # the same memory, for clearing it
    mean: Floats  # of what the design learns from, [m, pairs]
    T: Floats  # of what the ledger learns from
    seen: Floats
    lower: Floats  # the box
    upper: Floats
    middle: Floats
    half: Floats
    likely: Floats  # what is believed of the means
    lower_table: Floats  # [m, S, A], the same memory
    likely_table: Floats
    expected: Floats  # discounted visits of designed trials, [pairs]
    realised: Floats
    safe_realised: Floats  # of baseline trials
    mixed: Floats  # room


class Shown(NamedTuple):
    """What is kept of each guardrail, [runs, m, C], and the worst, [runs, m]; or of one run."""

    budgets: Floats
    ledgers: Floats
    worst: Floats


def is_guarded(problem: Problem, history: int) -> bool:
    """Whether the loop for one guardrail against a known value is not enough."""
    first = problem.rails[0]
    return len(problem.rails) > 1 or not first.exact or first.sign < 0.0 or history > 0


def lay_rails(setup: Setup, scenario: Scenario, truth: Truth, history: int) -> Rails:
    """All guardrails."""
    problem, certified = setup.problem, setup.collector.certified
    rails, known = problem.rails, setup.knowledge.constraint_mean
    ledgers: list[Any] = list(setup.gated.values()) if certified else [None] * len(rails)
    fixed: Any = np.zeros(len(rails), dtype=FIXED).view(np.recarray)
    rules = []
    for i, (rail, used) in enumerate(zip(rails, ledgers, strict=True)):
        numbers = _stated(rail) | _true(rail, truth, i) | ({} if used is None else _argued(used))
        for name, number in numbers.items():
            fixed[i][name] = number
        blank = Rule.of(rail.promise, 0.5, 1.0, 1.0)
        own = (blank, blank) if used is None else (used.rule, used.box.numbers.rule)
        rules.append((*own, getattr(used, "safe_rule", blank)))
    each = list(zip(*rules, strict=True))  # [3][m]
    kinds, where, scale, data = _laws(scenario)
    names = [rail.name for rail in rails]
    laws = list(scenario.world.laws)
    return Rails(
        certified,
        certified and setup.stage.deterministic,
        bool(fixed.paths.any()),
        history,
        fixed,
        np.array([0] if len(laws) == 1 else [names.index(name) for name in laws]),
        kinds,
        where,
        scale,
        data,
        scenario.means.reshape(len(rails), -1).copy(),
        np.zeros((0, 0)) if known is None else problem.means(known).reshape(len(rails), -1),
        np.array([[[rule.bounded, *rule[1:5]] for rule in row] for row in each], dtype=np.float64),
        *(np.array([[_padded(rule[at]) for rule in row] for row in each]) for at in (5, 6, 7)),
    )


def _padded(values: Floats) -> Floats:
    """RATES numbers, also where there are none."""
    return values if len(values) else np.zeros(RATES)


def _stated(rail: Rail) -> dict[str, float]:
    """What the problem says of a guardrail."""
    promise = rail.promise
    (r0, r1), (c0, c1), (least, most) = rail.required_by, rail.credit_by, promise.bounds
    return {
        "learned": rail.learned,
        "sign": rail.sign,
        "r0": r0, "r1": r1, "c0": c0, "c1": c1,
        "unit": rail.unit,
        "tolerance": ROUNDING * rail.unit,
        "low": rail.low, "high": rail.high,
        "floor": promise.floor, "ceiling": promise.ceiling,
        "least": least, "most": most,
        "proxy": promise.scale**2,
    }  # fmt: skip


def _true(rail: Rail, truth: Truth, i: int) -> dict[str, float]:
    """What is so."""
    value = truth.baselines[i]
    return {
        "true_value": value,
        "true_required": truth.required[i],
        "true_unit": abs(rail.required_at(value)) or rail.unit or 1.0,
    }


def _argued(used: Any) -> dict[str, float]:
    """The numbers of a certified ledger."""
    proxy, longest, low = used.first
    found = {
        "bounded": used.bounded,
        "paths": not used.deterministic,
        "crosses": used.crosses,
        "start": used.start, "scale": used.scale, "level": used.levels.paths,
        "length": used.length,
        "first_proxy": proxy, "first_longest": longest, "first_low": low,
    }  # fmt: skip
    if used.rail.learned:
        rho, safe_rho = used.rho
        found |= {"joint_level": used.joint_level, "value_level": used.value_level}
        found |= {"rho": rho, "safe_rho": safe_rho}
    return found


def _laws(scenario: Scenario) -> tuple[Ints, Floats, Floats, Floats]:
    """Kinds, locations and scales of the constraints' laws, and the data of all."""
    laid, begin, wheres = [lay_law(law) for law in scenario.laws], 0, []
    for _, where, _, data in laid:
        wheres.append(where.ravel() + (begin if len(data) else 0.0))
        begin += len(data)
    return (
        np.array([kind for kind, *_ in laid]),
        np.array(wheres),
        np.array([scale.ravel() for _, _, scale, _ in laid]),
        np.concatenate([data for *_, data in laid]),
    )


def new_guards(rails: Rails, shape: tuple[int, int]) -> Guards:
    """Room for one run."""
    m, pairs = len(rails.fixed), math.prod(shape)
    cells = np.zeros(m * len(KEPT.names or ()))
    mean, T, seen, upper, middle, half = (np.zeros((m, pairs)) for _ in range(6))
    lower, likely = (np.zeros((m, *shape)) for _ in range(2))
    expected, realised, safe, mixed = (np.zeros(pairs) for _ in range(4))
    state = cells.view(KEPT).view(np.recarray)
    return Guards(
        rails, state, cells, mean, T, seen, lower.reshape(m, pairs), upper, middle, half,
        likely.reshape(m, pairs), lower, likely, expected, realised, safe, mixed,
    )  # fmt: skip
