"""Forecasts of a campaign from its log, against campaigns: 12 problems fitted from logs of known worlds."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from logged_world import Shop
from tables import Table

from saver.data import read_log
from saver.problem import Bounded, Problem
from saver.theory import Rehearsal, forecast, rehearse

EPISODES, CAMPAIGNS, FEWER = 60, 200, 10
CLOSE, SMALL, APART = 0.15, 0.02, 0.005  # of widths and shares; of shares below SMALL: so far apart
ABOUT = f"""
`saver.theory.forecast` (20 campaigns at most, 10 s at most, in the world as the log shows it) against
{CAMPAIGNS} campaigns of {EPISODES} episodes in that world, with `saver-opt` and other seeds. Logs are written
by a drawn policy in drawn worlds of 3 actions. The target is that policy with a share `turned` of it given to
another action: the next one, or (`worse`) the one that the log shows to be worst for what is guarded.
`complaint` is a cost, a coin; `sale` is kept, in [0, 1]. `log alone` is half the 95 % interval before the
first episode, `half` after the last one. `verdict` is "kept" where half-widths and shares of baseline
episodes are within {CLOSE:.0%}, of shares below {SMALL:g} within {APART:g}. `drawn` is the same of {FEWER}
campaigns in worlds that are drawn from what the log leaves open (`saver rehearse`), for comparison.
A forecast is a few campaigns of the same kind, so that it can only miss by chance; how far the world itself
is from what the log shows, `drawn` says.
"""


@dataclass(frozen=True)
class Case:
    states: int
    horizon: int
    logged: int
    alpha: float
    guards: str  # complaint, sale or both
    turned: float  # the share of the target that is not the logged policy
    worse: bool = False  # turned to what is worst for what is guarded

    def problem(self, seed: int) -> Problem:
        """Fitted from a log of a world of its own."""
        world = Shop.drawn(self.states, 3, self.horizon, seed=seed, end=0.15)
        columns = world.log(self.logged, seed, labels=False)
        told = world.labelled(columns)
        sale = np.clip((columns["reward"] + 2.0) / 6.0, 0.0, 1.0)
        log = read_log(
            told.append_column("sale", [sale]), next_state="next_state", guardrails=["complaint", "sale"]
        )
        found = log.fit(self.horizon)
        other = np.roll(found.baseline, 1, axis=1)
        if self.worse:
            column = columns["complaint"] if self.guards == "complaint" else -sale
            pairs, size = columns["state"] * 3 + columns["action"], 3 * self.states
            means = np.bincount(pairs, column, size) / np.maximum(np.bincount(pairs, minlength=size), 1)
            other = np.eye(3)[np.argmax(means.reshape(-1, 3), axis=1)]
        target = (1.0 - self.turned) * found.baseline + self.turned * other
        known = {
            "complaint": {"alpha": self.alpha, "cost": True, "promise": Bounded(0, 1)},
            "sale": {"alpha": self.alpha, "promise": Bounded(0, 1)},
        }
        chosen = known if self.guards == "both" else {self.guards: known[self.guards]}
        return found.problem(target, chosen, reward=found.proposed_reward)


CASES = [
    Case(4, 3, 300, 0.4, "complaint", 0.9),
    Case(4, 5, 1_000, 0.05, "complaint", 0.7, worse=True),
    Case(4, 10, 10_000, 0.1, "sale", 0.9, worse=True),
    Case(6, 4, 3_000, 0.2, "complaint", 1.0, worse=True),
    Case(6, 6, 1_000, 0.3, "both", 0.5),
    Case(8, 3, 10_000, 0.1, "complaint", 0.9, worse=True),
    Case(8, 6, 300, 0.2, "sale", 0.5),
    Case(10, 4, 3_000, 0.1, "both", 0.7, worse=True),
    Case(12, 10, 1_000, 0.4, "complaint", 0.5),
    Case(15, 4, 10_000, 0.05, "sale", 1.0, worse=True),
    Case(20, 6, 3_000, 0.1, "sale", 0.5),
    Case(20, 3, 300, 0.4, "complaint", 0.5),
]


def ends(found: Rehearsal) -> tuple[float, float, float]:
    """The mean half-width and its standard error, and the share of baseline episodes."""
    (half,) = (table[:, -1] for table in found.half_widths.values())
    error = float(half.std(ddof=1)) / np.sqrt(len(half))
    return float(half.mean()), error, float(found.baseline_share[:, -1].mean())


def close(said: float, seen: float, share: bool = False) -> bool:
    if share and seen < SMALL:
        return abs(said - seen) <= APART
    return abs(said / seen - 1.0) <= CLOSE


def row(case: Case, seed: int) -> list[Any]:
    problem = case.problem(seed)
    began = time.perf_counter()
    said = forecast(problem, EPISODES, seed=1)
    seconds = time.perf_counter() - began
    seen = rehearse(problem, episodes=EPISODES, runs=CAMPAIGNS, seed=2, drawn=False, points=1)
    other = rehearse(problem, episodes=EPISODES, runs=FEWER, seed=3, points=1)
    (half, _, share), (real, error, played), (wide, _, spent) = map(ends, (said, seen, other))
    good = close(half, real) and close(share, played, share=True)
    shown = "yes" if problem.history is not None and problem.history.shown is not None else "no"
    line = [
        case.states, case.horizon, f"{case.logged:,}", case.alpha, case.guards,
        f"{case.turned:g}{', worse' if case.worse else ''}", shown,
        f"{next(iter(said.log_alone.values())):.3g}", f"{half:.3g}", f"{real:.3g} ± {error:.1g}",
        f"{half / real:.3f}", f"{share:.3f}", f"{played:.3f}", "kept" if good else "MISSED",
        f"{said.runs} in {seconds:.1f} s", f"{wide:.3g}, {spent:.3f}",
    ]  # fmt: skip
    print(*line, file=sys.stderr, flush=True)
    return line


def table() -> Table:
    columns = (
        *("states", "horizon", "log", "alpha", "guarded", "turned", "shows", "log alone", "half: forecast"),
        *("campaigns", "ratio", "baseline: forecast", "campaigns", "verdict", "forecast", "drawn"),
    )
    return Table("forecast", ABOUT, columns, [row(case, seed) for seed, case in enumerate(CASES)])
