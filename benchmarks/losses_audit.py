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
from collections.abc import Sequence
from typing import Any

import numpy as np
from tables import Table

from saver.engine.simulate import cores
from saver_audit.count import AUDITS
from saver_audit.judge import ERROR, HOLDS, MISSES, tail, upper_bound
from saver_audit.losses import counted
from saver_audit.manners import CASES, EPISODES, MANNERS, VETO_CASES, VETOES, Case

ROUNDING = 1e-9  # of the baseline's value
VETOED = """The promise where somebody looks where trials start before it is decided which run: counted.

Action 1 earns 1 in three contexts of ten and nothing in the others: on average 86 % of what is required.
Who vetoes cancels trials that would start where it earns nothing: up to nine of ten, a third, half of a
batch when all of its starts are known, or only among the first 300 (what the ledger has learned by then is
played in all contexts afterwards). "most lost by their starts": such trials run, and are abandoned. Columns
as in losses-audit. Of intervals for what the target is worth nothing is promised where starts are chosen
and learned (`unknown`): these are counted and not judged.
"""


def judged(cases: Sequence[Case]) -> int:
    """How many verdicts there are."""
    random = sum((MANNERS | VETOES)[case.manner].losses == "random" for case in cases)
    return len(cases) + sum(bool(case.make().problem.mdp.known) for case in cases) + random


def row(case: Case, runs: int, few: float) -> list[Any]:
    began = time.perf_counter()
    unit = case.make().problem.rails[0].unit
    found = counted(case, runs, 0, cores())
    broken, over = (int(np.sum(part < -ROUNDING * unit)) for part in (found.worst, found.least))
    most, ever = max(broken, over), int(found.ever.sum())
    inside = found.inside[~np.isnan(found.inside)]
    chance, known = tail(runs, most, case.delta), case.make().problem.mdp.known
    missed = tail(len(inside), len(inside) - int(inside.sum()), 1.0 - HOLDS) < few
    words = {"BROKEN": chance < few, "MISSES": missed or (known and tail(runs, ever, MISSES) < few)}
    verdict = ", ".join(word for word, so in words.items() if so) or "kept"
    seconds = time.perf_counter() - began
    print(f"{case.group}, delta {case.delta:g}: {verdict}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return [
        case.manner, case.world, case.collector, case.delta, runs, EPISODES, broken, over,
        f"{upper_bound(runs, most):.4f}", f"{chance:.2g}", ever,
        f"{inside.mean():.3f}" if len(inside) else "-", f"{found.share.mean():.3f}", verdict,
    ]  # fmt: skip


def table(
    runs: int = AUDITS["full"].losses,
    cases: Sequence[Case] = CASES,
    name: str = "losses-audit",
    about: str = __doc__ or "",
) -> Table:
    columns = ("feedback", "world", "collector", "delta", "campaigns", "episodes", "broken", "over",
               "at most", "by chance", "ever wrong", "covered", "baseline", "verdict")  # fmt: skip
    few = ERROR / judged(cases)
    return Table(name, about, columns, [row(case, runs, few) for case in cases])


def vetoed(runs: int = AUDITS["full"].losses) -> Table:
    return table(runs, VETO_CASES, "veto-audit", VETOED)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            "give a number of campaigns; python benchmarks/run.py losses-audit runs all and keeps the table"
        )
    print(table(int(sys.argv[1])).markdown())
