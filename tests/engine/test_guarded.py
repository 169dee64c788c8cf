"""The compiled engine gives what the reference gives for several guardrails, costs, and learned values."""

import dataclasses
import functools

import numpy as np
import pytest
from models import random_graph, random_maze, random_policy, random_tree

from saver import (
    COLLECTORS,
    SCENARIOS,
    Bernoulli,
    Bounded,
    Collector,
    Empirical,
    Gaussian,
    Guardrail,
    Problem,
    Scenario,
    SubGaussian,
    World,
    simulate,
)
from saver.errors import InvalidData, InvalidProblem

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
    "anytime_low",
    "anytime_high",
    "worst_budget",
)
OF_EACH = ("budgets", "ledgers", "worst_budgets")
SURE = SubGaussian(0.1, 0.0, 1.0)
UNSAFE = {"ledger": "none", "gate": "none"}


def assert_equal(scenario, collector, episodes=40, runs=2, **options):
    compiled = simulate(scenario, collector, episodes=episodes, runs=runs, engine="compiled", **options)
    reference = simulate(scenario, collector, episodes=episodes, runs=runs, engine="reference", **options)
    assert_same(compiled, reference)
    return compiled


def assert_same(one, two):
    for name in FIELDS:
        close(getattr(one, name), getattr(two, name), name)
    for name in OF_EACH:
        found, wanted = getattr(one, name), getattr(two, name)
        assert list(found) == list(wanted)
        for rail in wanted:
            close(found[rail], wanted[rail], f"{name} of {rail}")


def close(found, wanted, name):
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10, err_msg=name)


def guard(asked, guardrails, laws=None, baseline=None):
    """The same scenario with other guardrails."""
    problem, world = asked.problem, asked.world
    baseline = problem.baseline if baseline is None else baseline
    made = Problem(problem.mdp, problem.target, baseline, guardrails=guardrails, reward=problem.reward)
    return Scenario(
        asked.name, World(world.mdp, world.reward, laws or world.constraint), made, asked.episodes
    )


def laws_of(asked):
    """What is guarded, a cost that is low where that is high, and a third."""
    mean = asked.world.constraint.mean
    return {
        "cost": Gaussian(0.9 - 0.8 * mean, 0.01),
        "third": Gaussian(0.5 + 0.4 * mean, 0.01),
        "good": asked.world.constraint,
    }


def worth(asked, law):
    return World(asked.world.mdp, asked.world.reward, law).constraint_value(asked.problem.baseline)


def alone(**said):
    """One guardrail; numbers are shares of the baseline's value."""

    def make(asked):
        value = worth(asked, asked.world.constraint)
        given = {name: share if name == "alpha" else share * value for name, share in said.items()}
        return guard(asked, [Guardrail("constraint", SURE, **given)])

    return make


def bounded_by(low, high):
    def make(asked):
        value = worth(asked, asked.world.constraint)
        said = {"alpha": 0.25, "baseline_value": (low * value, high * value)}
        return guard(asked, [Guardrail("constraint", SURE, **said)])

    return make


def with_a_cost(asked):
    laws = {name: law for name, law in laws_of(asked).items() if name != "third"}
    good, cost = worth(asked, laws["good"]), worth(asked, laws["cost"])
    return guard(
        asked,
        [
            Guardrail("good", SURE, alpha=0.3, baseline_value=good),
            Guardrail("cost", SURE, cost=True, allowance=0.5 * max(cost, 0.3 * good), baseline_value=cost),
        ],
        laws,
    )


def three(asked):
    """Learned, an interval, and a known one."""
    laws = laws_of(asked)
    cost, third = worth(asked, laws["cost"]), worth(asked, laws["third"])
    line = cost + 0.4 * third
    return guard(
        asked,
        [
            Guardrail("good", SURE, alpha=0.3, share=0.5),
            Guardrail("cost", SURE, cost=True, at_most=line, baseline_value=(0.9 * cost, cost), share=0.2),
            Guardrail("third", SURE, allowance=0.3 * third, baseline_value=third, share=0.3),
        ],
        laws,
    )


def coins(asked):
    mean = 0.05 + 0.9 * asked.world.constraint.mean
    value = worth(asked, Gaussian(mean, 0.0))
    rail = Guardrail("constraint", Bounded(0.0, 1.0), allowance=0.3 * value)
    return guard(asked, [rail], Bernoulli(mean))


def drawn_baseline(asked):
    mixed = 0.8 * asked.problem.baseline + 0.2 * asked.problem.mdp.uniform
    return guard(asked, [Guardrail("constraint", SURE, alpha=0.3)], baseline=mixed)


GUARDS = {
    "two, one a cost": with_a_cost,
    "an interval": bounded_by(0.97, 1.02),
    "learned alpha": alone(alpha=0.25),
    "learned allowance": alone(allowance=0.25),
    "learned at_least": alone(at_least=0.7),
    "three": three,
    "learned coins": coins,
    "a drawn baseline": drawn_baseline,
}
WORLDS = {
    "bandit": lambda: SCENARIOS["bandit"](actions=5),
    "tree": lambda: SCENARIOS["tree"](depth=3),
    "gridworld": lambda: SCENARIOS["gridworld"](size=3, horizon=5),
    "lake": SCENARIOS["lake"],
}


@functools.cache
def made(world, guards):
    return GUARDS[guards](WORLDS[world]())


@pytest.mark.parametrize("collector", ["saver", "safe-on-policy", "on-policy", "saver-opt"])
@pytest.mark.parametrize("guards", GUARDS)
@pytest.mark.parametrize("world", ["bandit", "tree", "gridworld"])
def test_guards_of_every_kind(world, guards, collector):
    for history in (0, 9):
        assert_equal(made(world, guards), collector, history=history, checkpoints=[1, 7, 30])


@pytest.mark.parametrize("guards", ["three", "learned alpha"])
def test_a_larger_model(guards):
    assert_equal(made("lake", guards), "saver", episodes=20, history=3, checkpoints=[10])


@pytest.mark.parametrize("guards", ["three", "learned at_least", "two, one a cost"])
def test_long_runs_stay_equal(guards):
    found = assert_equal(made("bandit", guards), "saver", episodes=500, runs=1)
    assert found.baseline_share[0, -1] < 0.9  # something was designed


@pytest.mark.parametrize("guards", ["three", "two, one a cost", "learned alpha"])
def test_the_earner_of_several_guardrails(guards):
    assert_equal(made("bandit", guards), "saver-opt", episodes=200, runs=2, history=5)


def random_guards(rng, mdp, baseline):
    """One to four guardrails of any kind, and the laws of what they guard."""
    count, shape = int(rng.integers(1, 5)), (mdp.states, mdp.actions)
    rails, laws = [], {}
    for name in ("a", "b", "c", "d")[:count]:
        coin, cost = rng.random() < 0.3, rng.random() < 0.4
        mean = 0.2 + 0.6 * rng.random(shape)
        laws[name] = Bernoulli(mean) if coin else Gaussian(mean, 0.01)
        value = World(mdp, laws[name], laws[name]).constraint_value(baseline)
        way = str(rng.choice(["alpha", "allowance", "at_most" if cost else "at_least"]))
        less = {"alpha": 0.3, "allowance": 0.3 * value, "at_least": 0.6 * value, "at_most": 1.5 * value}[way]
        known = [value, (0.95 * value, 1.05 * value), None][rng.integers(0, 3)]
        promise = Bounded(0.0, 1.0) if coin else SURE
        rails.append(Guardrail(name, promise, cost=bool(cost), baseline_value=known, **{way: less}))
    order = rng.permutation(list(laws))  # the world draws in an order of its own
    return rails, {str(name): laws[name] for name in order}


def random_scenario(rng, seed):
    kinds = (
        lambda: random_graph(seed, states=5, horizon=3),
        lambda: random_tree(seed, depth=3),
        lambda: random_maze(seed),
    )
    mdp = kinds[seed % 3]()
    shape = (mdp.states, mdp.actions)
    baseline, target = (
        np.where(mdp.available, random_policy(rng, *shape), 0.0) + 1e-9 * mdp.available for _ in range(2)
    )
    baseline, target = (policy / policy.sum(axis=1, keepdims=True) for policy in (baseline, target))
    if rng.random() < 0.6:
        baseline = np.eye(shape[1])[np.argmax(baseline, axis=1)]
    rails, laws = random_guards(rng, mdp, baseline)
    declared = [None, Bounded(0.0, 1.0)][rng.integers(0, 2)]
    reward = Bernoulli(rng.random(shape)) if declared else Gaussian(rng.random(shape), rng.random(shape))
    asked = Problem(mdp, target, baseline, guardrails=rails, reward=declared)
    world = World(mdp, reward, laws if len(rails) > 1 else next(iter(laws.values())))
    return Scenario("made", world, asked, 100)


@pytest.mark.parametrize("seed", range(30))
def test_collectors_models_and_guards_at_random(seed):
    rng = np.random.default_rng(seed)
    asked = random_scenario(rng, seed)
    certified = rng.random() < 0.8
    track = str(rng.choice(["designed", "designed", "all", "sample"]))
    estimate = str(rng.choice(["certainty", "certainty-estimated", "importance"]))
    earns = certified and track != "sample" and estimate != "importance" and rng.random() < 0.5
    gate = "prospective" if earns else str(rng.choice(["prospective", "retrospective"]))
    collector = Collector(
        design=str(rng.choice(["closed-form", "as-printed", "exact", "target", "baseline"])),
        knows=tuple(name for name in ("mean", "variance", "constraint_mean") if rng.random() < 0.2),
        explore=str(rng.choice(["uniform", "coverage", "none"])),
        track=track,
        estimate=estimate,
        fallback="earner" if earns else "baseline",
        replan=float(rng.choice([1.05, 1.3])),
        learn_from_baseline=bool(rng.random() < 0.6),
        explore_by_clock=bool(rng.random() < 0.3),
        **({"gate": gate} if certified else UNSAFE),
    )
    history = int(rng.choice([0, 0, 6]))
    assert_equal(asked, collector, episodes=int(rng.choice([5, 40, 60])), history=history)


def test_four_ways_to_say_the_same_give_the_same_runs():
    rng, asked = np.random.default_rng(0), SCENARIOS["bandit"](actions=4)
    mdp, values = asked.problem.mdp, [0.5, 0.9, 0.1, 0.2]
    samples = [[np.round(value + 0.1 * rng.uniform(-1, 1, 9), 3) for value in values]]
    samples[0][0] = np.array([0.4, 0.5, 0.6])
    seen = Empirical([[cell.tolist() for cell in row] for row in samples])
    other = Empirical([[(-cell).tolist() for cell in row] for row in samples])
    cost = SubGaussian(0.1, -1.0, 0.0)
    rails = (
        (seen, Guardrail("it", SURE, alpha=0.25, baseline_value=0.5)),
        (seen, Guardrail("it", SURE, allowance=0.125, baseline_value=0.5)),
        (seen, Guardrail("it", SURE, at_least=0.375, baseline_value=0.5)),
        (other, Guardrail("it", cost, cost=True, at_most=-0.375, baseline_value=-0.5)),
    )
    for collector in ("saver", "saver-opt", "safe-on-policy"):
        found = []
        for law, rail in rails:
            problem = Problem(mdp, asked.problem.target, asked.problem.baseline, guardrails=[rail])
            scenario = Scenario("four", World(mdp, asked.world.reward, law), problem, 100)
            found += [simulate(scenario, collector, runs=2, engine=e) for e in ("compiled", "reference")]
        assert np.all((found[0].baseline_share[:, -1] > 0) & (found[0].baseline_share[:, -1] < 1))
        for one in found[1:]:
            assert_same(one, found[0])


def test_history_says_at_once_what_the_baseline_is_worth():
    asked = made("bandit", "learned alpha")
    none, some = (
        simulate(asked, "saver", episodes=50, runs=20, history=n, checkpoints=[1]) for n in (0, 100)
    )
    assert some.ledger[:, 0].min() > none.ledger[:, 0].max() >= 0.0
    with pytest.raises(InvalidProblem, match="history is -1"):
        simulate(asked, "saver", episodes=5, runs=1, history=-1)


def test_history_teaches_means_but_no_budget_of_a_known_value():
    asked = SCENARIOS["tree"](depth=3)
    for collector in ("saver", "on-policy", "saver-opt"):
        assert_equal(asked, collector, history=20)
    found = simulate(asked, "baseline", episodes=3, runs=1, history=20, checkpoints=[1])
    assert found.budget[0, 0] == pytest.approx(asked.problem.rails[0].credit)


def test_declared_rewards_keep_their_intervals_with_a_history():
    asked = SCENARIOS["bandit"](actions=4)
    laws = {"good": asked.world.constraint, "cost": Gaussian(0.9 - 0.8 * asked.world.constraint.mean, 0.01)}
    rails = [Guardrail("good", SURE, alpha=0.3), Guardrail("cost", SURE, cost=True, allowance=0.3)]
    mean = np.clip(asked.world.reward.mean, 0.0, 1.0)
    for reward, law in ((Bounded(0.0, 1.0), Bernoulli(mean)), (SubGaussian(1.0), Gaussian(mean, 1.0))):
        problem = Problem(
            asked.problem.mdp, asked.problem.target, asked.problem.baseline, guardrails=rails, reward=reward
        )
        scenario = Scenario("declared", World(asked.world.mdp, law, laws), problem, 100)
        for history in (0, 12):
            assert_equal(scenario, "saver", history=history, fair=True)


@pytest.mark.parametrize("history", [0, 50])
def test_what_a_guardrail_refuses_is_refused_in_the_same_words(history):
    asked = made("bandit", "two, one a cost")
    first, second = asked.problem.guardrails
    wrong = dataclasses.replace(second, promise=Bounded(0.0, 0.6))  # normal noise leaves it
    broken = guard(asked, [first, wrong], asked.world.constraint)
    messages = []
    for engine in ("compiled", "reference"):
        with pytest.raises(InvalidData, match=r"constraints\['cost'\]\[0\] is .*declared bounds") as found:
            simulate(broken, "saver", episodes=500, runs=1, engine=engine, history=history)
        messages.append(str(found.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith("history[") == (history > 0)


@pytest.mark.parametrize("ledger", ["paper", "latest", "plugin"])
@pytest.mark.parametrize("gate", ["prospective", "retrospective"])
def test_ledgers_without_a_certificate_give_the_same_in_both_engines(ledger, gate):
    collector = dataclasses.replace(COLLECTORS["saver"], ledger=ledger, gate=gate)
    for world in ("tree", "gridworld"):
        assert_equal(made(world, "three"), collector, episodes=30)
        assert_equal(WORLDS[world](), collector, episodes=30, history=2)
    drawn = dataclasses.replace(collector, track="sample", learn_from_baseline=False)
    assert_equal(made("gridworld", "two, one a cost"), drawn, episodes=60)


def test_threads_and_batches_do_not_matter():
    for collector in ("saver", "saver-opt"):
        one, two = (
            simulate(made("gridworld", "three"), collector, episodes=60, runs=6, threads=threads, history=4)
            for threads in (1, 2)
        )
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
