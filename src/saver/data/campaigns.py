"""What a campaign collected, as episodes with propensities and kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from saver.collect.apply import chances
from saver.collect.campaign import Campaign
from saver.collect.events import Asked, Told
from saver.collect.following import policy_of
from saver.collect.setup import Setup
from saver.data.episodes import Episodes
from saver.errors import InvalidData
from saver.play.policy import Policy
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
    asked: dict[int, tuple[str, Policy]] = {}
    told, kinds, complete, numbers = [], [], [], []
    follows = _Follower(campaign._setup)
    for event in campaign.events:
        if isinstance(event, Asked):
            asked[event.number] = event.kind, follows.policy(event)
        elif isinstance(event, Told):
            kind, policy = asked.pop(event.number)
            told.append(_with_chances(campaign.problem, event.episode, chances(policy, event.episode)))
            kinds.append(kind)
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


class _Follower:
    """The policy of each trial, from the events alone."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.plan: Policy | None = None
        self.exploration: Any = None

    def policy(self, event: Asked) -> Policy:
        """As it was when it was asked."""
        if event.plan is not None:
            self.plan = Policy(self.setup.stage.grid, event.plan.by_step, event.plan.rows)
        if event.exploration is not None:
            self.exploration = event.exploration
        return policy_of(self.setup, event.policy, event.by_step, self.plan, self.exploration)


def _with_chances(problem: Problem, episode: Episode, likely: Any) -> Episode:
    guarded = {rail.name: rail.column(episode) for rail in problem.rails}
    return replace(episode, constraints=guarded, propensities=likely)


def _names(names: Any, count: int) -> tuple[str, ...]:
    return tuple(names) if names else tuple(map(str, range(count)))
