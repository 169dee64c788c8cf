"""The audit in words."""

from __future__ import annotations

import math

from saver.experiments.auditing.count import LEVEL
from saver.experiments.auditing.judge import ERROR, Group

CELLS = (
    "group", "collector", "delta", "worlds", "campaigns", "broken", "at most", "by chance", "covered", "bias",
    "baseline", "verdict",
)  # fmt: skip
HEAD = f"""# Audit

`broken` counts campaigns whose true budget was below 0 at any episode. `at most` is the one-sided 95 % bound
of Clopper and Pearson on that frequency, to be compared with `delta`; `by chance` the probability of as many
or more if each campaign broke with probability delta. A group is `BROKEN` if that is below {ERROR:g} over the
number of groups, and `too few` if even all of its campaigns could not have shown it. `covered` is the share
of {LEVEL:.0%} intervals that hold the true value, of those that are bounded at the end; `bias` the root mean
square over worlds of the mean error in standard errors, about 1 where there is none; `baseline` the share of
baseline episodes.
"""


def cells(group: Group) -> tuple[str, ...]:
    """One row."""
    return (
        group.group,
        group.collector,
        f"{group.delta:g}",
        str(group.worlds),
        f"{group.runs:,}",
        str(group.violations),
        f"{group.upper:.4f}",
        f"{group.chance:.2g}",
        "-" if math.isnan(group.covered) else f"{group.covered:.3f} of {group.bounded:,}",
        "-" if math.isnan(group.bias) else f"{group.bias:.2f}",
        f"{group.baseline:.1%}",
        "BROKEN" if group.broken else "kept" if group.tellable else "too few",
    )


def summary(groups: list[Group]) -> str:
    """What the audit found, in one sentence."""
    runs, broken = sum(g.runs for g in groups), [g for g in groups if g.broken]
    most = sum(g.violations for g in groups)
    allowed = sum(g.delta * g.runs for g in groups)
    verdict = "No group breaks its promise beyond chance."
    if broken:
        verdict = f"{len(broken)} groups break their promise beyond chance."
    return (
        f"{runs:,} campaigns in {len(groups)} groups: {most:,} broke the promise, {most / allowed:.1%} of "
        f"the {allowed:,.0f} that their deltas allow. {verdict}"
    )


def audit_text(groups: list[Group]) -> str:
    """The table in Markdown."""
    rows = [CELLS, ("---",) * len(CELLS), *(cells(group) for group in groups)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{HEAD}\n{summary(groups)}\n\n{table}\n"
