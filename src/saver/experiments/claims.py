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
from saver.experiments.results import Measured, Results, measurements

HELD, FAILED, OPEN = "held", "did not hold", "cannot be told"
MATCH = 1.1  # an error up to this multiple of another matches it
NEAR, FAR = 0.1, 0.2  # shares of the allowance: a budget near 0, and a large one
SLOW, FAST = (-1.1, -0.9), (-1.65, -1.35)  # ranges around the exponents -1 and -3/2
EARLY = 20  # the episode from which the paper's Figure 1 has SaVeR on the oracle's curve
AT_MOST = f"at most {MATCH:g} times its MSE"


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
    for experiment in ("bandit", "bandit-long", "movielens", "tree", "gridworld", "gridworld-long"):
        rivals = ["safe-on-policy", "sepec"]
        for collector in ("saver", "saver-paper"):
            for rival in rivals:
                if {collector, rival} <= set(results.collectors(experiment)):
                    yield _lower(results, "paper", experiment, collector, rival)
    yield _lower(results, "paper", "gridworld", "safe-oracle", "safe-on-policy")


def _lower(results: Results, who: str, experiment: str, collector: str, rival: str) -> Claim:
    text = f"{_where(experiment)}: `{collector}` has a lower MSE than `{rival}`"
    ratio = results.ratio(experiment, collector, rival)
    return _claim(who, text, f"MSE of `{collector}` / `{rival}`", ratio, 0.0, 1.0)


def _matches(results: Results) -> Iterator[Claim]:
    """Who has the oracle's error."""
    for experiment in ("tree", "tree-long", "gridworld", "gridworld-long"):
        for collector in ("saver", "saver-paper"):
            if collector in results.collectors(experiment):
                ratio = results.ratio(experiment, collector, "safe-oracle")
                text = f"{_where(experiment)}: `{collector}` matches `safe-oracle` ({AT_MOST})"
                yield _claim("paper", text, f"MSE of `{collector}` / `safe-oracle`", ratio, 0.0, MATCH)
    for collector in ("saver", "saver-paper"):
        own, oracle = results.curve("tree", collector), results.curve("tree", "safe-oracle")
        late = own.episode >= EARLY
        ratios = (own.mse[0] / oracle.mse[0])[late]
        spread = ratios * np.hypot(own.mse[1] / own.mse[0], oracle.mse[1] / oracle.mse[0])[late]
        worst = int(np.argmax(ratios))
        text = f"Tree: `{collector}` is on the curve of `safe-oracle` from episode {EARLY} on ({AT_MOST})"
        measured = f"largest ratio of MSEs, at {own.episode[late][worst]:.0f}"
        found = Measured(float(ratios[worst]), float(spread[worst]))
        yield _claim("paper", text, measured, found, 0.0, MATCH)


def _safety(results: Results) -> Iterator[Claim]:
    """Figure 2: the constraint. A share of runs p has standard error sqrt(p (1 - p) / runs)."""
    for who, name, promises in (
        ("paper", "`saver-paper` respects", False),
        ("here", "the collectors behind the certificate respect", True),
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
        text = f"{name} the constraint at every episode, but for delta = {delta:g}"
        measured = f"largest share of campaigns ever below 0, of {len(cells)} cells (`{at[1]}` in {at[0]})"
        yield _claim(who, text, measured, worst, 0.0, delta)


def _budgets(results: Results) -> Iterator[Claim]:
    """What is left at the end of the allowance k alpha V_c(pi_0), which all baseline episodes would leave."""
    measured = "true budget / (K alpha V_c of the baseline)"
    for experiment in ("bandit", "movielens", "gridworld"):
        for collector in ("saver", "saver-paper", "safe-oracle"):
            text = f"{_where(experiment)}: the budget of `{collector}` ends near 0"
            yield _claim("paper", text, measured, _left(results, experiment, collector), -NEAR, NEAR)
        for collector in ("safe-on-policy", "sepec"):
            if collector in results.collectors(experiment):
                text = f"{_where(experiment)}: the budget of `{collector}` ends large"
                yield _claim("paper", text, measured, _left(results, experiment, collector), FAR, math.inf)
    for collector in ("saver", "saver-paper"):
        own = [_left(results, "tree", name) for name in (collector, "safe-oracle", "safe-on-policy")]
        values = [number.value for number in own]
        apart = Measured(max(values) - min(values), math.hypot(*(number.error for number in own)))
        text = (
            f"{_where('tree')}: budgets of `{collector}`, `safe-oracle` and `safe-on-policy` are almost equal"
        )
        yield _claim("paper", text, f"largest difference of {measured}", apart, 0.0, NEAR)


def _left(results: Results, experiment: str, collector: str) -> Measured:
    curve = results.curve(experiment, collector)
    allowance = curve.end("allowance")
    return Measured(-curve.end("violation") / allowance, curve.end("violation_se") / allowance)


def _rates(results: Results) -> Iterator[Claim]:
    """Theorem 2's rate, against its own oracle and against the exact safe optimum; Proposition 1's."""
    for experiment in ("bandit-long", "tree-long"):
        a, b = (results.curve(experiment, name).last() for name in ("saver", "safe-oracle"))
        K = results.curve(experiment, "saver").end("episodes")
        excess = Measured(K * (a.value - b.value), K * math.hypot(a.error, b.error))
        text = f"{_where(experiment)}: the regret of `saver` against `safe-oracle` is gone before 1/n"
        yield _claim("paper", text, "K (MSE of `saver` - MSE of `safe-oracle`)", excess, -math.inf, 0.0)
    for rows in measurements(results.folder.read("rates")):
        row, budgets = rows[0], [row["episodes"] for row in rows]
        safe, name = row["against"] == "safe", f"`{row['collector']}`"
        slow = not safe or row["collector"] == "saver"
        low, high = SLOW if slow else FAST
        against = "exact safe" if safe else "unconstrained"
        text = f"{row['scenario'].capitalize()}: the regret of {name} against the {against} optimum falls as "
        measured = f"exponent over {budgets[0]:,} to {budgets[-1]:,} episodes"
        found = Measured(row["exponent"], (row["high"] - row["low"]) / 4)
        yield _claim(
            "here" if safe else "paper", text + ("1/n" if slow else "n^(-3/2)"), measured, found, low, high
        )


def _ours(results: Results) -> Iterator[Claim]:
    """Beyond the paper."""
    name = "`saver-opt`"
    for experiment in ("bandit-long", "tree-long", "gridworld-long"):
        curve = results.curve(experiment, "saver-opt")
        limit = results.limit(EXPERIMENTS[experiment].scenario)
        last, K = curve.last(), curve.end("episodes")
        text = f"{_where(experiment)}: {name} is within {MATCH:g} of the exact safe limit"
        found = Measured(K * last.value / limit, K * last.error / limit)
        yield _claim("here", text, "K * MSE / limit", found, 0.0, MATCH)
    for experiment in ("bandit-long", "tree-long", "gridworld-long"):
        need = results.ratio(experiment, "safe-oracle", "saver-opt")
        low = 2.0 if experiment == "bandit-long" else 1.0
        fewer = "fewer than half of the episodes of" if low == 2.0 else "fewer episodes than"
        text = f"{_where(experiment)}: {name} needs {fewer} `safe-oracle` for the same MSE"
        yield _claim("here", text, f"MSE of `safe-oracle` / {name}", need, low, math.inf)
    yield _lower(results, "here", "movielens", "saver-opt", "safe-on-policy")


def _claim(who: str, claim: str, measured: str, number: Measured, low: float, high: float) -> Claim:
    return Claim(who, claim, measured, number.value, number.error, low, high)


def _where(experiment: str) -> str:
    asked = EXPERIMENTS[experiment]
    unit = "rounds" if asked.scenario in ("bandit", "movielens") else "episodes"
    return f"{asked.title}, {asked.episodes:,} {unit}"
