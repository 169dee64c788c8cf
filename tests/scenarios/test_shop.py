"""The shop: its numbers by hand and along every path, its boundaries, and a campaign in it."""

import numpy as np
import pytest

import saver
from saver import design
from saver.errors import InvalidProblem
from saver.play import Stage
from saver.safety import LEDGERS, Terms
from saver.scenarios import shop as make
from saver.scenarios.shop import ACTIONS, PAGES, PRICE

PRODUCT, BASKET, GONE = 2, 3, 4
NAMES = ("complaints", "latency", "refunds")


@pytest.fixture(scope="module")
def shop():
    return make()


def along_every_path(scenario, policy, table):
    """The value of a policy, path by path, without a Bellman recursion."""
    mdp = scenario.problem.mdp
    moves = mdp.transitions.toarray().reshape(mdp.states, mdp.actions, mdp.states)

    def onward(page, steps):
        if page == GONE or not steps:
            return 0.0
        return sum(
            policy[page, a]
            * (table[page, a] + sum(moves[page, a, to] * onward(to, steps - 1) for to in range(len(PAGES))))
            for a in range(len(ACTIONS))
        )

    return sum(p * onward(page, 3) for page, p in enumerate((0.6, 0.4)))


def test_the_baseline_by_hand(shop):
    # plain: .6 * .4 + .4 * .4 = .4 see a product; .6 * .05 + .4 * .2 + .4 * .3 = .23 the basket
    seen = saver.problem.visits(shop.problem.mdp, shop.problem.baseline)[:, 0]
    np.testing.assert_allclose(seen, [0.6, 0.4, 0.4, 0.23, 0.0])
    by_hand = {
        "complaints": 0.6 * 0.12 + 0.4 * 0.10 + 0.4 * 0.10 + 0.23 * 0.10,
        "latency": 0.6 * 0.4 + 0.4 * 0.4 + 0.4 * 0.5 + 0.23 * 0.6,
        "refunds": PRICE / 1000 * (0.4 * 1 + 0.4 * 3 + 0.23 * 30),
    }
    assert by_hand == pytest.approx({"complaints": 0.175, "latency": 0.738, "refunds": 0.17})
    for name in NAMES:
        assert shop.world.constraint_value(shop.problem.baseline, name) == pytest.approx(by_hand[name])
    assert shop.world.value(shop.problem.baseline) == pytest.approx(0.4 * 0.01 + 0.4 * 0.03 + 0.23 * 0.3)


def test_the_target_path_by_path(shop):
    answers = {"complaints": 0.31418, "latency": 1.19111, "refunds": 0.68284}
    target, laws = shop.problem.target, shop.world.laws
    for name, answer in answers.items():
        found = along_every_path(shop, target, laws[name].mean)
        assert found == pytest.approx(answer, abs=1e-5)
        assert shop.world.constraint_value(target, name) == pytest.approx(found, abs=1e-12)
    orders = along_every_path(shop, target, shop.world.reward.mean)
    assert shop.world.value(target) == pytest.approx(orders, abs=1e-12) == pytest.approx(0.1863009)


def test_each_guardrail_says_its_line_in_its_own_way(shop):
    complaints, latency, refunds = shop.problem.rails
    assert -complaints.required == pytest.approx(1.75 * 0.175)
    assert -latency.required == pytest.approx(0.738 + 0.32)
    assert -refunds.required == 2.0
    for rail in shop.problem.rails:
        assert rail.credit > 0.0  # the baseline keeps all of them, strictly
        assert rail.level == pytest.approx(0.05 / 3)


def test_two_guardrails_bind_and_one_does_not(shop):
    variance = shop.world.reward.variance
    free = design.exact(shop.problem, variance).policy
    closed = design.dag(shop.problem.mdp, shop.problem.target, variance, time_indexed=True).policy
    for policy in (shop.problem.target, closed, free):
        cost = {name: shop.world.constraint_value(policy, name) for name in NAMES}
        assert cost["complaints"] > 1.75 * 0.175
        assert cost["latency"] > 1.058
        assert cost["refunds"] < 1.0


def test_after_5000_visits_noise_hides_less_than_a_third_of_every_allowance(shop):
    mdp, target, K = shop.problem.mdp, shop.problem.target, 5000
    steps, stage = saver.problem.visits(mdp, target).sum(), Stage(mdp)
    for rail, mean in zip(shop.problem.rails, shop.means, strict=True):
        ledger = LEDGERS["certified"](Terms(shop.problem, K, stage, own=rail))
        rate = saver.problem.value(mdp, target, mean) / steps
        hidden = ledger.hidden_after(
            ledger.open(), rate, K * steps * rail.promise.scale**2, K * steps, float(K), 0
        )
        assert 0.0 < hidden < 0.3 * K * rail.credit


@pytest.mark.slow
def test_a_campaign_is_safe_useful_and_believes_nearly_what_is_true(shop):
    K = 5000
    runs = saver.simulate(shop, "saver", episodes=K, runs=1, seed=1, checkpoints=[K])
    assert runs.violation_rate() == 0.0
    assert 0.05 < runs.baseline_share[0, -1] < 0.5
    for rail in shop.problem.rails:
        apart = runs.budgets[rail.name][0, -1] - runs.ledgers[rail.name][0, -1]
        assert 0.0 < apart < 0.3 * K * rail.credit


def test_values_can_be_left_to_be_learned():
    rails = make(learned=True).problem.rails
    assert all(rail.learned for rail in rails)
    assert [rail.required_by for rail in rails] == [(0.0, 1.75), (-0.32, 1.0), (-2.0, 0.0)]


def test_bad_arguments_name_the_guardrail():
    with pytest.raises(
        InvalidProblem, match=r"guardrail 'refunds': at_most is 0\.1, but the baseline has 0\.17"
    ):
        make(at_most=0.1)
    with pytest.raises(InvalidProblem, match="guardrail 'latency': allowance is 0; it must be positive"):
        make(allowance=0.0)
    with pytest.raises(InvalidProblem, match="latency_deviation is -1"):
        make(latency_deviation=-1.0)
