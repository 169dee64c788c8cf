"""The exact design: known answers, two second opinions, and a certificate that is true."""

import dataclasses

import numpy as np
import pytest
from conic import Conic
from hypothesis import given, settings, strategies as st
from models import random_graph, random_policy, random_tree
from programs import smallest_limit

from saver import Mdp, Problem, SubGaussian, design, scenarios
from saver.design import Planner
from saver.errors import Infeasible, InvalidProblem
from saver.kernels.solve.onestate import one_state
from saver.problem import minimising, occupancy, value, visits, weights

SEEDS = st.integers(0, 10_000)


def drawn(seed, **options):
    """A random graph, variances over several magnitudes and some 0, a bound within the possible range."""
    rng = np.random.default_rng(seed)
    S, A, L = int(rng.integers(3, 8)), int(rng.integers(2, 4)), int(rng.integers(1, 6))
    mdp = random_graph(
        seed, states=S, actions=A, horizon=L, discount=float(rng.choice([0.8, 1.0])), **options
    )
    target = random_policy(rng, S, A) * (rng.random((S, A)) < 0.8)
    target[target.sum(axis=1) == 0, 0] = 1.0
    target /= target.sum(axis=1, keepdims=True)
    variance = rng.exponential(size=(S, A)) * 10.0 ** rng.integers(-2, 3, size=(S, A))
    variance[rng.random((S, A)) < 0.2] = 0.0
    mean = rng.random((S, A)) if rng.random() < 0.5 else rng.normal(size=(S, A))
    low, high = minimising(mdp, mean)[1], -minimising(mdp, -mean)[1]
    required = low + (high - low) * rng.choice([0.3, 0.7, 0.95])
    return mdp, weights(mdp, target) ** 2 * variance, mean, required


def earned(mdp, plan, mean):
    policy, _ = Planner(mdp).unroll(plan)
    return value(mdp, policy, mean)


@pytest.mark.parametrize(
    ("name", "free", "safe", "price"),
    [
        ("bandit", 1.620, 2.678, 1.6528),
        ("tree", 0.8909, 0.9221, 1.0350),
        ("gridworld", 3.332, 3.455, 1.0369),
        ("movielens", 0.01858, 0.01858, 1.0),
        ("intractable", 0.03525, 0.05993, 1.7000),
    ],
)
def test_the_numbers_of_the_scenarios(name, free, safe, price):
    asked = scenarios.SCENARIOS[name]()
    problem, variance = asked.problem, asked.world.reward.variance
    digits = {0.01858: 5, 0.03525: 5, 0.05993: 5, 0.8909: 4, 0.9221: 4}
    for mean, limit in ((None, free), (asked.world.constraint.mean, safe)):
        found = design.exact(problem, variance, mean)
        assert round(found.limit, digits.get(limit, 3)) == limit
        assert 0 <= found.gap < 1e-4
        assert found.policy.shape == (problem.mdp.horizon, problem.mdp.states, problem.mdp.actions)
        np.testing.assert_allclose(found.occupancy, occupancy(problem.mdp, found.policy), atol=1e-12)
        again = design.limit(problem.mdp, problem.target, variance, found.policy)
        assert again == pytest.approx(found.limit, rel=1e-12)
    assert found.price == pytest.approx(price, abs=1e-4)
    assert asked.world.constraint_value(found.policy) >= problem.required * (1 - 1e-12)


def test_bandit_against_its_own_closed_form():
    # b = w / sqrt(nu - lambda mu): the two multipliers are found here by a plain two-dimensional search.
    from scipy.optimize import fsolve

    asked = scenarios.bandit()
    w = asked.problem.target[0] * np.sqrt(asked.world.reward.variance[0])
    mu = asked.world.constraint.mean[0]

    def off(x):
        b = w / np.sqrt(np.exp(x[0]) + np.exp(x[1]) * (mu.max() - mu))
        return b.sum() - 1, b @ mu - asked.problem.required

    nu, slope = np.exp(fsolve(off, [-5.0, 1.0]))
    expected = w / np.sqrt(nu + slope * (mu.max() - mu))
    found = design.exact(asked.problem, asked.world.reward.variance, asked.world.constraint.mean)
    np.testing.assert_allclose(found.policy[0, 0], expected, rtol=1e-7)
    assert found.limit == pytest.approx(np.sum(w**2 / expected))


@pytest.mark.parametrize(
    ("w", "mean", "required", "expected"),
    [
        # Both weighted, the bound does not bind: b is proportional to w.
        ([1.0, 3.0], [0.0, 1.0], 0.5, [0.25, 0.75]),
        # It binds with equality and two actions: b is determined by the bound alone.
        ([3.0, 1.0], [0.0, 1.0], 0.6, [0.4, 0.6]),
        # The weighted action cannot be safe: action 1, of weight 0, takes what the bound leaves.
        ([1.0, 0.0], [0.0, 1.0], 0.5, [0.5, 0.5]),
        # Two unweighted actions attain the maximum and share; the third one is never taken.
        ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.9], 0.5, [0.5, 0.25, 0.25, 0.0]),
        # Action 2 is the safest, has no weight and is not needed: the bound fixes the other two.
        ([3.0, 1.0, 0.0], [0.0, 0.9, 1.0], 0.3, [2 / 3, 1 / 3, 0.0]),
        # k = 1/sqrt(1), 1/sqrt(.5): b is proportional to it and sum b (1 - mean) = .4 fixes its size.
        ([1.0, 1.0, 0.0], [0.0, 0.5, 1.0], 0.6,
         [0.4 / (1 + 0.5**0.5), 0.4 * 2**0.5 / (1 + 0.5**0.5), 1 - 0.4 * (1 + 2**0.5) / (1 + 0.5**0.5)]),
    ],
)  # fmt: skip
def test_one_decision_by_hand(w, mean, required, expected):
    b, multiplier = one_state(np.array(w), np.array(mean), required)
    np.testing.assert_allclose(b, expected, atol=1e-12)
    assert multiplier >= 0


@given(SEEDS)
def test_one_decision_is_certified_to_the_last_digits(seed):
    rng = np.random.default_rng(seed)
    A = int(rng.integers(2, 7))
    mdp = Mdp(np.zeros((1, A, 1)), 1)
    w = (rng.exponential(size=(1, A)) * 10.0 ** rng.integers(-6, 4, size=(1, A))) * (rng.random((1, A)) < 0.7)
    w[0, 0] += 1.0
    mean = rng.normal(size=(1, A))
    required = mean.min() + (mean.max() - mean.min()) * rng.choice([0.1, 0.6, 0.99])
    plan = Planner(mdp).solve(w, mean, required)
    assert plan.gap < 1e-9
    assert np.all(plan.behaviour >= 0)
    assert plan.behaviour[0] @ mean[0] >= required - 1e-12
    assert plan.behaviour.sum() == pytest.approx(1.0, abs=1e-14)


@settings(max_examples=30)
@given(SEEDS, st.sampled_from([0.6, 1.0]))
def test_on_trees_it_is_the_closed_form(seed, discount):
    mdp = random_tree(seed, discount=discount)
    rng = np.random.default_rng(seed)
    target = random_policy(rng, mdp.states, mdp.actions)
    variance = rng.exponential(size=(mdp.states, mdp.actions))
    closed = float(mdp.start @ design.tree(mdp, target, variance).spread ** 2)
    plan = Planner(mdp).solve(weights(mdp, target) ** 2 * variance)
    assert plan.limit == pytest.approx(closed, rel=1e-5)
    assert plan.bound <= closed * (1 + 1e-12)


@settings(max_examples=30)
@given(SEEDS)
def test_random_graphs_agree_with_cvxpy_and_the_bound_is_below(seed):
    mdp, w, mean, required = drawn(seed)
    if not np.any(w > 0):
        return
    planner = Planner(mdp)
    for arguments in ((), (mean, required)):
        plan = planner.solve(w, *arguments)
        other = smallest_limit(mdp, w, *arguments)
        assert plan.limit == pytest.approx(other, rel=1e-3)
        assert plan.bound <= other * (1 + 1e-3)
        assert plan.gap <= 1e-6 * (1 + 1e-6)
    assert earned(mdp, plan, mean) >= required - 1e-9 * (1 + abs(required))


@settings(max_examples=30)
@given(SEEDS)
def test_no_feasible_behaviour_found_otherwise_is_below_the_bound(seed):
    mdp, w, mean, required = drawn(seed)
    if not np.any(w > 0):
        return
    planner = Planner(mdp)
    plan = planner.solve(w, mean, required, tolerance=1e-4)
    rng = np.random.default_rng(seed)
    safest = minimising(mdp, -mean)[0]
    policy, _ = planner.unroll(plan)
    for step in (1.0, 0.1, 0.01):
        for _ in range(10):
            other = (1 - step) * policy + step * random_policy(rng, *policy.shape)
            x, safe = occupancy(mdp, other), occupancy(mdp, safest)
            gamma = mdp.discount ** np.arange(mdp.horizon)[:, None, None]
            low, high = np.sum(gamma * x * mean), np.sum(gamma * safe * mean)
            share = max(0.0, (required - low) / (high - low)) if low < required else 0.0
            N = ((1 - share) * x + share * safe).sum(axis=0)
            used = w > 0
            assert np.sum(w[used] / np.maximum(N[used], 1e-300)) >= plan.bound * (1 - 1e-12)


@pytest.mark.parametrize("name", ["tree", "gridworld"])
def test_clarabel_through_its_own_interface_agrees(name):
    asked = scenarios.SCENARIOS[name]()
    mdp, mean = asked.problem.mdp, asked.world.constraint.mean
    w = weights(mdp, asked.problem.target) ** 2 * asked.world.reward.variance
    planner = Planner(mdp)
    plan = planner.solve(w, mean, asked.problem.required)
    behaviour, multiplier = Conic(planner.nodes).solve(w, mean, asked.problem.required)
    other = dataclasses.replace(plan, behaviour=behaviour)
    policy, _ = planner.unroll(other)
    N = visits(mdp, policy)
    assert np.sum(w[w > 0] / N[w > 0]) == pytest.approx(plan.limit, rel=2e-4)
    assert multiplier == pytest.approx(plan.multiplier, rel=2e-2)


def asked_of(mdp, target, *, alpha=0.25, mean, baseline_value):
    promise = SubGaussian(0.1, float(mean.min()) - 1, float(mean.max()) + 1)
    return Problem(mdp, target, target, alpha=alpha, baseline_value=baseline_value, constraint=promise)


def test_price_is_one_when_some_other_unconstrained_optimum_is_safe():
    # At the root both actions are quiet and lead to the noisy state 1; only action 1 is worth anything.
    # The unconstrained optimum does not care; the safe one takes action 1 and loses nothing.
    mdp = Mdp.from_edges([(0, 0, 1, 1.0), (0, 1, 1, 1.0)], 2, 2, 2)
    target = np.array([[1.0, 0.0], [0.5, 0.5]])
    variance = np.array([[0.0, 0.0], [1.0, 4.0]])
    mean = np.array([[0.0, 1.0], [0.0, 0.0]])
    problem = asked_of(mdp, target, alpha=0.05, mean=mean, baseline_value=1.0)
    free, safe = design.exact(problem, variance), design.exact(problem, variance, mean)
    assert value(mdp, free.policy, mean) < problem.required
    assert safe.price == 1.0
    assert value(mdp, safe.policy, mean) >= problem.required * (1 - 1e-12)
    assert safe.limit == pytest.approx((0.5 * 1 + 0.5 * 2) ** 2, rel=1e-5)


def test_price_is_one_when_only_rounding_separates_the_two_optima():
    # The same choice in front of a graph, where both optima are found to a gap and not to the last digit.
    graph = random_graph(7, states=6, actions=2, horizon=5, discount=1.0)
    edges = [(0, a, s + 1, p) for a in range(2) for s, p in enumerate(graph.start) if p > 0]
    rows, columns = graph.transitions.nonzero()
    edges += [(i // 2 + 1, i % 2, j + 1, graph.transitions[i, j]) for i, j in zip(rows, columns, strict=True)]
    mdp = Mdp.from_edges(edges, 7, 2, 6, terminal=[s + 1 for s in graph.terminal])
    rng = np.random.default_rng(7)
    target, variance = random_policy(rng, 7, 2), rng.exponential(size=(7, 2))
    variance[0] = 0.0
    mean = np.zeros((7, 2))
    mean[0, 1] = 1.0
    problem = asked_of(mdp, target, alpha=0.05, mean=mean, baseline_value=1.0)
    found = design.exact(problem, variance, mean, tolerance=1e-3)
    assert found.gap > 1e-9
    assert found.price == 1.0
    assert value(mdp, found.policy, mean) >= 0.95 * (1 - 1e-12)


def test_price_is_above_one_when_safety_costs_something():
    asked = scenarios.tree(alpha=0.4)
    found = design.exact(asked.problem, asked.world.reward.variance, asked.world.constraint.mean)
    assert 1.0 < found.price < 1.035
    looser = scenarios.tree(alpha=0.5)
    found = design.exact(looser.problem, looser.world.reward.variance, looser.world.constraint.mean)
    assert found.price == 1.0  # the unconstrained optimum earns 2.343 of 4


def test_infeasible_names_the_best_attainable_value():
    asked = scenarios.tree()
    poor = 0.5 * asked.world.constraint.mean
    with pytest.raises(
        Infeasible, match=r"required constraint value 3: the best attainable is 2; raise alpha"
    ):
        design.exact(asked.problem, asked.world.reward.variance, poor)


def test_a_bound_that_only_the_safest_behaviour_meets():
    mdp = Mdp(np.zeros((1, 2, 1)), 1)
    mean = np.array([[1.0, 0.0]])
    plan = Planner(mdp).solve(np.ones((1, 2)), mean, 1.0)
    assert plan.behaviour[0, 0] == pytest.approx(1.0)
    chain = random_graph(5)
    mean = np.random.default_rng(5).random((4, 2))
    top = -minimising(chain, -mean)[1]
    plan = Planner(chain).solve(
        np.ones((4, 2)) * (visits(chain, np.full((4, 2), 0.5)) > 0), mean, top, iterations=100
    )
    assert earned(chain, plan, mean) == pytest.approx(top)


@settings(max_examples=40)
@given(SEEDS)
def test_badly_scaled_problems_give_valid_policies_and_true_gaps(seed):
    rng = np.random.default_rng(seed)
    S, A, L = int(rng.integers(3, 12)), int(rng.integers(2, 5)), int(rng.integers(2, 12))
    mdp = random_graph(seed, states=S, actions=A, horizon=L, density=0.3)
    target = rng.dirichlet(np.full(A, 0.05), size=S)  # tiny probabilities, tiny occupancies
    variance = 10.0 ** rng.uniform(-8, 4, size=(S, A))
    mean = rng.random((S, A))
    w = weights(mdp, target) ** 2 * variance
    low, high = minimising(mdp, mean)[1], -minimising(mdp, -mean)[1]
    required = low + 0.9 * (high - low)
    planner = Planner(mdp)
    plan = planner.solve(w, mean, required, tolerance=1e-4, iterations=20_000)
    policy, flow = planner.unroll(plan)
    assert np.all(policy >= 0)
    np.testing.assert_allclose(policy.sum(axis=-1), 1.0, rtol=1e-12)
    N = occupancy(mdp, policy).sum(axis=0)
    assert np.sum(w[w > 0] / N[w > 0]) == pytest.approx(plan.limit, rel=1e-9)
    assert plan.limit <= plan.bound * (1 + 1.001e-4)
    np.testing.assert_allclose(flow, occupancy(mdp, policy), rtol=1e-9, atol=1e-15)


def test_scaling_the_variances_scales_the_limit_and_nothing_else():
    asked = scenarios.gridworld()
    planner = Planner(asked.problem.mdp)
    w = weights(asked.problem.mdp, asked.problem.target) ** 2 * asked.world.reward.variance
    plans = []
    for unit in (1.0, 1e-12, 1e12):
        planner = Planner(asked.problem.mdp)
        plans.append(
            planner.solve(unit * w, asked.world.constraint.mean, asked.problem.required, tolerance=1e-4)
        )
        assert plans[-1].limit / unit == pytest.approx(plans[0].limit, rel=1e-9)
        assert plans[-1].gap < 1.001e-4


def test_resolving_starts_from_the_last_solution_and_ends_where_a_cold_start_does():
    asked = scenarios.gridworld()
    mdp, mean, required = asked.problem.mdp, asked.world.constraint.mean, asked.problem.required
    w = weights(mdp, asked.problem.target) ** 2 * asked.world.reward.variance
    warm = Planner(mdp)
    warm.solve(w, mean, required)
    close = warm.solve(w, mean, required, iterations=1)
    assert close.gap < 2e-4  # at once, where a cold start needs hundreds of iterations
    assert Planner(mdp).solve(w, mean, required, iterations=1).gap > 1e-2
    other = w * np.exp(np.random.default_rng(1).normal(size=w.shape))
    again = warm.solve(other, mean, required)
    assert again.limit == pytest.approx(Planner(mdp).solve(other, mean, required).limit, rel=3e-6)


def test_out_of_time_is_said_by_the_gap():
    asked = scenarios.gridworld()
    found = design.exact(asked.problem, asked.world.reward.variance, asked.world.constraint.mean, seconds=0.0)
    best = design.exact(asked.problem, asked.world.reward.variance, asked.world.constraint.mean)
    assert found.gap > 1e-6
    assert found.limit <= best.limit * (1 + found.gap)
    assert asked.world.constraint_value(found.policy) >= asked.problem.required * (1 - 1e-12)


def test_missing_actions_are_never_played():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(4), size=(4, 3))
    available = np.ones((4, 3), dtype=bool)
    available[1, 2] = available[2, 0] = False
    P[~available] = 0.0
    mdp = Mdp(P, 4, available=available)
    target = random_policy(rng, 4, 3) * available
    target /= target.sum(axis=1, keepdims=True)
    w, mean = weights(mdp, target) ** 2, rng.random((4, 3))
    required = 0.8 * -minimising(mdp, -mean)[1]
    planner = Planner(mdp)
    plan = planner.solve(w, mean, required)
    assert plan.limit == pytest.approx(smallest_limit(mdp, w, mean, required), rel=1e-4)
    for policy in (planner.unroll(plan)[0], design.coverage(mdp).policy):
        assert np.all(policy[:, ~available] == 0)


def test_nothing_to_learn_is_free():
    asked = scenarios.tree()
    quiet = np.zeros_like(asked.world.reward.variance)
    found = design.exact(asked.problem, quiet, asked.world.constraint.mean)
    assert (found.limit, found.price, found.gap) == (0.0, 1.0, 0.0)
    assert asked.world.constraint_value(found.policy) >= asked.problem.required


def test_coverage_reaches_what_uniform_play_hardly_does():
    # A lock: in each of 6 states only action 1 of 4 moves on, the others end. Uniform play arrives at the
    # last state once in 4^5 episodes. The optimum of sum 1 / N on this tree has the closed form of `tree`.
    S, A = 6, 4
    mdp = Mdp.from_edges([(s, 1, s + 1, 1.0) for s in range(S - 1)], S, A, S)
    found = design.coverage(mdp, tolerance=1e-6)
    N, uniform = visits(mdp, found.policy), visits(mdp, np.full((S, A), 1 / A))
    assert uniform[-1].sum() == pytest.approx(4.0**-5)
    assert N[-1].sum() > 0.2
    M = 0.0
    for _ in range(S):
        M = 3 + np.sqrt(1 + M**2)
    assert np.sum(1 / N) == pytest.approx(M**2, rel=1e-5)
    np.testing.assert_allclose(found.spread, N.sum(axis=1))


def test_coverage_leaves_unreachable_and_terminal_states_out():
    mdp = random_graph(8, states=6)
    found = design.coverage(mdp)
    np.testing.assert_allclose(found.policy.sum(axis=-1), 1.0)
    N = visits(mdp, found.policy)
    assert np.all(N[mdp.reachable] > 0)
    assert np.all(N[~mdp.reachable] == 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variance": -np.ones((15, 2))}, r"variance\[0, 0\] is -1"),
        ({"variance": np.ones((3, 2))}, r"variance has shape \(3, 2\); it must be \(15, 2\)"),
        ({"constraint_mean": np.full((15, 2), np.nan)}, r"constraint_mean\[0, 0\] is nan"),
        ({"constraint_mean": [1.0]}, r"constraint_mean has shape \(1,\)"),
        ({"problem": None}, r"problem is NoneType; it must be a saver\.Problem"),
    ],
)
def test_bad_input(change, message):
    asked = scenarios.tree()
    arguments = {"problem": asked.problem, "variance": np.ones((15, 2)), "constraint_mean": None} | change
    with pytest.raises(InvalidProblem, match=message):
        design.exact(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"w": np.ones((1, 2))}, r"w has shape \(1, 2\); it must be \(3, 2\)"),
        ({"w": np.full((3, 2), np.nan)}, r"w\[0, 0\] is nan"),
        ({"w": -np.ones((3, 2))}, r"w\[0, 0\] is -1; it must be at least 0"),
        ({"hint": np.full((3, 2), 7.0)}, r"hint\[0\] sums to 14"),
        ({"hint": np.ones((4, 2))}, r"hint has shape \(4, 2\)"),
        ({"constraint_mean": np.ones((3, 2)), "required": np.nan}, "required is nan"),
        ({"constraint_mean": np.ones((3, 2)), "required": np.inf}, "required is inf"),
        ({"tolerance": "x"}, "tolerance is 'x'; it must be a number"),
        ({"tolerance": -1.0}, r"tolerance is -1; it must be in \(0, inf\)"),
        ({"seconds": None}, "seconds is None; it must be a number"),
        ({"iterations": 2.5}, r"iterations is 2\.5; it must be a whole number"),
        (
            {"w": np.ones((3, 2)), "where": "missing"},
            r"w\[2, 1\] is 1, but no behaviour can take action 1 in state 2",
        ),
    ],
)
def test_a_planner_refuses_what_it_cannot_solve(arguments, message):
    edges = [(0, 0, 1, 0.9), (0, 0, 2, 0.1), (0, 1, 2, 1.0)]
    available = np.ones((3, 2), dtype=bool)
    if arguments.pop("where", None):
        available[2, 1] = False
    planner = Planner(Mdp.from_edges(edges, 3, 2, 2, available=available))
    with pytest.raises(ValueError, match=message):
        planner.solve(**{"w": np.ones((3, 2)), **arguments})
    with pytest.raises(InvalidProblem, match=r"mean has shape \(1, 2\)"):
        planner.is_safe(planner.solve(np.ones((3, 2)) * available), np.ones((1, 2)), 1.0)


def test_a_forbidden_action_with_a_penalty_costs_what_leaving_it_out_costs():
    mdp = Mdp.from_edges([(0, a, 1, 1.0) for a in range(3)], 2, 3, 2)
    target, variance = np.array([[0.5, 0.5, 0.0]] * 2), np.array([[1.0, 4, 1], [1, 1, 1]])
    w = weights(mdp, target) ** 2 * variance
    for penalty, alpha in ((1e3, 1e-3), (1e6, 0.1), (1e6, 1e-3)):
        mean = np.array([[1.0, 0.5, -penalty]] * 2)
        plan = Planner(mdp).solve(w, mean, 2 * (1 - alpha), tolerance=1e-5)
        without = smallest_limit(mdp, w, np.array([[1.0, 0.5, -10.0]] * 2), 2 * (1 - alpha))
        assert plan.limit == pytest.approx(without, rel=1e-4)


@pytest.mark.parametrize("slack", [0.0, 1e-13, 1e-11, 1e-9])
def test_equally_safe_actions_are_both_used_when_only_they_are_safe_enough(slack):
    mdp = Mdp.from_edges([(0, a, 1, 1.0) for a in range(3)], 2, 3, 2)
    w, mean = np.array([[1.0, 4, 0], [1, 1, 0]]), np.array([[1.0, 1, 0], [1, 1, 0]])
    assert Planner(mdp).solve(w, mean, 2 * (1 - slack)).limit == pytest.approx(13.0, rel=1e-6)


def test_rounding_is_part_of_the_gap():
    # Means that differ in the twelfth digit: the limit is right to three digits only, and the gap says so.
    mdp = Mdp.from_edges([(0, a, 1, 1.0) for a in range(3)], 2, 3, 2)
    w = weights(mdp, np.array([[0.4, 0.5, 0.1], [0.5, 0.4, 0.1]])) ** 2
    mean = np.array([[1.0, 1 - 1e-12, 1 - 1e-12]] * 2)
    plan = Planner(mdp).solve(w, mean, 2 - 2e-12 + 2e-12 * 0.5)
    assert plan.gap > 1e-4
