"""What users say -> an event, or a refusal: every check of user data stands here, before anything changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._types import Floats
from saver.collect.events import Abandoned, Cancelled, Extended, Recalled, Told, Trial
from saver.collect.setup import Setup
from saver.collect.showing import recall
from saver.collect.state import State
from saver.errors import CampaignEnded, InvalidData
from saver.estimate.importance import importance_return
from saver.problem import checks
from saver.problem.episode import Episode
from saver.problem.history import History, check_possible, check_propensities, check_told, fits
from saver.problem.statement import Problem


def may_ask(setup: Setup, state: State) -> None:
    """Refuse one trial too many."""
    if state.left(setup.episodes) <= 0:
        raise CampaignEnded(
            f"all {setup.episodes + state.more} episodes have been asked for; extend the campaign, or start "
            "one with more episodes"
        )


def told(
    setup: Setup, state: State, trial: Trial | int, complete: bool, final_state: int | str | None,
    episode: Any, *columns: Any,
) -> Told:  # fmt: skip
    """What happened in a trial: an `Episode`, or states, actions, rewards and constraints."""
    found = find(state, trial)
    said = seen(setup, complete, final_state, episode, *columns)
    likely = found.follows.chances(said.states, said.actions)
    _check_actions(setup, found, said, likely)
    check_propensities(f"trial {found.number}", said, likely)
    if complete and setup.weighs(found):
        mdp, target = setup.problem.mdp, setup.problem.first
        importance_return(mdp, target, said.states, said.actions, said.rewards, likely)
    return Told(found.number, said, complete)


def extended(episodes: int) -> Extended:
    """More trials."""
    return Extended(checks.whole("episodes", episodes, 1))


def abandoned(state: State, trial: Trial | int, ran: bool | None) -> Abandoned:
    """A trial of which nothing will be told."""
    if ran is not None and ran is not True:
        raise InvalidData(
            f"ran is {ran!r}; it must be True, or None where nobody knows; cancel a trial that never started"
        )
    return Abandoned(find(state, trial, "abandoned already").number, ran is True)


def cares(setup: Setup, trial: Trial | None) -> bool:
    """Whether a loss that is declared random may go by where the trial started, which was seen."""
    chosen = trial is not None and trial.looked and not setup.stage.deterministic
    return chosen and setup.losses == "random"


def cancelled(setup: Setup, state: State, trial: Trial | int, unseen: bool) -> Cancelled:
    """A trial that never started."""
    checks.flag("unseen", unseen)
    found = find(state, trial, "abandoned; what may have run cannot be cancelled")
    number = found.number
    if unseen and (found.looked or (isinstance(trial, Trial) and trial.looked)):
        raise InvalidData(
            f"unseen is True, but trial {number} was asked how to act, or was out when the campaign was "
            "restored, so somebody may know where it starts; cancel it without unseen=True, or, if it may "
            "have run, abandon it"
        )
    later = [n for n in range(number + 1, state.asked + 1) if n not in state.cancelled]
    if setup.order == "asked" and later:
        raise InvalidData(
            f"trial {number} cannot be cancelled after trial {later[-1]} was asked: with order='asked' no "
            "trial runs without those before it; cancel the later ones first, or abandon it"
        )
    return Cancelled(number, unseen)


def recalled(problem: Problem, history: Any) -> Recalled:
    """Logged baseline episodes, or their sums."""
    if isinstance(history, History):
        fits(problem, history)
        return Recalled(history)
    return Recalled(recall(problem, history))


def find(state: State, trial: Trial | int, lost: str = "abandoned; what came of it cannot be told") -> Trial:
    """The trial that is meant, if it is out."""
    number = trial.number if isinstance(trial, Trial) else checks.whole("trial", trial, 1)
    if number > state.asked or number < 1:
        raise InvalidData(f"trial {number} was never asked; {state.asked} were")
    if number in state.abandoned:
        raise InvalidData(f"trial {number} was {lost}")
    if number in state.cancelled:
        raise InvalidData(f"trial {number} was cancelled; nothing can come of it")
    if number not in state.out:
        raise InvalidData(f"trial {number} was told already; tell each trial once")
    found = state.out[number]
    if isinstance(trial, Trial) and not trial.same_as(found):
        raise InvalidData(f"trial {number} is of another campaign; tell it there")
    return found


def seen(setup: Setup, complete: bool, final_state: int | str | None, first: Any, *columns: Any) -> Episode:
    """An `Episode`, with nothing or None beside it, or its four sequences, as the problem allows them."""
    checks.flag("complete", complete)
    columns = () if all(column is None for column in columns) else columns
    if isinstance(first, Episode) and (columns or final_state is not None):
        raise InvalidData("an episode was told with more beside it; tell the episode, or its four sequences")
    episode = first
    if not isinstance(episode, Episode):
        if len(columns) != 3:
            raise InvalidData(
                f"{1 + len(columns)} of four sequences were told; tell a saver.Episode, or states, actions, "
                "rewards and constraints one by one (*them, if they are in a tuple)"
            )
        episode = Episode(first, *columns, final_state=final_state)
    return check_told(setup.problem, episode, complete)


def _check_actions(setup: Setup, trial: Trial, episode: Episode, likely: Floats) -> None:
    """Refuse what the policy cannot do, and another way than the one that was drawn, and counted."""
    mdp, told = setup.problem.mdp, "tell the actions that trial.act gave"
    check_possible(mdp, episode, likely, f"trial {trial.number}", told)
    counts = setup.certified and setup.stage.deterministic and trial.draws is not None
    if not counts or trial.kind == "baseline":  # the promise does not ask what was drawn
        return
    drawn = np.array([trial.act(t, int(state)) for t, state in enumerate(episode.states)])
    if len(other := np.flatnonzero(drawn != episode.actions)):
        t = other[0]
        raise InvalidData(
            f"{mdp.action_label(episode.actions[t])} in {mdp.state_label(episode.states[t])} at step {t} is "
            f"not {mdp.action_label(drawn[t])}, which trial {trial.number} drew; {told}"
        )
