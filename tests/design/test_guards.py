"""The exact design under several guardrails: two second opinions, a true bound, and what cannot be met."""

import dataclasses

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from models import random_graph, random_policy
from programs import best_balance, smallest_limit

from saver import Guardrail, Mdp, SubGaussian, scenarios
from saver.design import Planner
from saver.design.exact import exact_pair
from saver.errors import Infeasible, InvalidProblem
from saver.kernels.solve import search
from saver.kernels.solve.descent import multipliers_for
from saver.kernels.solve.game import game
from saver.kernels.solve.interior import one_decision
from saver.kernels.solve.onestate import under_one
from saver.problem import minimising, value, visits, weights

SEEDS = st.integers(0, 10_000)
KINDS = ("tight", "slack", "parallel", "equal", "apart")


def drawn(seed, m=None, **options):
    """A random graph, costs some of which are 0, and guardrails of the kind that the seed says."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % 5]
    S, A, L = int(rng.integers(4, 8)), int(rng.integers(2, 4)), int(rng.integers(2, 6))
    mdp = random_graph(seed, **{"states": S, "actions": A, "horizon": L, "discount": 0.9} | options)
    shape = (mdp.states, mdp.actions)
    w = weights(mdp, random_policy(rng, *shape)) ** 2 * rng.exponential(size=shape)
    w[rng.random(shape) < 0.2] = 0.0
    means = rng.normal(size=(m or 2 + seed % 2, *shape))
    if kind == "equal":
        means[1] = means[0]
    if kind == "parallel":
        means[1] = 2.0 * means[0] + 1e-4 * rng.normal(size=shape)
    low, high = span(mdp, means)
    middle = Planner(mdp).balance(means, 0.5 * (low + high)).values
    share = np.full(len(means), {"tight": 0.98, "slack": 0.5}.get(kind, 0.9))
    required = low + share * (middle - low)
    if kind == "slack":
        required[1:] = low[1:] - 1.0
    return mdp, w, means, required


def span(mdp, means):
    low = np.array([minimising(mdp, mean)[1] for mean in means])
    return low, np.array([-minimising(mdp, -mean)[1] for mean in means])


def earned(planner, plan, means):
    policy, _ = planner.unroll(plan)
    return np.array([value(planner.mdp, policy, mean) for mean in means])


@pytest.mark.parametrize("seed", range(50))
def test_random_graphs_agree_with_cvxpy_and_the_bound_is_below(seed):
    mdp, w, means, required = drawn(seed)
    planner = Planner(mdp)
    plan = planner.solve(w, means, required)
    other = smallest_limit(mdp, w, means, required)
    assert plan.limit == pytest.approx(other, rel=1e-3)
    assert plan.bound <= other * (1 + 1e-5)  # what Clarabel is sure of
    assert plan.gap <= 1e-6 * (1 + 1e-6)
    assert plan.multipliers.shape == required.shape
    assert np.all(plan.multipliers >= 0)
    assert plan.multiplier == pytest.approx(plan.multipliers.sum())
    assert np.all(earned(planner, plan, means) >= required - 1e-10 * (1 + np.abs(required)))


@settings(max_examples=25)
@given(SEEDS, st.sampled_from([0.3, 1e-2, 1e-3]))
def test_gaps_are_true_first_and_warm(seed, tolerance):
    mdp, w, means, required = drawn(seed)
    if not np.any(w > 0):
        return
    rng, rough = np.random.default_rng(seed), Planner(mdp)
    for _ in range(3):
        plan = rough.solve(w, means, required, tolerance=tolerance)
        best = Planner(mdp).solve(w, means, required, tolerance=1e-7, iterations=20_000)
        assert plan.gap <= tolerance * (1 + 1e-9)
        assert plan.bound <= best.limit * (1 + 1e-12)
        assert np.all(earned(rough, plan, means) >= required - 1e-10 * (1 + np.abs(required)))
        policy, _ = rough.unroll(plan)
        assert np.sum(w[w > 0] / visits(mdp, policy)[w > 0]) == pytest.approx(plan.limit, rel=1e-9)
        w = w * np.exp(0.1 * rng.normal(size=w.shape))


@pytest.mark.parametrize("seed", range(10))
def test_no_multipliers_and_prices_give_a_bound_above_the_optimum(seed):
    # The certificate itself, recomputed: (sum sqrt(w g))^2 / (max of g.N + sum m_i V_i - sum m_i r_i).
    mdp, w, means, required = drawn(seed)
    planner, rng = Planner(mdp), np.random.default_rng(seed)
    best = planner.solve(w, means, required, tolerance=1e-6).limit
    asked = planner._asked(w, means, required)
    for _ in range(20):
        b = random_policy(rng, len(planner.nodes.state), mdp.actions)
        m = rng.exponential(size=len(required)) * 10.0 ** rng.integers(-3, 3)
        assert planner.bound(b, asked, m) <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", [0, 3, 5, 10])
def test_a_guardrail_with_slack_changes_nothing(seed):
    mdp, w, means, required = drawn(seed, m=2)
    low, _ = span(mdp, means)
    alone = Planner(mdp).solve(w, means[0], required[0])
    both = Planner(mdp).solve(w, means, [required[0], low[1] - 1.0])
    assert both.limit == pytest.approx(alone.limit, rel=3e-6)
    assert both.multipliers[1] <= 1e-9 * (1 + both.multipliers[0])
    free = Planner(mdp).solve(w)
    assert Planner(mdp).solve(w, means, low - 1.0).limit == pytest.approx(free.limit, rel=3e-6)


@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("seed", [1, 4, 7])
def test_equal_guardrails_are_one(seed, copies):
    mdp, w, means, required = drawn(seed)
    alone = Planner(mdp).solve(w, means[0], required[0])
    scale = np.arange(1.0, copies + 1)
    many = Planner(mdp).solve(w, scale[:, None, None] * means[0], scale * required[0])
    assert many.limit == pytest.approx(alone.limit, rel=3e-6)
    assert many.multipliers @ scale == pytest.approx(alone.multipliers[0], rel=2e-2, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_one_guardrail_is_the_same_in_either_shape_to_the_last_bit(seed):
    mdp, w, means, required = drawn(seed)
    plans = [
        Planner(mdp).solve(w, means[0], required[0], tolerance=1e-4),
        Planner(mdp).solve(w, means[:1], required[:1], tolerance=1e-4),
    ]
    assert plans[0].behaviour.tobytes() == plans[1].behaviour.tobytes()
    assert (plans[0].limit, plans[0].bound) == (plans[1].limit, plans[1].bound)


def test_more_guardrails_than_columns_walked_at_once():
    mdp, w, means, required = drawn(10, m=9)
    plan = Planner(mdp).solve(w, means, required, tolerance=1e-5)
    assert plan.gap <= 1e-5 * (1 + 1e-6)
    assert plan.limit == pytest.approx(smallest_limit(mdp, w, means, required), rel=1e-3)


@pytest.mark.parametrize("m", [3, 5])
def test_phases_agree_with_steps(m, monkeypatch):
    mdp, w, means, required = drawn(5, m=m, states=6, horizon=60)
    alone = Planner(mdp).solve(w, means, required, tolerance=1e-4)
    monkeypatch.setattr(search, "LONG", 0)
    in_phases = Planner(mdp)
    plan = in_phases.solve(w, means, required, tolerance=1e-4, work=3e7)
    assert len(plan.behaviour) < len(alone.behaviour)
    assert alone.bound <= plan.limit < 1.05 * alone.limit
    assert plan.bound <= alone.limit
    assert np.all(earned(in_phases, plan, means) >= required - 1e-10 * (1 + np.abs(required)))
    on = Planner(mdp).solve(w, means, required, tolerance=1e-4)
    assert on.limit == pytest.approx(alone.limit, rel=2e-4)


@pytest.mark.parametrize("seed", range(12))
def test_the_balance_is_that_of_linear_programming(seed):
    mdp, _, means, required = drawn(seed)
    low, high = span(mdp, means)
    for needed in (required, high, 0.5 * (low + high)):
        found = Planner(mdp).balance(means, needed)
        worst, _, _ = best_balance(mdp, means, needed, high - low)
        assert found.worst == pytest.approx(worst, abs=1e-8)
        assert found.worst - 1e-12 <= found.bound <= found.worst + 1e-8
        assert np.min((found.values - needed) / (high - low)) == pytest.approx(found.worst, abs=1e-9)
        assert found.y.sum() == pytest.approx(1.0)
        assert np.all(found.y >= 0)
        mixed = np.tensordot(found.y / (high - low), means, 1)
        top = -minimising(mdp, -mixed)[1] - np.sum(found.y * needed / (high - low))
        assert top == pytest.approx(found.bound, abs=1e-9)  # the certificate is what it says
        by_node = found.flow.sum(axis=0)
        assert by_node.sum() > 0


def test_the_balance_of_one_guardrail_is_its_best_value():
    mdp, _, means, _ = drawn(2)
    planner = Planner(mdp)
    found = planner.balance(means[:1], [0.25], [2.0])
    assert found.values[0] == pytest.approx(planner.best_value(means[0]), rel=1e-12)
    assert found.worst == pytest.approx((planner.best_value(means[0]) - 0.25) / 2.0, rel=1e-9)


@pytest.mark.parametrize("seed", range(15))
def test_what_cannot_be_met_together_is_named_with_the_best_point(seed):
    mdp, w, means, _ = drawn(5 * seed, m=3)
    low, high = span(mdp, means)
    needed = high - 1e-3 * (high - low)
    needed[seed % 3] = low[seed % 3] - 1.0  # this one never stands in the way
    worst, best, y = best_balance(mdp, means, needed, high - low)
    if worst > -1e-6:
        return
    with pytest.raises(Infeasible) as refused:
        Planner(mdp).solve(w, means, needed, names=["complaints", "latency", "refunds"])
    message = str(refused.value)
    for i, name in enumerate(["complaints", "latency", "refunds"]):
        assert (name in message) == (y[i] > 1e-7)
        if y[i] > 1e-7:
            assert f"{name!r} requires {needed[i]:g}, the best attainable point has {best[i]:g}" in message
    with pytest.raises(Infeasible, match=r"guardrails \d and \d together"):
        Planner(mdp).solve(w, means, needed)


def test_a_guardrail_that_cannot_be_met_alone_is_named_alone():
    mdp, w, means, required = drawn(0, m=3)
    required[1] = span(mdp, means)[1][1] + 1.0
    required[[0, 2]] -= 100.0
    with pytest.raises(Infeasible, match=r"no behaviour meets guardrail 1: 1 requires"):
        Planner(mdp).solve(w, means, required)


def test_infeasible_ones_are_recognised_and_no_others():
    told = 0
    for seed in range(60):
        mdp, w, means, _ = drawn(seed)
        low, high = span(mdp, means)
        needed = low + np.random.default_rng(seed).uniform(0.5, 1.0, len(low)) * (high - low)
        feasible = best_balance(mdp, means, needed, high - low)[0] >= 0
        try:
            Planner(mdp).solve(w, means, needed, iterations=1)
        except Infeasible:
            told += 1
            assert not feasible
        else:
            assert feasible
    assert 10 < told < 50


@pytest.mark.parametrize("seed", [0, 5, 10])
def test_an_anchor_changes_the_way_and_not_the_optimum(seed):
    mdp, w, means, required = drawn(seed)
    planner = Planner(mdp)
    safe = planner.balance(means, required)
    anchor = np.tile(mdp.uniform, (mdp.horizon, 1, 1))
    at = planner.nodes.step, planner.nodes.state
    anchor[at] = planner.walk.by_row(planner.walk.steps, safe.flow, planner.walk.even(planner.walk.steps))
    best = Planner(mdp).solve(w, means, required).limit
    for given_ in (anchor, mdp.uniform):  # the second one is not safe, and another is found
        plan = Planner(mdp).solve(w, means, required, anchor=given_)
        assert plan.limit == pytest.approx(best, rel=3e-6)
        assert np.all(earned(planner, plan, means) >= required - 1e-10 * (1 + np.abs(required)))


def test_a_planner_goes_on_from_plain_data_with_several_multipliers():
    mdp, w, means, required = drawn(5)
    one, other = Planner(mdp), Planner(mdp)
    one.solve(w, means, required, tolerance=1e-3)
    other.last = one.last.tolist()
    for kept, back in zip(one.warm, other.warm, strict=True):
        np.testing.assert_array_equal(kept, back)
    plans = [p.solve(1.1 * w, means, required, tolerance=1e-5) for p in (one, other)]
    assert plans[0].behaviour.tobytes() == plans[1].behaviour.tobytes()
    # A certificate for other guardrails is still one.
    fewer = one.solve(w, means[:2], required[:2], tolerance=1e-5)
    assert fewer.limit == pytest.approx(Planner(mdp).solve(w, means[:2], required[:2]).limit, rel=3e-5)
    assert fewer.bound <= fewer.limit


def test_gridworld_with_three_guardrails():
    asked = scenarios.gridworld()
    problem, mdp = asked.problem, asked.problem.mdp
    rng = np.random.default_rng(0)
    means = np.stack([asked.world.constraint.mean, *rng.random((2, mdp.states, mdp.actions))])
    base = np.array([value(mdp, problem.baseline, mean) for mean in means])
    w = weights(mdp, problem.target) ** 2 * asked.world.reward.variance
    planner = Planner(mdp)
    plan = planner.solve(w, means, base - 0.1 * np.abs(base), anchor=problem.baseline, tolerance=1e-4)
    assert plan.gap <= 1e-4 * (1 + 1e-6)
    other = smallest_limit(mdp, w, means, base - 0.1 * np.abs(base))
    assert plan.limit == pytest.approx(other, rel=1e-3)
    rails = [
        Guardrail(name, SubGaussian(0.1, -100.0, 100.0), allowance=0.1 * abs(one), baseline_value=one)
        for name, one in zip("abc", base, strict=True)
    ]
    guarded = dataclasses.replace(problem, alpha=None, baseline_value=None, constraint=None, guardrails=rails)
    tables = dict(zip("abc", means, strict=True))
    free, safe = exact_pair(guarded, asked.world.reward.variance, tables, tolerance=1e-4, seconds=20.0)
    assert set(safe.multipliers) == set("abc")
    assert safe.limit == pytest.approx(plan.limit, rel=3e-4)
    assert safe.price == pytest.approx(safe.limit / free.limit)


def test_parallel_guardrails_share_what_is_missing_and_do_not_blow_up():
    slope = np.array([[1.0, 1.0 - 1e-15], [1.0 - 1e-15, 1.0]])
    found = np.array([0.3, 0.7])
    multipliers_for(np.array([1.0, 1.0]), slope, found)
    np.testing.assert_allclose(found, [0.3, 0.7], atol=1e-9)
    found = np.zeros(2)
    multipliers_for(np.array([2.0, 1.0]), np.array([[2.0, 0.0], [0.0, 4.0]]), found)
    np.testing.assert_allclose(found, [1.0, 0.25], rtol=2e-3)
    multipliers_for(np.array([-1.0, 1.0]), np.array([[2.0, 0.0], [0.0, 0.0]]), found)
    assert found[1] == 0.0  # nothing moves it


@pytest.mark.parametrize(
    ("payoff", "worst", "x"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], 0.5, [0.5, 0.5]),
        ([[3.0, 0.0], [0.0, 1.0]], 0.75, [0.25, 0.75]),
        ([[1.0, 2.0]], 2.0, [0.0, 1.0]),
        ([[1.0, 2.0], [1.0, 2.0]], 2.0, [0.0, 1.0]),
        ([[-1.0, -1.0], [-1.0, -1.0]], -1.0, None),
    ],
)
def test_games_by_hand(payoff, worst, x):
    found = game(np.array(payoff))
    assert found[0] == pytest.approx(worst)
    assert found[1].sum() == pytest.approx(1.0)
    if x is not None:
        np.testing.assert_allclose(found[1], x, atol=1e-12)


def bandit(seed, reach=0.0):
    """Costs some of which are 0, means, and what some mixture earns, less a little."""
    rng = np.random.default_rng(seed)
    A, m = int(rng.integers(3, 13)), int(rng.integers(2, 5))
    w = rng.exponential(size=A) * 10.0 ** rng.integers(-3, 3, size=A) * (rng.random(A) < 0.7)
    w[0] += 1.0
    means = rng.normal(size=(m, A))
    if seed % 4 == 1:
        means[1] = means[0]
    if seed % 4 == 2:
        means[1] = 3.0 * means[0] + 1e-6 * rng.normal(size=A)
    required = means @ rng.dirichlet(np.ones(A)) - np.ptp(means, axis=1) * (rng.choice([0.01, 0.1]) - reach)
    return w, means, required


@pytest.mark.parametrize("seed", range(60))
def test_one_decision_agrees_with_cvxpy(seed):
    w, means, required = bandit(seed)
    b = one_decision(w, means, np.ones(len(w), dtype=bool), required)
    assert np.all(b >= 0)
    assert b.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(means @ b >= required - 1e-13 * (np.abs(means) @ b + np.abs(required)))
    x = cp.Variable(len(w), nonneg=True)
    used = w > 0
    cost = cp.sum(cp.multiply(w[used], cp.inv_pos(x[used])))
    program = cp.Problem(cp.Minimize(cost), [cp.sum(x) == 1, means @ x >= required])
    program.solve(solver=cp.CLARABEL)
    assert np.sum(w[used] / b[used]) == pytest.approx(
        program.value, rel=1e-3
    )  # Clarabel's digits; ours: below


@given(SEEDS)
def test_one_decision_is_certified_to_the_last_digits(seed):
    w, means, required = bandit(seed)
    plan = Planner(Mdp(np.zeros((1, len(w), 1)), 1)).solve(w[None], means[:, None], required)
    assert plan.gap < 1e-8
    b = one_decision(w, means, np.ones(len(w), dtype=bool), required)
    assert np.sum(w[w > 0] / b[w > 0]) <= plan.bound * (1 + 1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_one_decision_with_a_copy_or_a_slack_guardrail_is_the_closed_form(seed):
    w, means, required = bandit(seed)
    allowed = np.random.default_rng(seed).random(len(w)) < 0.8
    allowed[[0, int(np.argmax(means[0]))]] = True
    alone = under_one(w * allowed, means[0], allowed, required[0])
    one = one_decision(w * allowed, means[:1], allowed, required[:1])
    assert one.tobytes() == alone.tobytes()
    for other, needed in ((means[0], required[0]), (2 * means[0], 2 * required[0]), (means[1], -100.0)):
        both = one_decision(
            w * allowed, np.stack([means[0], other]), allowed, np.array([required[0], needed])
        )
        np.testing.assert_allclose(both, alone, rtol=1e-9, atol=1e-12)
        assert np.all(both[~allowed] == 0)


@pytest.mark.parametrize("seed", range(30))
def test_one_decision_out_of_reach_comes_as_near_as_can_be(seed):
    w, means, required = bandit(seed, reach=2.0)
    tops, scales = means.max(axis=1), np.ptp(means, axis=1)
    worst = game((means - np.minimum(required, tops)[:, None]) / scales[:, None])[0]
    b = one_decision(w, means, np.ones(len(w), dtype=bool), required)
    assert b.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(b >= 0)
    assert np.min((means @ b - np.minimum(required, tops)) / scales) >= min(worst, 0.0) - 1e-12


def test_nothing_to_learn_under_several_guardrails_is_safe():
    mdp, w, means, required = drawn(5)
    planner = Planner(mdp)
    plan = planner.solve(0.0 * w, means, required)
    assert (plan.limit, plan.gap) == (0.0, 0.0)
    assert np.all(earned(planner, plan, means) >= required - 1e-10 * (1 + np.abs(required)))
    b = one_decision(np.zeros(2), np.eye(2), np.ones(2, dtype=bool), np.array([0.3, 0.6]))
    np.testing.assert_allclose(b, [0.4, 0.6])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"required": 0.0}, r"required is 0\.0; it must hold 2 numbers"),
        ({"required": [0.0]}, r"required is \[0\.0\]; it must hold 2 numbers"),
        ({"required": [0.0, np.nan]}, r"required\[1\] is nan"),
        ({"constraint_mean": np.zeros((2, 1, 1))}, r"constraint_mean has shape \(2, 1, 1\)"),
        ({"names": ["a"]}, "1 names are given for 2 guardrails"),
        ({"anchor": np.ones((1, 1))}, r"anchor has shape \(1, 1\)"),
    ],
)
def test_bad_input(change, message):
    mdp, w, means, required = drawn(0, m=2)
    arguments = {"constraint_mean": means, "required": required} | change
    with pytest.raises(ValueError, match=message):
        Planner(mdp).solve(w, **arguments)
    with pytest.raises(InvalidProblem, match=r"scales\[1\] is 0; it must be above 0"):
        Planner(mdp).balance(means, required, [1.0, 0.0])
