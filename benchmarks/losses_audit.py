"""The promise where feedback is lost, late, cut off or cancelled by somebody who knows the outcomes: counted.

`broken` counts campaigns in which at some moment, after some ask, tell, loss or cancel, the true budget was
below 0 for some set of trials that can have run; `over` those in which the believed budget was above the true
one after some ask. Each has a probability of at most delta. `at most` is the one-sided 95 % bound of Clopper
and Pearson on the frequency of either, `by chance` the probability of as many or more at risk delta. A group
is BROKEN if that is below .001 over the number of groups. `baseline` is the share of baseline episodes.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from tables import Table

from saver.engine.simulate import cores
from saver.experiments.auditing.count import AUDITS
from saver.experiments.auditing.judge import ERROR, tail, upper_bound
from saver.experiments.auditing.losses import CASES, EPISODES, Case, counted

ROUNDING = 1e-9  # of the baseline's value


def row(case: Case, runs: int) -> list[Any]:
    began = time.perf_counter()
    unit = case.make().problem.baseline_value
    worst, least, share = counted(case, runs, 0, cores())
    broken, over = (int(np.sum(found < -ROUNDING * unit)) for found in (worst, least))
    most = max(broken, over)
    chance = tail(runs, most, case.delta)
    verdict = "BROKEN" if chance < ERROR / len(CASES) else "kept"
    seconds = time.perf_counter() - began
    print(f"{case.group}, delta {case.delta:g}: {verdict}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return [
        case.manner, case.world, case.collector, case.delta, runs, EPISODES, broken, over,
        f"{upper_bound(runs, most):.4f}", f"{chance:.2g}", f"{share.mean():.3f}", verdict,
    ]  # fmt: skip


def table(runs: int = AUDITS["full"].losses) -> Table:
    columns = ("feedback", "world", "collector", "delta", "campaigns", "episodes", "broken", "over",
               "at most", "by chance", "baseline", "verdict")  # fmt: skip
    return Table("losses-audit", __doc__ or "", columns, [row(case, runs) for case in CASES])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            "give a number of campaigns; python benchmarks/run.py losses-audit runs all and keeps the table"
        )
    print(table(int(sys.argv[1])).markdown())
