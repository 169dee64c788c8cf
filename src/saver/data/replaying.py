"""What a campaign collected, as episodes with propensities and kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from saver.collect.apply import chances
from saver.collect.campaign import Campaign
from saver.collect.events import Asked, Told
from saver.data.episodes import Episodes
from saver.errors import InvalidData
from saver.problem import checks
from saver.problem.episode import Episode
from saver.problem.statement import Problem


def from_campaign(campaign: Campaign) -> Episodes:
    """The told episodes of a `Campaign(..., keep="episodes")`, in the order of telling.

    `propensities` are the probabilities of what was done under the policy of the trial, `kinds` those of the
    trials, `ids` their numbers. Under tracking a trial's actions follow from what was seen before: their
    probability is 1, and `drawn` is False.
    """
    checks.kind("campaign", campaign, Campaign)
    events, policies = campaign.events, campaign.policies
    asked = {event.number: event.kind for event in events if isinstance(event, Asked)}
    told, kinds, complete, numbers = [], [], [], []
    for event in events:
        if isinstance(event, Told):
            likely = chances(policies[event.number], event.episode)
            told.append(_with_chances(campaign.problem, event.episode, likely))
            kinds.append(asked[event.number])
            complete.append(event.complete)
            numbers.append(event.number)
    if not told:
        raise InvalidData("nothing has been told to this campaign yet; there is nothing to write")
    mdp = campaign.problem.mdp
    return Episodes.of(
        told, complete, state_labels=_names(mdp.state_names, mdp.states),
        action_labels=_names(mdp.action_names, mdp.actions), ids=np.array(numbers),
        kinds=np.array(kinds, dtype=object), drawn=campaign.collector.track == "sample",
    )  # fmt: skip


def _with_chances(problem: Problem, episode: Episode, likely: Any) -> Episode:
    guarded = {rail.name: rail.column(episode) for rail in problem.rails}
    return replace(episode, constraints=guarded, propensities=likely)


def _names(names: Any, count: int) -> tuple[str, ...]:
    return tuple(names) if names else tuple(map(str, range(count)))
