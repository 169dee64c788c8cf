"""What an episode must be to be told of a problem: every promise is checked before anything changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import brief
from saver._types import Floats
from saver.errors import InvalidData
from saver.problem import checks
from saver.problem.episode import Episode

CLOSE = 1e-9  # of two propensities


def check_told(problem: Any, episode: Episode, complete: bool = True) -> Episode:
    """The episode, in numbers; one that cannot have happened, or that breaks a promise, is refused."""
    if episode.constraints is None:
        raise InvalidData("the episode has no constraints; give one for each step")
    _check_names(problem, episode.constraints)
    found = episode.check(problem.mdp, complete)
    _check_bounds(problem, found)
    return found


def _check_names(problem: Any, constraints: Any) -> None:
    """One sequence where one is guarded, or {name: sequence} with every name."""
    if not isinstance(constraints, dict) and len(problem.rails) == 1:
        return
    names = [rail.name for rail in problem.rails]
    if not isinstance(constraints, dict):
        raise InvalidData(
            f"constraints is one sequence, and {', '.join(names)} are guarded; tell {{name: sequence}}"
        )
    for name in constraints:
        if name not in names:
            raise InvalidData(f"constraints has {name!r}, which is not guarded; known: {', '.join(names)}")
    for name in names:
        if name not in constraints:
            raise InvalidData(
                f"constraints has no {name!r}; tell every guardrail, with None for one that was not measured"
            )


def _check_bounds(problem: Any, episode: Episode) -> None:
    """Refuse what the promises rule out."""
    for rail in problem.rails:
        seen = rail.of(episode)
        if seen is None:
            continue
        low, high = rail.bounds
        if within(seen.constraints, low, high):
            continue
        if len(outside := np.flatnonzero((seen.constraints < low) | (seen.constraints > high))):
            at, value = outside[0], rail.sign * seen.constraints[outside[0]]
            low, high = sorted((rail.sign * low, rail.sign * high))
            named = f"[{rail.name!r}]" if isinstance(episode.constraints, dict) else ""
            raise InvalidData(
                f"constraints{named}[{at}] is {checks.show(value)}, outside the declared bounds [{low:g}, "
                f"{high:g}]; correct the value or declare wider bounds"
            )
    if problem.rewards is None:
        return
    at, rewards, mdp = (episode.states, episode.actions), episode.rewards, problem.mdp
    if within_pairs(rewards, *at, problem.rewards.low, problem.rewards.high):
        return
    lows, highs = problem.rewards.low[at], problem.rewards.high[at]
    if len(outside := np.flatnonzero((rewards < lows) | (rewards > highs))):
        t = outside[0]
        raise InvalidData(
            f"rewards[{t}] is {checks.show(rewards[t])}, outside the declared bounds [{lows[t]:g}, "
            f"{highs[t]:g}] of {mdp.action_label(episode.actions[t])} in "
            f"{mdp.state_label(episode.states[t])}; correct the value or declare wider bounds"
        )


@brief
def within(values: Any, low: float, high: float) -> bool:
    """Whether all values lie between."""
    for value in values:  # noqa: SIM110  (a generator is slow here)
        if not low <= value <= high:
            return False
    return True


@brief
def within_pairs(values: Any, states: Any, actions: Any, lows: Any, highs: Any) -> bool:
    """The same where each pair has bounds of its own, [S, A]."""
    for t in range(len(values)):
        s, a = states[t], actions[t]
        if not lows[s, a] <= values[t] <= highs[s, a]:
            return False
    return True


def check_possible(mdp: Any, episode: Episode, likely: Floats, who: str, remedy: str) -> None:
    """Refuse an action that is never taken."""
    if not likely.all():
        t = np.flatnonzero(likely == 0.0)[0]
        raise InvalidData(
            f"{mdp.action_label(episode.actions[t])} in {mdp.state_label(episode.states[t])} at step {t} has "
            f"probability 0 under {who}; {remedy}"
        )


def check_propensities(who: str, episode: Episode, likely: Floats) -> None:
    said = episode.propensities
    if said is not None and len(wrong := np.flatnonzero(np.abs(said - likely) > CLOSE)):
        t = wrong[0]
        raise InvalidData(
            f"propensities[{t}] is {checks.show(said[t])}, but {who} takes that action with "
            f"probability {checks.show(likely[t])}; leave them out, or tell trial.row(step, state)[action]"
        )
