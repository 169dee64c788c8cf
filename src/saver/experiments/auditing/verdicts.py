"""The audit in words."""

from __future__ import annotations

import math

from saver.estimate.interval import LEVEL
from saver.experiments.auditing.count import FIRST, LATER, LOOKS
from saver.experiments.auditing.judge import ERROR, HOLDS, MISSES, Group
from saver.experiments.auditing.losses import LOOK

CELLS = (
    "group", "collector", "delta", "worlds", "campaigns", "broken", "at most", "by chance", "covered",
    "ever wrong", "bias", "baseline", "verdict",
)  # fmt: skip
HEAD = f"""# Audit

`broken` counts campaigns whose true budget was below 0 at any episode. `at most` is the one-sided 95 %
bound of Clopper and Pearson on that frequency, to be compared with `delta`; `by chance` the probability of
as many or more if each campaign broke with probability delta.

`covered` is the share of {LEVEL:.0%} intervals for one look that hold the true value, of those that are
bounded at the end. `ever wrong` counts campaigns whose {LEVEL:.0%} interval at all times missed the true
value at some look, of those looked at: up to {LOOKS} times from episode {FIRST} on where something is
declared about rewards, from {LATER} on where it is right in the limit only. Where feedback is lost or late
there is a look every {LOOK} trials; the interval for one look promises nothing if somebody chooses what is
lost, and is counted only where losses are at random and declared so.

A group is `BROKEN` if chance does not explain how often the promise broke; it `MISSES at one time` if
chance does not explain how few intervals hold, each with probability {HOLDS:g}; it `MISSES at all times` if
chance does not explain how many campaigns were ever wrong, each with probability {MISSES:g}. Chance
explains a count if one as bad or worse has a probability of at least {ERROR:g} over the number of all
judgements, by the exact binomial distribution. With importance weights the interval for one look is
reported, not judged. `too few`: even all campaigns of the group could not have shown a broken promise.

`bias` is the root mean square over worlds of the mean error in standard errors, about 1 where there is
none; `baseline` the share of baseline episodes.
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
        f"{group.ever} of {group.watched:,}" if group.watched else "-",
        "-" if math.isnan(group.bias) else f"{group.bias:.2f}",
        f"{group.baseline:.1%}",
        verdict(group),
    )


def verdict(group: Group) -> str:
    """In a word, or in one for each thing that chance does not explain."""
    words = {
        "BROKEN": group.violates,
        "MISSES at one time": group.misses,
        "MISSES at all times": group.ever_misses,
    }
    return ", ".join(word for word, so in words.items() if so) or ("kept" if group.tellable else "too few")


def summary(groups: list[Group]) -> str:
    """What the audit found, in a few sentences."""
    runs, most = sum(g.runs for g in groups), sum(g.violations for g in groups)
    allowed = sum(g.delta * g.runs for g in groups)
    found = [
        f"{runs:,} campaigns in {len(groups)} groups: {most:,} broke the promise, {most / allowed:.1%} of "
        f"the {allowed:,.0f} that their deltas allow."
    ]
    if watched := sum(g.watched for g in groups):
        ever = sum(g.ever for g in groups)
        found += [f"Of {watched:,} intervals at all times {ever:,} were ever wrong, {ever / watched:.1%}."]
    broken, missing = sum(g.violates for g in groups), sum(g.misses or g.ever_misses for g in groups)
    found += [
        f"{broken} groups break their promise beyond chance." if broken
        else "No group breaks its promise beyond chance.",
        f"{missing} groups miss with their intervals beyond chance." if missing
        else "No group misses with its intervals beyond chance.",
    ]  # fmt: skip
    return " ".join(found)


def audit_text(groups: list[Group]) -> str:
    """The table in Markdown."""
    rows = [CELLS, ("---",) * len(CELLS), *(cells(group) for group in groups)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{HEAD}\n{summary(groups)}\n\n{table}\n"
