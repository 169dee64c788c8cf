"""Importance weighting: rewards reweighted by how much likelier the target was to get there."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._types import Floats, Ints
from saver.errors import InvalidData
from saver.estimate.interval import Estimate, Missing, from_parts, nothing_seen
from saver.problem.bellman import by_step
from saver.problem.bulk import episodes_of
from saver.problem.checks import LARGEST, SUM_TOLERANCE, show
from saver.problem.columns import Columns
from saver.problem.mdp import Mdp


def importance_return(
    mdp: Mdp, target: Floats, states: Ints, actions: Ints, rewards: Floats, propensities: Floats
) -> float:
    """sum_t discount^t (prod_{u <= t} pi(a_u|s_u) / b(a_u|s_u)) r_t: per decision; plain if L = 1."""
    bad = np.flatnonzero((propensities <= 0) | (propensities > 1 + SUM_TOLERANCE))
    if len(bad):
        raise InvalidData(
            f"propensities[{bad[0]}] is {show(propensities[bad[0]])}; the probability of an action "
            "that was taken must be in (0, 1]"
        )
    steps = np.arange(len(states))
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.cumprod(by_step(mdp, target)[steps, states, actions] / propensities)
        weighted = float(np.sum(mdp.discount**steps * ratio * rewards))
    if not abs(weighted) <= LARGEST:
        raise InvalidData(
            f"the importance-weighted return is {weighted:g}: "
            f"the propensities {propensities.tolist()} are too small"
        )
    return weighted


def running_ratios(mdp: Any, target: Floats, many: Columns, propensities: Floats) -> Floats:
    """prod_{u <= t} pi(a_u|s_u) / b(a_u|s_u), of each row of many episodes."""
    found: Floats = by_step(mdp, target)[many.steps, many.states, many.actions] / propensities
    lengths, first = many.lengths, many.offsets[:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(1, int(lengths.max(initial=0))):
            at = first[lengths > t] + t
            found[at] *= found[at - 1]
    return found


def importance_returns(mdp: Any, target: Floats, many: Columns) -> Floats:
    """`importance_return` of each of many episodes."""
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = running_ratios(mdp, target, many, many.propensities)
        found = many.returns(ratios * many.rewards, mdp.discount)
    wrong = (many.propensities <= 0) | (many.propensities > 1 + SUM_TOLERANCE)
    for number in (*episodes_of(many, wrong)[:1], *np.flatnonzero(~(np.abs(found) <= LARGEST))[:1]):
        one = many[number]
        importance_return(mdp, target, one.states, one.actions, one.rewards, one.propensities)
    return found


def importance(count: int, mean: float, squares: float, covered: float, level: float = 0.95) -> Estimate:
    """The average of `count` importance-weighted returns, from their running moments.

    Unbiased as long as the behaviours could take every action of the target. Where weights are large its
    interval is too short; how often is counted in docs/estimate.md.
    """
    if count == 0:
        return nothing_seen(level)
    variance = squares / (count - 1) / count if squares > 0.0 else np.inf
    equal = ("all weighted returns agree, which shows nothing of how they vary",)
    missing = Missing(reasons=equal if count > 1 and squares == 0.0 else ())
    return from_parts(mean, np.array([variance]), np.array([max(count - 1.0, 1.0)]), covered, level, missing)
