"""Intervals with declared rewards: a hand-worked number for every rule, and how often they hold."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binom

from saver import (
    COLLECTORS,
    SCENARIOS,
    Bernoulli,
    Bounded,
    Campaign,
    Collector,
    Mdp,
    Player,
    SubGaussian,
    simulate,
)
from saver.errors import InvalidProblem
from saver.estimate import Log
from saver.kernels.bounds.spread import spread

BANDIT = Mdp(np.zeros((1, 2, 1)), 1)
TWO_TO_ONE = np.array([[0.75, 0.25]])
POINT = 1.959964  # the normal 97.5 % point


def told(reward, *pairs, target=TWO_TO_ONE):
    log = Log(BANDIT, target, reward=reward)
    for action, value in pairs:
        log.add([0], [action], [value])
    return log


def believed(values, promise, freedom=np.inf):
    values = np.array(values, dtype=float)
    squares = float(np.sum((values - values.mean()) ** 2))
    return spread(
        float(len(values)), float(values.mean()), squares, float(promise.scale) ** 2, float(promise.floor),
        float(promise.ceiling), isinstance(promise, Bounded), freedom,
    )  # fmt: skip


def test_a_pair_seen_once_uses_the_declared_scale():
    assert believed([0.3], SubGaussian(2.0)) == (4.0, np.inf)
    assert believed([0.0], Bounded(0.0, 3.0)) == (2.25, np.inf)  # ((high - low) / 2)^2, wherever it was seen


def test_four_rewards_of_the_declared_scale_are_added():
    # 1 and 3: variance 2; (2 * 2 + 4 * 9) / 5 = 8, freedom 40^2 / (4^2 / 1) = 100.
    assert believed([1.0, 3.0], SubGaussian(3.0)) == pytest.approx((8.0, 100.0))


def test_a_scale_counts_no_more_than_the_samples_allow():
    # T = 19: 2 / (9 * 18) = 1/81, the quantile is (1 - 1/81 - 2/9)^3 = (62/81)^3; variance 1.
    values = np.concatenate([[0.0], np.repeat([-1.0, 1.0], 9)])
    wide = (81 / 62) ** 3
    variance, freedom = believed(values, SubGaussian(100.0))
    assert variance == pytest.approx((19 + 4 * wide) / 22)
    assert freedom == 18.0
    assert believed(values, SubGaussian(1.0))[0] == pytest.approx((19 + 4) / 22)


def test_bounded_rewards_add_two_at_each_end():
    # Ten zeros in [0, 1]: two zeros and two ones more, 2 / 13; one and nine zeros: mean .1, variance .1.
    assert believed([0.0] * 10, Bounded(0.0, 1.0)) == (pytest.approx(2 / 13), np.inf)
    assert believed([1.0] + [0.0] * 9, Bounded(0.0, 1.0))[0] == pytest.approx((1.0 + 2 * (0.01 + 0.81)) / 13)


def test_equal_samples_allow_the_declared_scale():
    assert believed([0.5] * 10, SubGaussian(1.0))[0] == pytest.approx(4 / 13)


def test_the_range_of_an_unseen_pair_is_added():
    # Action 0 (weight .75) once: 2; action 1 is guessed to be 2 too, of [0, 10]: .25 * 2 below, .25 * 8 up.
    found = told(SubGaussian(1.0, 0.0, 10.0), (0, 2.0)).estimate()
    assert found.value == pytest.approx(2.0)
    assert (found.below, found.above) == (pytest.approx(0.5), pytest.approx(2.0))
    half = 0.75 * POINT
    np.testing.assert_allclose(found.interval, (2 - 0.5 - half, 2 + 2 + half), rtol=1e-6)
    assert found.unseen == ((0, 1),)
    assert found.reasons == (
        "noise of what was seen: 1.47 to either side",
        "1 pair that the target needs was never seen: declared ranges add 0.5 below and 2 above",
        "1 pair seen once: what is declared stands for the variance",
    )


def test_the_guess_stays_in_the_range_of_its_pair():
    table = SubGaussian(1.0, floor=[[0.0, 0.0]], ceiling=[[10.0, 1.0]])
    found = told(table, (0, 2.0)).estimate()
    assert found.value == pytest.approx(0.75 * 2 + 0.25 * 1)  # not 2, which action 1 cannot be
    assert (found.below, found.above) == (pytest.approx(0.25), 0.0)


def test_with_declared_rewards_there_is_an_interval_before_the_first_sample():
    found = told(SubGaussian(1.0, -1.0, 3.0)).estimate()
    assert (found.value, found.interval, found.covered) == (1.0, (-1.0, 3.0), 0.0)


def test_estimated_transitions_bound_what_may_follow():
    # Root: action 0 leads to state 1, seen; action 1 never taken. Two steps, rewards in [0, 1], target even.
    # Action 1 may earn 0 to 1 at once and 0 to 1 later: [0, 2]; the rest is .5 (.5 + .5), noise aside.
    mdp = Mdp.from_edges([(0, 0, 1, 1.0), (0, 1, 1, 1.0)], 2, 2, 2)
    target = np.array([[0.5, 0.5], [1.0, 0.0]])
    log = Log(mdp, target, reward=Bounded(0.0, 1.0))
    for reward in (0.0, 1.0):
        log.add([0, 1], [0, 0], [reward, reward])
    found = log.estimate("certainty-estimated")
    assert found.value - found.below == pytest.approx(0.5)
    assert found.value + found.above == pytest.approx(1.5)
    assert np.isfinite(found.interval).all()
    assert Log(mdp, target).estimate("certainty-estimated").interval == (-np.inf, np.inf)


def test_moves_seen_once_vary_as_much_as_the_values_ahead_allow():
    # Root to state 1, once; there a reward of 2 without noise. u is 0 to 2: variance 1, over one outcome.
    mdp = Mdp.from_edges([(0, 0, 1, 1.0)], 2, 1, 2)
    log = Log(mdp, np.ones((2, 1)), reward=SubGaussian(0.0, 0.0, 2.0))
    log.add([0, 1], [0, 0], [0.0, 2.0])
    found = log.estimate("certainty-estimated")
    assert (found.value, found.stderr) == (2.0, pytest.approx(1.0))


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), max_size=8), st.booleans())
@settings(max_examples=60, deadline=None)
def test_declared_rewards_always_give_an_interval_that_widens_with_its_level(pairs, bounded):
    log = told(Bounded(0.0, 1.0) if bounded else SubGaussian(0.5), *pairs)
    for kind in ("certainty", "certainty-estimated"):
        ends = np.array([log.estimate(kind, level=level).interval for level in (0.5, 0.9, 0.99)])
        assert np.isfinite(ends).all()
        assert (np.diff(ends[:, 0]) <= 0).all()
        assert (np.diff(ends[:, 1]) >= 0).all()


def test_a_reward_that_is_no_promise_is_refused():
    with pytest.raises(
        InvalidProblem, match=r"reward is 3; it must be a saver\.SubGaussian or a saver\.Bounded"
    ):
        Log(BANDIT, TWO_TO_ONE, reward=3)
    with pytest.raises(InvalidProblem, match=r"scale has shape \(1, 3\)"):
        Log(BANDIT, TWO_TO_ONE, reward=SubGaussian([[1.0, 1.0, 1.0]]))


def test_a_campaign_passes_its_declaration_on():
    scenario = SCENARIOS["bandit"](episodes=40)
    for problem in (scenario.problem, dataclasses.replace(scenario.problem, reward=None)):
        campaign, player = Campaign(problem, COLLECTORS["baseline"], 40, seed=1), Player(scenario.world, 2)
        for _ in range(5):
            trial = campaign.ask()
            campaign.tell(trial, *player.run(trial))
        assert np.isfinite(campaign.estimate().interval).all() == (problem.reward is not None)
        assert campaign.estimate().unseen == tuple((0, a) for a in range(1, 12))


CELLS = [("bandit", "saver"), ("bandit", "saver-opt"), ("bandit", "safe-oracle"), ("tree", "saver")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "collector"), CELLS)
def test_the_interval_is_honest_under_adaptive_sampling(name, collector):
    # 2,000 campaigns of 100 episodes, each with an interval; neither below .94 nor above .97 beyond chance at
    # 1e-5 each: if that is so, one of the four fails with probability 8e-5.
    found = simulate(SCENARIOS[name](), collector, episodes=100, runs=2000, seed=1, checkpoints=[])
    assert np.isfinite(np.subtract(*found.interval())).all()
    inside = round(found.coverage()[-1] * 2000)
    assert binom.cdf(inside, 2000, 0.94) > 1e-5
    assert binom.sf(inside - 1, 2000, 0.97) > 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["certainty", "certainty-estimated"])
def test_rare_coins_never_look_like_certainty(estimate):
    # Rewards are 0 with probability .98. 200 campaigns: at least .94 hold, but for a chance of 1e-4.
    made = SCENARIOS["bandit"]()
    world = dataclasses.replace(made.world, reward=Bernoulli(np.full((1, 12), 0.02)))
    problem = dataclasses.replace(made.problem, reward=Bounded(0.0, 1.0))
    scenario = dataclasses.replace(made, world=world, problem=problem)
    recipe = Collector(estimate=estimate)
    found = simulate(scenario, recipe, episodes=100, runs=200, seed=1, checkpoints=[])
    assert np.isfinite(np.subtract(*found.interval())).all()
    assert binom.cdf(round(found.coverage()[-1] * 200), 200, 0.94) > 1e-4
