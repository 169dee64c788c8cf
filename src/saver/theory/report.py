"""A diagnosis in words."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from saver.theory.bounds import Bound
from saver.theory.parts import Number, Undefined
from saver.theory.tractability import Condition

if TYPE_CHECKING:
    from saver.theory.diagnosis import Diagnosis

STATES = 20  # shown one by one up to this number
WIDE = 110


def report(d: Diagnosis) -> str:
    """The whole report."""
    lines = [
        f"{d.scenario}: {d.episodes} episodes, n = {d.samples} samples",
        "",
        f"{d.verdict.word.upper()}: {d.verdict.because}.",
        *[f"  change {remedy}" for remedy in d.verdict.remedies],
        *[f"  note: {note}" for note in d.notes],
        "",
        *_ways(d),
        "",
        *_theory(d),
    ]
    wrapped = [
        textwrap.fill(line, WIDE, subsequent_indent="    " + " " * (len(line) - len(line.lstrip())))
        if len(line) > WIDE
        else line
        for line in lines
    ]
    return "\n".join(wrapped) + "\n"


def _ways(d: Diagnosis) -> list[str]:
    rows = [
        f"{name:<16}{_short(way.limit):>10}{_short(way.at_budget):>11}{way.baseline_share:>10.1%}"
        f"{way.certificate:>13,.0f}{_whole(way.episodes):>12}  {'yes' if way.safe else 'no'}"
        for name, way in d.ways.items()
    ]
    return [
        f"Predicted in the long run and at this budget; episodes for a standard error of {_short(d.stderr)}:",
        "way".ljust(16) + "   K * MSE  at budget  baseline  certificate    episodes  safe",
        *rows,
        f"price of safety {_short(d.price)}; relative gap of the safe limit {_short(d.gap)}, of the "
        f"unconstrained one {_short(d.unconstrained_gap)}",
        "(paper: b_* and baseline episodes in turn; exact: the optimal safe design; baseline: the share of",
        " baseline episodes in the long run; certificate: how many more the certified ledger needs here)",
    ]


def _theory(d: Diagnosis) -> list[str]:
    t, h, b = d.tractability, d.hardness, d.bounds
    return [
        "The paper's theory (constants of O and Omega are hidden: such terms are shown with 1):",
        f"  M(s1)^2 = {d.spread_root:.4g}, M = {d.spread_total:.4g}{_states(d.spread, ', M(s) = ')}",
        f"  worst behaviour V_c(b-) = {t.worst_value:.4g}, r = {t.room:.4g}, C_sigma = {t.c_sigma:.4g}, "
        f"x = {t.x:.4g}",
        f"  tractable as printed, {t.printed.formula}: {_condition(t.printed)}",
        f"  tractable as derived, {t.derived.formula}: {_condition(t.derived)}",
        "  (both are about the worst behaviour; what safety costs is the price above)",
        f"  H*(1) = {h.one:.4g} with |D_0| (used in the bound), {h.one_signed:.4g} with its sign",
        f"  H*(2) = {_short(h.two)} as in Theorem 2 (used in the bounds)",
        f"  H*(2) = {_short(h.two_proof)} as in its proof{_states(h.two_proof_per_state, '; by state ')}",
        f"  Theorem 1, regret of a bandit, Omega: {_short(b.lower.bandit)}",
        f"  Theorem 1, regret of an MDP, Omega: {b.lower.mdp:.4g}",
        *[f"    presumes that {what}: {'yes' if so else 'no'}" for what, so in b.lower.presumes.items()],
        *_bound("Theorem 2, MSE of SaVeR", b.saver_mse),
        *_against_prediction(d),
        *_bound("Theorem 2, predicted violations of SaVeR", b.saver_violations),
        *_bound("Proposition 2, MSE of the oracle", b.oracle_mse),
        *_bound("Proposition 2, predicted violations of the oracle", b.oracle_violations),
        f"  Theorem 2 and Proposition 2 are stated for n >= {_short(b.applies_from)}",
        f"  exploration n_x (Corollary 4): {_short(b.exploration)} samples",
    ]


def _against_prediction(d: Diagnosis) -> list[str]:
    """How far the bound is from what is predicted."""
    bound, exact = d.bounds.saver_mse.total, d.ways.get("exact")
    error = exact.at_budget if exact else None
    if isinstance(bound, Undefined) or not isinstance(error, float) or error == 0.0:
        return []
    return [f"    that is {bound * d.episodes / error:.2g} times the error predicted for the exact design"]


def _bound(name: str, bound: Bound) -> list[str]:
    return [
        f"  {name}: {_short(bound.total)}",
        *[f"    {_short(term.value)}  {term.formula}" for term in bound.terms],
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


def _short(value: Number) -> str:
    return str(value) if isinstance(value, Undefined) else f"{value:.4g}"


def _whole(value: Number) -> str:
    return "-" if isinstance(value, Undefined) else f"{value:,.0f}"
