"""Rewards that the promise rules out are refused: told or logged, by number or for each pair."""

import json

import numpy as np
import pytest

from saver import Bounded, Campaign, Episode, Mdp, Problem, SubGaussian
from saver.errors import InvalidData

MDP = Mdp.from_edges(
    [(0, 0, 1, 1.0), (0, 1, 1, 1.0)], 2, 2, 2, state_names=["door", "room"], action_names=["stay", "go"]
)
EVEN = np.full((2, 2), 0.5)
PLACE = r"action 0 \(stay\) in state 1 \(room\)"
# (promise, what the second step of `stay, stay` may give, what it may not, and the words for that)
CASES = {
    "bounded": (
        Bounded(0, 1), 1.0, 7.0, rf"rewards\[1\] is 7, outside the declared bounds \[0, 1\] of {PLACE}",
    ),
    "bounded below": (Bounded(0, 1), 0.0, -0.5, r"rewards\[1\] is -0\.5, outside"),
    "bounded by pair": (
        Bounded([[0, 0], [0, 0]], [[1, 9], [5, 9]]), 5.0, 7.0, rf"rewards\[1\] is 7, .* \[0, 5\] of {PLACE}",
    ),
    "sub-gaussian": (
        SubGaussian(0.1), 900.0, 2000.0, rf"rewards\[1\] is 2000, .* \[-1000, 1001\] of {PLACE}",
    ),
    "sub-gaussian by pair": (
        SubGaussian([[1, 1], [1e-3, 1]]), 10.0, 12.0, rf"rewards\[1\] is 12, .* \[-10, 11\] of {PLACE}",
    ),
}  # fmt: skip


def problem(reward):
    given = {"alpha": 0.5, "baseline_value": 1.0, "constraint": SubGaussian(0.1)}
    return Problem(MDP, EVEN, np.eye(2)[[0, 0]], reward=reward, **given)


def episode(second):
    return Episode([0, 1], [0, 0], [0.5, second], [0.5, 0.5])


@pytest.mark.parametrize("case", CASES)
def test_a_told_reward_outside_is_refused_and_nothing_changes(case):
    promise, fine, wrong, message = CASES[case]
    campaign = Campaign(problem(promise), "baseline", 10)
    trial = campaign.ask()
    before = json.dumps(campaign.state())
    with pytest.raises(InvalidData, match=message + ".*; correct the value or declare wider bounds"):
        campaign.tell(trial, episode(wrong))
    with pytest.raises(InvalidData, match=message):
        campaign.tell(trial, *episode(wrong))
    assert json.dumps(campaign.state()) == before
    campaign.tell(trial, episode(fine))
    assert campaign.budget.episodes == 1


@pytest.mark.parametrize("case", CASES)
def test_a_logged_reward_outside_is_refused_with_its_place(case):
    promise, fine, wrong, message = CASES[case]
    with pytest.raises(InvalidData, match=r"history\[1\]: " + message):
        Campaign(problem(promise), "baseline", 10, history=[episode(fine), episode(wrong)])
    campaign = Campaign(problem(promise), "baseline", 10, history=[episode(fine)])
    assert campaign.counts.sum() == 2


def test_an_episode_that_was_cut_off_is_held_to_its_promise_too():
    campaign = Campaign(problem(Bounded(0, 1)), "baseline", 10)
    with pytest.raises(InvalidData, match=r"rewards\[0\] is 7, outside"):
        campaign.tell(campaign.ask(), [0], [0], [7.0], [0.5], complete=False)


def test_without_a_promise_any_reward_is_taken():
    campaign = Campaign(problem(None), "baseline", 10)
    campaign.tell(campaign.ask(), episode(1e9))
    assert campaign.budget.episodes == 1
