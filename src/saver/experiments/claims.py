"""What the paper claims, what this package claims, and what was measured: computed from the tables alone.

A claim is that a number lies in a range. It held if the number is inside by two standard errors, did not hold
if it is outside by two, and cannot be told otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from saver.collect import COLLECTORS
from saver.experiments.catalogue import EXPERIMENTS
from saver.experiments.folder import Row, number
from saver.experiments.results import Measured, Results

HELD, FAILED, OPEN = "held", "did not hold", "cannot be told"
MATCH = 1.1  # an error up to this multiple of another matches it
NEAR, FAR = 0.1, 0.2  # shares of the allowance: a budget near 0, and a large one
SLOW, FAST = (-1.1, -0.9), (-1.65, -1.35)  # ranges around the exponents -1 and -3/2
COLUMNS = ("who", "claim", "measured", "value", "error", "low", "high", "verdict")


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
        """Held, did not hold, or cannot be told."""
        if not math.isfinite(self.value) or not math.isfinite(self.error):
            return OPEN
        below, above = self.value - 2 * self.error, self.value + 2 * self.error
        if self.low <= below and above <= self.high:
            return HELD
        return FAILED if above < self.low or below > self.high else OPEN

    def row(self) -> tuple[str | float, ...]:
        """For the table."""
        return (
            self.who, self.claim, self.measured, self.value, self.error, self.low, self.high, self.verdict
        )  # fmt: skip


def claims(results: Results) -> list[Claim]:
    """All of them."""
    return [
        *_orders(results),
        *_matches(results),
        *_safety(results),
        *_budgets(results),
        *_rates(results),
        *_ours(results),
    ]


def _orders(results: Results) -> Iterator[Claim]:
    """Figure 1: who has the lower error."""
    for experiment in ("bandit", "bandit-long", "movielens", "gridworld", "gridworld-long"):
        rivals = [("safe on-policy", "safe-on-policy")]
        if EXPERIMENTS[experiment].scenario in ("bandit", "movielens"):
            rivals.append(("SEPEC", "sepec"))
        for name, rival in rivals:
            ratio = results.ratio(experiment, "saver", rival)
            yield _claim(
                "paper", f"{_where(experiment)}: SaVeR has a lower MSE than {name}",
                f"MSE of SaVeR / {name}", ratio, 0.0, 1.0,
            )  # fmt: skip


def _matches(results: Results) -> Iterator[Claim]:
    for experiment in ("tree", "tree-long", "gridworld", "gridworld-long"):
        ratio = results.ratio(experiment, "saver", "safe-oracle")
        text = f"{_where(experiment)}: SaVeR matches its oracle (at most {MATCH:g} times its MSE)"
        yield _claim("paper", text, "MSE of SaVeR / oracle", ratio, 0.0, MATCH)
    saver, oracle = results.curve("tree", "saver"), results.curve("tree", "safe-oracle")
    late = saver.episode >= 20
    ratios = (saver.mse[0] / oracle.mse[0])[late]
    spread = ratios * np.hypot(saver.mse[1] / saver.mse[0], oracle.mse[1] / oracle.mse[0])[late]
    worst = int(np.argmax(ratios))
    k = int(saver.episode[late][worst])
    yield _claim(
        "paper", "Tree: SaVeR is on its oracle's curve from episode 20 on", f"largest ratio of MSEs, at {k}",
        Measured(float(ratios[worst]), float(spread[worst])), 0.0, MATCH,
    )  # fmt: skip


def _safety(results: Results) -> Iterator[Claim]:
    """Figure 2: the constraint. A share of runs p has standard error sqrt(p (1 - p) / runs)."""
    for name, promises, text in (
        ("the collectors behind the certificate", True, "respect the constraint at every episode"),
        ("SaVeR as printed (`saver-paper`)", False, "respects the constraint at every episode"),
    ):
        cells = [
            (experiment, collector)
            for experiment in results.experiments
            for collector in results.collectors(experiment)
            if COLLECTORS[collector].promises == promises
        ]
        worst, at = Measured(-1.0, 0.0), ("", "")
        for cell in cells:
            curve = results.curve(*cell)
            p, runs = curve.end("violation_rate"), curve.end("runs")
            error = math.sqrt(max(p * (1 - p), 1.0 / runs) / runs)
            if p > worst.value:
                worst, at = Measured(p, error), cell
        delta = results.curve(*at).end("delta")
        measured = f"largest share of campaigns ever below 0, of {len(cells)} cells ({at[1]} in {at[0]})"
        yield _claim("paper", f"{name} {text}, but for delta = {delta:g}", measured, worst, 0.0, delta)


def _budgets(results: Results) -> Iterator[Claim]:
    """What is left at the end of the allowance k alpha V_c(pi_0), which all baseline episodes would leave."""
    for experiment in ("bandit", "movielens", "tree", "gridworld"):
        for collector, name, low, high, text in (
            ("saver", "SaVeR", -NEAR, NEAR, "near 0"),
            ("safe-oracle", "the oracle", -NEAR, NEAR, "near 0"),
            ("safe-on-policy", "safe on-policy", FAR, math.inf, "large"),
        ):
            curve = results.curve(experiment, collector)
            allowance = curve.end("allowance")
            left = Measured(-curve.end("violation") / allowance, curve.end("violation_se") / allowance)
            yield _claim(
                "paper", f"{_where(experiment)}: the budget of {name} ends {text}",
                "true budget / (K alpha V_c of the baseline)", left, low, high,
            )  # fmt: skip


def _rates(results: Results) -> Iterator[Claim]:
    for row in _first_rows(results.table("rates")):
        against = f"{row['against']} optimum" if row["against"] != "safe" else "exact safe optimum"
        who = "here" if row["against"] == "safe" and row["collector"] != "saver" else "paper"
        low, high = FAST if row["against"] == "safe" else SLOW
        name = {"saver": "SaVeR", "saver-opt": "`saver-opt`", "exact-oracle": "`exact-oracle`"}[
            row["collector"]
        ]
        rate = "n^(-3/2)" if row["against"] == "safe" else "1/n"
        exponent = number(row, "exponent")
        half = (number(row, "high") - number(row, "low")) / 2
        yield _claim(
            who,
            f"{row['scenario'].capitalize()}: the regret of {name} against the {against} falls as {rate}",
            "exponent over 4,000 to 128,000 episodes", Measured(exponent, half / 2), low, high,
        )  # fmt: skip


def _ours(results: Results) -> Iterator[Claim]:
    """Beyond the paper."""
    for experiment in ("bandit-long", "tree-long", "gridworld-long"):
        curve = results.curve(experiment, "saver-opt")
        limit = results.limit(EXPERIMENTS[experiment].scenario)
        last, K = curve.last(), curve.end("episodes")
        yield _claim(
            "here", f"{_where(experiment)}: `saver-opt` is within {MATCH:g} of the exact safe limit",
            "K * MSE / limit", Measured(K * last.value / limit, K * last.error / limit), 0.0, MATCH,
        )  # fmt: skip
    for experiment in ("bandit-long", "tree-long", "gridworld-long"):
        need = results.ratio(experiment, "safe-oracle", "saver-opt")
        low = 2.0 if experiment == "bandit-long" else 1.0
        text = "fewer than half of the episodes of" if low == 2.0 else "fewer episodes than"
        yield _claim(
            "here", f"{_where(experiment)}: `saver-opt` needs {text} the paper's oracle for the same MSE",
            "MSE of the oracle / `saver-opt`", need, low, math.inf,
        )  # fmt: skip
    ratio = results.ratio("movielens", "saver-opt", "safe-on-policy")
    yield _claim(
        "here", f"{_where('movielens')}: `saver-opt` has a lower MSE than safe on-policy",
        "MSE of `saver-opt` / safe on-policy", ratio, 0.0, 1.0,
    )  # fmt: skip


def _claim(who: str, claim: str, measured: str, number: Measured, low: float, high: float) -> Claim:
    return Claim(who, claim, measured, number.value, number.error, low, high)


def _where(experiment: str) -> str:
    asked = EXPERIMENTS[experiment]
    unit = "rounds" if asked.scenario in ("bandit", "movielens") else "episodes"
    return f"{asked.title}, {asked.episodes:,} {unit}"


def _first_rows(rows: list[Row]) -> list[Row]:
    """The first row of each measurement of a rate."""
    return list(
        {(row["scenario"], row["collector"], row["against"]): row for row in reversed(rows)}.values()
    )[::-1]
