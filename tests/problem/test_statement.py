"""Problems, worlds and laws: what they hold and what they refuse."""

import dataclasses

import numpy as np
import pytest

from saver import (
    Bernoulli,
    Bounded,
    Empirical,
    Gaussian,
    Mdp,
    Problem,
    Scenario,
    SubGaussian,
    World,
)
from saver.errors import InvalidPolicy, InvalidProblem, SaverError

MDP = Mdp(np.zeros((1, 3, 1)), 1)
MISSING = Mdp(np.zeros((1, 3, 1)), 1, available=np.array([[True, True, False]]))
TARGET = np.array([[0.2, 0.3, 0.5]])
BASE = np.array([[1.0, 0.0, 0.0]])


def problem(mdp=MDP, target=TARGET, baseline=BASE, **changes):
    numbers = {"alpha": 0.25, "baseline_value": 0.5, "constraint": SubGaussian(0.1)} | changes
    return Problem(mdp, target, baseline, **numbers)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"target": [[0.2, 0.3, 0.4]]}, InvalidPolicy, r"target\[0\] sums to 0\.9; prob.* must sum to 1"),
        ({"target": [[1.5, -0.5, 0.0]]}, InvalidPolicy, r"target\[0, 1\] is -0\.5; it must be at least 0"),
        ({"target": [[np.nan, 1, 0]]}, InvalidPolicy, r"target\[0, 0\] is nan"),
        ({"target": [0.5, 0.5, 0.0]}, InvalidPolicy, r"target has shape \(3,\); it must be \(1, 3\)"),
        ({"target": [[0.5, 0, 0, 0.5]]}, InvalidPolicy, "action 3 is missing from the model"),
        ({"mdp": MISSING}, InvalidPolicy, "weight 0.5 to action 2 in state 0, where that action is missing"),
        ({"baseline": [[0.5, 0.1, 0.1]]}, InvalidPolicy, r"baseline\[0\] sums to 0\.7"),
        ({"alpha": 0.0}, InvalidProblem, r"alpha is 0; it must be in \(0, 1\]"),
        ({"alpha": 1.01}, InvalidProblem, r"alpha is 1\.01"),
        ({"delta": 0.0}, InvalidProblem, r"delta is 0; it must be in \(0, 1\)"),
        ({"delta": 1.0}, InvalidProblem, r"delta is 1; it must be in \(0, 1\)"),
        ({"baseline_value": 0.0}, InvalidProblem, "baseline_value is 0; it must be positive"),
        ({"baseline_value": -1.0}, InvalidProblem, "baseline_value is -1; it must be positive"),
        ({"baseline_value": np.nan}, InvalidProblem, "baseline_value is nan; it must be finite"),
        ({"baseline_value": 1.5}, InvalidProblem, r"baseline_value is 1\.5, but .* allow .* \[0, 1\]"),
        ({"reward_scale": 0.0}, InvalidProblem, "reward_scale is 0; it must be positive"),
        ({"constraint": 0.1}, InvalidProblem, r"constraint is 0\.1; it must be a saver\.SubGaussian"),
        ({"mdp": "mdp"}, InvalidProblem, r"mdp is str; it must be a saver\.Mdp"),
    ],
)
def test_bad_problems_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        problem(**changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SubGaussian(-0.1), r"scale is -0\.1; it must be at least 0"),
        (lambda: SubGaussian(0.1, 1.0, 0.0), "floor is 1 and ceiling is 0; floor must be below ceiling"),
        (lambda: SubGaussian(0.1, next_state=1), "next_state is 1; it must be True or False"),
        (lambda: Bounded(0.0, 1.0, next_state="no"), "next_state is 'no'; it must be True or False"),
        (lambda: Bounded(0.0, 1.0, None), "next_state is None; it must be True or False"),
        (lambda: Bounded(1.0, 1.0), "low is 1 and high is 1"),
        (lambda: Bounded(0.0, np.inf), "high is inf"),
        (lambda: Gaussian([[0.0]], [[-1.0]]), r"variance\[0, 0\] is -1; it must be at least 0"),
        (lambda: Gaussian([0.0], 1.0), r"mean has shape \(1,\); it must be \(states, actions\)"),
        (lambda: Gaussian([[0.0, 1.0]], [[1.0]]), r"variance has shape \(1, 1\); it must be one number or"),
        (lambda: Bernoulli([[1.2]]), r"mean\[0, 0\] is 1\.2; it must be in \[0, 1\]"),
        (lambda: Empirical([[[1.0], []]]), r"samples\[0\]\[1\] must be a list of at least one number"),
        (lambda: Empirical([[[1.0]], [[1.0], [2.0]]]), r"samples\[1\] has 2 actions but samples\[0\] has 1"),
        (lambda: Empirical(3.0), "samples must be nested sequences"),
        (lambda: Empirical([5]), r"samples\[0\] must hold a list of numbers for each action"),
        (lambda: Gaussian([[1e300]], 1.0), r"mean\[0, 0\] is 1e\+300; .* rescale it"),
        (lambda: Gaussian(np.zeros((0, 0)), 1.0), r"mean has shape \(0, 0\)"),
        (lambda: SubGaussian(10**400), "scale is inf; it must be finite"),
        (
            lambda: World(None, LAWS["gaussian"], LAWS["gaussian"]),
            r"mdp is NoneType; it must be a saver\.Mdp",
        ),
        (lambda: World(MDP, Gaussian, Bernoulli([[0.5] * 3])), "reward is .* it must be a law such as"),
        (lambda: Scenario("mine", None, None, 1), r"world is NoneType; it must be a saver\.World"),
        (lambda: Scenario(None, None, None, 1), "name is None; it must be a string"),
        (lambda: World(MDP, Gaussian([[0.0]], 1.0), Bernoulli([[0.5] * 3])), r"reward is for .* = \(1, 1\)"),
    ],
)
def test_bad_laws_and_promises_are_refused(make, message):
    with pytest.raises(InvalidProblem, match=message):
        make()


def test_every_error_is_a_saver_error_and_a_value_error():
    with pytest.raises(SaverError):
        problem(alpha=2)
    with pytest.raises(ValueError, match="alpha"):
        problem(alpha=2)


def test_problem_keeps_copies_that_cannot_be_written():
    target = TARGET.copy()
    asked = problem(target=target)
    target[0] = [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(asked.target, TARGET)
    with pytest.raises(ValueError, match="read-only"):
        asked.target[0, 0] = 1.0
    assert asked.required == 0.75 * 0.5
    stricter = dataclasses.replace(asked, alpha=0.1)
    assert stricter.alpha == 0.1
    assert stricter.required == pytest.approx(0.45)
    assert stricter.baseline_value == 0.5


def test_bounded_is_a_sub_gaussian_promise():
    promise = Bounded(-1.0, 3.0)
    assert (promise.scale, promise.floor, promise.ceiling) == (2.0, -1.0, 3.0)


LAWS = {
    "gaussian": Gaussian([[0.3, 0.6]], [[0.5, 2.0]]),
    "bernoulli": Bernoulli([[0.3, 0.6]]),
    "empirical": Empirical([[[0.0, 1.0, 2.0], [5.0, 5.5]]]),
}


@pytest.mark.parametrize("name", LAWS)
def test_samples_have_the_stated_mean_and_variance(name):
    # Five standard errors of each of 4 numbers: false alarms below 1e-5.
    law, n = LAWS[name], 20_000
    rng = np.random.default_rng(5)
    for a in range(2):
        draws = np.array([law.sample(rng, 0, a) for _ in range(n)])
        spread = np.sqrt(law.variance[0, a])
        assert abs(draws.mean() - law.mean[0, a]) < 5 * spread / np.sqrt(n)
        fourth = np.sqrt(np.mean((draws - draws.mean()) ** 4) - law.variance[0, a] ** 2 + 1e-9)
        assert abs(draws.var() - law.variance[0, a]) < 5 * fourth / np.sqrt(n) + 1e-3


def test_empirical_variance_divides_by_n():
    law = LAWS["empirical"]
    np.testing.assert_allclose(law.mean, [[1.0, 5.25]])
    np.testing.assert_allclose(law.variance, [[2 / 3, 0.0625]])


def test_world_values_and_scenario_shapes():
    world = World(MDP, Gaussian([[1.0, 2.0, 4.0]], 1.0), Bernoulli([[0.5, 0.25, 0.0]]))
    assert world.value(TARGET) == pytest.approx(0.2 + 0.6 + 2.0)
    assert world.constraint_value(BASE) == 0.5
    asked = problem()
    assert Scenario("mine", world, asked, 10).episodes == 10
    with pytest.raises(InvalidProblem, match="episodes is 0"):
        Scenario("mine", world, asked, 0)
    other = problem(mdp=Mdp(np.zeros((1, 3, 1)), 2))
    with pytest.raises(InvalidProblem, match=r"world has .* \(1, 3, 1\) but problem has \(1, 3, 2\)"):
        Scenario("mine", world, other, 10)
