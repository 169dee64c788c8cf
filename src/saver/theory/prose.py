"""A diagnosis in words."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from saver.theory.bounds import Bound
from saver.theory.nodewise import Number, Undefined
from saver.theory.tractability import Condition

if TYPE_CHECKING:
    from saver.theory.diagnosis import Diagnosis

STATES = 20  # shown one by one up to this number
WAYS = ("K * MSE", "at budget", "interval", "anytime", "baseline", "certificate", "episodes", "safe")
SIZES = (10, 11, 10, 9, 10, 13, 12)


def report(d: Diagnosis, width: int) -> str:
    """The whole report."""
    lines = [
        f"{d.scenario}: {d.episodes} episodes, n = {d.samples} samples",
        "",
        f"{d.verdict.word.upper()}: {d.verdict.because}.",
        *[f"  {text}" for text in (d.verdict.feedback, d.verdict.interval, d.verdict.until) if text],
        *[f"  change {remedy}" for remedy in d.verdict.remedies],
        *[f"  note: {note}" for note in d.notes],
        "",
        *_ways(d, width),
        "",
        *_theory(d),
    ]
    return "\n".join(_wrapped(line, width) for line in lines) + "\n"


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = "    " + " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _ways(d: Diagnosis, width: int) -> list[str]:
    cells = {
        name: (
            _cell(way.limit), _cell(way.at_budget), f"{way.half_width:.3g}", f"{way.anytime_half_width:.3g}",
            f"{way.baseline_share:.1%}", f"{way.certificate:,}", _whole(way.episodes),
            "yes" if way.safe else "no",
        )
        for name, way in d.ways.items()
    }  # fmt: skip
    rows = ["way".ljust(16) + "".join(map(str.rjust, WAYS[:-1], SIZES)) + f"  {WAYS[-1]}"]
    rows += [
        name.ljust(16) + "".join(map(str.rjust, c[:-1], SIZES)) + f"  {c[-1]}" for name, c in cells.items()
    ]
    if max(map(len, rows)) > width:
        rows = [
            f"{name}: {', '.join(f'{what} {cell}' for what, cell in zip(WAYS, c, strict=True))}"
            for name, c in cells.items()
        ]
    missing = {
        f"  {name}: {number}"
        for name, way in d.ways.items()
        for number in (way.limit, way.at_budget, way.episodes)
        if isinstance(number, Undefined)
    }
    goal = "" if isinstance(d.stderr, Undefined) else f"; episodes for a standard error of {d.stderr:.4g}"
    return [
        f"Predicted in the long run and at this budget{goal}:",
        *rows,
        *sorted(missing),
        *[
            f"  {name}: in {1.0 - way.bounded:.0%} of campaigns there is no bounded interval"
            for name, way in d.ways.items()
            if way.bounded < 1.0
        ],
        _line("price of safety", d.price),
        *_costs(d),
        _line("relative gap of the safe limit", d.gap) + f", of the other {d.unconstrained_gap:.2g}",
        "(paper: b_* and baseline episodes in turn; exact: the optimal safe design; interval, anytime:",
        " half the length at level .95 at this budget, at one time and at all times; baseline: the share of",
        " baseline episodes in the long run; certificate: how many more the certified ledger needs here)",
        *([] if d.feedback.complete else _at_once(d)),
    ]


def _costs(d: Diagnosis) -> list[str]:
    """Which of several guardrails costs what."""
    if len(d.costs) < 2:
        return []
    by = sorted(d.costs.items(), key=lambda item: -item[1])
    said = ", ".join(f"{name} {cost:.2g} %" if cost > 0.0 else f"{name} nothing" for name, cost in by)
    return [f"  one per cent more of what may be given up lowers the safe limit by: {said}"]


def _at_once(d: Diagnosis) -> list[str]:
    """What lost and late feedback costs each way."""
    rows = [f"At this budget if everything came back at once, and with {d.feedback}:"]
    for name, way in d.ways.items():
        before = d.at_once[name]
        rows.append(
            f"  {name}: K * MSE {_cell(before.at_budget)} and {_cell(way.at_budget)}, "
            f"certificate {before.certificate:,} and {way.certificate:,}"
        )
    return rows


def _theory(d: Diagnosis) -> list[str]:
    t, h, b = d.tractability, d.hardness, d.bounds
    tree = d.spread.ndim == 1
    return [
        "The paper's theory (constants of O and Omega are hidden: such terms are shown with 1):",
        f"  M(s1)^2 = {d.spread_root:.4g}, M = {d.spread_total:.4g}{_states(d.spread, ', M(s) = ')}",
        f"  worst behaviour V_c(b-) = {t.worst_value:.4g}, r = {t.room:.4g}",
        _line("  C_sigma", t.c_sigma),
        _line("  x = C_sigma r / alpha", t.x),
        f"  tractable as printed, {t.printed.formula}: {_condition(t.printed)}",
        f"  tractable as derived, {t.derived.formula}: {_condition(t.derived)}",
        "  (both are about the worst behaviour; what safety costs is the price above)",
        f"  H*(1) = {h.one:.4g} with |D_0| (used in the bound), {h.one_signed:.4g} with its sign",
        _line("  H*(2) as in Theorem 2 (used in the bounds)", h.two),
        _line("  H*(2) as in its proof", h.two_proof) + _states(h.two_proof_per_state, "; by state "),
        "  Theorem 1, Omega of the regret (it does not scale with the rewards; only how it falls counts):",
        _line("    as a bandit", b.lower.bandit),
        _line("    as an MDP", b.lower.mdp),
        *[f"    presumes that {what}: {'yes' if so else 'no'}" for what, so in b.lower.presumes.items()],
        *_bound("Theorem 2, MSE of SaVeR", b.saver_mse),
        *_against_prediction(d),
        *_bound("Theorem 2, predicted violations of SaVeR", b.saver_violations),
        *_bound("Proposition 2, MSE of the oracle", b.oracle_mse),
        *_bound("Proposition 2, predicted violations of the oracle", b.oracle_violations),
        f"    Theorem 2 and Proposition 2 are for trees: {'yes' if tree else 'no, they prove nothing here'}",
        _line("    they are stated for n from", b.applies_from) + _applies(d),
        _line("  exploration n_x (Corollary 4), samples", b.exploration),
    ]


def _applies(d: Diagnosis) -> str:
    if isinstance(d.bounds.applies_from, Undefined) or d.samples >= d.bounds.applies_from:
        return ""
    return f": not for this budget, n = {d.samples}"


def _against_prediction(d: Diagnosis) -> list[str]:
    """How far the bound is from what is predicted."""
    bound, exact = d.bounds.saver_mse.total, d.ways.get("exact")
    error = exact.at_budget if exact else None
    if isinstance(bound, Undefined) or not isinstance(error, float) or error == 0.0:
        return []
    return [f"    that is {bound * d.episodes / error:.2g} times the error predicted for the exact design"]


def _bound(name: str, bound: Bound) -> list[str]:
    if isinstance(bound.total, Undefined):
        return [_line(f"  {name}", bound.total)]
    return [
        f"  {name}: {bound.total:.4g}",
        *[f"    {_cell(term.value)}  {term.formula}" for term in bound.terms],
    ]


def _condition(condition: Condition) -> str:
    if isinstance(condition.holds, Undefined):
        return str(condition.holds)
    answer = "yes" if condition.holds else "no"
    if isinstance(condition.samples, Undefined):
        return f"{answer}, {condition.samples.because}"
    return f"{answer}, n must be {condition.sense} {condition.samples:.4g}"


def _states(values: np.ndarray, lead: str) -> str:
    if values.size > STATES or values.size == 1:
        return ""
    return lead + " ".join("-" if np.isnan(value) else f"{value:.4g}" for value in values.ravel())


def _line(name: str, value: Number) -> str:
    return f"{name}: {value}" if isinstance(value, Undefined) else f"{name}: {value:.4g}"


def _cell(value: Number) -> str:
    return "-" if isinstance(value, Undefined) else f"{value:.4g}"


def _whole(value: Number) -> str:
    return "-" if isinstance(value, Undefined) else f"{value:,.0f}"
