"""What the paper claims, what this package claims, and what was measured: computed from the tables alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from saver.collect import COLLECTORS
from saver.experiments.catalogue import EXPERIMENTS
from saver.experiments.folder import Results
from saver.experiments.tables import Row

HELD, FAILED, OPEN = "held", "did not hold", "cannot be told"
MATCH = 1.1  # an error up to this multiple of another matches it
NEAR, FAR = 0.1, 0.2  # shares of the allowance: a budget near 0, and a large one
SLOW, FAST = (-1.1, -0.9), (-1.65, -1.35)  # ranges around the exponents -1 and -3/2
EARLY = 20  # the episode from which the paper's Figure 1 has SaVeR on the oracle's curve
AT_MOST = f"at most {MATCH:g} times its MSE"
BOTH = ("saver", "saver-paper")  # the paper's SaVeR, with the certificate and as printed
LONG = ("bandit-long", "tree-long", "gridworld-long")


@dataclass(frozen=True)
class Claim:
    """One claim: `value` +- `error` should lie between `low` and `high`."""

    who: str
    claim: str
    measured: str
    value: float
    error: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether the number is inside of its range by two standard errors, outside by two, or neither."""
        if not math.isfinite(self.value) or not math.isfinite(self.error):
            return OPEN
        below, above = self.value - 2 * self.error, self.value + 2 * self.error
        if self.low <= below and above <= self.high:
            return HELD
        return FAILED if above < self.low or below > self.high else OPEN

    @property
    def row(self) -> Row:
        """With its verdict."""
        return {**vars(self), "verdict": self.verdict}


def claims(results: Results) -> list[Claim]:
    """All of them."""
    parts = (_orders, _matches, _safety, _budgets, _rates, _ours)
    return [claim for part in parts for claim in part(results)]


def _where(experiment: str, text: str) -> str:
    """What is said of one experiment."""
    asked = EXPERIMENTS[experiment]
    unit = "rounds" if asked.scenario in ("bandit", "movielens") else "episodes"
    return f"{asked.title}, {asked.episodes:,} {unit}: {text}"


def _ratio(results: Results, who: str, where: str, text: str, one: str, other: str, *ends: float) -> Claim:
    """Of the errors of two collectors at the end of an experiment."""
    found = results.ratio(where, one, other)
    return Claim(who, _where(where, text), f"MSE of `{one}` / `{other}`", *found, *ends)


def _lower(results: Results, who: str, where: str, one: str, other: str) -> Claim:
    return _ratio(results, who, where, f"`{one}` has a lower MSE than `{other}`", one, other, 0.0, 1.0)


def _orders(results: Results) -> Iterator[Claim]:
    """Figure 1: who has the lower error."""
    for where in ("bandit", "bandit-long", "movielens", "tree", "gridworld", "gridworld-long"):
        for one in BOTH:
            for other in ("safe-on-policy", "sepec"):
                if {one, other} <= results.curves[where].keys():
                    yield _lower(results, "paper", where, one, other)
    yield _lower(results, "paper", "gridworld", "safe-oracle", "safe-on-policy")


def _matches(results: Results) -> Iterator[Claim]:
    """Who has the oracle's error."""
    oracle = "safe-oracle"
    for where in ("tree", "tree-long", "gridworld", "gridworld-long"):
        for one in BOTH:
            if one in results.curves[where]:
                text = f"`{one}` matches `{oracle}` ({AT_MOST})"
                yield _ratio(results, "paper", where, text, one, oracle, 0.0, MATCH)
    for one in BOTH:
        a, b = results.curve("tree", one), results.curve("tree", oracle)
        k = a.column("episode")
        late = k >= EARLY
        ratios = (a.mse[0] / b.mse[0])[late]
        spread = ratios * np.hypot(a.mse[1] / a.mse[0], b.mse[1] / b.mse[0])[late]
        worst = int(np.argmax(ratios))
        text = f"Tree: `{one}` is on the curve of `{oracle}` from episode {EARLY} on ({AT_MOST})"
        measured = f"largest ratio of MSEs, at {k[late][worst]:.0f}"
        yield Claim("paper", text, measured, float(ratios[worst]), float(spread[worst]), 0.0, MATCH)


def _safety(results: Results) -> Iterator[Claim]:
    """Figure 2: the constraint. A share of runs p has standard error sqrt(p (1 - p) / runs)."""
    for who, name, promises in (
        ("paper", "`saver-paper` respects", False),
        ("here", "the collectors behind the certificate respect", True),
    ):
        cells = [
            (curve, f"(`{collector}` in {experiment})")
            for experiment, curves in results.curves.items()
            for collector, curve in curves.items()
            if COLLECTORS[collector].promises == promises
        ]
        curve, at = max(cells, key=lambda cell: cell[0].end("violation_rate"))
        p, runs, delta = (curve.end(column) for column in ("violation_rate", "runs", "delta"))
        error = math.sqrt(max(p * (1 - p), 1.0 / runs) / runs)
        text = f"{name} the constraint at every episode, but for delta = {delta:g}"
        measured = f"largest share of campaigns ever below 0, of {len(cells)} cells {at}"
        yield Claim(who, text, measured, p, error, 0.0, delta)


def _budgets(results: Results) -> Iterator[Claim]:
    """What is left at the end of the allowance k alpha V_c(pi_0), which all baseline episodes would leave."""
    measured = "true budget / (K alpha V_c of the baseline)"
    for where in ("bandit", "movielens", "gridworld"):
        for one in (*BOTH, "safe-oracle", "safe-on-policy", "sepec"):
            if one in results.curves[where]:
                near = one in (*BOTH, "safe-oracle")
                text = _where(where, f"the budget of `{one}` ends {'near 0' if near else 'large'}")
                ends = (-NEAR, NEAR) if near else (FAR, math.inf)
                yield Claim("paper", text, measured, *_left(results, where, one), *ends)
    for one in BOTH:
        three = one, "safe-oracle", "safe-on-policy"
        values, errors = zip(*(_left(results, "tree", name) for name in three), strict=True)
        apart = max(values) - min(values), math.hypot(*errors)
        named = "`{}`, `{}` and `{}`".format(*three)
        text = _where("tree", f"budgets of {named} are almost equal")
        yield Claim("paper", text, f"largest difference of {measured}", *apart, 0.0, NEAR)


def _left(results: Results, experiment: str, collector: str) -> tuple[float, float]:
    curve = results.curve(experiment, collector)
    allowance = curve.end("allowance")
    return -curve.end("violation") / allowance, curve.end("violation_se") / allowance


def _rates(results: Results) -> Iterator[Claim]:
    """Theorem 2's rate, against its own oracle and against the exact safe optimum; Proposition 1's."""
    for where in ("bandit-long", "tree-long"):
        (a, da), (b, db) = (results.curve(where, name).last() for name in ("saver", "safe-oracle"))
        K = results.curve(where, "saver").end("episodes")
        excess = K * (a - b), K * math.hypot(da, db)
        text = _where(where, "the regret of `saver` against `safe-oracle` is gone before 1/n")
        yield Claim("paper", text, "K (MSE of `saver` - MSE of `safe-oracle`)", *excess, -math.inf, 0.0)
    key = itemgetter("scenario", "collector", "against")
    for (scenario, collector, against), rows in groupby(results.folder.read("rates"), key):
        row, *_, last = rows
        safe = against == "safe"
        slow = not safe or collector == "saver"
        text = (
            f"{scenario.capitalize()}: the regret of `{collector}` against the "
            f"{'exact safe' if safe else 'unconstrained'} optimum falls as {'1/n' if slow else 'n^(-3/2)'}"
        )
        measured = f"exponent over {row['episodes']:,} to {last['episodes']:,} episodes"
        found = row["exponent"], (row["high"] - row["low"]) / 4
        yield Claim("here" if safe else "paper", text, measured, *found, *(SLOW if slow else FAST))


def _ours(results: Results) -> Iterator[Claim]:
    """Beyond the paper."""
    for where in LONG:
        curve, limit = results.curve(where, "saver-opt"), results.limit(EXPERIMENTS[where].scenario)
        found = [curve.end("episodes") * number / limit for number in curve.last()]
        text = _where(where, f"`saver-opt` is within {MATCH:g} of the exact safe limit")
        yield Claim("here", text, "K * MSE / limit", found[0], found[1], 0.0, MATCH)
    for where in LONG:
        half = where == "bandit-long"
        fewer = "fewer than half of the episodes of" if half else "fewer episodes than"
        text, least = f"`saver-opt` needs {fewer} `safe-oracle` for the same MSE", 2.0 if half else 1.0
        yield _ratio(results, "here", where, text, "safe-oracle", "saver-opt", least, math.inf)
    yield _lower(results, "here", "movielens", "saver-opt", "safe-on-policy")
