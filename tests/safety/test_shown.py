"""What a log shows of a policy that it did not follow: by hand, by all paths there are, and by chance."""

import itertools
import math

import numpy as np
import pytest

from saver import Bounded, Guardrail, Problem, SubGaussian, Unknown
from saver.problem.episode import Columns
from saver.safety.shown import Bet, Walked, Worth, below, cut_off, ends, looks, nothing_less, surely

S, A, L = 2, 2, 3
B0 = np.array([[0.5, 0.5], [0.8, 0.2]])
B = np.array([[0.2, 0.8], [0.3, 0.7]])
P = np.array([[[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]], [[0.3, 0.3, 0.4], [0.0, 0.5, 0.5]]])  # the end is last
COSTS = np.array([[0.1, 0.3], [0.2, 0.05]])


def by_step(policy):
    return np.broadcast_to(policy, (L, S, A))


def true_values(policy, g=1.0):
    """V_t(s) of minus the costs, [L + 1, S]."""
    V = np.zeros((L + 1, S + 1))
    for t in reversed(range(L)):
        V[t, :S] = np.sum(policy * (-COSTS + g * P @ V[t + 1]), axis=1)
    return V[:, :S]


def all_paths(start=0):
    """Every episode with its probability under the baseline: states, actions, observations."""

    def onward(states, actions, x, chance):
        s = states[-1]
        if s == S or len(actions) == L:
            yield states, actions, x, chance
            return
        for a, to, c in itertools.product(range(A), range(S + 1), (0.0, 1.0)):
            p = B0[s, a] * P[s, a, to] * (COSTS[s, a] if c else 1.0 - COSTS[s, a])
            if p > 0.0:
                yield from onward([*states, to], [*actions, a], [*x, -c], chance * p)

    return list(onward([start], [], [], 1.0))


def walked(paths, g=1.0):
    states, actions, x = (
        np.full((len(paths), L + 1), S),
        np.zeros((len(paths), L), int),
        np.zeros((len(paths), L)),
    )
    for i, (s, a, c, _) in enumerate(paths):
        states[i, : len(s)], actions[i, : len(a)], x[i, : len(c)] = s, a, c
    return Walked(states, actions, x, g)


def worth_of(policy, least, g=1.0, seed=None):
    """With tables that are wrong on purpose."""
    rng = np.random.default_rng(seed)
    noise = 0.0 if seed is None else rng.normal(0.0, 0.2, (S, A))
    wrong = 0.0 if seed is None else rng.dirichlet(np.ones(S + 1), (S, A))[..., :S] - P[..., :S]
    return Worth.of(
        by_step(policy), by_step(B0), lambda V: (P[..., :S] + wrong) @ V, -COSTS + noise, least, g
    )


@pytest.mark.parametrize("g", [1.0, 0.9])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_what_is_never_stopped_is_right_on_average_whatever_the_tables_are(seed, g):
    paths, least = all_paths(), np.full((L + 1, S), -9.0)
    chances = np.array([chance for *_, chance in paths])
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    found = worth_of(B, least, g, seed).summed(walked(paths, g), math.inf, math.inf)
    assert chances @ found == pytest.approx(true_values(B, g)[0, 0], abs=1e-12)


@pytest.mark.parametrize("seed", [None, 3, 4, 5])
@pytest.mark.parametrize(("most", "fall"), [(1.0, 9.0), (2.0, 9.0), (99.0, 0.3), (2.0, 0.3)])
def test_what_is_stopped_is_never_worth_more_and_loses_what_least_is_short_of(seed, most, fall):
    paths = all_paths()
    chances, log = np.array([chance for *_, chance in paths]), walked(paths)
    truth = true_values(B)
    means = {}
    for short in (0.0, 0.5):
        one = worth_of(B, truth - short, 1.0, seed)
        found = one.summed(log, most, fall)
        means[short] = chances @ found
        assert found.min() >= one.bottom(most, fall, -1.0, 1.0) - 1e-12
    if seed is None:  # the tables are right, so the least is the truth, and nothing is lost
        assert means[0.0] == pytest.approx(truth[0, 0], abs=1e-12)
    assert means[0.5] <= means[0.0] <= truth[0, 0] + 1e-12


def test_an_action_that_the_baseline_never_takes_stops_the_episode_before():
    base = np.array([[1.0, 0.0], [0.8, 0.2]])
    least = np.full((L + 1, S), -2.0)
    one = Worth.of(by_step(B), by_step(base), lambda V: P[..., :S] @ V, -COSTS, least, 1.0)
    states, actions = np.array([[0, S, S, S]]), np.zeros((1, L), int)
    log = Walked(states, actions, np.zeros((1, L)), 1.0)
    assert one.summed(log, 1e9, 1e9).tolist() == [-2.0]


def test_the_number_on_the_page():
    policy, base = np.array([[[0.0, 1.0]]]), np.array([[[0.5, 0.5]]])
    one = Worth.of(policy, base, lambda V: np.zeros((1, 2)), np.zeros((1, 2)), np.array([[-1.0], [0.0]]), 1.0)
    log = Walked(np.array([[0, 1]] * 600), np.array([[0], [1]] * 300), np.zeros((600, 1)), 1.0)
    U, bottom = one.summed(log, 2.0, 1.0), one.bottom(2.0, 1.0, -1.0, 1.0)
    assert (U.tolist(), bottom) == ([0.0] * 600, -4.0)
    rate = 0.97
    share = -(20.0 ** (1 / 600) - 1.0) / rate
    by_hand = 4.0 * share / (1.0 - share)
    assert by_hand == pytest.approx(-0.02053475, abs=1e-8)
    assert below(U, bottom, 0.05, np.array([rate])) == pytest.approx(by_hand, abs=1e-9)
    # two rates that are alike are one
    assert below(U, bottom, 0.05, np.array([rate, rate])) == pytest.approx(by_hand, abs=1e-9)


def test_a_bound_falls_with_its_level_and_is_never_above_the_mean():
    rng = np.random.default_rng(0)
    D, rates = rng.uniform(-1.0, 0.5, 300), np.array([0.1, 0.3])
    found = [below(D, -2.0, level, rates) for level in (0.5, 0.05, 0.0005)]
    assert sorted(found, reverse=True) == found
    assert found[0] < D.mean()
    assert below(D[:1], -2.0, 0.05, rates) == pytest.approx(-2.0, abs=0.05)  # one episode says little


def test_a_bound_holds_as_often_as_it_says():
    """2,000 bounds at level .3: more than 680 wrong ones have a probability of 1e-4 or less."""
    rng, wrong = np.random.default_rng(1), 0
    rates = np.array([0.1, 0.2, 0.4])
    for _ in range(2000):
        D = -(rng.random(200) < 0.05).astype(float) * 4.0
        wrong += below(D, -4.5, 0.3, rates) > -0.2
    assert 20 < wrong <= 680  # and it is not idle


def a_problem(alpha=0.5, given=None, promise=None, **more):
    rail = Guardrail("complaint", promise or Bounded(0, 1), alpha=alpha, cost=True, baseline_value=given)
    mdp = Unknown(S, A, L, start=0)
    return Problem(mdp, B, B0, guardrails=(rail,), **more)


def a_log(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        s, steps = 0, []
        for _ in range(L):
            a = int(rng.random() < B0[s, 1])
            c = float(rng.random() < COSTS[s, a])
            to = int(rng.choice(S + 1, p=P[s, a]))
            steps.append((s, a, rng.normal(s + a), c))
            s = to
            if s == S:
                break
        rows.append((steps, -1 if s == S else s))
    flat = [step for steps, _ in rows for step in steps]
    states, actions, rewards, costs = (np.array(column) for column in zip(*flat, strict=True))
    offsets = np.concatenate([[0], np.cumsum([len(steps) for steps, _ in rows])])
    finals = np.array([final for _, final in rows])
    return Columns(offsets, states, actions, rewards, {"complaint": costs}, None, finals, np.ones(n, bool))


def test_a_log_is_laid_out_step_by_step():
    problem, log = a_problem(), a_log(50)
    found = Walked.of(problem.mdp, log, problem.rails[0])
    for i, one in enumerate(log):
        n = len(one)
        assert found.states[i, :n].tolist() == one.states.tolist()
        assert found.actions[i, :n].tolist() == one.actions.tolist()
        assert found.x[i, :n].tolist() == [-c for c in one.constraints["complaint"]]
        assert np.all(found.x[i, n:] == 0.0)
        assert found.states[i, n] == (S if one.final_state in (None, -1) else one.final_state)
    assert found.earned == pytest.approx([-one.constraints["complaint"].sum() for one in log])


@pytest.mark.parametrize("given", [None, 0.4, (0.35, 0.45)])
def test_floors_are_below_the_truth_and_come_near_it(given):
    """40 logs of 2,000, each at level .01: more than 4 wrong ones have a probability of 1e-4 or less."""
    problem = a_problem(given=given)
    (rail,) = problem.rails
    costs, base = -true_values(B)[0, 0], -true_values(B0)[0, 0]
    required = max(map(rail.required_at, (rail.low, rail.high) if given else (-base,)))
    truth, wrong, gaps = -costs - required, 0, []
    least = np.maximum(true_values(B) - 0.3, nothing_less(problem.mdp, rail))
    for seed in range(40):
        log = Walked.of(problem.mdp, a_log(2000, seed), rail)
        old, new = log.part(slice(0, 600)), log.part(slice(600, None))
        one, other = worth_of(B, least, seed=seed), worth_of(B0, least, seed=seed)
        _, bet = looks(one, other, old, rail, 0.01, len(new))
        found = surely(one, bet, new, rail, 0.01)
        wrong += found > truth
        gaps.append(truth - found)
    assert wrong <= 4
    assert np.median(gaps) < 0.2  # weights are up to 2.6; a standard deviation of the mean is .03


def test_noise_without_bounds_is_cut_far_out_and_pays_for_that():
    (rail,) = a_problem(promise=SubGaussian(0.5, 0.0, 1.0)).rails
    assert ends(rail) == (-4.0, 3.0)
    assert cut_off(rail, 3.0) == pytest.approx(0.5 * math.exp(-18.0) / 6.0 * 3.0)
    assert cut_off(a_problem().rails[0], 3.0) == 0.0


def test_the_least_of_all_counts_each_step_that_may_come():
    (cost,), mdp = a_problem().rails, Unknown(S, A, L, discount=0.5)
    assert nothing_less(mdp, cost).ravel().tolist() == [-1.75, -1.5, -1.0, 0.0]
    kept = Problem(mdp, B, B0, guardrails=(Guardrail("kept", Bounded(0.25, 1), alpha=0.5),)).rails[0]
    assert nothing_less(mdp, kept).ravel().tolist() == [0.25, 0.25, 0.25, 0.0]


def test_a_way_of_looking_is_chosen_by_what_it_promises():
    problem, log = a_problem(), Walked.of(a_problem().mdp, a_log(800), a_problem().rails[0])
    least = true_values(B) - 0.2
    promised, bet = looks(worth_of(B, least), worth_of(B0, least), log, problem.rails[0], 0.01, 1000)
    assert isinstance(bet, Bet)
    assert math.isfinite(promised)
    assert np.all((bet.rates > 0.0) & (bet.rates < 1.0))
    more, _ = looks(worth_of(B, least), worth_of(B0, least), log, problem.rails[0], 0.01, 100_000)
    assert more > promised
