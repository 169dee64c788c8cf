"""The loop "ask, play, tell, count the true budget"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from saver.collect import Campaign, Trial
from saver.problem.episode import Episode
from saver.simulator.feedback import Feedback
from saver.simulator.player import Player
from saver.simulator.post import Post
from saver.simulator.truth import Accounts, Truth


class Round(NamedTuple):
    """One trial of a simulated campaign, and the true account after it."""

    trial: Trial
    episode: Episode | None  # None where it has not started, or never comes back
    account: Accounts


def rounds(
    campaign: Campaign,
    player: Player,
    truth: Truth,
    feedback: Feedback | None = None,
    seed: int | np.random.SeedSequence = 0,
) -> Iterator[Round]:
    """All trials of a campaign, each told at once, or by the rules of `feedback`.

    Where trials were cancelled others are asked; when the last was, all that wait are settled.
    """
    account = Accounts(truth, campaign.collector.certified, campaign.order)
    if feedback is None:
        for _ in range(campaign.episodes):
            trial = campaign.ask()
            account.add(trial)
            episode = player.run(trial)
            campaign.tell(trial, episode)
            yield Round(trial, episode, account)
        return
    post = Post(feedback, campaign, player, account, np.random.default_rng(seed))
    while account.episodes < campaign.episodes:
        trial = campaign.ask()
        seen = post.send(trial)
        if account.episodes == campaign.episodes:
            post.settle()
        yield Round(trial, seen, account)
