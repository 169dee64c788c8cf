"""The solver under the exact design: passes against a plain recursion, warm starts, quotas, true gaps."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from models import random_graph, random_policy
from programs import smallest_limit

from saver import Mdp, Problem, SubGaussian, design, scenarios
from saver.design import Planner, Warm, planner
from saver.errors import InvalidData, InvalidProblem
from saver.kernels.solve import descent, passes, search
from saver.kernels.solve.search import Unrolled, phase_ends
from saver.play.nodes import Nodes
from saver.problem import minimising, occupancy, value, visits, weights

SEEDS = st.integers(0, 10_000)
SCALE = 0.7


def posed(seed, *, states=5, actions=3, horizon=6, discount=0.9, share=0.8):
    """A random graph, costs, constraint means, and a bound within the possible range."""
    mdp = random_graph(seed, states=states, actions=actions, horizon=horizon, discount=discount)
    return asked_of(mdp, seed, share)


def corridor(seed, horizon=60, share=0.8):
    """A line of 12 states: back by one, on by one if it goes well, or to the start. Time matters in it."""
    edges = []
    for s in range(12):
        edges += [(s, 0, max(s - 1, 0), 1.0), (s, 1, min(s + 1, 11), 0.8), (s, 1, s, 0.2), (s, 2, 0, 1.0)]
    return asked_of(Mdp.from_edges(edges, 12, 3, horizon), seed, share)


def asked_of(mdp, seed, share):
    rng, shape = np.random.default_rng(seed), (mdp.states, mdp.actions)
    w = weights(mdp, random_policy(rng, *shape)) ** 2 * rng.exponential(size=shape)
    mean = rng.random(shape)
    return mdp, w, mean, within(mdp, mean, share)


def within(mdp, mean, share):
    """A constraint value between the least and the largest."""
    low, high = minimising(mdp, mean)[1], -minimising(mdp, -mean)[1]
    return low + share * (high - low)


def moved(w, mean, seed, size=1.0):
    rng = np.random.default_rng(seed)
    nearby = np.clip(mean + 0.02 * size * rng.normal(size=mean.shape), 0.0, 1.0)
    return w * np.exp(0.1 * size * rng.normal(size=w.shape)), nearby


@pytest.fixture
def everything_is_long(monkeypatch):
    """Phases for any model of at least 54 steps."""
    monkeypatch.setattr(search, "LONG", 0)


def by_recursion(mdp, policy, g, c):
    """Q_t, C_t [L, S, A] of prices g and constraint c under a policy [L, S, A], and its occupancy."""
    onward = mdp.flow.toarray().reshape(mdp.states, mdp.actions, mdp.states)
    Q, C = np.zeros(policy.shape), np.zeros(policy.shape)
    V = W = np.zeros(mdp.states)
    for t in reversed(range(mdp.horizon)):
        Q[t], C[t] = g + onward @ V, mdp.discount**t * c + onward @ W
        V, W = (policy[t] * Q[t]).sum(axis=1), (policy[t] * C[t]).sum(axis=1)
    return Q, C, occupancy(mdp, policy)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("discount", [0.95, 1.0])
def test_passes_are_the_recursion(long, discount, monkeypatch):
    monkeypatch.setattr(search, "LONG", 0)
    mdp = random_graph(3, states=6, actions=3, horizon=60 if long else 7, discount=discount, density=0.4)
    nodes = Nodes.of(mdp)
    model = Unrolled.in_phases(nodes) if long else Unrolled.of(nodes)
    rng = np.random.default_rng(0)
    b = random_policy(rng, len(model.row_state), 3)
    g, c = rng.random((6, 3)), rng.normal(size=(6, 3))
    y, mass, weight = np.empty(b.size), np.empty(len(model.state)), np.empty(len(b))
    N, push, pull = np.empty(18), np.empty(b.size), np.empty(b.size)
    descent.forward(model, b.ravel(), b.ravel(), 0.0, y, mass, weight, N)
    earned, drift, slope = descent.backward(model, y, mass, weight, g.ravel(), c.ravel(), SCALE, push, pull)

    policy = np.tile(mdp.uniform, (mdp.horizon, 1, 1))
    policy[nodes.step, nodes.state] = b[model.row]
    Q, C, x = by_recursion(mdp, policy, g, c)
    at = nodes.step, nodes.state
    np.testing.assert_allclose(mass, x.sum(axis=2)[at], rtol=1e-12)
    np.testing.assert_allclose(N.reshape(6, 3), x.sum(axis=0), rtol=1e-12)
    assert earned == pytest.approx(value(mdp, policy, c), rel=1e-12)

    def averaged(values):  # over the nodes of a row, by their mass
        total = np.zeros(b.shape)
        np.add.at(total, model.row, mass[:, None] * values[at])
        return total / weight[:, None]

    row_Q, row_C = averaged(Q), averaged(C)
    above_Q = row_Q - (b * row_Q).sum(axis=1, keepdims=True)
    above_C = row_C - (b * row_C).sum(axis=1, keepdims=True)
    unit = np.maximum((b * row_Q).sum(axis=1), SCALE * (row_C.max(axis=1) - row_C.min(axis=1)))[:, None]
    np.testing.assert_allclose(push.reshape(b.shape), above_Q / unit, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pull.reshape(b.shape), above_C / unit, rtol=1e-9, atol=1e-12)
    half = 0.5 * weight[:, None] * b * above_C / unit
    assert drift == pytest.approx(np.sum(half * above_Q), rel=1e-9)
    assert slope == pytest.approx(np.sum(half * above_C), rel=1e-9)


@pytest.mark.parametrize("discount", [0.97, 1.0])
def test_phases_give_what_steps_give_for_a_behaviour_that_is_constant_in_them(discount, everything_is_long):
    mdp = random_graph(5, states=8, actions=3, horizon=80, discount=discount, density=0.4)
    nodes = Nodes.of(mdp)
    steps, phases = Unrolled.of(nodes), Unrolled.in_phases(nodes)
    rng = np.random.default_rng(1)
    b, g, c = random_policy(rng, len(phases.row_state), 3), rng.random(24), rng.normal(size=24)
    found = []
    for model, rows in ((steps, b[phases.row]), (phases, b)):
        y, mass, weight, N = (
            np.empty(rows.size),
            np.empty(len(model.state)),
            np.empty(len(rows)),
            np.empty(24),
        )
        descent.forward(model, rows.ravel(), rows.ravel(), 0.0, y, mass, weight, N)
        push, pull = np.empty(rows.size), np.empty(rows.size)
        earned = descent.backward(model, y, mass, weight, g, c, 1.0, push, pull)[0]
        D = np.empty(24)
        passes.discounted(model, y, mass, D)
        found.append((mass, N, D, earned, passes.best(model, g, c, 0.3, np.empty(0, dtype=np.uint64))))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("steps", [54, 100, 200, 1000])
def test_phases_are_short_at_both_ends(steps):
    lengths = np.diff(phase_ends(steps))
    assert lengths.sum() == steps
    assert len(lengths) == 18
    assert lengths[0] == lengths[-1] == 1
    assert np.all(np.diff(lengths[:9]) >= 0)
    np.testing.assert_allclose(lengths, lengths[::-1], atol=1)


@settings(max_examples=25)
@given(SEEDS, st.sampled_from([0.3, 0.03, 1e-3]), st.sampled_from([0.5, 0.9, 0.99]))
def test_gaps_are_true_first_and_warm(seed, tolerance, share):
    mdp, w, mean, required = posed(seed, share=share)
    rough = Planner(mdp)
    for move in range(4):
        plan = rough.solve(w, mean, required, tolerance=tolerance)
        best = Planner(mdp).solve(w, mean, required, tolerance=1e-8, iterations=20_000)
        assert plan.gap <= tolerance * (1 + 1e-9)
        assert plan.limit <= (1 + plan.gap) * best.limit * (1 + 1e-12)
        assert plan.bound <= best.limit * (1 + 1e-12)
        policy, _ = rough.unroll(plan)
        assert value(mdp, policy, mean) >= required - 1e-12 * (1 + abs(required))
        assert np.sum(w[w > 0] / visits(mdp, policy)[w > 0]) == pytest.approx(plan.limit, rel=1e-12)
        w, mean = moved(w, mean, 10 * seed + move)
        required = within(mdp, mean, share)


@pytest.mark.parametrize("seed", range(5))
def test_a_bound_found_in_phases_is_below_every_behaviour(seed, everything_is_long):
    mdp, w, mean, required = corridor(seed)
    rough, fine = Planner(mdp), Planner(mdp)
    for move in range(3):
        plan = rough.solve(w, mean, required, tolerance=1e-9, work=5e5)
        full = fine.solve(w, mean, required, tolerance=1e-4)
        assert len(plan.behaviour) == 178  # rows of 18 phases, where steps have 654
        assert full.gap <= 1e-4 * (1 + 1e-9)
        assert full.bound <= plan.limit <= (1 + plan.gap) * full.limit
        assert plan.bound <= full.limit
        policy, _ = rough.unroll(plan)
        assert value(mdp, policy, mean) >= required - 1e-12 * abs(required)
        assert np.sum(w / visits(mdp, policy)) == pytest.approx(plan.limit, rel=1e-12)
        w, mean = moved(w, mean, move)
        required = within(mdp, mean, 0.8)


def test_phases_cost_little_and_steps_take_over_where_they_are_not_enough(everything_is_long, monkeypatch):
    mdp, w, mean, required = corridor(2)
    in_phases = Planner(mdp).solve(w, mean, required, tolerance=1e-4, work=3e6)
    on = Planner(mdp).solve(w, mean, required, tolerance=1e-4)
    monkeypatch.setattr(search, "LONG", 10**9)
    alone = Planner(mdp).solve(w, mean, required, tolerance=1e-4)
    assert (len(in_phases.behaviour), len(on.behaviour), len(alone.behaviour)) == (178, 654, 654)
    assert 1.001 * alone.limit < in_phases.limit < 1.01 * alone.limit
    assert max(on.gap, alone.gap) <= 1e-4 * (1 + 1e-9)
    assert on.limit == pytest.approx(alone.limit, rel=2e-4)


def test_a_carried_certificate_proves_most_of_the_limit_at_once():
    mdp, w, mean, required = posed(2, states=30, actions=3, horizon=10)
    warm = Planner(mdp)
    warm.solve(w, mean, required, tolerance=1e-4)
    behaviour = warm.warm.behaviour
    for seed in range(5):
        after = moved(w, mean, seed)
        best = Planner(mdp).solve(*after, required, tolerance=1e-5).limit
        given_ = Planner(mdp)
        given_.warm = warm.warm
        carried = given_.solve(*after, required, iterations=0).bound
        bare = Planner(mdp)
        bare.warm = Warm(behaviour, np.zeros(w.shape), mean, np.zeros(1))
        anew = bare.solve(*after, required, iterations=0).bound
        assert 0.93 * best < carried <= best
        assert carried > anew


def sequence(mdp, w, mean, required, solver, **options):
    """Bits of the plans of several moves."""
    plans = [solver.solve(w, mean, required, hint=mdp.uniform, tolerance=1e-3, **options)]
    plans += [solver.solve(*moved(w, mean, k), required, tolerance=1e-3, **options) for k in range(3)]
    return [(p.limit, p.bound, p.multiplier, p.iterations, p.work, p.behaviour.tobytes()) for p in plans]


def test_equal_inputs_give_equal_bits_however_often_the_solver_pauses(monkeypatch):
    asked = posed(4, states=12, horizon=8)
    one = sequence(*asked, Planner(asked[0]))
    assert sequence(*asked, Planner(asked[0])) == one
    assert sequence(*asked, Planner(asked[0]), seconds=1e6) == one
    monkeypatch.setattr(planner, "PAUSE", 1)
    assert sequence(*asked, Planner(asked[0])) == one


@pytest.mark.parametrize("long", [False, True])
def test_a_planner_goes_on_from_plain_data_as_if_nothing_had_happened(long, monkeypatch):
    monkeypatch.setattr(search, "LONG", 0 if long else 10**9)
    mdp, w, mean, required = posed(6, states=8, horizon=60, discount=0.98)
    one, other = Planner(mdp), Planner(mdp)
    assert one.last is None
    one.solve(w, mean, required, tolerance=1e-2, work=1e6)
    other.last = json.loads(json.dumps(one.last.tolist()))
    for kept, back in zip(one.warm, other.warm, strict=True):
        np.testing.assert_array_equal(kept, back)
    for k in range(2):
        after = moved(w, mean, k)
        plans = [p.solve(*after, required, tolerance=1e-3, work=1e6) for p in (one, other)]
        assert plans[0].behaviour.tobytes() == plans[1].behaviour.tobytes()
        assert plans[0].bound == plans[1].bound
    other.last = None
    assert other.warm is None


def test_data_of_another_model_is_no_warm_start():
    with pytest.raises(
        InvalidData, match=r"a vector of shape \(20,\) holds no warm start for 4 states and 2"
    ):
        Planner(random_graph(1)).last = np.zeros(20)
    one, other = Planner(random_graph(1, horizon=3)), Planner(random_graph(1, horizon=5))
    w = visits(one.mdp, one.mdp.uniform)
    one.solve(w)
    other.last = one.last
    with pytest.raises(InvalidData, match="the behaviour to start from has 6 rows, the model 10 nodes"):
        other.solve(w)


@pytest.mark.parametrize("quota", [0.0, 1e5, 3e5])
def test_a_quota_of_work_is_kept(quota):
    mdp, w, mean, required = posed(7, states=40, actions=4, horizon=12)
    planner_ = Planner(mdp)
    plan = planner_.solve(w, mean, required, tolerance=1e-12, work=quota)
    flows = float(len(planner_.nodes.state) * 4)
    assert plan.iterations >= 10
    least = 11 * flows + 6 * 0.25 * flows  # ten iterations, and the looks among them
    assert plan.work <= max(least, quota + 1.75 * flows)
    assert plan.iterations * flows <= plan.work
    assert plan.iterations == 10 or plan.work >= quota


def test_more_work_is_never_worse():
    mdp, w, mean, required = posed(7, states=20, actions=3, horizon=10)
    plans = [Planner(mdp).solve(w, mean, required, tolerance=1e-9, work=q) for q in (0.0, 5e4, 1e5, 1e6)]
    assert np.all(np.diff([plan.limit for plan in plans]) <= 0)
    assert np.all(np.diff([plan.bound for plan in plans]) >= 0)


def test_a_settled_plan_is_close_and_stops_before_it_is_proved():
    mdp, w, mean, required = posed(9, states=60, actions=4, horizon=12)
    warm, proved = Planner(mdp), Planner(mdp)
    for one in (warm, proved):
        one.solve(w, mean, required, tolerance=1e-3)
    after = moved(w, mean, 0)
    soon = warm.solve(*after, required, tolerance=1e-4, settle=0.005)
    late = proved.solve(*after, required, tolerance=1e-4)
    assert 10 <= soon.iterations <= 40 < late.iterations
    assert late.limit <= soon.limit < 1.01 * late.limit


@pytest.mark.parametrize("horizon", [1, 4])
@pytest.mark.parametrize("target", [[0.2, 0.3, 0.5], [1 / 3, 1 / 3, 1 / 3]])
def test_what_is_required_may_be_the_best_value_up_to_rounding(horizon, target):
    # Every action is worth (1 - alpha) baseline_value: whatever is played is safe but for the last digit.
    mdp = Mdp(np.zeros((1, 3, 1)) if horizon == 1 else np.ones((1, 3, 1)), horizon)
    target, variance = np.array([target]), np.array([[1.0, 4.0, 2.25]])
    problem = Problem(
        mdp, target, target, alpha=0.3, baseline_value=0.7 * horizon, constraint=SubGaussian(0.1, 0, 1)
    )
    for digit in (1.0, 1 - 1e-15, 1 + 1e-15):
        found = design.exact(problem, variance, np.full((1, 3), (1 - 0.3) * 0.7 * digit))
        assert found.limit == pytest.approx(horizon * (target[0] @ [1.0, 2.0, 1.5]) ** 2, rel=1e-5)
        assert found.price == 1.0
        assert found.gap < 1e-6


@pytest.mark.parametrize("penalty", [1e8, 1e12])
@pytest.mark.parametrize("alpha", [0.1, 1e-3])
def test_a_huge_penalty_costs_no_more_than_leaving_the_action_out(penalty, alpha):
    mdp = Mdp.from_edges([(0, a, 1, 1.0) for a in range(3)], 2, 3, 2)
    target, variance = np.array([[0.5, 0.5, 0.0]] * 2), np.array([[1.0, 4, 1], [1, 1, 1]])
    w = weights(mdp, target) ** 2 * variance
    mean = np.array([[1.0, 0.5, -penalty]] * 2)
    plan = Planner(mdp).solve(w, mean, 2 * (1 - alpha), tolerance=1e-5)
    without = smallest_limit(mdp, w, np.array([[1.0, 0.5, -10.0]] * 2), 2 * (1 - alpha))
    assert plan.gap < 1.001e-5
    assert plan.limit == pytest.approx(without, rel=1e-4)


def test_a_huge_penalty_is_paid_where_it_is_the_only_way():
    # The noisy state 1 is reached by action 2 alone: b_2 = p loses (1 + 10^6 - 0.3) p of what action 0 earns.
    mdp = Mdp.from_edges([(0, 2, 1, 1.0)], 2, 3, 2)
    w, mean = np.array([[1.0, 0, 0], [1, 0, 0]]), np.array([[1.0, 0.9, -1e6], [0.3, 0.3, 0.3]])
    plan = Planner(mdp).solve(w, mean, 0.7, tolerance=1e-4)
    p = 0.3 / (1 + 1e6 - 0.3)
    assert plan.gap < 1.001e-4
    assert plan.limit == pytest.approx(1 / p + 1 / (1 - p), rel=1e-3)


def test_coverage_is_bounded_by_work_and_not_by_the_clock():
    mdp = random_graph(3, states=40, actions=4, horizon=10)
    rough, fine = design.coverage(mdp, work=0.0), design.coverage(mdp)
    np.testing.assert_allclose(rough.policy.sum(axis=-1), 1.0)
    used = mdp.available & mdp.reachable[:, None]
    one, other = (np.sum(1 / visits(mdp, found.policy)[used]) for found in (rough, fine))
    assert other < one
    np.testing.assert_array_equal(design.coverage(mdp).policy, fine.policy)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"work": -1.0}, r"work is -1; it must be in \[0, inf\)"),
        ({"work": "much"}, "work is 'much'; it must be a number"),
        ({"settle": 2.0}, r"settle is 2; it must be in \[0, 1\]"),
    ],
)
def test_bad_options(options, message):
    asked = scenarios.gridworld()
    w = np.ones((16, 4)) * asked.problem.mdp.reachable[:, None]
    with pytest.raises(InvalidProblem, match=message):
        Planner(asked.problem.mdp).solve(w, **options)
