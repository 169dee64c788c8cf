"""The compiled engine gives what the reference gives: for every collector, scenario, law and checkpoint."""

import dataclasses
import functools
import signal
import subprocess
import sys
import time
import tracemalloc

import numba
import numpy as np
import pytest
from models import random_graph, random_policy, random_tree
from worlds import UNKNOWN, runs_in

from saver import (
    COLLECTORS,
    SCENARIOS,
    Bernoulli,
    Bounded,
    Collector,
    Empirical,
    Gaussian,
    Mdp,
    Problem,
    Scenario,
    SubGaussian,
    World,
    simulate,
)
from saver.engine.compiled import Setting, Worker
from saver.engine.reference import Job
from saver.errors import InvalidData, InvalidPolicy, InvalidProblem
from saver.kernels.streams import normal, stream, uniform
from saver.simulator import Truth

pytestmark = pytest.mark.slow

FIELDS = (
    "estimates",
    "stderr",
    "freedom",
    "below",
    "above",
    "budget",
    "ledger",
    "baseline_share",
    "conditional_mse",
    "worst_budget",
)
UNSAFE = {"ledger": "none", "gate": "none"}


def assert_equal(scenario, collector, episodes=150, runs=2, **options):
    compiled = simulate(scenario, collector, episodes=episodes, runs=runs, engine="compiled", **options)
    reference = simulate(scenario, collector, episodes=episodes, runs=runs, engine="reference", **options)
    np.testing.assert_array_equal(compiled.checkpoints, reference.checkpoints)
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(compiled, name), getattr(reference, name), rtol=1e-10, atol=1e-10, err_msg=name
        )
    return compiled


SMALLER = {"taxi": {"horizon": 15}}
FEWER = {"lake": {"episodes": 60, "runs": 1}, "taxi": {"episodes": 12, "runs": 1}}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("collector", COLLECTORS)
def test_every_collector_on_every_scenario(name, collector):
    if not runs_in(collector, name, ("bandit", "movielens", "intractable")):
        why = "needs known transitions" if name in UNKNOWN else "sepec is for bandits"
        for engine in ("compiled", "reference"):
            with pytest.raises(InvalidProblem, match=why):
                simulate(SCENARIOS[name](), collector, episodes=10, runs=1, engine=engine)
        return
    assert_equal(SCENARIOS[name](**SMALLER.get(name, {})), collector, **FEWER.get(name, {}))


def half_target(statistics):
    """A user's design whose shape changes from plan to plan."""
    mdp = statistics.problem.mdp
    even = (statistics.problem.target + mdp.uniform) / 2
    if len(np.flatnonzero(statistics.counts)) % 2:
        return np.broadcast_to(even, (mdp.horizon, *even.shape)) if even.ndim == 2 else even
    return even


VARIANTS = {
    "retrospective certified": Collector(gate="retrospective"),
    "latest": Collector(ledger="latest"),
    "latest, drawn": Collector(ledger="latest", design="target", explore="none", track="sample"),
    "plugin": Collector(ledger="plugin"),
    "plugin, retrospective": Collector(ledger="plugin", gate="retrospective"),
    "paper, prospective": Collector(ledger="paper"),
    "paper, drawn": Collector(ledger="paper", design="target", track="sample"),
    "closed, drawn": Collector(track="sample"),
    "closed, drawn, unsafe": Collector(track="sample", **UNSAFE),
    "no learning from the baseline": Collector(learn_from_baseline=False),
    "exact without it": Collector(design="exact", learn_from_baseline=False, replan=1.3),
    "no bonus": Collector(bonus=0.0),
    "no bonus, each episode": Collector(bonus=0.0, replan=1.0),
    "coverage": Collector(explore="coverage"),
    "coverage by the clock": Collector(explore="coverage", explore_by_clock=True),
    "own design": Collector(design=half_target, replan=1.3),
    "own design, drawn": Collector(design=half_target, track="sample", replan=1.3),
    "own design, all visits": Collector(design=half_target, track="all", **UNSAFE),
    "estimated transitions": Collector(estimate="certainty-estimated"),
    "importance": Collector(design="target", explore="none", track="sample", estimate="importance"),
    "importance, tracked": Collector(estimate="importance"),
    "exact, variances known": Collector(design="exact", knows=("variance",), replan=1.3),
    "exact, constraint known": Collector(design="exact", knows=("constraint_mean",), replan=1.3),
    "exact, never replanned": Collector(design="exact", knows=("variance", "constraint_mean"), **UNSAFE),
    "exact, never replanned, plugin": Collector(
        design="exact", knows=("variance", "constraint_mean"), explore="none", ledger="plugin"
    ),
    "target, tracked": Collector(design="target", explore="none"),
    "baseline, guarded": Collector(design="baseline", explore="none", track="sample"),
    "all visits": Collector(track="all"),
}


@functools.cache
def stochastic_graph():
    mdp = random_graph(3, states=6, actions=3, horizon=4)
    rng = np.random.default_rng(3)
    return build(mdp, random_policy(rng, 6, 3), np.eye(3)[rng.integers(0, 3, 6)], rng)


@functools.cache
def discounted_tree():
    mdp = random_tree(5, depth=4)
    rng = np.random.default_rng(5)
    return build(mdp, random_policy(rng, mdp.states, 2), random_policy(rng, mdp.states, 2), rng)


@functools.cache
def uneven_chain():
    """Deterministic, with paths of several lengths: the boundary cannot come from the table."""
    edges = [(0, 0, 1, 1.0), (1, 0, 2, 1.0), (1, 1, 3, 1.0), (2, 1, 4, 1.0)]
    mdp = Mdp.from_edges(edges, 5, 2, 4, discount=0.8)
    rng = np.random.default_rng(7)
    return build(mdp, random_policy(rng, 5, 2), np.eye(2)[[0, 1, 1, 1, 0]], rng)


def build(mdp, target, baseline, rng, constraint=None, promise=None):
    shape = (mdp.states, mdp.actions)
    reward = Gaussian(rng.random(shape), rng.random(shape))
    constraint = constraint or Gaussian(0.3 + 0.6 * rng.random(shape), 0.01)
    world = World(mdp, reward, constraint)
    problem = Problem(
        mdp,
        target,
        baseline,
        alpha=0.3,
        baseline_value=world.constraint_value(baseline),
        constraint=promise or SubGaussian(0.1, 0.1, 1.0),
    )
    return Scenario("made", world, problem, 200)


@pytest.mark.parametrize("model", [stochastic_graph, discounted_tree, uneven_chain])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_part_on_made_models(model, variant):
    assert_equal(model(), VARIANTS[variant])


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_part_on_a_bandit(variant):
    assert_equal(SCENARIOS["bandit"](actions=5), VARIANTS[variant])


@pytest.mark.parametrize("collector", ["saver", "saver-opt", "safe-on-policy", "saver-paper"])
def test_policies_that_depend_on_the_step(collector):
    mdp, rng = random_tree(2, depth=3), np.random.default_rng(2)
    target, baseline = random_policy(rng, 3, mdp.states, 2), random_policy(rng, 3, mdp.states, 2)
    assert_equal(build(mdp, target, baseline, rng), collector)


@pytest.mark.parametrize("collector", ["saver", "saver-opt", "safe-on-policy", "on-policy"])
def test_other_laws_and_bounds(collector):
    rng = np.random.default_rng(1)
    mdp = random_graph(1, states=5, actions=2, horizon=3)
    target, baseline = random_policy(rng, 5, 2), np.eye(2)[[0, 1, 0, 1, 0]]
    coins = build(mdp, target, baseline, rng, Bernoulli(0.3 + 0.6 * rng.random((5, 2))), Bounded(0.0, 1.0))
    assert_equal(coins, collector)
    data = Empirical([[rng.random(rng.integers(1, 5)).tolist() for _ in range(2)] for _ in range(5)])
    assert_equal(build(mdp, target, baseline, rng, data, Bounded(0.0, 1.0)), collector)
    real = dataclasses.replace(coins, world=World(mdp, data, coins.world.constraint))
    assert_equal(real, collector)
    declared = dataclasses.replace(real.problem, reward=Bounded(np.zeros((5, 2)), 1.0 + rng.random((5, 2))))
    for episodes in (3, 150):  # few: pairs never seen, and seen once
        assert_equal(dataclasses.replace(real, problem=declared), collector, episodes=episodes)


def test_missing_actions():
    available = np.array([[True, False, True], [True, True, True]])
    P = np.zeros((2, 3, 2))
    P[0, 0, 1] = 1.0
    mdp = Mdp(P, 2, available=available)
    rng = np.random.default_rng(4)
    target = np.array([[0.4, 0.0, 0.6], [0.2, 0.3, 0.5]])
    for collector in ("saver", "saver-opt", "uniform", "exact-oracle"):
        assert_equal(build(mdp, target, np.eye(3)[[0, 1]], rng), collector)


def flat(mdp, baseline, mean=0.5):
    shape = (mdp.states, mdp.actions)
    table = np.broadcast_to(mean, shape)
    world = World(mdp, Gaussian(table, 1.0), Gaussian(table, 0.01))
    asked = Problem(
        mdp,
        mdp.uniform,
        baseline,
        alpha=0.25,
        baseline_value=world.constraint_value(baseline),
        constraint=SubGaussian(0.1),
    )
    return Scenario("flat", world, asked, 100)


def test_more_states_than_nodes_and_a_design_by_step():
    mdp = Mdp.from_edges([(0, 0, 99, 1.0), (0, 1, 99, 1.0)], 100, 2, 2)
    asked = flat(mdp, np.tile([1.0, 0.0], (100, 1)))
    collector = Collector(design="exact", track="all", replan=1.3, **UNSAFE)
    assert_equal(asked, collector, episodes=100, runs=4, threads=1)


@pytest.mark.parametrize("collector", ["saver", "revar", "saver-paper"])
def test_moves_beyond_the_horizon_are_no_moves(collector):
    loops = flat(Mdp(np.ones((1, 3, 1)), 1), np.array([[1.0, 0.0, 0.0]]), [[0.5, 0.9, 0.1]])
    assert_equal(loops, collector, episodes=400, runs=3, threads=1)
    edges = [(0, 0, 1, 1.0), (0, 1, 2, 1.0), (1, 0, 0, 1.0), (2, 0, 0, 1.0)]
    back = flat(Mdp.from_edges(edges, 3, 2, 2), np.tile([1.0, 0.0], (3, 1)), [[0.5, 0.9]] * 3)
    assert_equal(back, collector, episodes=400, runs=3, threads=1)


@pytest.mark.parametrize("collector", ["saver", "saver-opt", "safe-oracle"])
def test_a_baseline_that_is_random_only_where_it_never_goes(collector):
    asked = flat(Mdp(np.zeros((2, 2, 2)), 1), np.array([[1.0, 0.0], [0.5, 0.5]]), [[0.5, 0.9], [0.5, 0.5]])
    assert_equal(asked, collector, episodes=300)


@pytest.mark.parametrize("collector", ["saver", "safe-on-policy"])
def test_a_baseline_by_step_that_is_random_only_where_it_never_goes(collector):
    mdp = Mdp(np.array([[[0.0, 1.0]] * 2, [[0.0, 0.0]] * 2]), 2)
    baseline = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [1.0, 0.0]]])
    assert_equal(flat(mdp, baseline, [[0.5, 0.9], [0.5, 0.5]]), collector, episodes=60)


@pytest.mark.parametrize("design", ["closed-form", "exact"])
def test_a_plan_that_is_never_replaced(design):
    assert_equal(SCENARIOS["tree"](depth=2), Collector(design=design, replan=1e30, **UNSAFE))


@pytest.mark.parametrize("seed", range(60))
def test_collectors_and_models_at_random(seed):
    rng = np.random.default_rng(seed)
    mdp = random_graph(seed, states=5, horizon=3) if seed % 2 else random_tree(seed, depth=3)
    shape = (mdp.states, mdp.actions)
    ledger = str(rng.choice(["certified", "certified", "paper", "latest", "plugin", "none"]))
    knows = tuple(name for name in ("mean", "variance", "constraint_mean") if rng.random() < 0.2)
    collector = Collector(
        design=str(rng.choice(["closed-form", "as-printed", "exact", "target"])),
        knows=knows,
        explore=str(rng.choice(["uniform", "coverage", "none"])),
        ledger=ledger,
        gate="none" if ledger == "none" else str(rng.choice(["prospective", "retrospective"])),
        track=str(rng.choice(["designed", "designed", "all", "sample"])),
        estimate=str(rng.choice(["certainty", "certainty-estimated", "importance"])),
        replan=float(rng.choice([1.0, 1.05, 1.3])),
        bonus=float(rng.choice([0.0, 0.1, 1.0])),
        caution=float(rng.choice([0.0, 1.5])),
        learn_from_baseline=bool(rng.random() < 0.7),
        explore_by_clock=bool(rng.random() < 0.3),
    )
    baseline = random_policy(rng, *shape)
    if rng.random() < 0.6:
        baseline = np.eye(shape[1])[np.argmax(baseline, axis=1)]
    asked = build(mdp, random_policy(rng, *shape), baseline, rng)
    assert_equal(asked, collector, episodes=int(rng.choice([5, 40, 90])), runs=2)


def test_the_printed_design_knows_no_steps():
    mdp, rng = random_graph(3, states=5, horizon=3), np.random.default_rng(3)
    asked = build(mdp, random_policy(rng, 3, 5, 2), np.eye(2)[[0, 1, 0, 1, 0]], rng)
    for engine in ("compiled", "reference"):
        with pytest.raises(InvalidPolicy, match="use a collector with design='closed-form'"):
            simulate(asked, "saver-paper", episodes=5, runs=1, engine=engine)
    assert_equal(asked, "saver")


@pytest.mark.parametrize("checkpoints", [None, [], [1], [1, 2, 3], [149], list(range(1, 151))])
def test_checkpoints_of_any_kind(checkpoints):
    assert_equal(SCENARIOS["tree"](depth=3), "saver", checkpoints=checkpoints, runs=1)


@pytest.mark.parametrize("episodes", [1, 2, 3, 10])
def test_campaigns_that_are_hardly_begun(episodes):
    for collector in ("saver", "saver-paper", "saver-opt", "on-policy"):
        assert_equal(SCENARIOS["tree"](depth=2), collector, episodes=episodes, runs=3)


def test_a_long_run_stays_equal():
    # 3,000 decisions in which a rounding error could tip one over.
    for name in ("bandit", "tree", "gridworld"):
        assert_equal(SCENARIOS[name](), "saver", episodes=1500, runs=1)


def test_threads_runs_and_order_do_not_matter():
    asked = SCENARIOS["gridworld"](size=3)
    one = simulate(asked, "saver-opt", episodes=200, runs=5, threads=1)
    two = simulate(asked, "saver-opt", episodes=200, runs=8, threads=2)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name)[:5])


def test_threads_that_plan_all_the_time_do_not_disturb_each_other():
    asked = SCENARIOS["gridworld"](size=3)
    often = dataclasses.replace(COLLECTORS["saver-opt"], replan=1.0)
    one = simulate(asked, often, episodes=80, runs=24, threads=1, checkpoints=[])
    many = simulate(asked, often, episodes=80, runs=24, threads=4, checkpoints=[])
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))


def test_streams_are_those_of_numpy():
    seed = np.random.SeedSequence(11, spawn_key=(3, 1))
    ours, theirs = stream(seed), np.random.default_rng(seed)
    drawn = normals(ours, 200_000)
    np.testing.assert_array_equal(drawn, theirs.standard_normal(200_000))
    assert np.abs(drawn).max() > 4.2  # the tail was drawn from too
    np.testing.assert_array_equal(uniforms(ours, 1000), theirs.random(1000))


@numba.njit
def normals(words, count):
    return np.array([normal(words) for _ in range(count)])


@numba.njit
def uniforms(words, count):
    return np.array([uniform(words) for _ in range(count)])


def test_what_the_problem_refuses_is_refused_in_the_same_words():
    asked = SCENARIOS["bandit"]()
    bounded = dataclasses.replace(asked.problem, constraint=Bounded(0.0, 1.0))
    broken = dataclasses.replace(asked, problem=bounded)  # normal noise leaves [0, 1]
    messages = []
    for engine in ("compiled", "reference"):
        with pytest.raises(InvalidData, match=r"outside the declared bounds \[0, 1\]") as found:
            simulate(broken, "saver", episodes=500, runs=1, engine=engine)
        messages.append(str(found.value))
    assert messages[0] == messages[1]


def test_worlds_that_only_the_reference_knows_run_there_and_it_is_said(capfd):
    asked = SCENARIOS["tree"](depth=2)

    class Heavy(Gaussian):
        pass

    heavy = Heavy(np.zeros((3, 2)), 1.0)
    own = dataclasses.replace(asked, world=dataclasses.replace(asked.world, reward=heavy))
    moved = Mdp(asked.world.mdp.transitions, 2, discount=0.5)
    other = dataclasses.replace(asked, world=dataclasses.replace(asked.world, mdp=moved))
    for scenario, said in (
        (own, "the reward is a Heavy, not a Gaussian"),
        (other, "world and problem have different models"),
    ):
        found = [
            simulate(scenario, "saver", episodes=10, runs=2, engine=e) for e in ("compiled", "reference")
        ]
        np.testing.assert_array_equal(found[0].budget, found[1].budget)
        assert f"saver: {said}" in capfd.readouterr().err


def test_a_design_that_fails_fails_the_simulation():
    def broken(statistics):
        return np.full((1, 12), 2.0)

    with pytest.raises(InvalidPolicy, match="the policy that the design returned"):
        simulate(SCENARIOS["bandit"](), Collector(design=broken), episodes=100, runs=3)


LONG = """
import signal, sys, saver
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is born deaf to it
asked = saver.SCENARIOS["gridworld"]()
saver.simulate(asked, "saver", episodes=10, runs=1)
print("ready", flush=True)
saver.simulate(asked, "saver", episodes=3_000_000, runs=100, checkpoints=[]).save(sys.argv[1])
"""


def test_ctrl_c_ends_at_once_and_leaves_nothing_behind(tmp_path):
    command = [sys.executable, "-c", LONG, str(tmp_path / "runs.npz")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        try:
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert time.monotonic() - began < 20
    assert told.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode != 0
    assert not list(tmp_path.iterdir())


def test_a_new_process_finds_the_compiled_loop():
    simulate(SCENARIOS["bandit"](), "saver", episodes=10, runs=1)
    code = "import saver; saver.simulate(saver.SCENARIOS['bandit'](), 'saver', episodes=10, runs=1)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "compiling" not in told.stderr


def test_memory_is_bounded_by_the_checkpoints():
    # 3,000 runs of 2,000 rounds: results of 3,000 x 2 numbers each, not of 6,000,000.
    tracemalloc.start()
    found = simulate(SCENARIOS["bandit"](), "saver", episodes=2000, runs=3000, checkpoints=[1000], threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.estimates.shape == (3000, 2)
    assert peak < 5e6


@pytest.mark.parametrize("name", ["lake", "gridworld", "shop"])
def test_a_run_adds_up_as_it_would_alone_whatever_its_worker_has_played_before(name):
    scenario = SCENARIOS[name]()
    points = np.array([20, 60])
    setting = Setting(Job(scenario, COLLECTORS["saver"], 60, Truth(scenario)), 5)
    alone, after = setting.room(points, 1), setting.room(points, 2)
    Worker(setting, np.zeros(1, dtype=np.int64)).play(range(1, 2), alone)
    Worker(setting, np.zeros(1, dtype=np.int64)).play(range(2), after)
    for one, other in zip(alone[1:], after[1:], strict=True):
        assert one[0].tobytes() == other[1].tobytes()
