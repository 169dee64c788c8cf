"""What a policy would earn, from a log alone: by the model of what was seen, and by importance weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from saver._late import renamed
from saver._types import Floats
from saver.collect.answers import Comparison, comparison
from saver.data.episodes import Episodes
from saver.data.scales import frequencies
from saver.errors import InvalidData
from saver.estimate import Estimate
from saver.estimate.certainty import covered_share
from saver.estimate.importance import importance, running_ratios
from saver.estimate.log import estimate, seen_moves
from saver.problem import Mdp, Problem, checks, weights
from saver.problem.bellman import by_step
from saver.problem.guardrail import Rail
from saver.problem.history import episodes_of, suspects
from saver.problem.moments import Sums

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
        rails: what the target would earn of each guardrail, in the units in which it is told.
        required: what it must earn (a cost: may cost) for that guardrail: where the baseline's value is not
            known, by the problem's history, or else by this log.
    """

    value: OffPolicy
    baseline: Estimate
    comparison: Comparison
    rails: dict[str, Estimate]
    required: dict[str, float]
    __getattr__ = renamed(guarded="rails")


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
    many, notes = checked(model, episodes), list[str]()
    sums = sums_of(model, many)
    by_model = estimate(model, policy, sums, "certainty", level, reward)
    whole = many if many.complete.all() else many.select(many.complete)
    likely = _likely(model, whole, sums.rewards.counts, behaviour, notes)
    ratios = running_ratios(model, policy, whole, likely)
    returns, last = whole.returns(ratios * whole.rewards, model.discount), ratios[whole.last]
    covered = covered_share(weights(believed(model, sums), policy), sums.rewards.counts > 0)
    total, squares = float(np.sum(last)), float(np.sum(last**2))
    effective, heaviest = (total**2 / squares, float(last.max()) / total) if squares > 0.0 else (0.0, 1.0)
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
    mean = float(returns.mean())
    by_weight = importance(len(whole), mean, float(np.sum((returns - mean) ** 2)), covered, level)
    if covered < 1.0:
        value = by_weight.value if covered else np.nan
        by_weight = replace(by_weight, value=value, stderr=np.inf, interval=(-np.inf, np.inf))
    return OffPolicy(by_model, by_weight, effective, heaviest, tuple(notes))


def believed(model: Any, sums: Sums) -> Mdp:
    """The model of frequencies: an `Mdp` as it is, and what was seen of an `Unknown`."""
    moves = None if model.known else seen_moves(model, sums)
    return model if moves is None else model.believed(moves.counts, moves.ends, moves.starts)


def _likely(model: Any, whole: Episodes, counts: Any, behaviour: Any, notes: list[str]) -> Floats:
    """The probability with which each action was taken."""
    if not len(whole):
        raise InvalidData("all episodes were cut off; nothing can be weighted")
    if whole.propensities is not None:
        return whole.propensities
    if behaviour is None:
        notes.append("propensities were not recorded: frequencies stand for them")
        return frequencies(counts)[whole.states, whole.actions]
    logged = checks.policy(model, behaviour, "behaviour", known=False)
    found: Floats = by_step(model, logged)[whole.steps, whole.states, whole.actions]
    if len(never := np.flatnonzero(found == 0.0)):
        at = (int(column[never[0]]) for column in (whole.steps, whole.states, whole.actions))
        raise InvalidData(f"{model.move_label(*at)} was logged, and has probability 0 under the behaviour")
    return found


def evaluate(problem: Problem, episodes: Episodes, *, level: float = 0.95) -> dict[str, Evaluation]:
    """What a log, of any policy, says of each target of a problem; labels are those of the problem."""
    checks.kind("problem", problem, Problem)
    mdp, reward = problem.mdp, problem.reward
    if not isinstance(episodes, Episodes):
        raise InvalidData(f"the log is a {type(episodes).__name__}; give what saver.data.read_log gave")
    if mdp.state_names is not None and mdp.action_names is not None:
        episodes = episodes.labelled(mdp.state_names, mdp.action_names)
    many = checked(mdp, episodes)
    _check_promised(problem, many)
    value = partial(estimate, mdp, kind="certainty", level=level)
    paid = {  # of the guardrails that were measured in every episode
        rail: sums_of(mdp, replace(many, rewards=many.constraints[rail.name]))
        for rail in problem.rails
        if not np.isnan(many.constraints.get(rail.name, np.nan)).any()
    }
    sums, required = sums_of(mdp, many), dict[str, float]()
    for rail, one in paid.items():
        base = _known_value(problem, rail)
        if base is None:
            base = rail.sign * value(problem.baseline, one).value
        required[rail.name] = float(rail.sign * rail.required_at(base))
    found, baseline = {}, value(problem.baseline, sums, reward=reward)
    for name, policy in problem.targets.items():
        alone = off_policy(mdp, many, policy, level=level, reward=reward)
        apart = value(policy, sums, reward=reward, against=problem.baseline)
        guarded = {rail.name: value(policy, one) for rail, one in paid.items()}
        found[name] = Evaluation(alone, baseline, comparison(apart, len(many)), guarded, dict(required))
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
            raise InvalidData(f"{many.called(number)}: {cause}") from None
    return many


def sums_of(model: Any, many: Episodes) -> Sums:
    """Counts and moments of checked episodes."""
    sums = Sums.empty(model)
    sums.add_all(model, many)
    return sums


def _check_promised(problem: Problem, many: Episodes) -> None:
    """Refuse numbers outside of what is promised: another column, most likely."""
    for rail in problem.rails:
        if (column := many.constraints.get(rail.name)) is None:
            continue
        low, high = sorted(rail.sign * end for end in rail.promise.bounds)
        if (outside := (column < low) | (column > high)).any():
            number, at = int(episodes_of(many, outside)[0]), int(np.argmax(outside))
            raise InvalidData(
                f"{many.called(number)}, step {many.steps[at]}: {rail.name} is {column[at]:g}, and "
                f"the problem promises [{low:g}, {high:g}]; is it another column?"
            )


def _known_value(problem: Problem, rail: Rail) -> float | None:
    """V0 as it is known, or as the problem's history has it."""
    if rail.exact:
        return rail.value
    past = None if problem.history is None else problem.history.rails[rail.name]
    return past.gained / past.count if past is not None and past.count else None
