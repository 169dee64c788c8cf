"""Trials in environments: what an episode holds, what is guarded, and every trial told once."""

from collections import Counter

import gymnasium
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from toys import Rooms, Walk

import saver
from saver.errors import InvalidData, InvalidProblem


def campaign_of(mdp, episodes=50, collector="on-policy", **options):
    kept = saver.Guardrail("kept", saver.Bounded(0, 1000), at_least=0.0)
    problem = saver.Problem(mdp, mdp.uniform, mdp.uniform, guardrails=[kept])
    return saver.Campaign(problem, collector, episodes=episodes, seed=1, keep="episodes", **options)


def walk(horizon, env=None, **options):
    mdp = saver.data.unknown_from_gymnasium(env or Walk(), horizon=horizon)
    return campaign_of(mdp, **options)


# -- one trial ---------------------------------------------------------------------------------------------


def test_an_episode_by_hand_that_comes_to_the_horizon():
    campaign = walk(3)
    trial = campaign.ask()
    episode = saver.data.play(Walk(), trial, guardrails={"kept": "cost"})
    assert episode.states.tolist() == [0, 1, 2]
    assert episode.actions.tolist() == [trial.act(t, t) for t in range(3)]
    assert episode.rewards.tolist() == [10.0, 20.0, 30.0]
    assert episode.constraints["kept"].tolist() == [0.5] * 3
    assert episode.final_state == 3  # it went on
    campaign.tell(trial, episode)


@pytest.mark.parametrize("ends", [2, 3])
def test_an_episode_that_ends(ends):
    episode = saver.data.play(Walk(ends=ends), walk(3).ask())
    assert (len(episode), episode.final_state, episode.constraints) == (ends, saver.END, None)


def test_what_is_guarded_is_a_function_an_entry_or_the_reward():
    trial = walk(2).ask()
    calls = []

    def watch(state, action, reward, following, terminated, info):
        calls.append((state, action, reward, following, terminated, info["cost"]))
        return reward / 10

    episode = saver.data.play(Walk(ends=2), trial, guardrails={"f": watch, "c": "cost", "r": "reward"})
    assert {name: list(column) for name, column in episode.constraints.items()} == {
        "f": [1.0, 2.0], "c": [0.5, 0.5], "r": [10.0, 20.0],
    }  # fmt: skip
    actions = [trial.act(0, 0), trial.act(1, 1)]
    assert calls == [(0, actions[0], 10.0, 1, False, 0.5), (1, actions[1], 20.0, 2, True, 0.5)]
    assert saver.data.play(Walk(), trial, guardrails="reward").constraints.tolist() == [10.0, 20.0]
    assert saver.data.play(Walk(), trial, guardrails=watch).constraints.tolist() == [1.0, 2.0]
    with pytest.raises(InvalidData, match="guardrails is 'csot', and info has no such entry; it has cost, a"):
        saver.data.play(Walk(), trial, guardrails="csot")


def test_what_is_cut_off_is_no_end_and_can_be_told():
    campaign = walk(5)
    trial = campaign.ask()
    with pytest.raises(
        saver.data.CutOff, match="cut trial 1 off after 2 of 5 steps; tell what was seen"
    ) as cut:
        saver.data.play(Walk(stops=2), trial, guardrails={"kept": "cost"})
    assert (len(cut.value.episode), cut.value.episode.final_state) == (2, 2)
    campaign.tell(trial, cut.value.episode, complete=False)
    assert (
        saver.data.play(Walk(stops=5), campaign.ask()).final_state == 5
    )  # at the horizon nothing is cut off


def test_a_trial_of_another_model_is_refused_before_it_runs():
    env = Rooms()
    with pytest.raises(
        InvalidProblem, match="has 2 states and 2 actions, but the trial's model has 20 and 2"
    ):
        saver.data.play(env, walk(3).ask())
    assert env.starts == 0
    timed = gymnasium.make("FrozenLake-v1", max_episode_steps=10)
    lake = saver.data.from_gymnasium("FrozenLake-v1", horizon=20)
    with pytest.raises(
        InvalidProblem, match="stops after 10 steps, and the trial's horizon is 20; make it by"
    ):
        saver.data.play(timed, campaign_of(lake).ask())
    with pytest.raises(
        InvalidProblem, match=r"env is 'x'; it must be a gymnasium.Env: gymnasium.make\(...\)"
    ):
        saver.data.play("x", walk(3).ask())


def test_a_seed_makes_an_episode_again():
    lake = saver.data.from_gymnasium("FrozenLake-v1", horizon=20)
    env, trial = gymnasium.make("FrozenLake-v1"), campaign_of(lake).ask()
    one, two = (saver.data.play(env, trial, seed=7) for _ in range(2))
    assert one.states.tolist() == two.states.tolist()
    other = [saver.data.play(env, trial).states.tolist() for _ in range(5)]
    assert any(states != one.states.tolist() for states in other)


def test_observations_and_actions_that_are_no_numbers():
    class Pairs(gymnasium.Env):
        observation_space = gymnasium.spaces.Tuple(
            [gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(3)]
        )
        action_space = gymnasium.spaces.MultiDiscrete([2, 2])

        def reset(self, *, seed=None, options=None):
            return (1, 2), {}

        def step(self, action):
            return (0, 1), float(10 * action[0] + action[1]), True, False, {}

    mdp = saver.data.unknown_from_gymnasium(Pairs(), horizon=2)
    assert mdp.action_names == ("[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]")
    trial = campaign_of(mdp).ask()
    episode = saver.data.play(Pairs(), trial)
    assert mdp.state_names[episode.states[0]] == "(1, 2)"
    assert trial.act(0, "(1, 2)") == mdp.action_names[episode.actions[0]]
    assert episode.rewards[0] == {0: 0.0, 1: 1.0, 2: 10.0, 3: 11.0}[int(episode.actions[0])]


# -- many trials -------------------------------------------------------------------------------------------


def told(campaign):
    return [event for event in campaign.events if type(event).__name__ == "Told"]


def test_one_environment_after_the_other():
    campaign = walk(4)
    assert saver.data.play_many(Walk(ends=3), campaign, guardrails={"kept": "cost"}, episodes=7) == 7
    assert saver.data.play_many(Walk(ends=3), campaign, guardrails={"kept": "cost"}) == 43
    assert saver.data.play_many(Walk(ends=3), campaign, guardrails={"kept": "cost"}) == 0
    assert [event.number for event in told(campaign)] == list(range(1, 51))
    assert all(event.episode.states.tolist() == [0, 1, 2] for event in told(campaign))


MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("make", [SyncVectorEnv, AsyncVectorEnv], ids=["sync", "async"])
def test_a_vector_plays_every_trial_once_as_one_environment_would(make, mode):
    """Copies end by themselves after 2 and 3 steps, are cut off after 2, or come to the horizon of 4."""
    kinds = [{"ends": 2}, {"ends": 3}, {"stops": 2}, {}, {"ends": 4}, {"stops": 4}]
    campaign = walk(4, losses="random", episodes=40)
    envs = make([lambda kind=kind: Walk(**kind) for kind in kinds], autoreset_mode=mode)
    try:
        assert saver.data.play_many(envs, campaign, guardrails={"kept": "cost"}, episodes=31) == 31
    finally:
        envs.close()
    assert sorted(event.number for event in told(campaign)) == list(range(1, 32))
    assert not campaign.outstanding
    seen = Counter()
    for event in told(campaign):
        episode, steps = event.episode, len(event.episode)
        assert episode.states.tolist() == list(range(steps))
        assert episode.rewards.tolist() == [10.0 * (t + 1) for t in range(steps)]
        assert episode.constraints["kept"].tolist() == [0.5] * steps
        seen[steps, episode.final_state, event.complete] += 1
    assert set(seen) == {
        (2, saver.END, True),
        (3, saver.END, True),
        (2, 2, False),
        (4, 4, True),
        (4, saver.END, True),
    }
    assert min(seen.values()) >= 4  # none of the copies stood still


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("copies", [1, 3])
def test_copies_that_all_end_at_once_go_on(copies, mode):
    campaign = walk(5, episodes=20)
    envs = SyncVectorEnv([lambda: Walk(ends=3)] * copies, autoreset_mode=mode)
    assert saver.data.play_many(envs, campaign, guardrails={"kept": "cost"}) == 20
    assert all(event.episode.rewards.tolist() == [10.0, 20.0, 30.0] for event in told(campaign))


def test_a_vector_that_keeps_no_memory_between_workers():
    campaign = walk(4, losses="random", episodes=12)
    envs = AsyncVectorEnv([lambda: Walk(ends=2), Walk], shared_memory=False)
    try:
        assert saver.data.play_many(envs, campaign, guardrails={"kept": "cost"}) == 12
    finally:
        envs.close()
    lengths = Counter((len(event.episode), event.episode.rewards.sum()) for event in told(campaign))
    assert set(lengths) == {(2, 30.0), (4, 100.0)}


def test_the_actions_of_a_vector_are_those_of_the_trials():
    campaign = walk(4, episodes=30)
    envs = SyncVectorEnv([Walk, lambda: Walk(ends=3)])
    saver.data.play_many(envs, campaign, guardrails={"kept": "a"})  # what the environment says was done
    for event in told(campaign):
        assert event.episode.actions.tolist() == event.episode.constraints["kept"].tolist()


def test_a_vector_and_one_environment_find_the_same():
    """Both estimates are within 4 standard errors of the truth; that fails by chance once in 7,900."""
    world = saver.data.world_from_gymnasium(Rooms(), horizon=4)
    for envs in (Rooms(), SyncVectorEnv([Rooms] * 4)):
        campaign = campaign_of(world.mdp, 2000)
        assert saver.data.play_many(envs, campaign, guardrails={"kept": "reward"}, seed=3) == 2000
        found = campaign.estimate()
        assert abs(found.value - world.value(world.mdp.uniform)) < 4 * found.stderr


def test_a_vector_of_a_registered_id():
    lake = saver.data.from_gymnasium("FrozenLake-v1", horizon=12)
    campaign = campaign_of(lake, 40)
    envs = gymnasium.make_vec("FrozenLake-v1", num_envs=3, vectorization_mode="sync")
    assert saver.data.play_many(envs, campaign, guardrails={"kept": "reward"}, seed=1) == 40


def test_numbers_that_a_vector_may_have_cut_are_refused():
    """The lake's "prob" is 1 at a reset and 1/3 in a step: a vector whose first copy is reset makes it 0."""
    lake = saver.data.from_gymnasium("FrozenLake-v1", horizon=12)
    envs = gymnasium.make_vec("FrozenLake-v1", num_envs=3, vectorization_mode="sync")
    with pytest.raises(InvalidData, match=r"info\['prob'\] is int64 in this vector, where the first copy"):
        saver.data.play_many(envs, campaign_of(lake, 40), guardrails={"kept": "prob"}, seed=1)


def test_a_vector_whose_copies_cannot_be_reset_alone_is_refused():
    class Careless(SyncVectorEnv):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)

    envs = Careless([lambda: Walk(ends=2), Walk, Walk], autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(InvalidData, match="this vector of environments resets all its copies at once"):
        saver.data.play_many(envs, walk(4), guardrails={"kept": "cost"})


def test_a_wrong_environment_leaves_nothing_out():
    campaign = walk(3)
    with pytest.raises(
        InvalidProblem, match="has 2 states and 2 actions, but the trial's model has 20 and 2"
    ):
        saver.data.play_many(Rooms(), campaign)
    assert not campaign.outstanding
    with pytest.raises(
        InvalidProblem, match=r"env is a int; it must be a gymnasium.Env, or the id of one, or a"
    ):
        saver.data.play_many(3, campaign)
