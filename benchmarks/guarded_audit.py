"""The promise with guardrails, counted: a learned or bounded baseline value, and several at once.

What is judged is the TRUE line of every guardrail, which the campaign does not know. Worlds are those of the
audit (audit/saver_audit/making.py), drawn at random, and bandits at the edge: their target earns just
less than what is required of a value that is learned. `broken` counts campaigns in which the true budget of
some guardrail was below 0 at any episode; `at most` is the one-sided 95 % bound of Clopper and Pearson on
that frequency, to be compared with `delta`, `by chance` the probability of as many or more at risk delta. A
group is BROKEN if that is below .001 over the number of groups.
"""

from __future__ import annotations

import sys
import time

from tables import Table

from saver.experiments.tables import TABLES, Row
from saver.experiments.work import silent
from saver_audit.count import AUDITS, counts_for, world_rows
from saver_audit.judge import judged, verdict
from saver_audit.making import FORMS, WAYS
from saver_audit.worlds import SHAPES, Place

MORE, EDGE = 2, 5  # times the runs of the audit


def places(level: str) -> list[tuple[Place, int, int]]:
    size = AUDITS[level]
    found = [
        (Place(form, shape, i), MORE * size.runs[shape], size.heavy[shape])
        for form in FORMS
        for shape in SHAPES
        for i in range(size.guarded[shape])
    ]
    edge = [Place("hostile", f"at the edge, {way}") for way in WAYS]
    return found + [(place, EDGE * size.hostile["one way"], EDGE * size.hostile["one way"]) for place in edge]


def rows_of(todo: list[tuple[Place, int, int]]) -> list[Row]:
    """What the audit counts in these worlds."""
    rows: list[Row] = []
    began = time.perf_counter()
    for number, (place, runs, heavy) in enumerate(todo, 1):
        counts = counts_for(place, place.make(), runs, heavy)
        for row in world_rows(place, counts, 0, None, silent):
            rows.append(dict(zip(TABLES["audit"].columns, row, strict=True)))
        seconds = time.perf_counter() - began
        print(f"{number} of {len(todo)} worlds, {seconds:.0f} s", file=sys.stderr, flush=True)
    return rows


def told(name: str, text: str, rows: list[Row]) -> Table:
    """The table of what was counted."""
    groups = judged(rows)
    total, broken = sum(group.runs for group in groups), sum(group.violations for group in groups)
    allowed = sum(group.delta * group.runs for group in groups)
    about = f"{text}\n{total:,} campaigns, {broken} broken; {allowed:.0f} are allowed.\n"
    cells = [
        [group.group, group.collector, group.delta, group.worlds, group.runs, group.violations,
         f"{group.upper:.4f}", f"{group.chance:.2g}", f"{group.baseline:.3f}", verdict(group)]
        for group in groups
    ]  # fmt: skip
    names = ("group", "collector", "delta", "worlds", "campaigns", "broken", "at most", "by chance",
             "baseline", "verdict")  # fmt: skip
    return Table(name, about, names, cells)


def table(level: str = "full") -> Table:
    return told("guarded-audit", __doc__ or "", rows_of(places(level)))


if __name__ == "__main__":
    found = table(*sys.argv[1:])
    print(found.markdown(), found.write())
