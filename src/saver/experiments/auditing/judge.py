"""Judges counts: whether chance explains how often the promise broke and the intervals missed.

A violation is a campaign whose true budget was below 0 at any episode: of n campaigns each is one with
probability delta at most. An interval at one time, at the end, holds the truth with probability HOLDS at
least. One at all times is ever wrong, at any look, with probability MISSES at most. The exact binomial
distribution gives the probability of a count as bad or worse; below ERROR, divided by the number of all
judgements (Bonferroni), chance is no explanation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from saver.experiments.tables import Row

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
