"""A log -> what it says of its world and of the policy that was logged."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from saver._types import Floats
from saver.data.cells import read_policy
from saver.data.episodes import END_LABEL, Episodes
from saver.data.fitted import Fitted
from saver.data.offpolicy import sums_of
from saver.data.reading import read_log
from saver.data.scales import observed, scale_of
from saver.errors import InvalidData, InvalidProblem
from saver.estimate.interval import Estimate, from_parts
from saver.estimate.log import seen_moves
from saver.problem import Guardrail, Mdp, Problem, Unknown, checks
from saver.problem.moments import Sums


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
    _check_model(model, (*new_states, *new_actions))
    notes: list[str] = []
    many = _whole(episodes, checks.whole("horizon", horizon, 1), cut, notes)
    states = _more("new_states", many.state_labels, new_states)
    actions = _more("new_actions", many.action_labels, new_actions)
    many = replace(many, state_labels=states, action_labels=actions)
    mdp: Any = Unknown(
        len(states), len(actions), horizon, discount=discount, state_names=states, action_names=actions
    )
    sums = sums_of(mdp, many)
    if model == "mdp":
        mdp = as_mdp(mdp, sums, notes)
    if baseline is None:
        policy = observed(many, sums.rewards.counts, mdp, by_step, notes)
    else:
        policy = checks.policy(mdp, read_policy(baseline, mdp), "baseline", known=False)
    columns = {"reward": many.rewards, **many.constraints}
    scales = {name: scale_of(many, column, sums.rewards.mean.shape) for name, column in columns.items()}
    reward = value_of(many, many.rewards, discount, level)
    values = {name: value_of(many, column, discount, level) for name, column in many.constraints.items()}
    for name, found in {"reward": reward, **values}.items():
        if found.stderr == 0.0:
            notes.append(f"{name} earned the same in every episode: its interval, of no width, says nothing")
    return Fitted(
        mdp, checks.frozen(policy), values, scales, many, reward, sums, baseline is not None, tuple(notes),
        level,
    )  # fmt: skip


def value_of(many: Episodes, column: Floats, discount: float, level: float) -> Estimate:
    """The mean of what episodes earned, with Student's interval: they are independent of each other."""
    earned = many.returns(column, discount)
    earned = earned[~np.isnan(earned)]
    n = len(earned)
    value, variance = float(earned.mean()) if n else np.nan, np.inf
    if n > 1:
        variance = float(np.var(earned, ddof=1)) / n
    return from_parts(value, np.array([variance]), np.array([max(n - 1.0, 1.0)]), min(n, 1.0), level)


def _whole(episodes: Episodes, horizon: int, cut: str, notes: list[str]) -> Episodes:
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
        return many
    first, count = int(np.argmax(broken)), int(broken.sum())
    if cut == "refuse" or broken.all():
        led = int(many.final_states[first])
        where = f", in {many.state_labels[led]!r}" if led >= 0 else ""
        raise InvalidData(
            f"{many.called(first)} stops after {many.lengths[first]} of {horizon} steps{where} and "
            f"did not end there, and so do {count - 1:,} others; leave its next_state empty if it ended, or "
            "say cut='drop' (--cut drop)"
        )
    notes.append(f"{count:,} of {len(many):,} episodes were cut off and dropped, as if that were chance")
    return many.select(~broken)


def _more(name: str, labels: tuple[str, ...], new: Sequence[str]) -> tuple[str, ...]:
    if isinstance(new, str):
        new = (new,)
    for label in new:
        if not isinstance(label, str) or label in labels:
            raise InvalidData(f"{name} has {label!r}, which must be a text that the log does not have")
    return (*labels, *new)


def _check_model(model: str, new: Sequence[str]) -> None:
    if model not in ("unknown", "mdp"):
        raise InvalidProblem(f"model is {model!r}; it must be 'unknown' or 'mdp'")
    if model == "mdp" and new:
        raise InvalidProblem(
            f"{new[0]!r} is new, and nobody saw where it leads; with model='mdp' all is in the log: use "
            "model='unknown'"
        )


def as_mdp(unknown: Any, sums: Sums, notes: list[str]) -> Mdp:
    """Frequencies taken for probabilities.

    Pairs that were never seen are missing, not ends. Ends lead to one terminal state more.
    """
    moves, S, A = seen_moves(unknown, sums), unknown.states, unknown.actions
    ends, outcomes = moves.ends, moves.outcomes
    over = np.flatnonzero(ends)
    more = int(len(over) > 0)
    pairs = np.concatenate([moves.rows, over])
    to = np.concatenate([moves.counts.indices, np.full(len(over), S)])
    counts = np.concatenate([moves.counts.data, ends[over]])
    seen = sums.rewards.counts > 0
    available = np.pad(seen | ~seen.any(axis=1, keepdims=True), ((0, more), (0, 0)), constant_values=True)
    mdp = Mdp.from_edges(
        np.column_stack([*divmod(pairs, A), to, counts / outcomes[pairs]]), S + more, A, unknown.horizon,
        discount=unknown.discount, start=np.pad(moves.starts / sums.episodes, (0, more)), terminal=[S] * more,
        available=available, state_names=(*unknown.state_names, *[END_LABEL] * more),
        action_names=unknown.action_names,
    )  # fmt: skip
    _check_unseen(mdp, outcomes, available[:S].ravel())
    notes.append(
        f"{int(np.sum(counts == 1)):,} of {len(counts):,} moves were seen once: the model takes frequencies "
        "for probabilities, and no interval counts that; model='unknown' does"
    )
    return mdp


def _check_unseen(mdp: Mdp, outcomes: Floats, available: Any) -> None:
    """Refuse pairs that can be met before the last step and whose moves nobody saw: they are no ends."""
    early = np.zeros(mdp.states * mdp.actions, dtype=bool)
    for states in mdp.layers[: mdp.horizon - 1]:
        early[mdp.pairs(states)] = True
    if len(lost := np.flatnonzero(available & (outcomes == 0) & early[: len(outcomes)])):
        state, action = divmod(int(lost[0]), mdp.actions)
        raise InvalidData(
            f"nobody saw where {mdp.action_label(action)} in {mdp.state_label(state)} leads, nor of "
            f"{len(lost) - 1} other pairs: they were met in last steps only; give next_state=..., or "
            "model='unknown'"
        )


READ, FIT = (frozenset(list(inspect.signature(call).parameters)[1:]) for call in (read_log, fit))


def problem(source: Any, target: Any, guardrails: Any, *, horizon: int, **options: Any) -> Problem:
    """The problem that a log of the baseline states.

    `guardrails` are `saver.Guardrail`s, or {name: options}, each read from the column of its name unless
    `columns={name: column}` says otherwise. `options` are those of `read_log`, of `Episodes.fit` and of
    `saver.Problem`.
    """
    columns = options.pop("columns", {})
    if isinstance(guardrails, Guardrail):
        guardrails = (guardrails,)
    names = [getattr(item, "name", item) for item in guardrails]
    if not all(isinstance(name, str) for name in names):
        raise InvalidProblem(
            f"guardrails is {guardrails!r}; give saver.Guardrail(...)s, or {{name: options}}"
        )
    reading, fitting = ({key: options.pop(key) for key in list(options) if key in of} for of in (READ, FIT))
    log = read_log(source, guardrails={name: columns.get(name, name) for name in names}, **reading)
    return log.fit(horizon, **fitting).problem(target, guardrails, **options)
