"""The true account: what the promise counts a trial as, worth by the true means."""

import dataclasses

import numpy as np
import pytest
from worlds import ONE_KNOWN, WORLDS

from saver import (
    Campaign,
    Collector,
    Gaussian,
    Mdp,
    Player,
    Problem,
    Scenario,
    SubGaussian,
    Unknown,
    World,
    scenarios,
)
from saver.collect import Trial
from saver.play import stage_of
from saver.simulator import Truth, rounds
from saver.simulator.truth import Account

MEANS = np.array([[0.5, 0.9, 0.1]])


def bandit(baseline=(1.0, 0.0, 0.0)):
    mdp = Mdp(np.zeros((1, 3, 1)), 1)
    world = World(mdp, Gaussian(MEANS, 1.0), Gaussian(MEANS, 0.01))
    problem = Problem(
        mdp, np.full((1, 3), 1 / 3), [baseline], alpha=0.2, baseline_value=float(MEANS[0] @ baseline),
        constraint=SubGaussian(0.1),
    )  # fmt: skip
    return Scenario("three", world, problem, 10)


def trial(truth, table, draw=None, kind="design"):
    policy = truth.stage.grid.policy(np.array([table]))
    return Trial(1, kind, policy, None if draw is None else np.array([draw]))


def test_a_drawn_trial_is_worth_what_was_drawn():
    truth = Truth(bandit())
    for draw, worth in ((0.1, 0.5), (0.3, 0.9), (0.7, 0.1), (0.25, 0.9), (0.5, 0.1)):
        assert truth.promised(trial(truth, [0.25, 0.25, 0.5], draw)) == pytest.approx(worth)
    assert truth.worth(np.array([[0.25, 0.25, 0.5]])) == pytest.approx(0.125 + 0.225 + 0.05)
    assert truth.promised(trial(truth, [0.0, 1.0, 0.0])) == pytest.approx(0.9)


def test_a_policy_by_the_nodes_of_another_model_is_worth_the_same():
    P = np.zeros((3, 2, 3))
    P[[0, 1], 0, [1, 2]] = P[[0, 1, 2], 1, [0, 1, 2]] = 1.0  # on, and stay
    means = np.array([[0.1, 0.3], [0.2, 0.7], [0.0, 0.5]])
    world = World(Mdp(P, 3), Gaussian(means, 1.0), Gaussian(means, 0.01))
    even, nobody = np.full((3, 2), 0.5), Unknown(3, 2, 3)
    problem = Problem(
        nobody, even, even, alpha=0.2, baseline_value=world.constraint_value(even),
        constraint=SubGaussian(0.1, 0.0, 1.0),
    )  # fmt: skip
    truth, grid = Truth(Scenario("stairs", world, problem, 10)), stage_of(nobody).grid
    actions = np.zeros((3, 3), dtype=int)
    actions[1, 1] = 1  # on, stay, on: 0.1 + 0.7 + 0.2
    chosen = grid.choices(True, actions.ravel())
    for policy in (chosen, grid.policy(np.eye(2)[actions])):
        assert truth.worth(policy) == pytest.approx(1.0)
        assert truth.promised(Trial(1, "design", policy, None)) == pytest.approx(1.0)
    assert truth.worth(grid.policy(even)) == pytest.approx(truth.baseline)
    drawn = Trial(1, "design", grid.policy(np.full((3, 2), [0.4, 0.6])), np.array([0.9, 0.1, 0.9]))
    assert truth.promised(drawn) == pytest.approx(0.3 + 0.1 + 0.7)  # stay, on, stay
    late = stage_of(Unknown(3, 2, 3, start=2)).grid  # has no place for the world's start: its first action
    assert truth.worth(late.choices(True, np.ones(7))) == pytest.approx(0.1 + 0.7 + 0.7)


def test_what_goes_where_a_random_baseline_goes_is_worth_that():
    truth = Truth(bandit((0.5, 0.5, 0.0)))
    for draw in (0.1, 0.9):
        assert truth.promised(trial(truth, [0.5, 0.5, 0.0], draw)) == pytest.approx(0.7)
        other = truth.promised(trial(truth, [0.4, 0.6, 0.0], draw))
        assert other == pytest.approx(0.5 if draw < 0.4 else 0.9)


def test_an_account_by_hand():
    """Baselines count with what they are worth, whatever they draw; others with V(d)."""
    truth = Truth(bandit((0.5, 0.5, 0.0)))
    account = Account(truth, certified=True)
    required = 0.8 * 0.7
    found = [
        account.add(trial(truth, table, draw, kind))
        for table, draw, kind in (
            ([0.5, 0.5, 0.0], 0.9, "baseline"),
            ([0.2, 0.2, 0.6], 0.1, "explore"),
            ([0.2, 0.2, 0.6], 0.9, "design"),
            ([0.0, 1.0, 0.0], None, "earn"),
        )
    ]
    np.testing.assert_allclose(found, np.cumsum([0.7, 0.5, 0.1, 0.9]) - required * np.arange(1, 5))
    assert account.worst == min(found)
    assert (account.episodes, account.baseline) == (4, 1)


def test_where_paths_are_random_a_trial_is_worth_its_policy():
    asked = scenarios.gridworld(size=2, horizon=3)
    truth, rng = Truth(asked), np.random.default_rng(0)
    for _ in range(3):
        table = rng.dirichlet(np.ones(4), size=4)
        policy = truth.stage.grid.policy(table)
        promised = truth.promised(Trial(1, "design", policy, rng.random(3)))
        assert promised == pytest.approx(asked.world.constraint_value(table))


@pytest.mark.parametrize("world", ONE_KNOWN)
def test_the_account_of_a_campaign_is_the_sum_over_its_trials(world):
    """On the tree and the bandit drawn trials count as drawn: on average as their policy, one by one not."""
    asked = WORLDS[world]
    asked = Scenario("eased", asked.world, dataclasses.replace(asked.problem, alpha=0.9), 60)
    campaign = Campaign(asked.problem, Collector(design="target", explore="none", track="sample"), 60, seed=2)
    truth, total, policies = Truth(asked), 0.0, 0.0
    for done in rounds(campaign, Player(asked.world, 2), truth):
        policy = done.trial.policy
        if done.trial.kind == "baseline":
            value = asked.world.constraint_value(asked.problem.baseline)
        elif truth.stage.deterministic:
            discounts = asked.problem.mdp.discount ** np.arange(len(done.episode))
            means = asked.world.constraint.mean[done.episode.states, done.episode.actions]
            value = float(np.sum(discounts * means))
        else:
            value = asked.world.constraint_value(policy)
        total += value - asked.problem.required
        policies += asked.world.constraint_value(policy) - asked.problem.required
        assert done.account.budget == pytest.approx(total)
    assert (abs(total - policies) > 1e-3) is truth.stage.deterministic
