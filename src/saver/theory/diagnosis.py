"""What the paper's theory and the exact design say about a problem, before any episode is run."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from saver._types import Floats
from saver.collect import Precise
from saver.design.closed import check_variance
from saver.design.exact import ExactDesign, exact_pair
from saver.errors import Infeasible
from saver.problem import Problem, Scenario, checks
from saver.problem.statement import light
from saver.theory import hardness as paper
from saver.theory.believed import AT_ONCE, Delivery, believed_scenario, known_twin, remarks
from saver.theory.bounds import Bound, Bounds, bounds
from saver.theory.hardness import Condition, Number, Undefined
from saver.theory.outlook import Outlook
from saver.theory.prediction import Forecast, Way
from saver.theory.verdict import Verdict, costs_of, judge

UNCOUNTED = "Theory, which counts nothing that was logged:"
STATES = 20  # shown one by one up to this number
WAYS = ("K * MSE", "at budget", "interval", "anytime", "baseline", "certificate", "episodes", "safe")
SIZES = (10, 11, 10, 9, 10, 13, 12)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """One scenario at one budget. `report()` is for people, `to_dict()` for programs.

    Attributes:
        episodes: K; `samples` is n = K L.
        stderr: the standard error that `Way.episodes` is for: the one asked for, or else what the exact safe
            design reaches at this budget.
        spread: M(s), [S] on a tree, B_t(s) of Algorithm 2, [L, S], on a graph; NaN where nothing can be.
            `spread_total` is M, their sum; `spread_root` is M(s_1)^2, on trees the smallest limit of all.
        unconstrained: the limit of the exact design without safety, with its `unconstrained_gap`.
        price: the safe limit over the unconstrained one; `gap` is how far the safe limit may be from optimal.
        costs: which guardrail costs what: by how many per cent one per cent more of what may be given up
            lowers the safe limit, by name.
        feedback: what will come back of the trials.
        ways: what each way of collecting will cost, by name; `at_once` if everything came back at once.
        notes: what is odd about this problem.
        outlook: where the problem carries a log, what that says and what the campaign will add.
    """

    scenario: str
    episodes: int
    samples: int
    stderr: Number
    spread: Floats
    spread_total: float
    spread_root: float
    tractability: paper.Tractability
    hardness: paper.Hardness
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
    outlook: Outlook | None = None

    def report(self, width: int = 110, theory: bool | None = None) -> str:
        """Everything, in words and numbers, in lines of at most `width` characters where words allow it.

        Where the problem carries a log that is its outlook, in 15 lines; with theory=True the rest follows.
        """
        if self.outlook is not None and not theory:
            return self.outlook.report()
        if self.outlook is None:
            return self._theory(min(width, 110))
        return f"{self.outlook.report()}\n{UNCOUNTED}\n\n{self._theory(min(width, 110))}"

    def _theory(self, width: int) -> str:
        """What the paper and the exact design say."""
        fill = partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
        indented = ((line, " " * (4 + len(line) - len(line.lstrip()))) for line in _lines(self, width))
        return "".join(f"{fill(line, subsequent_indent=indent)}\n" for line, indent in indented)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON: None for what is not finite, {"not defined, because": ...} for others."""
        text = json.dumps(self, default=_plain)
        return json.loads(text, parse_constant=lambda _: None)


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
    made, notes, known = _foreseen(scenario)
    logged = isinstance(scenario, Problem) or scenario.problem.history is not None
    stated = scenario if isinstance(scenario, Problem) else scenario.problem
    K = checks.whole("episodes", made.episodes if episodes is None else episodes, 1)
    if stderr is not None:
        stderr = checks.between("stderr", stderr, 0.0, math.inf, closed=(False, False))
    seconds = checks.between("seconds", seconds, 0.0, math.inf, closed=(True, False))
    if until is not None:
        checks.kind("until", until, Precise)
    feedback = Delivery(losses, out, declared, order, ran)
    problem, mean, n = made.problem, made.means[0], K * made.problem.mdp.horizon
    variance = np.array(check_variance(problem.mdp, made.world.reward.variance))
    at, forecast = paper.nodewise(problem, variance), Forecast(made, K, feedback, *known)
    free, safe = _exact(made, variance, seconds)
    ways, wanted = forecast.ways(at.design.policy, free, safe, stderr)
    price, gap = (safe, safe) if isinstance(safe, Undefined) else (safe.price, safe.gap)
    if not stated.mdp.known:
        ways.pop("paper", None)  # its design needs to know where actions lead
    at_once = ways
    if not feedback.complete:
        goal = None if isinstance(wanted, Undefined) else wanted
        at_once, _ = Forecast(made, K, AT_ONCE, *known).ways(at.design.policy, free, safe, goal)
    terms = paper.tractability(made.rails[0], mean, at, n)
    hard = paper.hardness(made.rails[0], variance, mean, at)
    eta = max(float(np.abs(table[at.state][at.allowed]).max()) for table in (made.world.reward.mean, mean))
    return Diagnosis(
        scenario=made.name, episodes=K, samples=n, stderr=wanted, spread=at.table(at.spread),
        spread_total=float(at.spread.sum()), spread_root=at.root, tractability=terms, hardness=hard,
        bounds=bounds(at, hard, problem.delta, n, variance, eta, terms.printed.holds is True),
        unconstrained=free.limit, unconstrained_gap=free.gap, price=price, gap=gap,
        costs={} if isinstance(safe, Undefined) else costs_of(made.rails, safe), feedback=feedback,
        ways=ways, at_once=at_once, verdict=judge(forecast, ways, at_once, free, safe, stderr, until),
        notes=notes or remarks(made), outlook=Outlook.of(stated, K) if logged else None,
    )  # fmt: skip


def _foreseen(given: Scenario | Problem) -> tuple[Scenario, tuple[str, ...], tuple[bool, int]]:
    """A world with known transitions, notes on it, whether rewards are promised, how many episodes logged."""
    if isinstance(given, Problem):
        made, notes = believed_scenario(given)
    else:
        checks.kind("scenario", given, Scenario)
        made, notes = known_twin(given)
    stated = given if isinstance(given, Problem) else given.problem
    return made, notes, (stated.reward is not None, stated.history.episodes if stated.history else 0)


def _exact(
    scenario: Scenario, variance: Floats, seconds: float
) -> tuple[ExactDesign, ExactDesign | Undefined]:
    """The unconstrained and the safe optimum, if there is one."""
    problem = scenario.problem
    try:
        return exact_pair(problem, variance, scenario.constraint_mean, seconds=seconds)
    except Infeasible as cause:
        return exact_pair(problem, variance, seconds=seconds)[0], Undefined(str(cause))


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    if isinstance(value, Undefined):
        return {"not defined, because": value.because}
    return value.tolist() if isinstance(value, np.ndarray) else vars(value)


# -- in words --


def _lines(d: Diagnosis, width: int) -> Iterator[str]:
    """The whole report."""
    yield f"{d.scenario}: {d.episodes} episodes, n = {d.samples} samples"
    yield ""
    yield f"{d.verdict.word.upper()}: {d.verdict.because}."
    yield from (f"  {text}" for text in (d.verdict.feedback, d.verdict.interval, d.verdict.until) if text)
    yield from (f"  change {remedy}" for remedy in d.verdict.remedies)
    yield from (f"  note: {note}" for note in d.notes)
    yield ""
    goal = "" if isinstance(d.stderr, Undefined) else f"; episodes for a standard error of {d.stderr:.4g}"
    yield f"Predicted in the long run and at this budget{goal}:"
    yield from _ways(d, width)
    yield f"price of safety: {d.price:.4g}"
    if len(d.costs) > 1:
        by = sorted(d.costs.items(), key=lambda item: -item[1])
        said = ", ".join(f"{name} {cost:.2g} %" if cost > 0.0 else f"{name} nothing" for name, cost in by)
        yield f"  one per cent more of what may be given up lowers the safe limit by: {said}"
    yield f"relative gap of the safe limit: {d.gap:.4g}, of the other {d.unconstrained_gap:.2g}"
    yield "(paper: b_* and baseline episodes in turn; exact: the optimal safe design; interval, anytime:"
    yield " half the length at level .95 at this budget, at one time and at all times; baseline: the share of"
    yield " baseline episodes in the long run; certificate: how many more the certified ledger needs here)"
    if not d.feedback.complete:
        yield f"At this budget if everything came back at once, and with {d.feedback}:"
        for name, way in d.ways.items():
            errors = f"{_cell(d.at_once[name].at_budget)} and {_cell(way.at_budget)}"
            spent = f"{d.at_once[name].certificate:,} and {way.certificate:,}"
            yield f"  {name}: K * MSE {errors}, certificate {spent}"
    yield ""
    yield from _theory(d)


def _ways(d: Diagnosis, width: int) -> Iterator[str]:
    """A table, or where that is too wide a line for each way; and what is missing in it."""
    table = {"way": WAYS}
    for name, way in d.ways.items():
        table[name] = (
            _cell(way.limit), _cell(way.at_budget), f"{way.half_width:.3g}", f"{way.anytime_half_width:.3g}",
            f"{way.baseline_share:.1%}", f"{way.certificate:,}", _cell(way.episodes, ",.0f"),
            "yes" if way.safe else "no",
        )  # fmt: skip
    rows = [
        name.ljust(16) + "".join(map(str.rjust, cells[:-1], SIZES)) + f"  {cells[-1]}"
        for name, cells in table.items()
    ]
    if max(map(len, rows)) > width:
        rows = [f"{name}: {', '.join(map(' '.join, zip(WAYS, table[name], strict=True)))}" for name in d.ways]
    yield from rows
    numbers = ((name, x) for name, way in d.ways.items() for x in (way.limit, way.at_budget, way.episodes))
    yield from sorted({f"  {name}: {x}" for name, x in numbers if isinstance(x, Undefined)})
    for name, way in d.ways.items():
        if way.bounded < 1.0:
            yield f"  {name}: in {1.0 - way.bounded:.0%} of campaigns there is no bounded interval"


def _theory(d: Diagnosis) -> Iterator[str]:
    t, h, b = d.tractability, d.hardness, d.bounds
    yield "The paper's theory (constants of O and Omega are hidden: such terms are shown with 1):"
    yield f"  M(s1)^2 = {d.spread_root:.4g}, M = {d.spread_total:.4g}{_states(d.spread, ', M(s) = ')}"
    yield f"  worst behaviour V_c(b-) = {t.worst_value:.4g}, r = {t.room:.4g}"
    yield f"  C_sigma: {t.c_sigma:.4g}"
    yield f"  x = C_sigma r / alpha: {t.x:.4g}"
    yield f"  tractable as printed, {_condition(t.printed)}"
    yield f"  tractable as derived, {_condition(t.derived)}"
    yield "  (both are about the worst behaviour; what safety costs is the price above)"
    yield f"  H*(1) = {h.one:.4g} with |D_0| (used in the bound), {h.one_signed:.4g} with its sign"
    yield f"  H*(2) as in Theorem 2 (used in the bounds): {h.two:.4g}"
    yield f"  H*(2) as in its proof: {h.two_proof:.4g}{_states(h.two_proof_per_state, '; by state ')}"
    yield "  Theorem 1, Omega of the regret (it does not scale with the rewards; only how it falls counts):"
    yield f"    as a bandit: {b.lower.bandit:.4g}"
    yield f"    as an MDP: {b.lower.mdp:.4g}"
    for what, so in b.lower.presumes.items():
        yield f"    presumes that {what}: {'yes' if so else 'no'}"
    yield from _bound("Theorem 2, MSE of SaVeR", b.saver_mse)
    bound, exact = b.saver_mse.total, d.ways["exact"].at_budget if "exact" in d.ways else 0.0
    if isinstance(bound, float) and isinstance(exact, float) and exact > 0.0:
        yield f"    that is {bound * d.episodes / exact:.2g} times the error predicted for the exact design"
    yield from _bound("Theorem 2, predicted violations of SaVeR", b.saver_violations)
    yield from _bound("Proposition 2, MSE of the oracle", b.oracle_mse)
    yield from _bound("Proposition 2, predicted violations of the oracle", b.oracle_violations)
    proves = "yes" if d.spread.ndim == 1 else "no, they prove nothing here"
    yield f"    Theorem 2 and Proposition 2 are for trees: {proves}"
    early = isinstance(b.applies_from, float) and d.samples < b.applies_from
    note = f": not for this budget, n = {d.samples}" if early else ""
    yield f"    they are stated for n from: {b.applies_from:.4g}{note}"
    yield f"  exploration n_x (Corollary 4), samples: {b.exploration:.4g}"


def _bound(name: str, bound: Bound) -> Iterator[str]:
    yield f"  {name}: {bound.total:.4g}"
    if not isinstance(bound.total, Undefined):
        yield from (f"    {_cell(term.value)}  {term.formula}" for term in bound.terms)


def _condition(condition: Condition) -> str:
    holds, samples = condition.holds, condition.samples
    if isinstance(holds, Undefined):
        return f"{condition.formula}: {holds}"
    must = f"n must be {condition.sense} {samples:.4g}"
    why = samples.because if isinstance(samples, Undefined) else must
    return f"{condition.formula}: {'yes' if holds else 'no'}, {why}"


def _states(values: np.ndarray, lead: str) -> str:
    if values.size > STATES or values.size == 1:
        return ""
    return lead + " ".join("-" if np.isnan(value) else f"{value:.4g}" for value in values.ravel())


def _cell(value: Number, form: str = ".4g") -> str:
    return "-" if isinstance(value, Undefined) else f"{value:{form}}"
