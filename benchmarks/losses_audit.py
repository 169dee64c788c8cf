"""The promise where feedback is lost, late, cut off or cancelled by somebody who knows the outcomes: counted.

`broken` counts campaigns in which at some moment, after some ask, tell, loss or cancel, the true budget was
below 0 for some set of trials that can have run; `over` those in which the believed budget was above the true
one after some ask. Each has a probability of at most delta. `at most` is the one-sided 95 % bound of Clopper
and Pearson on the frequency of either, `by chance` the probability of as many or more at risk delta. `ever
wrong` counts campaigns whose 95 % interval at all times missed the truth at one of the looks, every 30 trials
and at the end: a probability of at most .05. `covered` is the share of 95 % intervals for one look that hold
at the end, where losses are at random and declared so; elsewhere they promise nothing. In worlds with one
outcome the reward is the constraint: whoever hides the one hides the other. A group is BROKEN, or MISSES, if
its count is beyond chance: a probability below .001 over the number of judgements. `baseline` is the share of
baseline episodes.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from tables import Table

from saver.engine.simulate import cores
from saver.experiments.auditing.count import AUDITS
from saver.experiments.auditing.judge import ERROR, HOLDS, MISSES, tail, upper_bound
from saver.experiments.auditing.losses import counted
from saver.experiments.auditing.manners import CASES, EPISODES, MANNERS, Case

ROUNDING = 1e-9  # of the baseline's value
JUDGED = 2 * len(CASES) + sum(MANNERS[case.manner].losses == "random" for case in CASES)


def row(case: Case, runs: int) -> list[Any]:
    began = time.perf_counter()
    unit = case.make().problem.rails[0].unit
    found = counted(case, runs, 0, cores())
    broken, over = (int(np.sum(part < -ROUNDING * unit)) for part in (found.worst, found.least))
    most, ever = max(broken, over), int(found.ever.sum())
    inside = found.inside[~np.isnan(found.inside)]
    chance, few = tail(runs, most, case.delta), ERROR / JUDGED
    missed = tail(len(inside), len(inside) - int(inside.sum()), 1.0 - HOLDS) < few
    words = {"BROKEN": chance < few, "MISSES": missed or tail(runs, ever, MISSES) < few}
    verdict = ", ".join(word for word, so in words.items() if so) or "kept"
    seconds = time.perf_counter() - began
    print(f"{case.group}, delta {case.delta:g}: {verdict}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return [
        case.manner, case.world, case.collector, case.delta, runs, EPISODES, broken, over,
        f"{upper_bound(runs, most):.4f}", f"{chance:.2g}", ever,
        f"{inside.mean():.3f}" if len(inside) else "-", f"{found.share.mean():.3f}", verdict,
    ]  # fmt: skip


def table(runs: int = AUDITS["full"].losses) -> Table:
    columns = ("feedback", "world", "collector", "delta", "campaigns", "episodes", "broken", "over",
               "at most", "by chance", "ever wrong", "covered", "baseline", "verdict")  # fmt: skip
    return Table("losses-audit", __doc__ or "", columns, [row(case, runs) for case in CASES])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            "give a number of campaigns; python benchmarks/run.py losses-audit runs all and keeps the table"
        )
    print(table(int(sys.argv[1])).markdown())
