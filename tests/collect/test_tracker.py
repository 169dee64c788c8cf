"""The tracker from the first visit on, what comes first, and sums over the trials that are out."""

import dataclasses

import numpy as np
import pytest

from saver import COLLECTORS, Campaign, Player, scenarios
from saver.collect import Setup
from saver.collect.planning import needed_pairs
from saver.collect.state import Outstanding, unplanned
from saver.kernels.believing import UNNEEDED
from saver.simulator import knowledge_of


def test_what_is_added_to_visits():
    bandit, grid = scenarios.bandit().problem, scenarios.gridworld().problem
    assert np.all(Setup(bandit, "saver", 10).head_start(False) == 1.0)
    assert np.all(Setup(bandit, "saver-paper", 10).head_start(False) == 0.0)
    one, two = Setup(grid, "saver", 10), Setup(grid, "saver-opt", 999)
    assert one.head_start(True).shape == (len(one.stage.nodes.state), 4)
    assert np.all((one.head_start(True) > 0) & (one.head_start(True) < 1))
    np.testing.assert_array_equal(
        one.head_start(True), two.head_start(True)
    )  # of the model, not of the campaign


def test_where_paths_are_random_first_visits_follow_the_design_on_average():
    # Over the nodes of a gridworld the first choices of b = (.7, .1, .1, .1): with 1 added to T the likeliest
    # action is taken everywhere; with a phase of each node's own the others get a fair part of the nodes.
    setup = Setup(scenarios.gridworld().problem, "saver", 10)
    b = np.broadcast_to([0.7, 0.1, 0.1, 0.1], setup.offsets[True].shape)
    shares = np.bincount(np.argmax(b / setup.offsets[True], axis=1), minlength=4) / len(b)
    assert 0.7 < shares[0] < 0.95
    assert np.all(shares[1:] > 0.01)


def test_the_lightest_pairs_are_not_needed_in_the_first_half():
    # sum c = 1, K = 100: pairs may be left out while the square of their weight is at most .01 / 100 = 1e-4.
    c = np.array([[0.9, 0.08, 0.012, 0.006, 0.002, 0.0]])
    assert needed_pairs(c, 100).tolist() == [[1, 1, 1, 2, 2, UNNEEDED]]
    assert needed_pairs(c, 10**6).tolist() == [[1, 1, 1, 1, 1, UNNEEDED]]


def test_what_a_plan_visits_by_itself_need_not_come_first():
    asked = scenarios.gridworld()
    setup = Setup(asked.problem, "exact-oracle", 400, knowledge_of(asked, COLLECTORS["exact-oracle"]))
    policy = setup.stage.grid.policy(asked.problem.target)
    visits = setup.stage.grid.by_state(setup.stage.play(policy).flow)
    for number in (1, 350, 400):
        left = unplanned(setup, policy, number)
        many = (400 - number + 1) * visits >= 1.0
        assert np.all(left[many] == UNNEEDED)
        np.testing.assert_array_equal(left[~many], setup.designer.needed[~many])
    assert np.any(unplanned(setup, policy, 400) < UNNEEDED)  # in the last episode nothing more is to come
    closed = Setup(asked.problem, "saver", 400)
    assert unplanned(closed, policy, 1) is closed.designer.needed


def test_a_long_episode_is_not_spent_on_one_unseen_action():
    # 200 steps in Taxi: while every unseen pair came first, whole episodes stood before one wall, and after
    # 20 designed episodes some 250 pairs had been seen.
    asked = scenarios.taxi()
    campaign, player = Campaign(asked.problem, "saver-opt", 1000, seed=1), Player(asked.world, 1)
    kinds = []
    for _ in range(24):
        trial = campaign.ask()
        campaign.tell(trial, player.run(trial))
        kinds.append(trial.kind)
    assert kinds.count("design") >= 18
    assert np.sum(campaign.counts > 0) > 600


def test_sums_over_what_is_out_are_exact_in_any_order():
    asked = scenarios.gridworld()
    setup = Setup(asked.problem, "saver", 60)
    campaign = Campaign(
        asked.problem, dataclasses.replace(COLLECTORS["saver"], ledger="none", gate="none"), 60
    )
    kept, plays, rng = Outstanding(setup), {}, np.random.default_rng(1)
    for trial in (campaign.ask() for _ in range(12)):
        plays[trial.number] = trial.kind, setup.stage.play(trial.follows)
        kept.add(trial.number, *plays[trial.number])
    for number in rng.permutation(list(plays)).tolist():
        expected = sum(play.flow for kind, play in plays.values() if kind == "explore")
        np.testing.assert_allclose(kept.expected(("explore",)), expected, atol=1e-11)
        reached = sum((play.weights > 0).astype(int) for _, play in plays.values())
        np.testing.assert_array_equal(kept.expecting, reached)
        np.testing.assert_array_equal(kept.take(number).weights, plays.pop(number)[1].weights)
    assert kept.expected(("explore",)) is None
    assert all(not np.any(counts) for counts in kept.visits.values())
    assert not np.any(kept.expecting)


@pytest.mark.parametrize("collector", ["saver", "saver-opt"])
def test_an_ask_depends_on_which_trials_are_out_and_not_on_how_they_came_to_be(collector):
    asked = scenarios.gridworld(size=3, horizon=4)
    campaign = Campaign(asked.problem, collector, 100, seed=3)
    player = Player(asked.world, 2)
    trials = [campaign.ask() for _ in range(20)]
    for trial in trials[::2]:
        campaign.tell(trial, player.run(trial))
    twin = Campaign.restore(asked.problem, collector, campaign.state())  # adds up anew what is out
    for _ in range(5):
        assert campaign.ask().same_as(twin.ask())
