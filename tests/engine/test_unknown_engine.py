"""The compiled engine gives what the reference gives where transitions are unknown."""

import dataclasses
import functools

import numpy as np
import pytest
from models import random_graph, random_maze, random_policy, random_tree

from saver import (
    COLLECTORS,
    Bernoulli,
    Bounded,
    Collector,
    Empirical,
    Gaussian,
    Guardrail,
    Problem,
    Scenario,
    SubGaussian,
    Unknown,
    World,
    scenarios,
    simulate,
)
from saver.engine import compiled
from saver.engine.layout import only_reference
from saver.engine.runs import ANSWERS, COMMON
from saver.errors import InvalidData

pytestmark = pytest.mark.slow

NEAR, COINS = SubGaussian(0.1, 0.0, 1.0), Bounded(0.0, 1.0)
WORLDS = {
    "graph": lambda: random_graph(3, states=5, actions=3, horizon=4, discount=0.8),
    "maze": lambda: random_maze(1),
    "tree": lambda: random_tree(2, discount=1.0),
    "contexts": lambda: random_graph(5, states=6, actions=3, horizon=1, discount=1.0, terminal=False),
}


def by_state(statistics):
    return 0.7 * statistics.problem.mdp.uniform + 0.3 * statistics.problem.baseline


def by_step(statistics):
    """Depends on what was learned: to the actions that paid most, less so in later steps."""
    model = statistics.problem.mdp
    weight = np.where(model.available, np.exp(statistics.mean), 0.0)
    share = 1.0 / (1.0 + np.arange(model.horizon))[:, None, None]
    return share * weight / weight.sum(axis=1, keepdims=True) + (1.0 - share) * model.uniform


COLLECT = COLLECTORS | {
    "exact after exploring": Collector(design="exact", explore="uniform", bonus=0.0, replan=1.5),
    "as the paper tracks": Collector(
        design="exact", explore="uniform", track="all", explore_by_clock=True, gate="retrospective"
    ),
    "the target in turn": Collector(design="target", explore="uniform"),
    "own by state": Collector(design=by_state, explore="none", replan=1.3),
    "own by step, drawn": Collector(design=by_step, explore="none", track="sample", replan=1.3),
    "nothing learned from the baseline": Collector(
        design="exact", explore="none", learn_from_baseline=False, replan=1.2
    ),
    "explores for good": Collector(design="exact", explore="uniform", ledger="none", gate="none"),
}


def laws(kind, rng, mdp):
    """Of rewards and of what is guarded."""
    mean = 0.1 + 0.8 * rng.random((mdp.states, mdp.actions))
    if kind == "coins":
        return Bernoulli(mean[::-1]), Bernoulli(mean)
    if kind == "data":
        cells = [[list(rng.random(rng.integers(1, 5))) for _ in row] for row in mean]
        return Empirical(cells), Empirical([row[::-1] for row in cells])
    return Gaussian(rng.random(mean.shape), 0.5 * mean), Gaussian(mean, 0.01)


def guardrails(kind, promise, values):
    """`values` are the baseline's; lines are far enough away that something is designed."""
    value = values[0]
    if kind == "known":
        return [Guardrail("constraint", promise, allowance=0.9 * value, baseline_value=value)]
    if kind == "interval":
        ends = (0.9 * value, 1.1 * value)
        return [Guardrail("constraint", promise, alpha=0.9, baseline_value=ends)]
    if kind == "learned":
        return [Guardrail("constraint", promise, alpha=0.95)]
    if kind == "a cost":
        return [Guardrail("constraint", promise, cost=True, at_most=2.2 * value, baseline_value=value)]
    cost = values[1]
    return [
        Guardrail("good", promise, at_least=0.1 * value, share=0.5),
        Guardrail("cost", promise, cost=True, allowance=cost, baseline_value=(0.8 * cost, cost), share=0.2),
        Guardrail("third", promise, alpha=0.9, baseline_value=values[2], share=0.3),
    ]


@functools.cache
def posed(world, guards="known", kind="normal", given=False, reward=None, targets=1, mixed=False, **more):
    """A scenario; `given`: the start is, `mixed`: the baseline leaves something to chance."""
    rng, mdp = np.random.default_rng(7), WORLDS[world]()
    shape = (mdp.horizon, mdp.states, mdp.actions)
    earned, guarded = laws(kind, rng, mdp)
    shared = more.get("outcome") == "shared"
    law = earned if shared else guarded
    policies = [only(mdp, random_policy(rng, *(shape if i % 2 else shape[1:]))) for i in range(targets)]
    baseline = np.eye(mdp.actions)[np.argmax(np.where(mdp.available, law.mean, -1.0), axis=1)]
    baseline = only(mdp, baseline + 0.2 * mdp.uniform) if mixed else baseline
    law = law if guards != "three" else {"cost": law, "good": laws(kind, rng, mdp)[1], "third": law}
    made = World(mdp, earned, law, **more)
    names = ("good", "cost", "third") if guards == "three" else (None,)
    values = [made.constraint_value(baseline, name) for name in names]
    unknown = Unknown(
        mdp.states, mdp.actions, mdp.horizon, discount=mdp.discount, available=mdp.available,
        start=mdp.start if given else None,
    )  # fmt: skip
    problem = Problem(
        unknown,
        policies[0] if targets == 1 else {f"target {i}": policy for i, policy in enumerate(policies)},
        baseline,
        guardrails=guardrails(guards, NEAR if kind == "normal" else COINS, values),
        reward=reward,
        estimand="difference" if targets == 3 else "value",
        delta=0.2,
    )
    return Scenario(world, made, problem, 60)


def only(mdp, policy):
    """Without the actions that are missing."""
    kept = np.where(mdp.available, policy + 1e-3, 0.0)
    return kept / kept.sum(axis=-1, keepdims=True)


CELLS = {
    "saver-opt": [
        ("graph", {}, {}),
        ("graph", {"guards": "three", "targets": 2}, {"history": 7}),
        ("contexts", {"guards": "learned", "kind": "coins"}, {}),
        ("contexts", {"targets": 3, "reward": SubGaussian(1.0, 0.0, 1.0)}, {}),
        ("maze", {"guards": "interval", "given": True, "mixed": True}, {}),
    ],
    "safe-on-policy": [
        ("graph", {"guards": "learned", "kind": "data"}, {"history": 5}),
        ("maze", {"kind": "coins", "reward": COINS}, {}),
        ("contexts", {"kind": "coins", "outcome": "shared"}, {}),
        ("contexts", {"guards": "three", "kind": "coins", "mixed": True}, {"history": 60}),
        ("graph", {"guards": "a cost", "kind": "data", "targets": 3}, {}),
    ],
    "on-policy": [("maze", {"guards": "three"}, {"history": 3}), ("tree", {"given": True}, {})],
    "baseline": [("graph", {"guards": "learned", "mixed": True}, {})],
    "model-oracle": [("graph", {"guards": "interval", "kind": "coins"}, {}), ("tree", {}, {})],
    "exact after exploring": [("maze", {"guards": "learned"}, {}), ("contexts", {"given": True}, {})],
    "as the paper tracks": [("graph", {"guards": "interval"}, {})],
    "the target in turn": [("tree", {"guards": "a cost"}, {})],
    "own by state": [("graph", {"targets": 2, "mixed": True}, {})],
    "own by step, drawn": [("maze", {"guards": "known"}, {})],
    "nothing learned from the baseline": [("graph", {"guards": "learned", "kind": "coins"}, {"history": 2})],
    "explores for good": [("contexts", {"guards": "learned"}, {})],
}


@pytest.mark.parametrize("collector", CELLS)
def test_both_engines_agree(collector):
    for world, said, options in CELLS[collector]:
        scenario = posed(world, **said)
        assert only_reference(scenario, COLLECT[collector]) is None
        found = assert_equal(scenario, COLLECT[collector], **options)
        drawn = COLLECT[collector].design == "baseline"
        assert (found.baseline_share[:, -1] < 1.0).all() != drawn, (world, said)  # something was designed


@pytest.mark.parametrize("collector", ["saver-opt", "safe-on-policy"])
def test_long_campaigns_stay_equal(collector):
    for asked in (scenarios.contexts(alpha=0.9), scenarios.unknown_gridworld(size=3, horizon=5, alpha=0.9)):
        found = assert_equal(asked, collector, episodes=300, runs=1, checkpoints=[3, 150])
        assert found.baseline_share[0, -1] < 0.9


@pytest.mark.parametrize("world", WORLDS)
def test_plans_made_in_one_call_are_those_of_the_learner(world, monkeypatch):
    own, made = compiled.Worker._plan_compiled, []
    monkeypatch.setattr(
        compiled.Worker, "_plan_compiled", lambda *given: made.append(own(*given)) or made[-1]
    )
    for said in ({"kind": "coins"}, {"given": True, "guards": "learned"}, {"kind": "data", "mixed": True}):
        options = {"episodes": 400, "runs": 2, "checkpoints": [30, 150], "engine": "compiled"}
        one = simulate(posed(world, **said), "saver-opt", **options)
        assert sum(made) > 20, "hardly any plan was made in one call"
        with monkeypatch.context() as without:
            without.setattr(compiled, "lay_plan_inputs", lambda setup: None)
            other = simulate(posed(world, **said), "saver-opt", **options)
        for name in (*ANSWERS, *COMMON):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        made.clear()


def test_an_impossible_reward_is_refused_with_the_reason():
    wrong = posed("graph", reward=Bounded(0.0, 0.3))
    with pytest.raises(InvalidData, match="outside the declared bounds"):
        simulate(wrong, "safe-on-policy", episodes=20, runs=1, engine="compiled")


def test_what_stays_in_the_reference_is_said():
    blind, target = posed("graph"), COLLECTORS["safe-on-policy"]
    doubtful = dataclasses.replace(target, ledger="plugin")
    assert "unknown, with the ledger 'plugin'" in only_reference(blind, doubtful)
    other = dataclasses.replace(blind.problem.mdp, discount=0.81)
    moved = dataclasses.replace(blind, problem=dataclasses.replace(blind.problem, mdp=other))
    assert "discounts" in only_reference(moved, target)
    other = dataclasses.replace(blind.problem.mdp, start=4)
    moved = dataclasses.replace(blind, problem=dataclasses.replace(blind.problem, mdp=other))
    assert "starts" in only_reference(moved, target)


def assert_equal(scenario, collector, episodes=40, runs=2, checkpoints=(1, 5, 20), **options):
    options |= {"episodes": episodes, "runs": runs, "checkpoints": list(checkpoints)}
    compiled, reference = (
        simulate(scenario, collector, engine=engine, **options) for engine in ("compiled", "reference")
    )
    assert_same(compiled, reference)
    assert list(compiled.by_name) == list(reference.by_name)
    for name in reference.by_name:
        assert_same(compiled.by_name[name], reference.by_name[name])
    return compiled


def assert_same(one, two):
    for name in (*ANSWERS, *COMMON, "worst_budget", "true_value", "baseline_value"):
        close(getattr(one, name), getattr(two, name), name)
    for name in ("budgets", "ledgers", "worst_budgets"):
        found, wanted = getattr(one, name), getattr(two, name)
        assert list(found) == list(wanted)
        for rail in wanted:
            close(found[rail], wanted[rail], f"{name} of {rail}")


def close(found, wanted, name):
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10, err_msg=name)
