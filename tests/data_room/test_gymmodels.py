"""Models of environments: by hand, against Gymnasium's own dynamics, and what is refused."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from toys import TABLE, Rooms

import saver
from saver.data.spaces import Numbering
from saver.errors import InvalidData, InvalidProblem
from saver.problem import bellman

spaces = gymnasium.spaces
LEAVE = np.array([[0.0, 1.0]] * 3)
LEFT = {"left": lambda state, action, reward, to, done, info: float(done)}


def test_a_table_by_hand():
    mdp = saver.data.from_gymnasium(Rooms(), horizon=3, discount=0.5)
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.discount, mdp.terminal) == (3, 2, 3, 0.5, (2,))
    rows = mdp.transitions.toarray()
    np.testing.assert_allclose(rows[:4], [[1, 0, 0], [0, 0.75, 0.25], [0, 1, 0], [0.75, 0, 0.25]])
    assert mdp.start.tolist() == [1.0, 0.0, 0.0]
    # always leaving: 1.25 in each step that is reached, after .75 and .75^2, discounted by half
    world = saver.data.world_from_gymnasium(Rooms(), LEFT, horizon=3, discount=0.5)
    assert world.value(LEAVE) == pytest.approx(1.25 * (1 + 0.375 + 0.375**2))
    assert world.reward.mean[:2].tolist() == [[1.0, 1.25], [1.0, 1.25]]
    np.testing.assert_allclose(world.reward.variance[:2], [[0.0, 25 * 0.1875]] * 2)
    np.testing.assert_allclose(world.laws["left"].mean[:2], [[0.0, 0.25]] * 2)
    assert world.constraint_value(LEAVE, "left") == pytest.approx(0.25 * (1 + 0.375 + 0.375**2))


def test_the_done_states_of_the_taxi_are_reached_without_done_too():
    mdp = saver.data.from_gymnasium("Taxi-v4")
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.terminal) == (501, 6, 200, (500,))
    P = gymnasium.make("Taxi-v4").unwrapped.P
    done = {(s, a, rows[0][1]) for s in P for a, rows in P[s].items() if rows[0][3]}
    entered = {to for _, _, to in done}
    assert len(entered) == 4
    assert all(mdp.successors(s, a).tolist() == [500] for s, a, _ in done)
    without = [(s, a) for s in P for a, rows in P[s].items() if rows[0][1] in entered and not rows[0][3]]
    assert without  # that is why one state is added
    assert all(mdp.successors(s, a).tolist() == [P[s][a][0][1]] for s, a in without)


@pytest.mark.parametrize(
    ("name", "horizon", "share"),
    [("FrozenLake-v1", 30, 0.8), ("CliffWalking-v1", 15, 0.7), ("Taxi-v4", 15, 0.8)],
)
def test_the_value_of_a_policy_is_what_the_environment_pays(name, horizon, share):
    """The mean of 1,500 episodes is within 4 standard errors; that fails by chance once in 15,000."""
    env = gymnasium.make(name, max_episode_steps=horizon)
    world = saver.data.world_from_gymnasium(env, discount=0.95)
    best, worst = saver.problem.minimising(world.mdp, -world.reward.mean)
    policy = share * best + (1 - share) * world.mdp.uniform
    rng, returns = np.random.default_rng(1), []
    state, _ = env.reset(seed=1)
    for _ in range(1500):
        paid, over, t = 0.0, False, 0
        while not over:
            action = int(rng.choice(world.mdp.actions, p=policy[t, state]))
            state, reward, terminated, truncated, _ = env.step(action)
            paid, over, t = paid + 0.95**t * reward, terminated or truncated, t + 1
        returns.append(paid)
        state, _ = env.reset()
    error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    assert abs(np.mean(returns) - world.value(policy)) < 4 * error
    foreseen = bellman.return_variance(world.mdp, policy, world.reward.mean, world.reward.variance)
    if (
        name != "FrozenLake-v1"
    ):  # there a reward and the next state are one coin, which that formula leaves out
        assert np.var(returns) == pytest.approx(foreseen, rel=0.25)
    assert -worst >= world.value(policy)


def test_a_world_draws_reward_guardrail_and_next_state_together():
    """In the lake a reward is paid just when the walk ends at the goal, and a fall is an end without one."""
    watch = {"fell": lambda s, a, reward, to, done, info: float(done and reward == 0)}
    world = saver.data.world_from_gymnasium("FrozenLake-v1", watch, horizon=100)
    mdp = world.mdp
    problem = saver.Problem(
        mdp, mdp.uniform, mdp.uniform,
        guardrails=[saver.Guardrail("fell", saver.Bounded(0, 1, next_state=True), alpha=0.5, cost=True)],
    )  # fmt: skip
    campaign = saver.Campaign(problem, "baseline", episodes=3000, seed=1)
    player, ends = saver.Player(world, seed=2), []
    for _ in range(3000):
        episode = player.run(campaign.ask())
        ended = episode.final_state == saver.END
        fell, goal = episode.constraints["fell"], episode.rewards
        assert not fell[:-1].any()
        assert not goal[:-1].any()
        assert ended == (fell[-1] + goal[-1] == 1.0)
        ends.append(goal[-1])
    true = world.value(mdp.uniform)
    assert abs(np.mean(ends) - true) < 4 * np.sqrt(true * (1 - true) / 3000)


def test_a_world_of_a_table_can_be_diagnosed_and_simulated():
    world = saver.data.world_from_gymnasium("FrozenLake-v1", horizon=10)
    even = world.mdp.uniform
    problem = saver.Problem(
        world.mdp, even, even, alpha=0.5, baseline_value=world.value(even),
        constraint=saver.Bounded(0, 1, next_state=True), reward=saver.Bounded(0, 1),
    )  # fmt: skip
    scenario = saver.Scenario("frozen", world, problem, episodes=50)
    assert saver.simulate(scenario, "on-policy", runs=2, seed=1).violation_rate() == 0.0


# -- without a table ---------------------------------------------------------------------------------------


def test_blackjack_without_a_table():
    mdp = saver.data.unknown_from_gymnasium("Blackjack-v1", horizon=8)
    assert (mdp.states, mdp.actions, mdp.horizon, mdp.known, mdp.action_names) == (704, 2, 8, False, None)
    assert mdp.state_names[0] == "(0, 0, 0)"
    assert mdp.state_labels.number("state", "(13, 10, 1)") == (13 * 11 + 10) * 2 + 1


@pytest.mark.parametrize(
    ("space", "count", "element", "number", "name"),
    [
        (spaces.Discrete(5), 5, 3, 3, None),
        (spaces.Discrete(5, start=-2), 5, 1, 3, "1"),
        (spaces.MultiDiscrete([2, 3]), 6, np.array([1, 2]), 5, "[1, 2]"),
        (spaces.MultiBinary(3), 8, np.array([1, 0, 1], dtype=np.int8), 5, "[1, 0, 1]"),
        (
            spaces.Tuple([spaces.Discrete(3), spaces.MultiBinary(2)]),
            12,
            (2, np.array([0, 1])),
            9,
            "(2, [0, 1])",
        ),
        (
            spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Discrete(4)}),
            8,
            {"a": 3, "b": 1},
            7,
            "{b: 1, a: 3}",
        ),
    ],
)
def test_finite_spaces_are_numbered_there_and_back(space, count, element, number, name):
    found = Numbering(space, "observation")
    assert (found.count, found.number(element)) == (count, number)
    assert found.names is None if name is None else found.names[number] in (name, "{a: 3, b: 1}")
    assert [found.number(found.element(i)) for i in range(count)] == list(range(count))
    assert all(space.contains(found.element(i)) or isinstance(space, spaces.Tuple) for i in range(count))


def test_an_element_outside_of_its_space_is_refused():
    with pytest.raises(InvalidData, match=r"observation is 7, which is not in Discrete\(5\)"):
        Numbering(spaces.Discrete(5), "observation").number(7)
    with pytest.raises(InvalidData, match=r"observation is \[0 3\], which is not in MultiDiscrete"):
        Numbering(spaces.MultiDiscrete([2, 3]), "observation").number(np.array([0, 3]))


# -- refused -----------------------------------------------------------------------------------------------


class Bare(Rooms):
    initial_state_distrib = None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: saver.data.from_gymnasium("Blackjack-v1", horizon=8),
            r"Blackjack-v1 has no table of transitions, env.unwrapped.P; learn them: "
            r"saver.data.unknown_from_gymnasium\(env, horizon=...\) gives a saver.Unknown",
        ),
        (
            lambda: saver.data.from_gymnasium("CliffWalking-v1"),
            "CliffWalking-v1 has no max_episode_steps; give horizon=",
        ),
        (
            lambda: saver.data.from_gymnasium("FrozenLake-v1", horizon=101),
            r"horizon is 101, but FrozenLake-v1 stops after 100 steps; make it by gymnasium.make",
        ),
        (
            lambda: saver.data.from_gymnasium(Bare(), horizon=2),
            "Bare has no initial_state_distrib; give start=",
        ),
        (
            lambda: saver.data.from_gymnasium(TABLE, horizon=2),
            "env is a dict; it must be a gymnasium.Env, or",
        ),
        (
            lambda: saver.data.unknown_from_gymnasium("CartPole-v1"),
            "the observation space is Box.*; saver needs finitely many: wrap the environment, by",
        ),
        (
            lambda: saver.data.world_from_gymnasium(Rooms(), {"x": 3}, horizon=2),
            r"guardrails\['x'\] is 3; it must be a function of \(state, action, reward, next_state",
        ),
    ],
)
def test_what_cannot_be_a_model_is_refused_with_a_remedy(build, message):
    with pytest.raises(InvalidProblem, match=message):
        build()


def test_a_guardrail_of_info_is_not_in_a_table():
    with pytest.raises(
        InvalidData, match=r"guardrails\['x'\] is 'time', and info has no such entry; it has nothi"
    ):
        saver.data.world_from_gymnasium(Rooms(), {"x": "time"}, horizon=2)


def test_a_start_may_be_given():
    assert saver.data.from_gymnasium(Bare(), horizon=2, start=1).start.tolist() == [0.0, 1.0, 0.0]
    half = saver.data.from_gymnasium(Bare(), horizon=2, start=[0.5, 0.5])
    assert half.start.tolist() == [0.5, 0.5, 0.0]


def test_without_gymnasium_saver_is_imported_and_the_extra_is_named():
    code = "import sys; sys.modules['gymnasium'] = None; import saver\ntry: saver.data.{}\n"
    code += "except saver.errors.SaverError as e: print(e)"
    for call in ("from_gymnasium('FrozenLake-v1')", "ScenarioEnv", "play_many('x', None)"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(call)], capture_output=True, text=True, check=False
        )
        wanted = "campaign is NoneType" if "many" in call else "pip install 'saver-rl[gym]'"
        assert wanted in done.stdout, done.stderr
    light = "import sys, saver.data; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", light], check=False).returncode == 0
