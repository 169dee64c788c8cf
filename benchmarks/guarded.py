"""What guardrails cost: a baseline value that is measured, and three guardrails at once.

The figures are in two tables; each says what its columns are.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from tables import Table

import saver
from saver import Guardrail, Runs
from saver.design.exact import exact_pair
from saver.problem import Scenario
from saver.problem.guardrail import CONSTRAINT

SEED, RUNS, HISTORY = 21, 20_000, 100
COLLECTORS = ("saver-opt", "saver", "safe-on-policy")

BASELINE = """A baseline value that is known, given as an interval, or learned.

The bandit with alpha .25 of .5 and noise .1, K = 2000; and with one other arm, which every designed episode
plays and which is worth .40 or .30 where .375 is required. `value`: known; an interval of .02 about it;
learned with 100 logged baseline episodes, or with none. `baseline` is the share of baseline episodes, `more`
by how much it is above that of the known value. `K * MSE` is empirical, with its standard error, `times` over
that of the known value; `given the visits` is the same ratio without the noise of the estimates, which counts
the logged episodes as samples too. `broken` counts campaigns whose TRUE budget was below 0 at any episode.
"""

SHOP = """Three guardrails at once: the shop at K = 5000, against the exact limit.

`boundary` is what the certificate hides at the end: the true budget less the believed one, over K, in parts
of what may be given up. `limit` is that of the exact safe design whose requirements are raised by these
boundaries, `over it` K times the mean squared error given the visits over that limit. `costs` is how many per
cent the limit falls with one per cent more of what may be given up.
"""


def say(*words: Any) -> None:
    print(*words, file=sys.stderr, flush=True)


def rail(scenario: Scenario, **changes: Any) -> Scenario:
    """The scenario with its guardrail said at length, and changed."""
    problem = scenario.problem
    given = {"alpha": problem.alpha, "baseline_value": problem.baseline_value, **changes}
    one = Guardrail(CONSTRAINT, problem.rails[0].promise, **given)
    long = replace(problem, alpha=None, baseline_value=None, constraint=None, guardrails=(one,))
    return replace(scenario, problem=long)


def one_arm(worth: float) -> Scenario:
    """The target plays an arm that is worth so much."""
    mdp = saver.Mdp(np.zeros((1, 2, 1)), 1)
    law, reward = saver.Gaussian([[0.5, worth]], 0.01), saver.Gaussian([[0.0, 0.0]], 1.0)
    problem = saver.Problem(
        mdp, [[0.0, 1.0]], [[1.0, 0.0]], alpha=0.25, baseline_value=0.5, constraint=saver.SubGaussian(0.1)
    )
    return Scenario(f"an arm worth {worth:.2f}", saver.World(mdp, reward, law), problem, 2000)


def compared(made: Scenario, collector: str, runs: int, episodes: int) -> list[list[Any]]:
    name = made.name
    V0 = made.problem.baseline_value
    cases = {
        "known": (made, 0),
        "within .02": (rail(made, baseline_value=(V0 - 0.01, V0 + 0.01)), 0),
        f"learned, {HISTORY} logged": (rail(made, baseline_value=None), HISTORY),
        "learned, none logged": (rail(made, baseline_value=None), 0),
    }
    rows: list[list[Any]] = []
    first: Runs | None = None
    for value, (asked, history) in cases.items():
        found = saver.simulate(asked, collector, episodes=episodes, runs=runs, seed=SEED, history=history)
        first = first or found
        (mse, error), share = (
            (part[-1] * episodes for part in found.mse()),
            found.baseline_share[:, -1].mean(),
        )
        usual, known = first.mse()[0][-1] * episodes, first.baseline_share[:, -1].mean()
        given = found.conditional_mse[:, -1].mean() / first.conditional_mse[:, -1].mean()
        broken = round(found.violation_rate() * runs)
        rows.append(
            [name, collector, value, runs, f"{share:.4f}", f"{share - known:+.4f}",
             f"{mse:.3f} +- {error:.3f}", f"{mse / usual:.3f}", f"{given:.3f}", broken]
        )  # fmt: skip
        say(*rows[-1])
    return rows


def baseline(runs: int = RUNS, episodes: int = 2000) -> Table:
    columns = ("scenario", "collector", "value", "campaigns", "baseline", "more", "K * MSE", "times",
               "given the visits", "broken")  # fmt: skip
    cases = [(saver.SCENARIOS["bandit"](), collector) for collector in COLLECTORS]
    cases += [(one_arm(worth), "safe-on-policy") for worth in (0.4, 0.3)]
    rows = [row for made, collector in cases for row in compared(made, collector, runs, episodes)]
    return Table("baseline", BASELINE, columns, rows)


def shop(runs: int = 400, episodes: int = 5000) -> Table:
    columns = ("value", "collector", "campaigns", "guardrail", "boundary", "costs", "K * MSE", "limit",
               "over it", "baseline", "broken")  # fmt: skip
    rows = []
    for learned in (False, True):
        for collector in ("saver-opt", "saver"):
            made = saver.SCENARIOS["shop"](learned=learned)
            found = saver.simulate(made, collector, episodes=episodes, runs=runs, seed=SEED)
            names = [one.name for one in made.rails]
            slack = {
                name: float((found.budgets[name] - found.ledgers[name])[:, -1].mean()) / episodes
                for name in names
            }
            raised = [slack[name] for name in names]
            variance = np.array(made.world.reward.variance)
            safe = exact_pair(made.problem, variance, made.constraint_mean, raised=raised)[1]
            error = episodes * float(found.conditional_mse[:, -1].mean())
            mse = episodes * found.mse()[0][-1]
            for one in made.rails:
                costs = safe.multipliers[one.name] * one.credit / safe.limit
                rows.append(
                    ["learned" if learned else "known", collector, runs, one.name,
                     f"{slack[one.name] / one.credit:.3f}", f"{costs:.3f}", f"{mse:.3f}", f"{safe.limit:.4f}",
                     f"{error / safe.limit:.3f}", f"{found.baseline_share[:, -1].mean():.3f}",
                     int(found.broken(one.name).sum())]
                )  # fmt: skip
                say(*rows[-1])
    return Table("shop", SHOP, columns, rows)


if __name__ == "__main__":
    table = {"baseline": baseline, "shop": shop}[sys.argv[1]](*map(int, sys.argv[2:]))
    print(table.markdown(), table.write())
