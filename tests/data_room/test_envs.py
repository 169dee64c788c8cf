"""Scenarios as Gymnasium environments: the checker, the draws of the player, names and masks."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import saver
from saver.errors import InvalidData, InvalidProblem


@pytest.mark.parametrize("name", saver.SCENARIOS)
def test_every_scenario_passes_gymnasiums_checker(name):
    assert f"saver/{name}-v0" in saver.data.register()
    env = gymnasium.make(f"saver/{name}-v0")
    check_env(env.unwrapped)
    mdp = saver.SCENARIOS[name]().world.mdp
    assert (env.observation_space.n, env.action_space.n) == (mdp.states, mdp.actions)


@pytest.mark.parametrize(
    "name", ["bandit", "tree", "gridworld", "lake", "shop", "contexts", "unknown-gridworld"]
)
def test_an_environment_draws_what_the_player_draws(name):
    scenario = saver.SCENARIOS[name]()
    campaign = saver.Campaign(scenario.problem, "baseline", episodes=20, seed=1)
    player, env = saver.Player(scenario.world, seed=5, tells_end=True), saver.data.ScenarioEnv(scenario)
    for number in range(20):
        trial = campaign.ask()
        ours = player.run(trial)
        theirs = saver.data.play(env, trial, seed=5 if number == 0 else None)
        assert ours.states.tolist() == theirs.states.tolist()
        assert ours.rewards.tolist() == theirs.rewards.tolist()
        assert ours.final_state == theirs.final_state
        one = len(scenario.problem.rails) == 1
        wanted = {scenario.problem.rails[0].name: ours.constraints} if one else ours.constraints
        for guarded, column in wanted.items():
            assert column.tolist() == theirs.constraints[guarded].tolist()
        campaign.tell(trial, theirs)


def test_arguments_of_a_scenario_and_the_long_id():
    env = gymnasium.make("saver.data.envs:saver/lake-v0", size=8)
    assert env.observation_space.n == 65
    with pytest.raises(InvalidProblem, match="no argument of lake 'sise'; did you mean 'size'"):
        gymnasium.make("saver/lake-v0", sise=8)


def masked():
    there = np.array([[True, False], [True, True]])
    mdp = saver.Mdp.from_edges([(0, 0, 1, 1.0)], 2, 2, 2, available=there, state_names=["door", "room"])
    world = saver.World(mdp, saver.Gaussian(np.ones((2, 2)), 0.0), saver.Bernoulli(np.ones((2, 2))))
    sure = np.array([[1.0, 0.0], [1.0, 0.0]])
    problem = saver.Problem(
        mdp, mdp.uniform, sure, alpha=0.5, baseline_value=2.0, constraint=saver.Bounded(0, 1)
    )
    return saver.Scenario("masked", world, problem, 10)


def test_missing_actions_are_masked_and_refused():
    env = saver.data.ScenarioEnv(masked())
    state, info = env.reset(seed=1)
    assert (state, info["action_mask"].tolist()) == (0, [1, 0])
    with pytest.raises(InvalidData, match=r"action 1 is missing in state 0 \(door\); there are 0"):
        env.step(1)
    state, reward, terminated, truncated, info = env.step(0)
    assert (state, reward, terminated, truncated, info["action_mask"].tolist()) == (
        1,
        1.0,
        False,
        False,
        [1, 1],
    )
    state, _, terminated, truncated, info = env.step(1)
    assert (state, terminated, truncated, info["constraints"]) == (1, True, False, {"constraint": 1.0})
    with pytest.raises(InvalidData, match="the episode has ended, or none has begun; call reset first"):
        env.step(0)


def test_the_horizon_truncates_and_what_ends_terminates():
    env = gymnasium.make("saver.data.envs:saver/lake-v0").unwrapped
    env.reset(seed=1)
    steps = [env.step(0) for _ in range(50)]
    assert [step[2] for step in steps] == [False] * 50
    assert [step[3] for step in steps] == [False] * 49 + [True]


def test_a_campaign_in_a_vector_of_a_scenario():
    scenario = saver.SCENARIOS["gridworld"]()
    saver.data.register()
    envs = gymnasium.make_vec("saver/gridworld-v0", num_envs=4, vectorization_mode="sync")
    campaign = saver.Campaign(scenario.problem, "safe-on-policy", episodes=300, seed=1)
    assert saver.data.play_many(envs, campaign, seed=2) == 300
    found = campaign.estimate()
    assert abs(found.value - scenario.world.value(scenario.problem.target)) < 4 * found.stderr  # 1 in 15,000
    assert campaign.budget.certified >= 0
