"""The promise of campaigns that begin with a log, transitions unknown, counted.

Each campaign draws a log of its own, and plays after it (audit/saver_audit/logged.py, loggedworlds.py): rare
moves to disasters, actions logged hardly ever or never, what steps share, moves by what nobody sees, a start
that decides all, random graphs, several guardrails. The target is worth the said share of what is required:
just below the line who believes a little too much breaks the promise. `broke` counts campaigns in which the
true budget of some guardrail was below 0 at any episode, `too much` those in which the believed budget was
above the true one at any time; `at most` is the one-sided 95 % bound of Clopper and Pearson on the larger of
the two frequencies, to be compared with `delta`, `by chance` the probability of as many or more at risk
delta. A group is BROKEN if that is below .001 over the number of all judgements.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from tables import Table

from saver.experiments.work import named_seed
from saver.safety.modelfree import LOG
from saver_audit.judge import ERROR, tail, upper_bound
from saver_audit.logged import ROUND, Case, counted, too_high
from saver_audit.loggedworlds import WORLDS, alone, cases, planned

RUNS, PLANNED, LOGS, PART = 400, 50, 200, 50
Counts = list[tuple[Case, int, list[Any]]]  # each case, how many, and sums
FLOORS = f"""
What logs of 400 episodes show, without a campaign: `above` counts those of which the floor of some policy, of
some guardrail, is above what the policy is truly worth above what is required; it may happen with probability
`may`, {LOG:g} delta. `observed`: as many logs where the baseline's probabilities are the frequencies of the
log itself. Of that nothing is promised.
"""


def some(case: Case, first: int, last: int) -> tuple[int, int, float]:
    """Of these campaigns: how many broke, how many believed too much, and the baseline episodes' share."""
    found = counted(case, WORLDS[case.world](), range(first, last))
    bad = [int(np.sum(column < -ROUND)) for column in (found.worst, found.least)]
    return bad[0], bad[1], float(np.sum(found.share))


def looked(case: Case, first: int, last: int) -> tuple[int, int]:
    """Of these logs: how many show too much, and how many where the baseline is counted."""
    world, names = WORLDS[case.world](), ("floors", case.group, f"{case.delta:g}")
    seeds = [named_seed(0, *names, str(r)) for r in range(first, last)]
    given, own = ([too_high(case, world, seed, own) for seed in seeds] for own in (False, True))
    return sum(given), sum(own)


def spread(pool: Any, work: Any, todo: list[tuple[Case, int]]) -> Iterator[tuple[Case, int, list[Any]]]:
    """The sums of each case's parts, in order."""
    began = time.perf_counter()
    parts = [(case, first, min(first + PART, n)) for case, n in todo for first in range(0, n, PART)]
    found = pool.map(work, *zip(*parts, strict=True))
    for case, n in todo:
        sums = np.sum([next(found) for _ in range(0, n, PART)], axis=0).tolist()
        seconds = time.perf_counter() - began
        print(f"{seconds:.0f} s\t{case.group}\t{case.delta}\t{n}\t{sums}", file=sys.stderr, flush=True)
        yield case, n, sums


def judged(counts: Counts, few: float) -> list[list[Any]]:
    """The rows of campaigns."""
    rows = []
    for case, n, (broke, much, share) in counts:
        worse = int(max(broke, much))
        chance = tail(n, worse, case.delta)
        rows.append([case.group, str(case.collector), case.delta, n, int(broke), int(much),
                     f"{upper_bound(n, worse):.4f}", f"{chance:.2g}", f"{share / n:.3f}",
                     "BROKEN" if chance < few else "kept"])  # fmt: skip
    return rows


def floors(counts: Counts, few: float) -> list[list[Any]]:
    """The rows of logs."""
    rows = []
    for case, n, (above, own) in counts:
        may = LOG * case.delta
        said = ["BROKEN" if tail(n, int(each), may) < few else "kept" for each in (above, own)]
        ends = [f"{upper_bound(n, int(each)):.3f}" for each in (above, own)]
        beyond = "beyond chance" if said[1] == "BROKEN" else ""
        rows.append([case.world, f"{case.way}, V0 {case.value}", case.delta, n, f"{may:g}", int(above),
                     ends[0], said[0], int(own), ends[1], beyond])  # fmt: skip
    return rows


def table(runs: int | str = RUNS, jobs: int | str = 2) -> Table:
    """Both tables; with fewer runs the shares of all groups stay the same."""
    part = int(runs) / RUNS
    size = [max(1, round(part * n)) for n in (RUNS, PLANNED, LOGS)]
    todo = [*((case, size[0]) for case in cases()), *((case, size[1]) for case in planned())]
    with ProcessPoolExecutor(int(jobs), mp_context=multiprocessing.get_context("spawn")) as pool:
        logs = list(spread(pool, looked, [(case, size[2]) for case in alone()]))
        return told(list(spread(pool, some, todo)), logs)


def told(counts: Counts, logs: Counts) -> Table:
    """What was counted."""
    few = ERROR / (len(logs) + 2 * len(counts))
    total, bad = sum(n for _, n, _ in counts), np.sum([found[:2] for *_, found in counts], axis=0)
    allowed = sum(case.delta * n for case, n, _ in counts)
    about = (
        f"{__doc__}\n{total:,} campaigns, {int(bad[0])} broke the promise and {int(bad[1])} believed too "
        f"much; {allowed:,.0f} are allowed.\n"
    )
    names = ("group", "collector", "delta", "campaigns", "broke", "too much", "at most", "by chance",
             "baseline", "verdict")  # fmt: skip
    columns = ("world", "guardrail", "delta", "logs", "may", "above", "at most", "verdict", "observed",
               "at most", "")  # fmt: skip
    below = Table("Floors alone", FLOORS, columns, floors(logs, few))
    return Table("logged-audit", about, names, judged(counts, few), [below])


if __name__ == "__main__":
    found = table(*sys.argv[1:])
    print(found.markdown(), found.write())
