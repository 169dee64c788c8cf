"""Judges counts: whether chance explains how often the promise broke and the intervals missed; and says it.

A violation is a campaign whose true budget was below 0 at any episode: of n campaigns each is one with
probability delta at most. An interval at one time, at the end, holds the truth with probability HOLDS at
least. One at all times is ever wrong, at any look, with probability MISSES at most. The exact binomial
distribution gives the probability of a count as bad or worse; below ERROR, divided by the number of all
judgements (Bonferroni), chance is no explanation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from saver.estimate.interval import LEVEL
from saver.experiments.report import markdown_table
from saver.experiments.tables import Row
from saver_audit.count import FIRST, LATER, LOOKS
from saver_audit.losses import LOOK

ERROR = 1e-3
HOLDS = 0.94  # of intervals at one time, whose level is .95: they are approximate
MISSES = 0.05


@dataclass(frozen=True)
class Group:
    """Campaigns of one collector with one delta in one group of worlds."""

    group: str
    collector: str
    delta: float
    worlds: int
    runs: int
    violations: int
    upper: float  # one-sided 95 % bound on the frequency, Clopper and Pearson's
    chance: float  # of as many violations or more at risk delta
    violates: bool  # beyond chance
    tellable: bool  # whether all campaigns broken would have been beyond chance
    bounded: int  # intervals at one time
    covered: float
    misses: bool  # beyond chance
    watched: int  # intervals at all times
    ever: int  # of these, wrong at some look
    ever_misses: bool  # beyond chance
    broken: bool  # any of the three
    bias: float  # the root mean square of bias / its standard error over worlds; about 1 without bias
    baseline: float


def judged(rows: list[Row]) -> list[Group]:
    """The counts of each group, collector and delta, and whether chance explains them."""
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["group"], row["collector"], row["delta"]), []).append(row)
    judgements = sum(1 + _once(chosen) + any(row["watched"] for row in chosen) for chosen in groups.values())
    return [_judged(key, chosen, ERROR / judgements) for key, chosen in groups.items()]


def _once(chosen: list[Row]) -> bool:
    """Whether intervals at one time are judged; importance weights are only reported."""
    return any(row["bounded"] and row["estimate"] != "importance" for row in chosen)


def _judged(key: tuple[str, str, float], chosen: list[Row], few: float) -> Group:
    runs, violations, bounded, covered, watched, ever = (
        sum(row[column] for row in chosen)
        for column in ("runs", "violations", "bounded", "covered", "watched", "ever")
    )
    chance = tail(runs, violations, key[2])
    scores = [row["bias"] / row["bias_se"] for row in chosen if row["bias_se"] > 0]
    violates = chance < few
    misses = _once(chosen) and tail(bounded, bounded - covered, 1.0 - HOLDS) < few
    ever_misses = tail(watched, ever, MISSES) < few
    return Group(
        *key,
        worlds=len(chosen),
        runs=runs,
        violations=violations,
        upper=upper_bound(runs, violations),
        chance=chance,
        violates=violates,
        tellable=tail(runs, runs, key[2]) < few,
        bounded=bounded,
        covered=covered / bounded if bounded else math.nan,
        misses=misses,
        watched=watched,
        ever=ever,
        ever_misses=ever_misses,
        broken=violates or misses or ever_misses,
        bias=math.sqrt(sum(s * s for s in scores) / len(scores)) if scores else math.nan,
        baseline=sum(row["baseline_share"] * row["runs"] for row in chosen) / runs,
    )


def tail(runs: int, violations: int, delta: float) -> float:
    """P(Binomial(runs, delta) >= violations)."""
    from scipy.special import betainc

    return 1.0 if violations == 0 else float(betainc(violations, runs - violations + 1, delta))


def upper_bound(runs: int, violations: int, level: float = 0.95) -> float:
    """The largest frequency that is compatible with the count at `level`."""
    from scipy.special import betaincinv

    return 1.0 if violations == runs else float(betaincinv(violations + 1, runs - violations, level))


# -- in words ------------------------------------------------------------------------------------------------

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
    return f"{HEAD}\n{summary(groups)}\n\n{markdown_table([CELLS, *map(cells, groups)])}\n"
