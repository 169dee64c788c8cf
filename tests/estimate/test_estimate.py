"""Estimates: hand-worked numbers, unbiasedness, honest standard errors and intervals."""

import numpy as np
import pytest
from models import random_graph, random_policy, roll

from saver import Gaussian, Mdp, SubGaussian, World
from saver.errors import InvalidData, InvalidProblem
from saver.estimate import ESTIMATORS, Log
from saver.problem.moments import Moments

pytestmark = pytest.mark.slow

BANDIT = Mdp(np.zeros((1, 2, 1)), 1)
HALF = np.array([[0.5, 0.5]])


def filled(mdp, target, episodes, reward=None):
    log = Log(mdp, target, reward=reward)
    for episode in episodes:
        log.add(*episode)
    return log


def test_bandit_by_hand():
    # Action 0: 1, 3 (mean 2, variance 2); action 1: 4, 4, 7 (mean 5, variance 3).
    # Nothing is declared: 3 stands in. (2 * 2 + 4 * 3) / 5 = 3.2 and (3 * 3 + 4 * 3) / 6 = 3.5.
    # Y = .5 * 2 + .5 * 5; Var = .25 * 3.2 / 2 + .25 * 3.5 / 3 = .4 + .291667 = .691667.
    # Freedom: 16^2 / (4^2 / 1 + 12^2 / 2) = 2.909091 and 3 - 1 = 2, for 3 is its own;
    # Welch: .691667^2 / (.4^2 / 2.909091 + .291667^2 / 2) = 4.904948 degrees, 97.5 % point 2.585640.
    log = filled(BANDIT, HALF, [([0], [a], [r]) for a, r in [(0, 1), (1, 4), (1, 4), (0, 3), (1, 7)]])
    found = log.estimate()
    assert found.value == 3.5
    assert found.stderr == pytest.approx(np.sqrt(0.4 + 0.875 / 3))
    assert found.covered == 1.0
    assert found.freedom == pytest.approx(4.904948, rel=1e-6)
    np.testing.assert_allclose(found.interval, 3.5 + np.array([-1, 1]) * 2.58564 * 0.831665, rtol=1e-5)
    assert log.estimate("certainty-estimated") == found


def test_uncovered_weight_is_said_and_never_a_silent_zero():
    log = filled(BANDIT, np.array([[0.8, 0.2]]), [([0], [0], [2.0]), ([0], [0], [4.0])])
    found = log.estimate()
    assert found.covered == pytest.approx(0.8)
    assert found.value == pytest.approx(3.0)  # the unseen action is filled with what was seen, not with 0
    assert found.interval == (-np.inf, np.inf)
    assert (found.unseen, found.below, found.above) == (((0, 1),), np.inf, np.inf)
    assert found.reasons[-1].endswith("never seen, and nothing is declared about rewards: unbounded")
    # The noise of .8 mean: believed variance (2 * 2 + 4 * 2) / 5 = 2.4, over 2 samples.
    assert found.stderr == pytest.approx(0.8 * np.sqrt(1.2))


def test_nothing_seen_and_one_sample():
    empty = Log(BANDIT, HALF)
    for kind in ESTIMATORS:
        found = empty.estimate(kind)
        assert np.isnan(found.value)
        assert (found.stderr, found.interval, found.covered) == (np.inf, (-np.inf, np.inf), 0.0)
    log = filled(BANDIT, np.array([[1.0, 0.0]]), [([0], [0], [2.0], [1.0])])
    for kind in ESTIMATORS:
        found = log.estimate(kind)
        assert (found.value, found.stderr, found.covered) == (2.0, np.inf, 1.0)
        assert found.interval == (-np.inf, np.inf)


def test_the_largest_sample_variance_stands_in_for_a_pair_seen_once():
    # Action 0: 1, 3: variance 2, believed (2 * 2 + 4 * 2) / 5 = 2.4; action 1 once: 2, with one degree.
    log = filled(BANDIT, HALF, [([0], [0], [1.0]), ([0], [0], [3.0]), ([0], [1], [7.0])])
    found = log.estimate()
    assert (found.value, found.covered) == (4.5, 1.0)
    assert found.stderr == pytest.approx(np.sqrt(0.25 * 2.4 / 2 + 0.25 * 2.0))
    assert found.freedom == pytest.approx(0.8**2 / (0.3**2 + 0.5**2))
    assert found.reasons[-1] == "1 pair seen once: the largest sample variance stands for the variance"


def test_one_outcome_says_nothing_of_its_transitions():
    P = np.zeros((3, 1, 3))
    P[0, 0, 1:] = 0.5
    mdp = Mdp(P, 2)
    log = filled(mdp, np.ones((3, 1)), [([0, 1], [0, 0], [1.0, 2.0])])
    assert log.estimate("certainty-estimated").stderr == np.inf


def test_partly_seen_with_estimated_transitions():
    # Every reward is 1 and there are two steps; action 1 at the root was never taken.
    mdp = Mdp.from_edges([(0, 0, 1, 0.5), (0, 0, 2, 0.5), (0, 1, 2, 1.0)], 3, 2, 2)
    target = np.array([[0.5, 0.5], [1, 0], [1, 0]])
    log = filled(mdp, target, [([0, s], [0, 0], [1.0, 1.0]) for s in (1, 2)] * 5)
    for kind in ("certainty", "certainty-estimated"):
        found = log.estimate(kind)
        assert found.value == pytest.approx(2.0)
        assert found.covered == pytest.approx(0.75)


def test_the_smallest_unseen_weight_keeps_covered_below_one():
    log = filled(BANDIT, np.array([[1.0, 1e-17]]), [([0], [0], [2.0]), ([0], [0], [4.0])])
    assert log.estimate().covered < 1.0
    assert log.estimate().interval == (-np.inf, np.inf)


def test_equal_rewards_give_a_point_interval_where_it_is_declared_that_they_do_not_vary():
    episodes = [([0], [a], [1.5]) for a in (0, 0, 1, 1)]
    assert filled(BANDIT, HALF, episodes, SubGaussian(0.0, 0.0, 2.0)).estimate().interval == (1.5, 1.5)
    assert filled(BANDIT, HALF, episodes).estimate().interval == (-np.inf, np.inf)


def test_equal_weighted_returns_show_nothing_of_how_they_vary():
    found = filled(BANDIT, HALF, [([0], [a], [1.5], [0.5]) for a in (0, 0, 1)]).estimate("importance")
    assert (found.value, found.interval) == (1.5, (-np.inf, np.inf))
    assert found.reasons == ("all weighted returns agree, which shows nothing of how they vary",)


def test_importance_by_hand():
    # Two steps, target even, discount .5. Episode 1 took actions of probability .25 and 1:
    # 1 * (.5/.25) + .5 * 4 * (.5/.25)(.5/1) = 2 + 2 = 4. Episode 2: 9 + .5 * 2 = 10.
    mdp = Mdp(np.ones((1, 2, 1)), 2, discount=0.5)
    log = filled(
        mdp,
        HALF,
        [([0, 0], [0, 1], [1.0, 4.0], [0.25, 1.0]), ([0, 0], [1, 1], [9.0, 2.0], [0.5, 0.5])],
    )
    found = log.estimate("importance")
    assert found.value == pytest.approx((4.0 + 10.0) / 2)
    assert found.stderr == pytest.approx(3.0)  # sample variance 18, over 2
    assert found.covered == 1.0
    half = 12.7062 * 3.0  # Student's 97.5 % point with one degree of freedom
    np.testing.assert_allclose(found.interval, (7 - half, 7 + half), rtol=1e-5)


def test_importance_uses_only_episodes_with_propensities():
    log = filled(BANDIT, HALF, [([0], [0], [4.0], [1.0]), ([0], [1], [100.0])])
    found = log.estimate("importance")
    assert found.value == 2.0
    assert found.covered == 0.5  # action 1 was seen, but not in an episode that counts here
    assert log.episodes == 2


def test_estimated_transitions_by_hand():
    # Root -> state 1 or end, seen 3 and 1 times; reward 1 at the root, 2 at state 1, without noise.
    # Y = 1 + (3/4) 2 = 2.5. u = 2 for the move, 0 for the end: Var = 4 * 3/16 over n - 1 = 3: .25.
    P = np.zeros((3, 1, 3))
    P[0, 0, 1:] = 0.5
    mdp = Mdp(P, 2, terminal=(2,))
    episodes = [([0, 1], [0, 0], [1.0, 2.0])] * 3 + [([0], [0], [1.0])]
    log = filled(mdp, np.ones((3, 1)), episodes, SubGaussian(0.0, 0.0, 2.0))
    found = log.estimate("certainty-estimated")
    assert found.value == pytest.approx(2.5)
    assert found.stderr == pytest.approx(0.5)
    assert log.estimate("certainty").value == pytest.approx(1 + 0.5 * 2)
    assert log.estimate("certainty").stderr == 0.0


def simulated(kind, behaviour_seed, runs=240, episodes=120):
    mdp = random_graph(21, states=5, actions=2, horizon=3, density=0.7)
    rng = np.random.default_rng(99)
    target, mean = random_policy(rng, 5, 2), rng.normal(size=(5, 2))
    world = World(mdp, Gaussian(mean, rng.random((5, 2))), Gaussian(np.zeros((5, 2)), 1.0))
    behaviour = 0.5 * target + 0.5 * random_policy(np.random.default_rng(behaviour_seed), 5, 2)
    found = []
    for r in range(runs):
        rng = np.random.default_rng([behaviour_seed, r])
        log = filled(mdp, target, [roll(mdp, behaviour, world, rng) for _ in range(episodes)])
        found.append(log.estimate(kind))
    return world.value(target), found


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_off_policy_estimates_are_centred_with_honest_errors_and_intervals(kind):
    # 240 runs: the mean within 4 standard errors (6e-5), coverage of 95 % intervals within 3.5
    # binomial standard errors (5e-4), stated and actual spread within 4 / sqrt(2 * 240).
    truth, found = simulated(kind, 1)
    value = np.array([e.value for e in found])
    stderr = np.array([e.stderr for e in found])
    assert abs(value.mean() - truth) < 4 * value.std() / np.sqrt(len(value))
    known = np.isfinite(stderr)
    assert abs(np.sqrt(np.mean(stderr[known] ** 2)) / value.std() - 1) < 4 / np.sqrt(2 * known.sum())
    full = [e for e in found if np.isfinite(e.interval[0])]
    assert len(full) > 200
    inside = np.mean([e.interval[0] <= truth <= e.interval[1] for e in full])
    assert abs(inside - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / len(full))


def test_wider_levels_give_wider_intervals():
    log = filled(BANDIT, HALF, [([0], [a], [r]) for a, r in [(0, 1), (1, 4), (1, 4), (0, 3)]])
    widths = [np.diff(log.estimate(level=level).interval)[0] for level in (0.5, 0.9, 0.99)]
    assert widths[0] < widths[1] < widths[2]
    for level in (0.0, 1.0, np.nan):
        with pytest.raises(InvalidProblem, match="level is"):
            log.estimate(level=level)


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        (([0], [0], [np.nan]), r"rewards\[0\] is nan"),
        (([0], [0], [1.0, 2.0]), r"rewards has shape \(2,\) but states has \(1,\)"),
        (([0], [2], [1.0]), r"actions\[0\] is 2; it must be from 0 to 1"),
        (([0], [0], [1.0], [0.0]), r"propensities\[0\] is 0; the probability .* must be in \(0, 1\]"),
        (([0], [0], [1.0], [1.5]), r"propensities\[0\] is 1\.5"),
        (([0], [0], [1e90], [1e-300]), "the importance-weighted return is .*: the propensities .* too small"),
        (([0], [0], [1e300]), r"rewards\[0\] is 1e\+300; every entry must be a finite number of magnitude"),
        (([0], [0], ["1"]), "rewards must be an array of numbers"),
        (([[0], [0, 1]], [0], [1.0]), "states must be a sequence of whole numbers"),
        (([0], [0], np.ma.array([1.0], mask=[True])), "rewards has masked entries"),
        (([0, 0], [0, 0], [1.0, 1.0]), "has 2 steps; it must have 1 to 1"),
    ],
)
def test_broken_episodes_are_refused_and_change_nothing(episode, message):
    log = filled(BANDIT, HALF, [([0], [a], [r], [0.5]) for a, r in [(0, 1), (1, 4), (1, 5), (0, 3)]])
    before = [log.estimate(kind) for kind in ESTIMATORS]
    with pytest.raises(InvalidData, match=message):
        log.add(*episode)
    assert log.episodes == 4
    assert [log.estimate(kind) for kind in ESTIMATORS] == before


def test_unknown_kind_lists_the_known_ones():
    with pytest.raises(InvalidProblem, match="kind is 'median'; it must be one of certainty, "):
        Log(BANDIT, HALF).estimate("median")


def test_running_moments_keep_their_precision_far_from_zero():
    rng = np.random.default_rng(0)
    values = 1e9 + rng.normal(size=5000)
    moments = Moments.empty((1, 1))
    for value in values:
        moments.extend(np.array([0]), np.array([0]), np.array([value]))
    assert moments.mean[0, 0] == pytest.approx(values.mean(), rel=1e-15)
    assert moments.variance[0, 0] == pytest.approx(values.var(ddof=1), rel=1e-6)
