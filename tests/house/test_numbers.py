"""Extreme scales and long campaigns: nothing overflows, nothing cancels, nothing depends on the unit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from kept import Kept, observed

import saver
from saver.kernels.bounds.boundaries import best_rho, mixture, mixture_two_sided, stitched
from saver.play import Stage
from saver.problem.moments import Moments

pytestmark = pytest.mark.slow

SCALES = [1e-12, 1e-6, 1.0, 1e6, 1e12]


def in_units(unit, promise):
    return saver.SubGaussian(unit * promise.scale, unit * promise.floor, unit * promise.ceiling)


def rescaled(scenario, reward=1.0, constraint=1.0):
    """The same question in other units."""
    world, problem = scenario.world, scenario.problem
    made = saver.World(
        world.mdp,
        saver.Gaussian(reward * world.reward.mean, reward**2 * world.reward.variance),
        saver.Gaussian(constraint * world.constraint.mean, constraint**2 * world.constraint.variance),
    )
    asked = replace(
        problem,
        baseline_value=constraint * problem.baseline_value,
        constraint=in_units(constraint, problem.constraint),
        reward=in_units(reward, problem.reward),
        reward_scale=reward * problem.reward_scale,
    )
    return saver.Scenario(scenario.name, made, asked, scenario.episodes)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["bandit", "tree", "gridworld"])
def test_designs_do_not_depend_on_the_unit(name, scale):
    plain = saver.SCENARIOS[name]()
    for unit in ({"reward": scale}, {"constraint": scale}):
        made = rescaled(plain, **unit)
        one, two = (
            saver.design.exact(s.problem, s.world.reward.variance, s.world.constraint.mean)
            for s in (plain, made)
        )
        assert two.limit == pytest.approx(one.limit * unit.get("reward", 1.0) ** 2, rel=1e-5)
        assert two.price == pytest.approx(one.price, rel=1e-5)
        d = saver.diagnose(made)
        assert d.verdict.word == saver.diagnose(plain).verdict.word
        assert d.ways["exact"].certificate == pytest.approx(
            saver.diagnose(plain).ways["exact"].certificate, abs=1
        )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("collector", ["saver", "saver-opt", "safe-on-policy", "sepec"])
def test_campaigns_do_not_depend_on_the_unit(collector, scale):
    plain = saver.SCENARIOS["bandit"]()
    one = saver.simulate(plain, collector, episodes=300, runs=3)
    for unit in ({"reward": scale}, {"constraint": scale}):
        two = saver.simulate(rescaled(plain, **unit), collector, episodes=300, runs=3)
        if scale in (
            1e-12,
            1e-6,
            1e6,
            1e12,
        ):  # ties may fall the other way after rounding: compare what matters
            reward = unit.get("reward", 1.0)
            assert np.all(np.isfinite(two.estimates[:, -1]))
            assert two.conditional_mse[:, -1] == pytest.approx(
                reward**2 * one.conditional_mse[:, -1], rel=0.2, nan_ok=True
            )
            assert two.baseline_share[:, -1] == pytest.approx(one.baseline_share[:, -1], abs=0.05)
            assert two.violation_rate() == one.violation_rate()
        else:
            np.testing.assert_array_equal(two.estimates, one.estimates)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_running_moments_keep_their_precision(scale, offset):
    """Ten million samples in blocks: mean and variance as two-pass sums give them."""
    rng, moments = np.random.default_rng(0), Moments.empty((1, 1))
    count, blocks = 100_000, 3
    values = scale * (offset + rng.standard_normal(count * blocks))
    zeros = np.zeros(count, dtype=np.int64)
    for block in np.split(values, blocks):
        moments.extend(zeros, zeros, block)
    assert moments.counts[0, 0] == count * blocks
    assert moments.mean[0, 0] == pytest.approx(values.mean(), rel=1e-12, abs=1e-15 * scale)
    # offsets of 1e9 leave 16 - 9 digits of each sample: the variance cannot have more
    assert moments.variance[0, 0] == pytest.approx(values.var(ddof=1), rel=1e-6)


def test_ten_million_samples_in_the_engine():
    """The compiled moments after ten million rounds of one action, against the exact distribution."""
    mdp = saver.Mdp(np.zeros((1, 2, 1)), horizon=1)
    world = saver.World(mdp, saver.Gaussian([[1e6, 1e6]], [[1.0, 1.0]]), saver.Gaussian([[0.5, 0.5]], 0.01))
    problem = saver.Problem(
        mdp, [[0.5, 0.5]], [[1.0, 0.0]], alpha=0.5, baseline_value=0.5, constraint=saver.SubGaussian(0.1)
    )
    K = 10_000_000
    found = saver.simulate(saver.Scenario("long", world, problem, K), "on-policy", runs=1, checkpoints=[])
    assert found.stderr[0, -1] == pytest.approx(math.sqrt(1.0 / K), rel=2e-3)
    assert abs(found.estimates[0, -1] - 1e6) < 6 * math.sqrt(1.0 / K)


@pytest.mark.parametrize("v", [1e-24, 1e-12, 1.0, 1e12, 1e24])
@pytest.mark.parametrize("level", [1e-12, 0.05, 0.5])
def test_boundaries_scale_like_the_square_root_of_v(v, level):
    """A boundary has the unit of the sum: multiply the sum by c, v by c^2, and it multiplies by c."""
    rho = best_rho(v, level)
    assert math.isfinite(rho)
    assert rho > 0
    for c in (1e-6, 1e6):
        assert mixture(c * c * v, c * c * rho, level) == pytest.approx(c * mixture(v, rho, level), rel=1e-9)
        assert mixture_two_sided(c * c * v, c * c * rho, level) == pytest.approx(
            c * mixture_two_sided(v, rho, level), rel=1e-9
        )
        scale = math.sqrt(v)
        assert stitched(c * c * v, c * c * v / 4, c * scale, level) == pytest.approx(
            c * stitched(v, v / 4, scale, level), rel=1e-9
        )


def test_boundaries_grow_with_v_and_shrink_with_the_level():
    grid = np.geomspace(1e-6, 1e10, 60)
    for level in (1e-6, 0.01, 0.2):
        for u in (
            [mixture(v, 1.0, level) for v in grid],
            [float(mixture_two_sided(v, 1.0, level)) for v in grid],
            [stitched(v, 1.0, 0.3, level) for v in grid],
        ):
            assert np.all(np.isfinite(u))
            assert np.all(np.diff(u) >= 0)
    for v in grid:
        assert mixture(v, 1.0, 0.01) > mixture(v, 1.0, 0.05)
        assert stitched(v, 1.0, 0.3, 0.01) > stitched(v, 1.0, 0.3, 0.05)


def test_budgets_are_counted_and_not_added_up():
    """Nine times .05 is .45 in a ledger, though nine additions of .05 are not."""
    assert sum([0.05] * 9) < 0.45
    mdp = saver.Mdp(np.zeros((1, 2, 1)), horizon=1)
    problem = saver.Problem(
        mdp,
        [[0.5, 0.5]],
        [[1.0, 0.0]],
        alpha=0.05,
        baseline_value=1.0,
        constraint=saver.SubGaussian(0.1, 0, 1),
    )
    ledger = Kept(problem, 100, Stage(mdp))
    for number in range(1, 10):
        ledger.ask(number, None)
        ledger.tell(number, None, observed([0], [0], np.array([1.0])))
    assert ledger.budget() >= 0.45
    assert ledger.budget() == pytest.approx(0.45, abs=1e-15)
