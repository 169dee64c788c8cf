"""What is said to be reported: one pair by hand, pairs that stay unseen, and campaigns."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as students
from test_theory import bandit_of

import saver
from saver.estimate.asymptotic import start, stretched
from saver.kernels.bounds.boundaries import best_rho, mixture_two_sided
from saver.theory.reporting import Counts, Part, Turnout

K = 1000


def promising(made, reward):
    return replace(made, problem=replace(made.problem, reward=reward))


def test_one_pair_by_hand():
    # Every weight is 1, so that W = K c and the box does not count: u(K scale^2) / K, u at .72 of .05.
    made = promising(bandit_of([1.0], [4.0], [0.5]), saver.SubGaussian(2.0, -50.0, 50.0))
    way = saver.diagnose(made, K).ways["on-policy"]
    level = 0.72 * 0.05
    u = mixture_two_sided(4.0 * K, best_rho(4.0 * K / 2, level), level)
    assert way.anytime_half_width == pytest.approx(u / K, rel=1e-9)
    # (T s^2 + 4 scale^2) / (T + 3) is 4 on average up to 1 / T; the mean of 100 draws of it is within 1 %.
    assert way.half_width == pytest.approx(students.ppf(0.975, K - 1) * 2.0 / math.sqrt(K), rel=0.01)
    assert way.bounded == 1.0


def test_without_a_promise_the_anytime_interval_is_stretched_from_its_start_on():
    made = promising(bandit_of([1.0], [4.0], [0.5]), None)
    for episodes, started in ((start(0.95) - 1, False), (start(0.95), True)):
        way = saver.diagnose(made, episodes).ways["on-policy"]
        wider = float(stretched(episodes, episodes, 0.95)) if started else math.inf
        assert way.anytime_half_width / way.half_width == pytest.approx(wider)


def test_a_pair_that_stays_unseen_leaves_no_bound_without_a_promise():
    # Drawn with probability .002 in each of 500 episodes an action is seen with probability 1 - 1/e; the
    # share among 100 draws is within .2 of that with probability above .9999.
    made = promising(bandit_of([0.998, 0.002], [1.0, 1.0], [0.5, 0.5]), None)
    found = saver.diagnose(made, 500)
    assert found.ways["on-policy"].bounded == pytest.approx(1.0 - math.exp(-1.0), abs=0.2)
    assert found.ways["unconstrained"].bounded == 1.0  # what was not seen is taken first
    assert "no bounded interval" in found.report()
    never = saver.diagnose(promising(bandit_of([1.0 - 1e-9, 1e-9], [1.0, 1.0], [0.5, 0.5]), None), 500)
    assert never.ways["on-policy"].bounded == 0.0
    assert never.ways["on-policy"].half_width == math.inf
    assert json.loads(json.dumps(never.to_dict(), allow_nan=False))["ways"]["on-policy"]["half_width"] is None


def test_with_a_promise_an_unseen_pair_adds_its_range():
    # It is never seen, and its mean lies in [0, 1]: .1 / 2 more than the noise of the other.
    made = promising(bandit_of([0.9, 0.1], [1e-8, 1e-8], [0.5, 0.5]), saver.SubGaussian(1e-4, 0.0, 1.0))
    made = replace(made, problem=replace(made.problem, baseline=np.array([[1.0, 0.0]]), alpha=1e-9))
    way = saver.diagnose(made, 100).ways["paper"]
    assert way.half_width == pytest.approx(0.05, abs=1e-3)
    assert way.anytime_half_width == pytest.approx(0.05, abs=1e-3)


def turnout_of(**changes):
    nothing = np.zeros((1, 3))
    design, weighted = np.array([[0.8, 0.2, 0.0]]), np.array([[True, True, True]])
    return Turnout((), design, 0, nothing, True, True, weighted, 1.0)._replace(**changes)


def visits_after(n, **changes):
    counts = Counts(turnout_of(**changes), 2, np.random.default_rng(0))
    for m in (n // 2, n):
        counts.until(m)
    return counts.T[0, 0].tolist()


def test_a_tracker_takes_each_pair_once_and_then_follows_the_design():
    assert visits_after(3) == [1, 1, 1]
    assert visits_after(101) == [80, 20, 1]


def test_other_episodes_and_exploration_are_counted_beside_the_design():
    asked = np.array([0.0, 50.0, 1000.0])
    first = Part(asked, np.array([0.0, 50.0, 50.0]), np.array([[1.0, 0.0, 0.0]]))
    assert visits_after(50, others=(first,)) == [50, 0, 0]
    even = np.full((1, 3), 1 / 3)
    assert visits_after(180, others=(first,), explore=30, exploration=even) == [50 + 10 + 80, 10 + 20, 10]


def test_hostile_losses_widen_more_than_random_ones():
    bandit = saver.SCENARIOS["intractable"]()
    half = [
        saver.diagnose(bandit, K, **options).ways["exact"].anytime_half_width
        for options in ({}, {"losses": 0.1, "declared": "random", "ran": True}, {"losses": 0.1})
    ]
    assert half == sorted(half)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "collectors", "runs"),
    [
        ("bandit", {"on-policy": "on-policy", "safe-oracle": "paper", "saver-opt": "exact"}, 100),
        ("tree", {"on-policy": "on-policy", "safe-oracle": "paper", "exact-oracle": "exact"}, 40),
        ("gridworld", {"on-policy": "on-policy", "safe-oracle": "paper"}, 10),
    ],
)
def test_half_widths_agree_with_campaigns(name, collectors, runs):
    # Fixed seeds; standard errors of the means are at most 2 %.
    scenario = saver.SCENARIOS[name]()
    ways = saver.diagnose(scenario, K).ways
    for collector, way in collectors.items():
        found = saver.simulate(scenario, collector, episodes=K, runs=runs, seed=5, checkpoints=[K])
        low, high = found.interval()
        assert ways[way].half_width == pytest.approx(np.mean(high - low) / 2, rel=0.1)
        always = np.mean(found.anytime_high - found.anytime_low) / 2
        assert ways[way].anytime_half_width == pytest.approx(always, rel=0.1)
