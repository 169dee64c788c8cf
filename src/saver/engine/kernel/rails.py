"""What the loop for several guardrails is told of them, and keeps: plain arrays, [guardrails, ...]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.collect import Setup
from saver.engine.kernel.drawing import lay_law
from saver.problem.guardrail import Rail
from saver.problem.statement import Problem
from saver.problem.world import Scenario
from saver.safety.bernstein import Bernstein
from saver.safety.gates import ROUNDING
from saver.safety.noise import RATES, Rule
from saver.safety.returns import Returns
from saver.simulator import Truth

NOISE, BOX, VALUE = range(3)  # what a `Rule` is for: designed trials, the box, V0
RULES = ("noise", "box", "value")
DESIGNED, DOWN, UP = range(3)  # whose logs: of designed trials, of baseline trials from below and from above

# Columns of `Guards.tables`, by pair: the laws; the true means; what the design is told of them, if it knows
# them; sample means for the design; samples, means and squares for the ledger; the box, or in the place of
# its middle m of `capital`; the means as believed.
WHERE, SCALE, TRUE, KNOWN, MEAN, COUNTED, SEEN, SQUARED, LOWER, UPPER, MIDDLE, HALF, LIKELY = range(13)
COLUMNS = 13
# Rows of `Guards.visits`, discounted: of designed trials, expected and made; made by the baseline; room.
EXPECTED, REALISED, SAFELY, ROOM = range(4)

# One guardrail, as compiled code reads it: `g.fixed[i].floor`.
FIXED = np.dtype(
    [
        ("draws", "i8"),  # which guardrail the world draws at this place
        ("law", "i8"),  # its kind
        ("learned", "i8"),  # V0 is
        ("bounded", "i8"),  # observations are
        ("paths", "i8"),  # where episodes go, the baseline's included where V0 is learned, is left to chance
        ("crosses", "i8"),  # then noise and paths are also bounded together
        ("bets", "i8"),  # by bets: see `capital`
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
        ("seen_level", "f8"),  # of V0, both sides
        ("rho", "f8"),
        ("safe_rho", "f8"),
        ("length", "f8"),  # of the longest episode
        ("range", "f8"),  # of a return, its least, and how many of its steps are alike: see `capital`
        ("bottom", "f8"),
        ("alike", "f8"),
        ("span", "f8"),  # of what an episode may be worth, where transitions are unknown
        ("first_proxy", "f8"),  # what stands for the last trial before there is one
        ("first_longest", "f8"),
        ("first_low", "f8"),
        *((f"{name}_{part}", "f8") for name in RULES for part in ("rho", "level")),
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
            "gained", "proxy", "tilt", "length", "bound", "sum_x", "sum_v",  # of designed trials
            "last_proxy", "last_longest", "last_low",
            "count", "safe_gained", "safe_proxy", "safe_tilt", "safe_length",  # of baseline trials,
            "safe_x", "value_low", "value_high",  # where V0 is learned
            "renews",  # the trial with which m is made anew
            "earned", "worst",  # truly
            "worth", "value",  # of the candidate, and of what is played, truly
            "low", "centre", "spread",  # V(b; lower ends), V(b; m) and V(b; h^2)
            "total", "guess",  # of the episode: sum discount^t C, and sum discount^t m
            "believed",  # what an episode that follows a plan will earn; NaN where nothing is
        )
    ]
)  # fmt: skip


class Guards(NamedTuple):
    """The guardrails of one run; those of all runs begin as copies of one."""

    certified: bool  # else the plug-in ledger is kept, behind no gate
    drawn: bool  # what a trial is worth is decided by its draws
    paths: bool  # some guardrail asks where designed trials were expected, and were
    knows: bool  # the collector knows the means
    history: int  # logged baseline episodes
    fixed: Any  # [m], records of FIXED
    state: Any  # [m], records of KEPT
    cells: Floats  # the same memory, for clearing it
    tables: Floats  # [m, COLUMNS, pairs]
    shaped: Floats  # the same memory as [m, COLUMNS, S, A]
    visits: Floats  # [4, pairs]
    bets: Floats  # [2, m, 2, any]: rates and weights of each `Capital`, of designed trials and of V0
    logs: Floats  # [3, m, any], of `Capital`
    rates: Floats  # [3, m, 3, RATES]: rates, growth (or costs) and weights of each `Rule` (or `Bernstein`)
    data: Floats  # of empirical laws

    def copy(self) -> Guards:
        """The same for another run."""
        cells, shaped, visits = (np.array(part) for part in (self.cells, self.shaped, self.visits))
        tables = shaped.reshape(self.tables.shape)
        state = cells.view(KEPT).view(np.recarray)
        logs = np.array(self.logs)
        return self._replace(cells=cells, state=state, shaped=shaped, tables=tables, visits=visits, logs=logs)


class Shown(NamedTuple):
    """What is kept of each guardrail, [runs, m, C], and the worst, [runs, m]; or of one run."""

    budgets: Floats
    ledgers: Floats
    worst: Floats


def is_guarded(problem: Problem, history: int) -> bool:
    """Whether the loop for one guardrail against a known value is not enough."""
    first = problem.rails[0]
    return len(problem.rails) > 1 or not first.exact or first.sign < 0.0 or history > 0


def lay_guards(setup: Setup, scenario: Scenario, truth: Truth, history: int) -> Guards:
    """All guardrails, before the first episode."""
    problem, certified = setup.problem, setup.collector.certified
    rails, known = problem.rails, setup.knowledge.constraint_mean
    shape, m = (problem.mdp.states, problem.mdp.actions), len(problem.rails)
    fixed: Any = np.zeros(m, dtype=FIXED).view(np.recarray)
    names, laws = [rail.name for rail in rails], list(scenario.world.laws)
    fixed.draws = [0] if m == 1 else [names.index(name) for name in laws]
    rates = np.zeros((3, m, 3, RATES))
    shaped, cells = np.zeros((m, COLUMNS, *shape)), np.zeros(m * len(KEPT.names or ()))
    data = _lay_laws(scenario, fixed, shaped)
    shaped[:, TRUE] = scenario.means
    if known is not None:
        shaped[:, KNOWN] = problem.means(known)
    ledgers: list[Any] = list(setup.gated.values()) if certified else []
    for i, rail in enumerate(rails):
        numbers = _stated(rail) | _true(rail, truth, i) | (_argued(ledgers[i]) if certified else {})
        for name, number in numbers.items():
            fixed[i][name] = number
        for at, rule in _rules(ledgers[i]) if certified else ():
            if isinstance(rule, Rule):
                fixed[i][f"{RULES[at]}_rho"], fixed[i][f"{RULES[at]}_level"] = rule.rho, rule.level
            if len(rule.rates):
                rates[at, i] = rule[-3:]
    bets = _bets(ledgers, m)
    return Guards(
        certified=certified,
        drawn=certified and setup.stage.deterministic,
        paths=bool(fixed.paths.any()),
        knows=known is not None,
        history=history,
        fixed=fixed,
        state=cells.view(KEPT).view(np.recarray),
        cells=cells,
        tables=shaped.reshape(m, COLUMNS, -1),
        shaped=shaped,
        visits=np.zeros((4, shape[0] * shape[1])),
        bets=bets,
        logs=np.zeros((3, m, bets.shape[-1])),
        rates=rates,
        data=data,
    )


def _rules(used: Any) -> list[tuple[int, Rule | Bernstein]]:
    """Of designed trials, of the box where there is one, and of V0 where it is learned."""
    found = [(NOISE, used.rule)]
    if not isinstance(used, Returns):
        found.append((BOX, used.box.numbers.rule))
    return [*found, (VALUE, used.safe_rule)] if used.rail.learned else found


def _bets(ledgers: Sequence[Any], m: int) -> Floats:
    """The rules of those that bet."""
    rules = [
        (i, [used.capital, getattr(used, "safe_capital", None)])
        for i, used in enumerate(ledgers)
        if used.bets
    ]
    found = np.zeros((2, m, 2, max((len(both[0].rates) for _, both in rules), default=0)))
    for i, both in rules:
        for at, rule in enumerate(both):
            if rule is not None:
                found[at, i] = rule
    return found


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
        "length": used.length,
        "first_proxy": proxy, "first_longest": longest, "first_low": low,
    }  # fmt: skip
    if used.bets:
        found |= {"bets": 1, "range": used.range, "bottom": used.bottom, "alike": used.alike}
    if isinstance(used, Returns):
        found["span"] = used.span
    else:
        found |= {"start": used.start, "scale": used.scale, "level": used.levels.paths}
    if used.rail.learned:
        rho, safe_rho = used.rho
        found |= {"joint_level": used.joint_level, "seen_level": used.value_level}
        found |= {"rho": rho, "safe_rho": safe_rho}
    return found


def _lay_laws(scenario: Scenario, fixed: Any, shaped: Floats) -> Floats:
    """Kinds, locations and scales of the laws; the data of all."""
    data: list[Floats] = []
    for i, law in enumerate(scenario.laws):
        kind, where, scale, own = lay_law(law)
        fixed[i].law, shaped[i, SCALE] = kind, scale
        shaped[i, WHERE] = where + (sum(map(len, data)) if len(own) else 0.0)
        data.append(own)
    return np.concatenate(data)
