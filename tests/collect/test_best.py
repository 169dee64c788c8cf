"""`saver-opt` comes close to the exact safe limit behind the same promise; SEPEC; what planning relies on."""

import numpy as np
import pytest
from models import random_graph, random_policy
from scipy.stats import binom, chi2

from saver import (
    COLLECTORS,
    SCENARIOS,
    Bernoulli,
    Bounded,
    Collector,
    Gaussian,
    Mdp,
    Problem,
    Scenario,
    SubGaussian,
    World,
    design,
    scenarios,
    simulate,
)
from saver.design.closed import with_side_information, without_side_information
from saver.errors import InvalidProblem
from saver.kernels.believing import spread_believed

pytestmark = pytest.mark.slow


def ratio(scenario, collector, episodes, runs, **options):
    """K * conditional MSE over the exact safe limit."""
    world = scenario.world
    limit = design.exact(scenario.problem, world.reward.variance, world.constraint.mean).limit
    found = simulate(scenario, collector, episodes=episodes, runs=runs, checkpoints=[], **options)
    return episodes * found.conditional_mse[:, -1].mean() / limit, found


@pytest.mark.parametrize(
    ("name", "runs", "early", "late"), [("bandit", 400, 1.3, 1.06), ("tree", 40, 1.1, 1.03),
                                        ("gridworld", 8, 1.2, 1.05)]
)  # fmt: skip
def test_saver_opt_is_near_the_exact_limit(name, runs, early, late):
    asked = SCENARIOS[name]()
    for episodes, most in ((500, early), (5000, late)):
        found, _ = ratio(asked, "saver-opt", episodes, runs)
        assert found < most, episodes
        assert found < ratio(asked, "saver", episodes, runs)[0]


def test_saver_opt_needs_less_than_half_of_what_the_safe_oracle_needs():
    ours, _ = ratio(SCENARIOS["bandit"](), "saver-opt", 5000, 100)
    theirs, _ = ratio(SCENARIOS["bandit"](), "safe-oracle", 5000, 100)
    assert 2 * ours < theirs


def test_empirical_and_conditional_errors_of_saver_opt_agree():
    # 2,000 runs: five standard errors are exceeded with probability below 1e-6.
    found = simulate(SCENARIOS["bandit"](), "saver-opt", episodes=1000, runs=2000, checkpoints=[])
    empirical, error = found.mse()
    assert abs(empirical[-1] - found.conditional_mse[:, -1].mean()) < 5 * error[-1]


def worst_first(alpha=0.25, noise=0.1, law=None, promise=None):
    """A bandit whose noisy actions, which every design wants, earn nothing."""
    variance = np.array([[1e-4, 4.0, 1.0, 0.5, 0.01, 9.0]])
    mean = np.array([[0.5, 0.0, 0.05, 0.6, 0.55, 0.0]])
    target, baseline = np.full((1, 6), 1 / 6), np.eye(6)[:1]
    mdp = scenarios.bandit(actions=6).problem.mdp
    world = World(mdp, Gaussian(np.linspace(0, 1, 6)[None], variance), law or Gaussian(mean, noise**2))
    problem = Problem(
        mdp,
        target,
        baseline,
        alpha=alpha,
        baseline_value=0.5,
        constraint=promise or SubGaussian(noise, 0.0, 1.0),
    )
    return Scenario("worst first", world, problem, 1000)


AGAINST = {
    "unsafe looks good": worst_first(),
    "alpha .05": worst_first(alpha=0.05),
    "noise ten times larger": worst_first(noise=1.0),
    "coins": worst_first(
        law=Bernoulli(np.array([[0.5, 0.0, 0.05, 0.6, 0.55, 0.0]])), promise=Bounded(0.0, 1.0)
    ),
    "tree, alpha .05": scenarios.tree(alpha=0.05),
    "gridworld, alpha .05": scenarios.gridworld(size=3, alpha=0.05),
}


@pytest.mark.parametrize("world", AGAINST)
@pytest.mark.parametrize("collector", ["saver", "saver-opt", "safe-on-policy", "exact-oracle"])
def test_the_promise_on_worlds_against_it(world, collector):
    # At most delta = 0.05; more violations than the bound have a probability below 1e-4 there.
    runs = 200 if "gridworld" not in world else 60
    found = simulate(AGAINST[world], collector, episodes=600, runs=runs, checkpoints=[])
    assert found.violation_rate() * runs <= binom.isf(1e-4, runs, 0.05)


def test_random_graphs_are_within_a_tenth_of_their_limits():
    close = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mdp = random_graph(seed, states=6, actions=3, horizon=4)
        shape = (6, 3)
        world = World(
            mdp, Gaussian(rng.random(shape), rng.random(shape) ** 4), Gaussian(rng.random(shape), 0.01)
        )
        baseline = np.eye(3)[np.argmax(world.constraint.mean, axis=1)]
        problem = Problem(
            mdp,
            random_policy(rng, *shape),
            baseline,
            alpha=0.2,
            baseline_value=world.constraint_value(baseline),
            constraint=SubGaussian(0.1),
        )
        found, _ = ratio(Scenario("graph", world, problem, 20000), "saver-opt", 20000, 2)
        close += found < 1.10
    assert close >= 18


def test_on_the_intractable_bandit_regret_falls_like_one_over_n():
    # Proposition 1: no safe collector approaches the unconstrained optimum faster than 1 / n.
    asked = SCENARIOS["intractable"]()
    free = design.exact(asked.problem, asked.world.reward.variance).limit
    points = np.array([1000, 4000, 16000])
    for collector in ("saver", "saver-opt", "safe-on-policy", "exact-oracle"):
        found = simulate(asked, collector, episodes=16000, runs=100, checkpoints=points)
        regret = found.conditional_mse.mean(axis=0) - free / points
        slope = np.polyfit(np.log(points), np.log(regret), 1)[0]
        assert -1.15 < slope < -0.85, collector


def test_caution_divides_by_a_low_quantile_of_chi_square():
    # T = 11, variance 2: chi^2 with 10 degrees, one standard deviation (probability .1587) below the median.
    low = chi2.ppf(0.158655, 10) / 10
    assert spread_believed(11.0, 20.0, 0.0, 1.0) == pytest.approx(2.0 / low, rel=2e-3)
    assert spread_believed(11.0, 20.0, 0.0, 0.0) == pytest.approx(2.0)
    assert spread_believed(4.0, 3.0, 1.0, 0.0) == pytest.approx((1.0 + 0.5) ** 2)


def test_sepec_without_side_information_by_hand():
    # pi = (.2, .3, .5), (1 - alpha) pi_0 = (.6, 0, 0): b_0 = .6, the rest .4 in proportion 3 : 5.
    b = without_side_information(np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.0, 0.0]), 0.4)
    np.testing.assert_allclose(b, [0.6, 0.15, 0.25])
    even = without_side_information(np.array([0.5, 0.5]), np.array([1.0, 0.0]), 0.5)
    np.testing.assert_allclose(even, [0.5, 0.5])


BOTH = np.array([True, True])


def test_sepec_with_side_information_by_hand():
    # Safe already: b in proportion to pi sqrt(variance + mean^2) = (.5 * 2, .5 * 1).
    b = with_side_information(np.array([0.5, 0.5]), np.array([4.0, 1.0]), np.array([1.0, 1.0]), 0.5, BOTH)
    np.testing.assert_allclose(b, [2 / 3, 1 / 3])
    bound = with_side_information(np.array([0.5, 0.5]), np.array([4.0, 1.0]), np.array([0.0, 1.0]), 0.5, BOTH)
    np.testing.assert_allclose(bound, [0.5, 0.5])


def test_sepec_has_the_error_that_its_formula_says():
    asked = scenarios.bandit(actions=4, noisy_variance=1.0)
    world, pi = asked.world, asked.problem.target[0]
    moment = world.reward.variance[0] + world.reward.mean[0] ** 2
    b = with_side_information(pi, moment, world.constraint.mean[0], asked.problem.required, np.ones(4, bool))
    expected = np.sum(pi**2 * moment / b) - world.value(asked.problem.target) ** 2
    found = simulate(asked, "sepec-known", episodes=2000, runs=1000, checkpoints=[])
    weighted = 2000 * (1 - found.baseline_share[:, -1].mean())
    empirical, error = found.mse()
    assert abs(empirical[-1] * weighted - expected) < 5 * error[-1] * weighted
    assert found.violation_rate() <= 0.05


@pytest.mark.parametrize("name", ["sepec", "sepec-none", "sepec-known"])
def test_sepec_is_unbiased_safe_and_for_bandits_only(name):
    found = simulate(
        scenarios.bandit(actions=4, noisy_variance=1.0), name, episodes=1000, runs=400, checkpoints=[]
    )
    off = found.estimates[:, -1] - found.true_value
    assert abs(off.mean()) < 5 * off.std() / np.sqrt(400)  # probability below 1e-6
    assert found.violation_rate() * 400 <= binom.isf(1e-4, 400, 0.05)
    with pytest.raises(InvalidProblem, match=r"sepec is for bandits.* use saver-opt"):
        simulate(SCENARIOS["tree"](), name, episodes=10, runs=1)


def test_sepec_names_what_it_needs():
    with pytest.raises(InvalidProblem, match="'known' needs"):
        Collector(design="sepec", side_information="known", explore="none")
    with pytest.raises(InvalidProblem, match="the pilot is the exploration"):
        Collector(design="sepec", side_information="none")
    low = worst_first(promise=SubGaussian(0.1, -0.5, 1.0))
    with pytest.raises(InvalidProblem, match=r"floor is -0\.5; sepec without side information"):
        simulate(low, "sepec-none", episodes=10, runs=1)
    assert COLLECTORS["sepec"].side_information == "pilot"


def test_sepec_plays_no_missing_action():
    available = np.array([[True, True, True, False]])
    mdp = Mdp(np.zeros((1, 4, 1)), 1, available=available)
    means = np.array([[0.8, 0.6, 0.5, 0.95]])
    world = World(mdp, Gaussian(means, 1.0), Gaussian(means, 0.01))
    problem = Problem(
        mdp,
        np.array([[0.4, 0.3, 0.3, 0.0]]),
        np.eye(4)[:1],
        alpha=0.05,
        baseline_value=0.8,
        constraint=SubGaussian(0.1),
    )
    asked = Scenario("missing", world, problem, 50)
    for name in ("sepec", "sepec-none", "sepec-known"):  # the reference refuses an action that is missing
        plain = simulate(asked, name, episodes=50, runs=2, engine="reference")
        np.testing.assert_allclose(simulate(asked, name, episodes=50, runs=2).estimates, plain.estimates)


def coins(p):
    """Four actions with rewards 0 or 1; all designs are safe."""
    mdp, means = scenarios.bandit(actions=4).problem.mdp, np.array([[0.8, 0.6, 0.5, 0.4]])
    world = World(mdp, Bernoulli(np.array([p])), Gaussian(means, 0.01))
    problem = Problem(
        mdp, mdp.uniform, np.eye(4)[:1], alpha=0.25, baseline_value=0.8, constraint=SubGaussian(0.1)
    )
    return Scenario("coins", world, problem, 5000)


@pytest.mark.parametrize("p", [(0.5, 0.3, 0.4, 0.3), (0.5, 0.05, 0.5, 0.05)])
def test_equal_samples_of_a_rare_event_do_not_starve_an_action(p):
    # Four equal samples have a sample variance of 0; more caution than a factor is needed.
    found, runs = ratio(coins(p), "saver-opt", 5000, 200)
    assert found < 1.1
    empirical, error = runs.mse()
    assert abs(empirical[-1] - runs.conditional_mse[:, -1].mean()) < 5 * error[-1]


def test_a_pace_that_nothing_can_keep_is_left_to_the_baseline():
    # Noise of .1 on means of .001: no design can pay for the boundary.
    mdp, means = scenarios.bandit(actions=4).problem.mdp, np.array([[1e-3, 5e-4, 0.0, 0.0]])
    world = World(mdp, Gaussian(means, np.array([[1.0, 1.0, 1.0, 10.0]])), Gaussian(means, 0.01))
    problem = Problem(
        mdp, mdp.uniform, np.eye(4)[:1], alpha=0.1, baseline_value=1e-3, constraint=SubGaussian(0.1)
    )
    asked = Scenario("tiny", world, problem, 5000)
    assert ratio(asked, "exact-oracle", 5000, 50)[0] < 1.5 * ratio(asked, "saver", 5000, 50)[0]
