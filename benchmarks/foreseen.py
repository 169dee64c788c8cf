"""What `diagnose` says will be reported, against campaigns.

Half the length of the 95 % interval after K episodes, at one time and at all times: predicted, and the
mean over campaigns with its standard error. `promised`: "scales", the true standard deviation of each pair;
"range", only where rewards can lie (they are coins); "no": an interval is then unbounded while a pair that
the target needs was never seen, at all times while one has fewer than 1,183 samples, and means are over the
others. `bounded` is their share at one time, predicted and seen. `verdict` is "kept" where both half-widths
are within 10 % and the shares within .1.

The way "exact" is predicted for a collector that knows means and variances, `exact-oracle`; `saver-opt` has
to learn them. The paper's design without safety is the optimum, "unconstrained", on trees only.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from anytime import coins
from tables import Table

import saver
from saver.problem import Bounded, Scenario

EPISODES = (1000, 5000)
CAMPAIGNS = 100
FEWER = {"gridworld": 20, "lake": 24}
WAYS = {
    "on-policy": "on-policy",
    "oracle": "unconstrained",
    "safe-on-policy": "safe-on-policy",
    "safe-oracle": "paper",
    "exact-oracle": "exact",
    "saver-opt": "exact",
}
TREES = ("bandit", "movielens", "intractable", "tree")
CLOSE = 0.1


def cases() -> list[tuple[Scenario, tuple[str, ...]]]:
    """Scenarios, and collectors that are simulated."""
    every, graph = tuple(WAYS), tuple(name for name in WAYS if name != "oracle")
    found = [(saver.SCENARIOS[name](), every) for name in TREES]
    found += [(saver.SCENARIOS[name](), graph) for name in FEWER]
    for name in ("bandit", "tree"):
        plain = saver.SCENARIOS[name]()
        silent = replace(plain, problem=replace(plain.problem, reward=None))
        found.append((silent, ("on-policy", "safe-oracle", "exact-oracle")))
    return [*found, (coins(saver.SCENARIOS["bandit"]()), ("on-policy", "exact-oracle"))]


def rows(scenario: Scenario, collectors: tuple[str, ...], K: int) -> list[list[Any]]:
    ways = saver.diagnose(scenario, K).ways
    return [row(scenario, collector, K, ways[WAYS[collector]]) for collector in collectors]


def row(scenario: Scenario, collector: str, K: int, way: Any) -> list[Any]:
    reward, runs = scenario.problem.reward, FEWER.get(scenario.name, CAMPAIGNS)
    promised = "no" if reward is None else "range" if isinstance(reward, Bounded) else "scales"
    found = saver.simulate(scenario, collector, episodes=K, runs=runs, seed=23, checkpoints=[K])
    low, high = found.interval()
    once, always = (high - low)[:, -1] / 2, (found.anytime_high - found.anytime_low)[:, -1] / 2
    bounded = np.isfinite(once)
    cells, good = [], abs(way.bounded - bounded.mean()) <= CLOSE
    for said, seen in ((way.half_width, once[bounded]), (way.anytime_half_width, always[bounded])):
        started = np.isfinite(seen).any() or np.isfinite(said)
        if way.bounded == 0.0 or not bounded.any() or not started:
            cells += [f"{said:.3g}", "-", "-"]
            continue
        ratio = said / float(seen.mean())
        good = good and abs(ratio - 1.0) <= CLOSE
        error = seen.std(ddof=1) / np.sqrt(len(seen)) if len(seen) > 1 else np.nan
        cells += [f"{said:.3g}", f"{seen.mean():.3g} ± {error:.1g}", f"{ratio:.3f}"]
    shares = "1" if reward is not None and bounded.all() else f"{way.bounded:.2f}, {bounded.mean():.2f}"
    line = [
        scenario.name,
        collector,
        WAYS[collector],
        promised,
        K,
        runs,
        *cells,
        shares,
        "kept" if good else "MISSED",
    ]
    print(*line, file=sys.stderr, flush=True)
    return line


def table() -> Table:
    columns = ("scenario", "collector", "way", "promised", "K", "campaigns", "once: predicted", "simulated",
               "ratio", "always: predicted", "simulated", "ratio", "bounded", "verdict")  # fmt: skip
    found = [line for K in EPISODES for scenario, names in cases() for line in rows(scenario, names, K)]
    return Table("foreseen", __doc__ or "", columns, found)
