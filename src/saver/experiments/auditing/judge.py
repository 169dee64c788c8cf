"""Judges counts: whether chance explains how often the promise broke.

A violation is a campaign whose true budget was below 0 at any episode. Of n campaigns with risk delta each, v
or more violations have a probability that the exact binomial distribution gives; a group is called broken if
that is below ERROR, divided by the number of groups (Bonferroni): then chance is no explanation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from saver.experiments.tables import Row

ERROR = 1e-3


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
    broken: bool
    tellable: bool  # whether all campaigns broken would have been beyond chance
    bounded: int
    covered: float
    bias: float  # the root mean square of bias / its standard error over worlds; about 1 without bias
    baseline: float


def judged(rows: list[Row]) -> list[Group]:
    """The counts of each group, collector and delta, and whether chance explains them."""
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["group"], row["collector"], row["delta"]), []).append(row)
    return [_judged(key, chosen, ERROR / len(groups)) for key, chosen in groups.items()]


def _judged(key: tuple[str, str, float], chosen: list[Row], few: float) -> Group:
    runs, violations, bounded, covered = (
        sum(row[column] for row in chosen) for column in ("runs", "violations", "bounded", "covered")
    )
    chance = tail(runs, violations, key[2])
    scores = [row["bias"] / row["bias_se"] for row in chosen if row["bias_se"] > 0]
    return Group(
        *key,
        worlds=len(chosen),
        runs=runs,
        violations=violations,
        upper=upper_bound(runs, violations),
        chance=chance,
        broken=chance < few,
        tellable=tail(runs, runs, key[2]) < few,
        bounded=bounded,
        covered=covered / bounded if bounded else math.nan,
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
