"""Several targets and differences: the compiled engine equals the reference, in every kind of model."""

import dataclasses

import numpy as np
import pytest

import saver
from saver.engine.runs import ANSWERS, COMMON

pytestmark = pytest.mark.slow

SCENARIOS = {
    "bandit": {},
    "tree": {"depth": 3},
    "gridworld": {"size": 3},
    "lake": {},
}
COLLECTORS = ("saver", "saver-opt", "safe-on-policy", "revar")


def asking(name, estimand, several, reward=True):
    made = saver.SCENARIOS[name](**SCENARIOS[name])
    problem = made.problem
    target = problem.target
    if several:
        target = {"new": target, "half": (target + problem.baseline) / 2, "any": problem.mdp.uniform}
    changed = dataclasses.replace(problem, target=target, estimand=estimand)
    if not reward:
        changed = dataclasses.replace(changed, reward=None)
    return dataclasses.replace(made, problem=changed)


def assert_same(made, collector, episodes, fair=True):
    options = {"episodes": episodes, "runs": 2, "seed": 3, "checkpoints": [1, 7, 20], "fair": fair}
    fast, slow = (
        saver.simulate(made, collector, engine=engine, **options) for engine in ("compiled", "reference")
    )
    assert list(fast.by_name) == list(slow.by_name)
    for name in fast.by_name or [None]:
        one, two = (found if name is None else found.by_name[name] for found in (fast, slow))
        assert one.true_value == two.true_value
        for column in (*ANSWERS, *COMMON):
            np.testing.assert_allclose(
                getattr(one, column), getattr(two, column), rtol=1e-9, atol=1e-11, err_msg=f"{name} {column}"
            )


@pytest.mark.parametrize("collector", COLLECTORS)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", SCENARIOS)
def test_engines_agree_on_differences(name, several, collector):
    assert_same(asking(name, "difference", several), collector, 40)


@pytest.mark.parametrize("name", SCENARIOS)
def test_engines_agree_on_several_values(name):
    assert_same(asking(name, "value", True), "saver", 40)
    assert_same(asking(name, "value", True, reward=False), "saver", 40, fair=False)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_look_changes_no_weight(name):
    made = asking(name, "value", True)
    often, once = (
        saver.simulate(made, "saver", episodes=200, runs=3, checkpoints=kept, fair=True)
        for kept in (range(1, 201), [])
    )
    for column in ANSWERS:
        for target in often.by_name:
            one, two = (getattr(found.by_name[target], column) for found in (often, once))
            np.testing.assert_allclose(one[:, -1:], two, rtol=1e-9, atol=1e-11, err_msg=column)


@pytest.mark.parametrize("several", [False, True])
def test_engines_agree_with_estimated_transitions(several):
    own = dataclasses.replace(saver.COLLECTORS["saver"], estimate="certainty-estimated")
    assert_same(asking("gridworld", "difference", several), own, 40, fair=False)


def test_runs_of_several_targets_are_kept_in_a_file(tmp_path):
    found = saver.simulate(asking("bandit", "value", True), "saver", episodes=30, runs=3)
    found.save(tmp_path / "runs.npz")
    again = saver.Runs.load(tmp_path / "runs.npz")
    assert list(again.by_name) == ["new", "half", "any"]
    for name, one in found.by_name.items():
        assert np.array_equal(again.by_name[name].estimates, one.estimates)
        assert again.by_name[name].true_value == one.true_value
    assert np.array_equal(again.estimates, found.by_name["new"].estimates)


@pytest.mark.parametrize("collector", ["exact-oracle", "oracle"])
def test_a_difference_has_the_error_that_its_design_predicts(collector):
    # 1,000 campaigns of the bandit: the mean square of normal errors has a relative standard error of .045.
    made = asking("bandit", "difference", False)
    problem, world = made.problem, made.world
    safe = world.constraint.mean if collector == "exact-oracle" else None
    limit = saver.design.exact(problem, world.reward.variance, safe).limit
    found = saver.simulate(made, collector, episodes=5000, runs=1000, seed=1, checkpoints=[])
    mse, error = (5000 * part[-1] for part in found.mse())
    assert abs(mse / limit - 1.0) < 0.05 + 3.3 * error / limit
    assert 5000 * found.conditional_mse.mean() == pytest.approx(limit, rel=0.05)
