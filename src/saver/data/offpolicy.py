"""What a policy would earn, from a log alone: by the model of what was seen, and by importance weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saver._types import Floats
from saver.collect.answers import Comparison, comparison
from saver.data.episodes import Episodes
from saver.data.models import believed
from saver.errors import InvalidData
from saver.estimate.certainty import covered_share
from saver.estimate.importance import importance, running_ratios
from saver.estimate.interval import Estimate
from saver.estimate.log import estimate
from saver.problem import checks
from saver.problem.bellman import by_step, weights
from saver.problem.bulk import suspects
from saver.problem.statement import Problem
from saver.problem.sums import Sums

FEW = 50.0  # episodes
SHARE = 0.05


@dataclass(frozen=True)
class OffPolicy:
    """A policy's value from a log of other policies.

    Attributes:
        certainty: in the model of what was seen; its interval counts rewards and moves.
        importance: the mean of returns weighted by prod pi / b.
        effective: how many episodes of the policy itself the weighted ones are worth, (sum w)^2 / sum w^2.
        heaviest: the share of all weight that one episode has.
        notes: what makes an answer weak.
    """

    certainty: Estimate
    importance: Estimate
    effective: float
    heaviest: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Evaluation:
    """What a log says of one target of a problem.

    Attributes:
        value: of the target.
        baseline: of the baseline's reward.
        comparison: of the two, for one look.
        guarded: what the target would earn of each guardrail, in the units in which it is told.
        required: what it must earn (a cost: may cost) for that guardrail: where the baseline's value is not
            known, by the problem's history, or else by this log.
    """

    value: OffPolicy
    baseline: Estimate
    comparison: Comparison
    guarded: dict[str, Estimate]
    required: dict[str, float]


def off_policy(
    model: Any,
    episodes: Episodes,
    target: Any,
    *,
    behaviour: Any = None,
    level: float = 0.95,
    reward: Any = None,
) -> OffPolicy:
    """The target's value from logged episodes of any policy.

    Importance weights use the propensities that were recorded; else `behaviour`, the policy that was logged;
    else how often each action was taken in each state. `reward` is what is promised about one reward.
    """
    policy = checks.policy(model, target, "target", known=False)
    many = checked(model, episodes)
    sums = sums_of(model, many)
    by_model = estimate(model, policy, sums, "certainty", level, reward)
    whole = many if many.complete.all() else many.select(many.complete)
    likely, notes = _likely(model, whole, sums.rewards.counts, behaviour)
    ratios = running_ratios(model, policy, whole, likely)
    returns, last = whole.returns(ratios * whole.rewards, model.discount), ratios[whole.last]
    covered = covered_share(weights(believed(model, sums), policy), sums.rewards.counts > 0)
    mean = float(returns.mean())
    squares = float(np.sum((returns - mean) ** 2))
    effective, heaviest = _weight(last)
    if covered == 0.0:
        notes.append("the log has nothing of what the target does; importance knows nothing")
    elif effective < max(FEW, SHARE * len(whole)) or heaviest > SHARE:
        notes.append(
            f"importance weights are heavy: {len(whole):,} episodes are worth {effective:,.0f} of the "
            f"target's, and one has {heaviest:.0%} of the weight; its interval is too short: use certainty"
        )
    if 0.0 < covered < 1.0:
        notes.append(
            f"the log has {covered:.1%} of what the target does; importance leaves out the rest, so that its "
            "interval has no end"
        )
    by_weight = importance(len(whole), mean, squares, covered, level)
    if covered < 1.0:
        by_weight = replace(by_weight, stderr=np.inf, interval=(-np.inf, np.inf))
    if covered == 0.0:
        by_weight = replace(by_weight, value=np.nan)
    return OffPolicy(by_model, by_weight, effective, heaviest, tuple(notes))


def _likely(model: Any, whole: Episodes, counts: Any, behaviour: Any) -> tuple[Floats, list[str]]:
    """The probability with which each action was taken, and what is to be said of it."""
    if not len(whole):
        raise InvalidData("all episodes were cut off; nothing can be weighted")
    if whole.propensities is not None:
        return whole.propensities, []
    if behaviour is None:
        rates = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        found: Floats = rates[whole.states, whole.actions]
    else:
        logged = checks.policy(model, behaviour, "behaviour", known=False)
        found = by_step(model, logged)[whole.steps, whole.states, whole.actions]
        if len(never := np.flatnonzero(found == 0.0)):
            at = int(never[0])
            said = model.move_label(int(whole.steps[at]), int(whole.states[at]), int(whole.actions[at]))
            raise InvalidData(f"{said} was logged, and has probability 0 under the behaviour")
    return found, ["propensities were not recorded: frequencies stand for them"] if behaviour is None else []


def evaluate(problem: Problem, episodes: Episodes, *, level: float = 0.95) -> dict[str, Evaluation]:
    """What a log, of any policy, says of each target of a problem; labels are those of the problem."""
    checks.kind("problem", problem, Problem)
    mdp = problem.mdp
    if not isinstance(episodes, Episodes):
        raise InvalidData(f"the log is a {type(episodes).__name__}; give what saver.data.read_log gave")
    many = checked(mdp, _relabelled(mdp, episodes))
    _check_promised(problem, many)
    sums, found = sums_of(mdp, many), {}
    paid = {
        rail.name: sums_of(mdp, many.paying(rail.name)) for rail in problem.rails if _told(many, rail.name)
    }
    for name, policy in problem.targets.items():
        apart = estimate(mdp, policy, sums, "certainty", level, problem.reward, problem.baseline)
        found[name] = Evaluation(
            off_policy(mdp, many, policy, level=level, reward=problem.reward),
            estimate(mdp, problem.baseline, sums, "certainty", level, problem.reward),
            comparison(apart, len(many)),
            {rail: estimate(mdp, policy, one, "certainty", level) for rail, one in paid.items()},
            {rail: _required(problem, rail, one, level) for rail, one in paid.items()},
        )
    return found


def checked(model: Any, episodes: Episodes) -> Episodes:
    """Episodes until the horizon that can have happened in this model."""
    many = episodes.until(model.horizon)
    if not len(many):
        raise InvalidData("there are no episodes; give at least one")
    for number in suspects(model, many):
        try:
            many[number].check(model, bool(many.complete[number]))
        except InvalidData as cause:
            raise InvalidData(f"episode {many.called(int(number))}: {cause}") from None
    return many


def sums_of(model: Any, many: Episodes) -> Sums:
    """Counts and moments of checked episodes."""
    sums = Sums.empty(model)
    sums.add_all(model, many)
    return sums


def _relabelled(mdp: Any, episodes: Episodes) -> Episodes:
    if mdp.state_names is None or mdp.action_names is None:
        return episodes
    return episodes.labelled(mdp.state_names, mdp.action_names)


def _told(many: Episodes, name: str) -> bool:
    """Whether a guardrail was measured in every episode."""
    column: Mapping[str, Any] = many.constraints
    return name in column and not np.isnan(column[name]).any()


def _check_promised(problem: Problem, many: Episodes) -> None:
    """Refuse numbers outside of what is promised: another column, most likely."""
    for rail in problem.rails:
        if rail.name in many.constraints:
            low, high = sorted(rail.sign * end for end in rail.promise.bounds)
            column = many.constraints[rail.name]
            if len(bad := np.flatnonzero((column < low) | (column > high))):
                number = int(np.searchsorted(many.offsets, bad[0], side="right")) - 1
                raise InvalidData(
                    f"episode {many.called(number)}, step {many.steps[bad[0]]}: {rail.name} is "
                    f"{column[bad[0]]:g}, and the problem promises [{low:g}, {high:g}]; is it another column?"
                )


def _required(problem: Problem, name: str, sums: Sums, level: float) -> float:
    """r0 + r1 V0, with the V0 that is known, that the problem's history has, or that this log has."""
    rail, past = problem.rail(name), problem.history
    if rail.exact:
        value = rail.value
    elif past is not None and past.guarded[name].count:
        value = past.guarded[name].gained / past.guarded[name].count
    else:
        value = rail.sign * estimate(problem.mdp, problem.baseline, sums, "certainty", level).value
    return float(rail.sign * rail.required_at(value))


def _weight(last: Floats) -> tuple[float, float]:
    total, squares = float(np.sum(last)), float(np.sum(last**2))
    return (total**2 / squares, float(last.max()) / total) if squares > 0.0 else (0.0, 1.0)
