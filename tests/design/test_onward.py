"""The exact design where moves are learned and the state after the last action is not told."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from models import random_graph, random_policy
from programs import smallest_limit

from saver import Mdp, Problem, SubGaussian
from saver.design import Planner, Warm, exact, limit
from saver.errors import InvalidProblem
from saver.kernels.solve import descent, search
from saver.kernels.solve.columns import walk_columns
from saver.kernels.solve.search import Unrolled
from saver.play.nodes import Nodes
from saver.problem import minimising, occupancy, value, weights


def one_room(horizon=2):
    """One state whose two actions stay: every x_0 and x_1 of sum 1 is a flow."""
    return Mdp.from_edges([(0, 0, 0, 1.0), (0, 1, 0, 1.0)], 1, 2, horizon)


def drawn(seed, guards, horizon=None):
    """A random graph, weights of rewards and moves some of which are 0, and guardrails that bind."""
    rng = np.random.default_rng([seed, guards])
    mdp = random_graph(seed, states=int(rng.integers(3, 7)), horizon=horizon or 2 + seed % 3, actions=3)
    shape = (mdp.states, mdp.actions)
    w = weights(mdp, random_policy(rng, *shape)) ** 2 * rng.exponential(size=shape)
    v = occupancy(mdp, mdp.uniform)[:-1].sum(axis=0) ** 2 * rng.exponential(size=shape)
    for each in (w, v):
        each[(rng.random(shape) < 0.2) | (each < 1e-4 * each.max())] = 0.0  # Clarabel fails at tiny ones
    if guards == 0:
        return mdp, w, v, ()
    means = rng.normal(size=(guards, *shape))
    low = np.array([minimising(mdp, mean)[1] for mean in means])
    high = np.array([-minimising(mdp, -mean)[1] for mean in means])
    middle = Planner(mdp).balance(means, 0.5 * (low + high)).values
    return mdp, w, v, (means, low + 0.9 * (middle - low))


def apart(planner, plan, w, v):
    """sum w / N + sum v / N^- of a plan, from its occupancy alone."""
    x = occupancy(planner.mdp, planner.unroll(plan)[0])
    N, early = x.sum(axis=0), x[: planner.mdp.horizon - 1].sum(axis=0)
    return np.sum(w[w > 0] / N[w > 0]) + np.sum(v[v > 0] / early[v > 0])


def test_first_and_last_step_make_up_for_each_other():
    # N = x_0 + x_1 of sum 2 and N^- = x_0 of sum 1: by Cauchy and Schwarz at least (1 + 1)^2 / 2 + (1 + 3)^2,
    # attained by N = (1, 1), x_0 = (1/4, 3/4), so x_1 = (3/4, 1/4).
    planner = Planner(one_room())
    plan = planner.solve(np.array([[1.0, 1.0]]), onward=[[1.0, 9.0]])
    assert plan.limit == pytest.approx(18.0, rel=1e-6)
    assert plan.gap <= 1e-6
    expected = [[[0.25, 0.75]], [[0.75, 0.25]]]
    np.testing.assert_allclose(planner.unroll(plan)[1], expected, atol=2e-3)


def test_no_more_can_be_early_than_there_is():
    # w = (1/2, 9) wants little of action 0, v = (3/2, 1) much of it early: x_1(0) = 0 and x_0(0) = p, with
    # 2 / p + 9 / (2 - p) + 1 / (1 - p) smallest where 2 / p^2 = 9 / (2 - p)^2 + 1 / (1 - p)^2: p = 1/2, 12.
    planner = Planner(one_room())
    plan = planner.solve(np.array([[0.5, 9.0]]), onward=[[1.5, 1.0]])
    assert plan.limit == pytest.approx(12.0, rel=1e-6)
    np.testing.assert_allclose(planner.unroll(plan)[1], [[[0.5, 0.5]], [[0.0, 1.0]]], atol=2e-3)


@pytest.mark.parametrize("guards", [1, 2])
def test_a_guardrail_takes_from_both(guards):
    # N(0) >= 1.6 leaves N(1) <= .4, and x_0(1) with it: 1/1.6 + 1/.4 + 1/.6 + 9/.4. The second one is slack.
    means = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])[:guards]
    planner = Planner(one_room())
    plan = planner.solve(np.array([[1.0, 1.0]]), means, [1.6, 0.1][:guards], onward=[[1.0, 9.0]])
    assert plan.limit == pytest.approx(0.625 + 2.5 + 1 / 0.6 + 22.5, rel=1e-6)
    assert plan.bound <= (0.625 + 2.5 + 1 / 0.6 + 22.5) * (1 + 1e-12)
    assert plan.gap <= 1e-6
    # d/dn of 1 / (2 - n) + 1 / n + 1 / (1 - n) + 9 / n at n = .4, negated
    assert plan.multipliers[0] == pytest.approx(10 / 0.16 - 1 / 2.56 - 1 / 0.36, rel=1e-3)


@pytest.mark.parametrize("guards", [0, 1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_agree_with_cvxpy(seed, guards):
    mdp, w, v, constraints = drawn(seed, guards)
    planner = Planner(mdp)
    plan = planner.solve(w, *constraints, onward=v)
    other = smallest_limit(mdp, w, *constraints, onward=v)
    assert plan.limit == pytest.approx(other, rel=1e-3)
    assert plan.bound <= other * (1 + 1e-5)  # what Clarabel is sure of
    assert plan.gap <= 1e-6 * (1 + 1e-6)
    assert plan.limit == pytest.approx(apart(planner, plan, w, v), rel=1e-9)
    for mean, required in zip(*constraints, strict=True):
        assert value(mdp, planner.unroll(plan)[0], mean) >= required - 1e-10 * (1 + abs(required))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0, 1, 2]), st.sampled_from([0.3, 1e-2]))
def test_gaps_are_true_first_and_warm(seed, guards, tolerance):
    mdp, w, v, constraints = drawn(seed, guards)
    rng, rough = np.random.default_rng(seed), Planner(mdp)
    for turn in range(4):
        moves = v if turn != 2 else None  # from one kind of program to the other and back
        best = Planner(mdp).solve(w, *constraints, onward=moves, tolerance=1e-7, iterations=20_000)
        for effort in ({"tolerance": tolerance}, {"settle": 0.01, "work": 1e3}):
            plan = rough.solve(w, *constraints, onward=moves, **effort)
            assert plan.bound <= best.limit * (1 + 1e-12)
            assert plan.limit >= best.bound * (1 - 1e-12)
        rough.last = rough.last
        w, v = w * np.exp(0.1 * rng.normal(size=w.shape)), v * np.exp(0.1 * rng.normal(size=w.shape))


@pytest.mark.parametrize("seed", range(6))
def test_no_multipliers_and_prices_give_a_bound_above_the_optimum(seed):
    mdp, w, v, constraints = drawn(seed, 2)
    planner, rng = Planner(mdp), np.random.default_rng(seed)
    best = planner.solve(w, *constraints, onward=v).limit
    asked = planner._asked(w, *constraints, onward=v)
    for _ in range(20):
        b = random_policy(rng, len(planner.nodes.state), mdp.actions)
        assert 0 <= planner.bound(b, asked, rng.exponential(size=2)) <= best * (1 + 1e-9)


@pytest.mark.parametrize("guards", [0, 1, 2])
def test_the_certificate_of_the_last_solve_holds_at_once(guards):
    mdp, w, v, constraints = drawn(4, guards)
    planner = Planner(mdp)
    first = planner.solve(w, *constraints, onward=v)
    again = planner.solve(w, *constraints, onward=v, iterations=0)
    assert again.iterations == 0
    assert again.bound == pytest.approx(first.bound, rel=1e-9)


def test_a_certificate_moves_with_the_means():
    # Without discount g + m (c old - c new) for all visits leaves g . N + m V, and so D, what it was.
    mdp, w, v, _ = drawn(4, 1)
    mdp, rng = dataclasses.replace(mdp, discount=1.0), np.random.default_rng(1)
    mean = rng.normal(size=w.shape)
    required = 0.7 * Planner(mdp).best_value(mean) - 0.3 * Planner(mdp).best_value(-mean)
    planner = Planner(mdp)
    first = planner.solve(w, mean, required, onward=v)
    (g, moves), m = planner.warm.prices, planner.warm.multipliers[0]
    moved = mean - 0.01 * rng.random(w.shape) * (w > 0) * g / m
    roots = [np.sum(np.sqrt(w * h)) + np.sum(np.sqrt(v * moves)) for h in (g, g + m * (mean - moved))]
    again = planner.solve(w, moved, required, onward=v, iterations=0)
    assert m > 0.1
    assert again.bound == pytest.approx(first.bound * (roots[1] / roots[0]) ** 2, rel=1e-9)


@pytest.mark.parametrize("guards", [0, 1, 2])
def test_without_weights_of_moves_all_is_as_before(guards):
    mdp, w, v, constraints = drawn(7, guards)
    plain, same = Planner(mdp), Planner(mdp)
    one, other = plain.solve(w, *constraints), same.solve(w, *constraints, onward=np.zeros(v.shape))
    np.testing.assert_array_equal(one.behaviour, other.behaviour)
    assert (one.limit, one.bound, one.work) == (other.limit, other.bound, other.work)
    np.testing.assert_array_equal(plain.last, same.last)


def test_episodes_that_end_before_the_horizon_tell_every_move():
    edges = [(0, a, 1 + a, 1.0) for a in range(2)]
    mdp = Mdp.from_edges(edges, 3, 2, 5)
    w, v = np.array([[1.0, 2.0]] * 3), np.array([[3.0, 1.0]] * 3)
    plan, both = Planner(mdp).solve(w, onward=v), Planner(mdp).solve(w + v)
    np.testing.assert_array_equal(plan.behaviour, both.behaviour)
    assert plan.limit == both.limit


def test_the_more_moves_weigh_the_earlier_they_are_visited():
    # State 1 is entered at step 1 or, as well for rewards alone, at the last step, 2; staying in 0 delays it.
    mdp = Mdp.from_edges([(0, 0, 0, 1.0), (0, 1, 1, 1.0), (1, 0, 0, 1.0), (1, 1, 0, 1.0)], 2, 2, 3)
    w, v, shares = np.array([[30.0, 1.0], [1.0, 1.0]]), np.zeros((2, 2)), []
    for weight in (0.0, 1.0, 10.0, 1_000.0):
        v[1] = weight
        planner = Planner(mdp)
        x = planner.unroll(planner.solve(w, onward=v))[1]
        shares.append(x[1, 1].sum())
    assert np.all(np.diff(shares) > 0.01)
    assert shares[-1] > 0.95


@pytest.mark.parametrize("guards", [0, 1, 2])
def test_pricing_steps_alike_is_worse(guards):
    # The design for sum (w + v) / N thinks that the last step teaches moves too.
    losses = []
    for seed in range(6):
        mdp, w, v, constraints = drawn(seed, guards, horizon=2)
        planner = Planner(mdp)
        best, alike = planner.solve(w, *constraints, onward=v), Planner(mdp).solve(w + v, *constraints)
        losses.append(apart(planner, alike, w, v) / best.limit)
    assert min(losses) >= 1 - 1e-6
    assert max(losses) > 1.05


@pytest.mark.parametrize("guards", [0, 1, 2])
def test_phases_and_steps_agree(guards, monkeypatch):
    mdp, w, v, constraints = drawn(3, guards, horizon=60)
    monkeypatch.setattr(search, "LONG", 0)
    planner = Planner(mdp)
    phases = planner.solve(w, *constraints, onward=v, work=1e7, tolerance=1e-3)
    assert len(phases.behaviour) < len(planner.nodes.state)
    monkeypatch.setattr(search, "LONG", 10**9)
    steps = Planner(mdp).solve(w, *constraints, onward=v, tolerance=1e-3)
    assert steps.limit == pytest.approx(phases.limit, rel=0.02)
    assert phases.bound <= steps.limit
    assert steps.bound <= phases.limit
    assert phases.limit == pytest.approx(apart(planner, phases, w, v), rel=1e-9)


@pytest.mark.parametrize("long", [False, True])
def test_passes_are_the_recursion(long, monkeypatch):
    # Q_t = g + [t < L - 1] h + P V_{t+1}, in phases the mean over the time in which a row is in use.
    monkeypatch.setattr(search, "LONG", 0)
    mdp = random_graph(3, states=6, actions=3, horizon=60 if long else 5, density=0.4)
    nodes = Nodes.of(mdp)
    model = Unrolled.in_phases(nodes) if long else Unrolled.of(nodes)
    rng = np.random.default_rng(0)
    b, (g, h) = random_policy(rng, len(model.row_state), 3), rng.random((2, 6, 3))
    policy = np.tile(mdp.uniform, (mdp.horizon, 1, 1))
    policy[nodes.step, nodes.state] = b[model.row]
    x, P = occupancy(mdp, policy), mdp.flow.toarray().reshape(6, 3, 6)
    Q, V = np.zeros(policy.shape), np.zeros(6)
    for t in reversed(range(mdp.horizon)):
        Q[t] = g + (t < mdp.horizon - 1) * h + P @ V
        V = (policy[t] * Q[t]).sum(axis=1)

    prices, none = np.ravel([g, h]), np.zeros(18)
    y, mass, weight, N = np.empty(b.size), np.empty(len(model.state)), np.empty(len(b)), np.empty(36)
    descent.forward(model, b.ravel(), b.ravel(), 0.0, y, mass, weight, N)
    np.testing.assert_allclose(N.reshape(2, 6, 3), [x.sum(axis=0), x[:-1].sum(axis=0)], rtol=1e-12)
    push, row_Q = np.empty(b.size), np.zeros(b.shape)
    descent.backward(model, y, mass, weight, prices, none, 0.0, push, np.empty(b.size))
    np.add.at(row_Q, model.row, mass[:, None] * Q[nodes.step, nodes.state] / weight[model.row][:, None])
    row_V = (b * row_Q).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(push.reshape(b.shape), row_Q / row_V - 1, atol=1e-11)

    earn, table, stake = np.zeros((36, 4)), np.empty((b.size, 4)), np.empty((len(b), 2))
    earn[:, 0] = np.ravel([g, g + h])
    walk_columns(model, y, mass, weight, earn, np.zeros(4), table, stake, np.empty(2))
    np.testing.assert_allclose(table[:, 0].reshape(b.shape), row_Q - row_V, atol=1e-10)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_warm_start_with_both_prices_is_stored_as_a_vector(count):
    rng = np.random.default_rng(0)
    warm = Warm(rng.random((7, 3)), rng.random((2, 4, 3)), rng.random((4, 3)), rng.random(count))
    for one, other in zip(warm, Warm.of(warm.flat(), 4, 3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(InvalidProblem, match=r"onward\[0, 1\] is 9.*before the last of 1 steps.*add it to w"):
        Planner(one_room(1)).solve(np.ones((1, 2)), onward=[[0.0, 9.0]])
    late = Mdp.from_edges([(0, 0, 1, 1.0), (1, 0, 0, 1.0)], 2, 1, 2)
    with pytest.raises(InvalidProblem, match=r"onward\[1, 0\] is 1.*before the last of 2 steps.*set it to 0"):
        Planner(late).solve(np.ones((2, 1)), onward=np.ones((2, 1)))
    with pytest.raises(InvalidProblem, match=r"onward\[0, 0\] is -1"):
        Planner(one_room()).solve(np.ones((1, 2)), onward=[[-1.0, 0.0]])
    with pytest.raises(InvalidProblem, match="onward"):
        Planner(one_room()).solve(np.ones((1, 2)), onward=[1.0])


def test_the_exact_design_and_the_limit_know_of_moves():
    # Target (1/2, 1/2) at two steps: c = (1, 1), w = c^2 variance = (1, 1). See the first case.
    mdp, even = one_room(), np.array([[0.5, 0.5]])
    problem = Problem(mdp, even, even, constraint=SubGaussian(1.0, floor=0.0), alpha=0.5, baseline_value=1.0)
    design = exact(problem, np.ones((1, 2)), onward=[[1.0, 9.0]])
    assert design.limit == pytest.approx(18.0, rel=1e-6)
    moves = limit(mdp, even, np.ones((1, 2)), design.policy, onward=[[1.0, 9.0]])
    assert moves == pytest.approx(design.limit, rel=1e-9)
    assert limit(mdp, even, np.ones((1, 2)), even, onward=[[1.0, 9.0]]) == pytest.approx(2 + 2 + 18)
