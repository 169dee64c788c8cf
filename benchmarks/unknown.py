"""Collecting where transitions are unknown: K times the mean squared error, by collector.

`limit` is the optimum of the program with the true model: the weights are Var[c r + u(s')], what is required
must be earned, and Var[V_0] is added where the start is learned. `saver-opt` and `safe-on-policy` are over
it, with their standard errors; `opt / safe` is the one over the other. `accounted` is the mean of what each
campaign of `saver-opt` believes of its variance, K stderr^2, over the limit: it needs fewer runs, and on
random models its mean is that of the simulated error (unknown-formula); `both` is the same of `saver-opt`
over that of `safe-on-policy`. `baseline` are shares of baseline
episodes of `saver-opt`; `known` is the limit with known transitions over this one: what not knowing costs in
the long run. Scenarios but the first two are those of the catalogue with transitions and start forgotten.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from tables import Table

from saver import Scenario, scenarios, simulate
from saver.collect.frequencies import answers
from saver.design import Planner
from saver.estimate.recursion import prices
from saver.problem.bellman import question
from saver.scenarios import forget

LONG, SHORT = 20_000, (200, 1000)
SLACK = (200, 500, 1000, 5000)
FORGOTTEN: dict[str, Callable[..., Scenario]] = {
    "bandit": scenarios.bandit,
    "movielens": scenarios.movielens,
    "tree": scenarios.tree,
    "lake": scenarios.lake,
    "shop": scenarios.shop,
    "intractable": scenarios.intractable,
}


def limits(scenario: Scenario) -> tuple[float, float]:
    """The optimum with unknown transitions, and with known ones."""
    world, problem = scenario.world, scenario.problem
    mdp, required = world.mdp, [rail.required for rail in scenario.rails]
    found = prices(mdp, answers(problem), world.reward.mean, world.reward.variance)
    asked = question(mdp, problem.targets, problem.baseline, problem.estimand)
    both = []
    for weight in (found.rewards + found.moves, asked.size**2 * world.reward.variance):
        w = np.where(asked.size > 0.0, weight, 0.0)
        both.append(Planner(mdp).solve(w, scenario.means, required, anchor=problem.baseline).limit)
    return both[0] + (found.start if problem.mdp.start is None else 0.0), both[1]


def row(scenario: Scenario, episodes: int, runs: int) -> list[object]:
    """Both collectors in one scenario."""
    limit, known = limits(scenario)
    found = {
        name: simulate(scenario, name, episodes=episodes, runs=runs, checkpoints=[])
        for name in ("saver-opt", "safe-on-policy")
    }
    ratios = []
    for one in found.values():
        mse, error = one.mse()
        ratios.append((episodes * mse[-1] / limit, episodes * error[-1] / limit))
    (opt, opt_error), (safe, safe_error) = ratios
    accounted, other = (episodes * float(np.mean(one.stderr[:, -1] ** 2)) for one in found.values())
    error = opt / safe * math.hypot(opt_error / opt, safe_error / safe)
    print(scenario.name, episodes, opt, opt_error, opt / safe, file=sys.stderr, flush=True)
    return [
        scenario.name, f"{episodes:,}", runs, limit, f"{opt:.3f} ± {opt_error:.3f}",
        accounted / limit, f"{safe:.3f} ± {safe_error:.3f}", f"{opt / safe:.3f} ± {error:.3f}",
        accounted / other, f"{found['saver-opt'].baseline_share[:, -1].mean():.1%}", known / limit,
    ]  # fmt: skip


def slack(runs: int) -> Table:
    """How far the certificate is below the truth, in shares of what is required."""
    scenario, rows = scenarios.unknown_gridworld(), []
    for episodes in SLACK:
        line: list[object] = [f"{episodes:,}"]
        for name in ("safe-on-policy", "saver-opt"):
            found = simulate(scenario, name, episodes=episodes, runs=runs, checkpoints=[])
            apart = (found.budget - found.ledger)[:, -1] / episodes / scenario.problem.required
            line.append(f"{apart.mean():.2%}")
        rows.append(line)
    about = (
        "The true budget less the certified one, in shares of what is required: unknown gridworld, bounded."
    )
    return Table("Slack", about, ("episodes", "safe-on-policy", "saver-opt"), rows)


def table(long: int = 600, short: int = 300) -> Table:
    ours = (scenarios.contexts(), scenarios.unknown_gridworld())
    rows = [row(scenario, LONG, long) for scenario in ours]
    others = [forget(make()) for make in FORGOTTEN.values()]
    rows += [row(scenario, K, short) for scenario in (*ours, *others) for K in SHORT]
    columns = ("scenario", "episodes", "runs", "limit", "saver-opt", "accounted", "safe-on-policy",
               "opt / safe", "both", "baseline", "known")  # fmt: skip
    return Table("unknown", __doc__ or "", columns, rows, more=(slack(40),))


if __name__ == "__main__":
    table().write()
