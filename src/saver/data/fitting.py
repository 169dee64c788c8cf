"""A log -> what it says of its world and of the policy that was logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from saver._types import Floats
from saver.data.episodes import Episodes
from saver.data.fitted import Fitted
from saver.data.frequencies import observed
from saver.data.models import as_mdp, check_model
from saver.data.policies import read_policy
from saver.data.scales import scale_of
from saver.errors import InvalidData
from saver.estimate.interval import Estimate, from_parts
from saver.problem import checks
from saver.problem.sums import Sums
from saver.problem.unknown import Unknown


def fit(
    episodes: Episodes,
    horizon: int,
    discount: float = 1.0,
    *,
    model: str = "unknown",
    baseline: Any = None,
    by_step: bool = False,
    new_states: Sequence[str] = (),
    new_actions: Sequence[str] = (),
    cut: str = "refuse",
    level: float = 0.95,
) -> Fitted:
    """What a log of the baseline says: the model, the baseline, what it is worth, how noisy that is.

    Args:
        episodes: all that the baseline did, not selected.
        horizon: L. A longer episode counts until there, and it is seen where that step led; a shorter one has
            ended.
        discount: in (0, 1].
        model: "unknown" learns transitions on and counts that in every interval; "mdp" takes frequencies for
            the truth.
        baseline: the policy that was logged, if it is known: an array, or a table of (state, action,
            probability). By default how often each action was taken in each state.
        by_step: whether that is counted for each step apart, for a baseline that depends on it, [L, S, A].
        new_states: labels that the log does not have and the target may meet.
        new_actions: likewise, which the target may take.
        cut: "refuse" episodes that were cut off before they ended, or "drop" them, which is right only if
            that had nothing to do with what happened in them.
        level: of the intervals.
    """
    checks.flag("by_step", by_step)
    checks.choice("cut", cut, ("refuse", "drop"))
    check_model(model, (*new_states, *new_actions))
    many, notes = _whole(episodes, checks.whole("horizon", horizon, 1), cut)
    states = _more("new_states", many.state_labels, new_states)
    actions = _more("new_actions", many.action_labels, new_actions)
    many = replace(many, state_labels=states, action_labels=actions)
    unknown = Unknown(
        len(states), len(actions), horizon, discount=discount, state_names=states, action_names=actions
    )
    sums = Sums.empty(unknown)
    sums.add_all(unknown, many)
    mdp: Any = unknown
    if model == "mdp":
        mdp, more = as_mdp(unknown, sums)
        notes += more
    if baseline is None:
        policy, more = observed(many, sums.rewards.counts, mdp, by_step)
        notes += more
    else:
        given = read_policy(baseline, mdp.state_names, actions, mdp.states - len(states))
        policy = checks.policy(mdp, given, "baseline", known=False)
    columns = {"reward": many.rewards, **many.constraints}
    scales = {name: scale_of(many, column, sums.rewards.mean.shape) for name, column in columns.items()}
    reward, values, more = _worth(many, discount, level)
    return Fitted(
        mdp, checks.frozen(policy), values, scales, many, reward, sums, baseline is not None, notes + more,
        level,
    )  # fmt: skip


def _worth(
    many: Episodes, discount: float, level: float
) -> tuple[Estimate, dict[str, Estimate], tuple[str, ...]]:
    """What the baseline earns, of rewards and of each guardrail, and notes."""
    reward = value_of(many, many.rewards, discount, level)
    values = {name: value_of(many, column, discount, level) for name, column in many.constraints.items()}
    notes = tuple(
        f"{name} earned the same in every episode: its interval, of no width, says nothing"
        for name, found in {"reward": reward, **values}.items()
        if found.stderr == 0.0
    )
    return reward, values, notes


def value_of(many: Episodes, column: Floats, discount: float, level: float) -> Estimate:
    """The mean of what episodes earned, with Student's interval: they are independent of each other."""
    earned = many.returns(column, discount)
    earned = earned[~np.isnan(earned)]
    n = len(earned)
    if n < 2:
        return from_parts(
            float(np.sum(earned)) if n else np.nan, np.array([np.inf]), np.ones(1), float(n), level
        )
    variance = float(np.var(earned, ddof=1)) / n
    return from_parts(float(earned.mean()), np.array([variance]), np.array([n - 1.0]), 1.0, level)


def _whole(episodes: Episodes, horizon: int, cut: str) -> tuple[Episodes, tuple[str, ...]]:
    """Episodes until the horizon; what was cut off before is refused, or dropped."""
    if not len(episodes):
        raise InvalidData("there are no episodes to learn from; give at least one")
    if episodes.kinds is not None and len(known := sorted(set(episodes.kinds))) > 1:
        raise InvalidData(
            f"the log has episodes of the kinds {', '.join(map(repr, known))}, and a baseline is learned "
            f"from its own alone; choose them: log.select({known[0]!r}).fit(...)"
        )
    many = episodes.until(horizon)
    broken = ~many.complete | ((many.lengths < horizon) & (many.final_states >= 0))
    if not broken.any():
        return many, ()
    first, count = int(np.argmax(broken)), int(broken.sum())
    if cut == "refuse" or broken.all():
        led = int(many.final_states[first])
        where = f", in {many.state_labels[led]!r}" if led >= 0 else ""
        raise InvalidData(
            f"episode {many.called(first)} stops after {many.lengths[first]} of {horizon} steps{where} and "
            f"did not end there, and so do {count - 1:,} others; leave its next_state empty if it ended, or "
            "say cut='drop' (--cut drop)"
        )
    said = f"{count:,} of {len(many):,} episodes were cut off and dropped, as if that were chance"
    return many.select(~broken), (said,)


def _more(name: str, labels: tuple[str, ...], new: Sequence[str]) -> tuple[str, ...]:
    if isinstance(new, str):
        new = (new,)
    for label in new:
        if not isinstance(label, str) or label in labels:
            raise InvalidData(f"{name} has {label!r}, which must be a text that the log does not have")
    return (*labels, *new)
