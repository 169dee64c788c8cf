"""The loop "ask, play, tell, count the true budget"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from saver.collect import Campaign, Trial
from saver.problem.episode import Episode
from saver.simulator.player import Player
from saver.simulator.truth import Account, Truth

Teller = Callable[[Campaign, Trial, Episode], None]


class Round(NamedTuple):
    """One episode of a simulated campaign, and the true account after it."""

    trial: Trial
    episode: Episode
    account: Account


def rounds(campaign: Campaign, player: Player, truth: Truth, tell: Teller = Campaign.tell) -> Iterator[Round]:
    """All episodes of a campaign. `tell` may keep an episode back, tell others instead, or abandon."""
    account = Account(truth, campaign.collector.certified)
    for _ in range(campaign.episodes):
        trial = campaign.ask()
        account.add(trial)
        episode = player.run(trial)
        tell(campaign, trial, episode)
        yield Round(trial, episode, account)
