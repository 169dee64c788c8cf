"""What is asked, and what it costs: differences, several targets, stopping, and outcomes that are both.

The figures are in four tables, one for each question; each says what its columns are.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from tables import Table

import saver
from saver.design import exact
from saver.problem import Scenario, visits
from saver_audit.hostile import HOSTILE
from saver_audit.making import one_outcome

SEED = 20
BANDITS = ("bandit", "movielens", "intractable")
SCENARIOS = ("bandit", "movielens", "intractable", "tree", "gridworld", "lake")

DIFFERENCES = """Differences to the baseline: the design for them, against the design for the value.

Campaigns that know means and variances and ask for the difference. `predicted` is the limit of the exact safe
design for it, `simulated` K times the mean squared error given the visits, `ratio` K times the empirical mean
squared error over `predicted`, with its standard error. `saves` is the share of episodes that the design for
the difference needs less than the design for the value, both exact and safe, for the same error of the
difference; all, where the design for the value never plays what the baseline does.
"""


def say(*words: Any) -> None:
    print(*words, file=sys.stderr, flush=True)


def asking(scenario: Scenario, **changes: Any) -> Scenario:
    return replace(scenario, problem=replace(scenario.problem, **changes))


def differences() -> Table:
    rows = []
    for name in (*SCENARIOS, "taxi"):
        plain = saver.SCENARIOS[name]()
        other = asking(plain, estimand="difference")
        variance, mean = plain.world.reward.variance, plain.world.constraint.mean
        own = exact(other.problem, variance, mean, seconds=30)
        value = exact(plain.problem, variance, mean, seconds=30)
        cost = other.problem.question.size**2 * np.array(variance)
        d = visits(plain.problem.mdp, value.policy)
        used = cost > 0
        there = float(np.sum(cost[used] / d[used])) if np.all(d[used] > 0) else math.inf
        saves = 1.0 - own.limit / there
        runs = 4000 if name in BANDITS else 500 if name != "lake" else 100
        K = 20_000 if name != "lake" else 5_000
        shown: list[Any] = ["", "", "", ""]
        if name != "taxi":
            found = saver.simulate(other, "exact-oracle", episodes=K, runs=runs, seed=SEED, checkpoints=[])
            mse, error = (K * number[-1] for number in found.mse())
            simulated = K * float(found.conditional_mse[:, -1].mean())
            shown = [K, runs, f"{simulated:.4g}", f"{mse / own.limit:.3f} ± {error / own.limit:.3f}"]
        rows.append([name, f"{own.limit:.4g}", *shown, f"{saves:.1%}"])
        say(rows[-1])
    columns = ("scenario", "predicted", "K", "campaigns", "simulated", "ratio", "saves")
    return Table("differences", DIFFERENCES, columns, rows)


TARGETS = """Three targets at once, against a campaign of its own for each.

The target, one that is half of it and half the baseline, and uniform play. `error` is the mean squared error
given the visits of 500 campaigns of K episodes (100 in the gridworld) over that of as many that ask for this
target alone.
"""


def targets() -> Table:
    rows = []
    for name, K, runs in (("bandit", 2000, 500), ("gridworld", 1000, 100)):
        plain = saver.SCENARIOS[name]()
        problem = plain.problem
        policies = {
            "target": problem.target,
            "halfway": (problem.target + problem.baseline) / 2,
            "uniform": problem.mdp.uniform,
        }
        for collector in ("saver-opt", "saver"):
            options: dict[str, Any] = {"episodes": K, "runs": runs, "seed": SEED, "checkpoints": []}
            every = saver.simulate(asking(plain, target=policies), collector, **options)
            for target, policy in policies.items():
                alone = saver.simulate(asking(plain, target=policy), collector, **options)
                errors = [
                    float(found.conditional_mse[:, -1].mean()) for found in (every.by_name[target], alone)
                ]
                rows.append(
                    [name, collector, target, K, f"{K * errors[1]:.4g}", f"{errors[0] / errors[1]:.3f}"]
                )
                say(rows[-1])
    columns = ("scenario", "collector", "target", "K", "K * error alone", "error")
    return Table("targets", TARGETS, columns, rows)


STOPPING = """Stopping by `Precise`: the interval at all times, at the moment that it chooses.

Campaigns, looked at every 1 % of K episodes, stop when half the 95 % interval is at most `half-width`: what
half of them have after a quarter of their episodes. `covered` is the share whose interval holds the truth
when they stop, `episodes` the mean until then, `saved` the share of K.
"""


def stopping() -> Table:
    rows = []
    for name, K, runs in (("bandit", 2000, 2000), ("intractable", 2000, 2000), ("movielens", 2000, 2000),
                          ("tree", 2000, 2000), ("gridworld", 1000, 200)):  # fmt: skip
        plain = saver.SCENARIOS[name]()
        for collector in ("saver-opt", "saver"):
            if name == "tree" and collector == "saver-opt":
                continue  # as the closed form, and slow
            points = np.unique(np.linspace(K / 100, K, 100).astype(int))
            found = saver.simulate(plain, collector, episodes=K, runs=runs, seed=SEED, checkpoints=points)
            half = (found.anytime_high - found.anytime_low) / 2
            width = float(f"{np.median(half[:, 24]):.2g}")
            first = np.argmax(half <= width, axis=1)
            first[~np.any(half <= width, axis=1)] = len(points) - 1
            at = (np.arange(runs), first)
            low, high = found.anytime_low[at], found.anytime_high[at]
            covered = np.mean((low <= found.true_value) & (found.true_value <= high))
            episodes = float(found.checkpoints[first].mean())
            rows.append([name, collector, K, runs, width, f"{covered:.4f}", f"{episodes:.0f}",
                         f"{1 - episodes / K:.0%}"])  # fmt: skip
            say(rows[-1])
    columns = ("scenario", "collector", "K", "campaigns", "half-width", "covered", "episodes", "saved")
    return Table("stopping", STOPPING, columns, rows)


BIAS = """One outcome that is both the reward and the constraint: bias of estimates, in standard deviations.

`plain` and `fair` are the biases of `estimate()` and `estimate(fair=True)`, each over the standard deviation
of that estimate and with a standard error of `±`; `cost` is the mean squared error of the fair one over that
of the plain one; `covered` how often their 95 % intervals hold the truth. "one outcome" is the audit's bandit
with ten times the noise, in which outcomes decide much; the others are the scenarios with the constraint in
the place of the reward.
"""


def bias() -> Table:
    rows = []
    worlds = {name: one_outcome(saver.SCENARIOS[name]()) for name in SCENARIOS}
    cells = [("one outcome", HOSTILE["one outcome"](), c, K, 40_000 if K < 1000 else 10_000)
             for c in ("saver-opt", "saver") for K in (150, 300, 500, 1500, 5000)]  # fmt: skip
    for name, world in worlds.items():
        short = name in BANDITS
        for K in (150, 500, 1500):
            for collector in ("saver-opt", "saver"):
                runs = 10_000 if short else 400 if collector == "saver-opt" or name == "lake" else 2000
                cells.append((name, world, collector, K, runs))
    for name, world, collector, K, runs in cells:
        found = saver.simulate(world, collector, episodes=K, runs=runs, seed=SEED, checkpoints=[], fair=True)
        plain, fair = (part[:, -1] - found.true_value for part in (found.estimates, found.fair))
        low, high = found.interval()
        once = np.mean((low[:, -1] <= found.true_value) & (found.true_value <= high[:, -1]))
        weighed = np.mean(np.abs(fair) <= 1.96 * found.fair_stderr[:, -1])
        spread = plain.std()
        rows.append([
            name, collector, K, runs, f"{plain.mean() / spread:+.3f}", f"{fair.mean() / fair.std():+.3f}",
            f"{1 / math.sqrt(runs):.3f}", f"{np.mean(fair**2) / np.mean(plain**2):.2f}", f"{once:.3f}",
            f"{weighed:.3f}",
        ])  # fmt: skip
        say(rows[-1])
    columns = (
        "scenario",
        "collector",
        "K",
        "campaigns",
        "plain",
        "fair",
        "±",
        "cost",
        "covered",
        "fair covered",
    )
    return Table("bias", BIAS, columns, rows)
