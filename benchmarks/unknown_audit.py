"""The promise where transitions are unknown, counted.

A trial is then known by what it earned alone. Worlds (audit/saver_audit/uncharted.py): at the edge, where a
designed episode is worth just less than what is required and a state drawn at the start decides all that is
observed in it, or whether it ends at once; hostile worlds and random ones of the audit, with something to
spend; and feedback that is lost or late. Who plays: the target; the exact design; `reckless`, who knows the
world and plays what earns least whenever the gate lets it pass; `moving`, who goes from what earns most to
what earns least. `broken` counts campaigns in which the true budget of some guardrail was below 0 at any
episode; `at most` is the one-sided 95 % bound of Clopper and Pearson on that frequency, to be compared with
`delta`, `by chance` the probability of as many or more at risk delta. A group is BROKEN if that is below .001
over the number of groups.
"""

from __future__ import annotations

import sys

from guarded_audit import rows_of, told
from tables import Table

from saver.experiments.tables import TABLES, Row
from saver.experiments.work import silent
from saver_audit.count import AUDITS, loss_rows, unknown_places
from saver_audit.manners import UNKNOWN_CASES

PROMISE_ONLY = {"bounded": 0, "covered": 0, "watched": 0, "ever": 0}  # intervals are judged elsewhere


def lost(runs: int) -> list[Row]:
    """Campaigns whose feedback is lost or late."""
    rows = []
    for case in UNKNOWN_CASES:
        for row in loss_rows(case, runs, 0, None, silent):
            rows.append(dict(zip(TABLES["audit"].columns, row, strict=True)))
        print(f"{case.group}: {rows[-1]['violations']} of {runs}", file=sys.stderr, flush=True)
    return rows


def table(level: str = "full") -> Table:
    size = AUDITS[level]
    rows = rows_of(unknown_places(size)) + lost(size.unknown["losses"])
    return told("unknown-audit", __doc__ or "", [row | PROMISE_ONLY for row in rows])


if __name__ == "__main__":
    found = table(*sys.argv[1:])
    print(found.markdown(), found.write())
