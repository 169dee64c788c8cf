"""Worlds whose reward and constraint depend on each other or on the next state; one rule for observations."""

import dataclasses
import sys

import numpy as np
import pytest
from models import random_graph, random_policy

import saver
from saver import (
    END,
    SCENARIOS,
    Bernoulli,
    Bounded,
    Gaussian,
    Mdp,
    Player,
    Problem,
    Scenario,
    World,
    simulate,
)
from saver.errors import InvalidData, InvalidProblem

pytestmark = pytest.mark.slow

FIELDS = (
    "estimates",
    "stderr",
    "below",
    "above",
    "budget",
    "ledger",
    "baseline_share",
    "conditional_mse",
    "worst_budget",
)


def with_world(scenario, **changes):
    return dataclasses.replace(scenario, world=dataclasses.replace(scenario.world, **changes))


def shared_graph(coins=False):
    """Reward and constraint are one observation."""
    rng = np.random.default_rng(2)
    mdp = random_graph(2, states=5, actions=2, horizon=3)
    mean = 0.2 + 0.6 * rng.random((5, 2))
    law = Bernoulli(mean) if coins else Gaussian(mean, 0.01)
    world = World(mdp, law, law, outcome="shared")
    baseline = np.eye(2)[[0, 1, 0, 1, 0]]
    problem = Problem(
        mdp, random_policy(rng, 5, 2), baseline, alpha=0.3, baseline_value=world.constraint_value(baseline),
        constraint=Bounded(0.0, 1.0) if coins else saver.SubGaussian(0.1),
    )  # fmt: skip
    return Scenario("shared", world, problem, 200)


def shared_bandit():
    law = Bernoulli([[0.5, 0.9, 0.3, 0.2]])
    mdp = Mdp(np.zeros((1, 4, 1)), 1)
    problem = Problem(
        mdp, [[0.4, 0.2, 0.2, 0.2]], [[1.0, 0, 0, 0]], alpha=0.3, baseline_value=0.5, constraint=Bounded(0, 1)
    )
    return Scenario("shared", World(mdp, law, law, outcome="shared"), problem, 200)


@pytest.mark.parametrize("make", [shared_graph, lambda: shared_graph(coins=True), shared_bandit])
@pytest.mark.parametrize("collector", ["saver", "saver-opt", "safe-on-policy", "saver-paper"])
def test_both_engines_know_a_reward_that_is_the_constraint(make, collector):
    one, two = (
        simulate(make(), collector, episodes=150, runs=2, engine=engine)
        for engine in ("compiled", "reference")
    )
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(one, name), getattr(two, name), rtol=1e-10, atol=1e-10, err_msg=name
        )


def test_one_draw_is_both():
    asked = shared_graph()
    episode = Player(asked.world, 1).run(saver.Campaign(asked.problem, "uniform", 5).ask())
    np.testing.assert_array_equal(episode.rewards, episode.constraints)


def chain():
    """Two steps: from 0 to 1 or 2, evenly, whatever is done; then the episode ends."""
    mdp = Mdp.from_edges([(0, a, to, 0.5) for a in (0, 1) for to in (1, 2)], 3, 2, 2)
    even = np.full((3, 2), 0.5)
    return mdp, even


def by_next_state(rng, step, state, action, next_state):
    """The first reward says where it led; the second step ends and gives what ends give."""
    if next_state == END:
        return -1.0, 0.5
    return float(next_state), 0.5 + 0.1 * (next_state - 1.5) + 0.01 * rng.standard_normal()


def test_an_outcome_sees_the_step_and_the_next_state(capfd):
    mdp, even = chain()
    world = World(mdp, Gaussian([[1.5, 1.5], [-1, -1], [-1, -1]], 0.25), Gaussian(np.full((3, 2), 0.5), 0.01),
                  outcome=by_next_state)  # fmt: skip
    problem = Problem(mdp, even, even, alpha=0.5, baseline_value=1.0, constraint=saver.SubGaussian(0.1))
    asked = Scenario("next", world, problem, 50)
    player, trial = Player(world, 3), saver.Campaign(problem, "uniform", 5).ask()
    for _ in range(20):
        episode = player.run(trial)
        assert episode.rewards.tolist() == [float(episode.states[1]), -1.0]
        assert episode.final_state == END
    sys.modules["saver.engine.simulate"]._say.cache_clear()  # it is said once, and may have been
    compiled = simulate(asked, "uniform", episodes=400, runs=3, seed=1)
    said = capfd.readouterr().err
    assert "the world's outcome is a function: this runs in the reference engine" in said
    reference = simulate(asked, "uniform", episodes=400, runs=3, seed=1, engine="reference")
    np.testing.assert_array_equal(compiled.estimates, reference.estimates)
    assert compiled.estimates[:, -1].mean() == pytest.approx(compiled.true_value, abs=0.1)  # 0.5, sd .015


def test_outcomes_that_make_no_sense_are_refused():
    mdp, _ = chain()
    law = Gaussian(np.zeros((3, 2)), 1.0)
    with pytest.raises(InvalidProblem, match="outcome is 'shared', so constraint must be the very law"):
        World(mdp, law, Gaussian(np.ones((3, 2)), 1.0), outcome="shared")
    with pytest.raises(InvalidProblem, match="outcome is 'both'; it must be 'shared', or a function of"):
        World(mdp, law, law, outcome="both")


# -- one observation rule ------------------------------------------------------------------------------------


def test_the_bounds_belong_to_the_promise():
    assert Bounded(-1.0, 2.0).bounds == (-1.0, 2.0)
    low, high = saver.SubGaussian(0.1, 0.0, 1.0).bounds
    assert (low, high) == (pytest.approx(-1000.0), pytest.approx(1001.0))
    low, high = saver.SubGaussian(0.0, 0.0, 1.0).bounds  # without noise an observation is its mean
    assert -1e-6 < low <= 0.0
    assert 1.0 <= high < 1.0 + 1e-6


PROMISES = {
    "sub-gaussian": (saver.SubGaussian(0.1), 5000.0),
    "bounded": (Bounded(-1.0, 2.0), 3.0),
}


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("scenario", ["bandit", "tree", "gridworld"])
@pytest.mark.parametrize("collector", ["saver", "saver-opt", "on-policy", "safe-on-policy"])
def test_both_engines_refuse_what_the_promise_rules_out(scenario, promise, collector):
    declared, factor = PROMISES[promise]
    asked = SCENARIOS[scenario]()
    law = Gaussian(factor * asked.world.constraint.mean, asked.world.constraint.variance)
    slipped = with_world(asked, constraint=law)
    slipped = dataclasses.replace(slipped, problem=dataclasses.replace(slipped.problem, constraint=declared))
    messages = []
    for engine in ("compiled", "reference"):
        with pytest.raises(InvalidData, match="outside the declared bounds") as found:
            simulate(slipped, collector, episodes=60, runs=1, engine=engine)
        messages.append(str(found.value))
    assert messages[0] == messages[1]


def by_pair(problem, far):
    """`far` where the target goes most seldom, elsewhere so much that nothing is refused."""
    rare = np.argmin(np.where(problem.target > 0, problem.target, 2.0), axis=1)
    wide = np.full(problem.target.shape, 1e9)
    wide[np.arange(len(wide)), rare] = far
    return wide


REWARDS = {  # rewards have standard deviations of up to 6
    "sub-gaussian": lambda problem: saver.SubGaussian(1e-4),
    "sub-gaussian by pair": lambda problem: saver.SubGaussian(by_pair(problem, 1e-4)),
    "bounded": lambda problem: Bounded(-3.0, 3.0),
    "bounded by pair": lambda problem: Bounded(-by_pair(problem, 3.0), by_pair(problem, 3.0)),
}


@pytest.mark.parametrize("promise", REWARDS)
@pytest.mark.parametrize("scenario", ["bandit", "tree", "gridworld"])
@pytest.mark.parametrize("collector", ["saver", "saver-opt", "uniform", "safe-on-policy"])
def test_both_engines_refuse_rewards_that_the_promise_rules_out(scenario, promise, collector):
    asked = SCENARIOS[scenario]()
    slipped = dataclasses.replace(
        asked, problem=dataclasses.replace(asked.problem, reward=REWARDS[promise](asked.problem))
    )
    messages = []
    for engine in ("compiled", "reference"):
        with pytest.raises(InvalidData, match=r"rewards\[\d\] is .*, outside the declared bounds") as found:
            simulate(slipped, collector, episodes=300, runs=1, engine=engine)
        messages.append(str(found.value))
    assert messages[0] == messages[1]


def test_rewards_of_baseline_episodes_that_teach_nothing_are_held_to_their_promise():
    asked = SCENARIOS["bandit"]()
    problem = dataclasses.replace(asked.problem, reward=Bounded(0.49, 0.51))  # the baseline's have sd .01
    asked = dataclasses.replace(asked, problem=problem)
    for name in ("baseline", "saver"):
        deaf = dataclasses.replace(saver.COLLECTORS[name], learn_from_baseline=False)
        for engine in ("compiled", "reference"):
            with pytest.raises(InvalidData, match=r"rewards\[0\] is .* of action 0 in state 0"):
                simulate(asked, deaf, episodes=60, runs=1, engine=engine)


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("collector", ["saver", "saver-opt", "safe-on-policy", "sepec", "saver-paper"])
def test_both_engines_agree_on_coins_under_both_promises(promise, collector):
    declared, _ = PROMISES[promise]
    asked = SCENARIOS["bandit"](actions=5)
    coins = with_world(asked, constraint=Bernoulli(np.clip(asked.world.constraint.mean, 0, 1)))
    coins = dataclasses.replace(coins, problem=dataclasses.replace(coins.problem, constraint=declared))
    one, two = (
        simulate(coins, collector, episodes=200, runs=2, engine=engine)
        for engine in ("compiled", "reference")
    )
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(one, name), getattr(two, name), rtol=1e-10, atol=1e-10, err_msg=name
        )
