"""A campaign played on its own log: worlds by hand and by their spread, answers by hand, refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest
from rehearsed import arms, walk
from scipy.stats import t as students

import saver
from saver import END, Bernoulli, Bounded, Gaussian, SubGaussian
from saver.engine.layout import only_reference
from saver.errors import InvalidProblem
from saver.problem.moments import Moments
from saver.simulator.asseen import TwoValues, is_coin, law_of, scenario_of
from saver.theory import forecast, rehearse, world_of
from saver.theory.rehearsal import ends_of, wilson

pytestmark = pytest.mark.slow
WALK = walk()


def moments(columns):
    """Of one state, an action for each list of observations."""
    found = Moments.empty((1, len(columns)))
    for a, values in enumerate(columns):
        zeros = np.zeros(len(values), dtype=np.int64)
        found.extend(zeros, zeros + a, np.array(values, dtype=float))
    return found


def spread(draw, count=4000):
    """The mean and the standard deviation of what is drawn."""
    drawn = np.array([draw(np.random.default_rng(seed)) for seed in range(count)])
    return drawn.mean(axis=0), drawn.std(axis=0)


# -- worlds --


def test_a_world_as_seen_has_the_frequencies_and_averages_of_the_log():
    world, sums = world_of(WALK), WALK.history.sums
    moves = np.zeros((6, 3))
    for (pair, state), count in sums.moves.items():
        moves[pair, state] = count
    total = moves.sum(axis=1) + sums.ends
    seen = total > 0
    assert seen.tolist() == [True] * 5 + [False]
    expected = moves[seen] / total[seen, None]
    np.testing.assert_allclose(world.mdp.transitions.toarray()[seen], expected, rtol=1e-15)
    np.testing.assert_allclose(world.mdp.ending[seen], (sums.ends / np.maximum(total, 1))[seen], atol=1e-12)
    np.testing.assert_array_equal(world.mdp.start, [1.0, 0.0, 0.0])
    counted = sums.rewards.counts > 0
    np.testing.assert_array_equal(world.reward.mean[counted], sums.rewards.mean[counted])
    np.testing.assert_array_equal(world.reward.variance[counted], sums.rewards.variance[counted])
    complaints = WALK.history.rails["complaint"].seen
    assert isinstance(world.constraint, Bernoulli)
    np.testing.assert_array_equal(world.constraint.mean[counted], -complaints.mean[counted])
    assert not WALK.mdp.known


def test_a_pair_that_was_never_seen_is_like_the_average_of_the_others():
    world, sums = world_of(WALK), WALK.history.sums
    total = sum(sums.moves.values()) + sums.ends.sum()
    onward = [sum(n for (_, to), n in sums.moves.items() if to == state) / total for state in range(3)]
    np.testing.assert_allclose(world.mdp.transitions.toarray()[5], onward, rtol=1e-12)
    assert world.mdp.ending[5] == pytest.approx(sums.ends.sum() / total)
    counts, mean = sums.rewards.counts, sums.rewards.mean
    assert world.reward.mean[2, 1] == pytest.approx(np.sum(counts * mean) / counts.sum())
    mean, apart = spread(lambda rng: world_of(WALK, rng).mdp.transitions.toarray()[5], 500)
    np.testing.assert_allclose(mean, onward, atol=0.06)
    share = np.array(onward)  # of one observation: Dirichlet's variance is p (1 - p) / (1 + 1)
    np.testing.assert_allclose(apart, np.sqrt(share * (1 - share) / 2), rtol=0.12)


def test_drawn_moves_have_the_mean_and_spread_of_their_posterior():
    sums = WALK.history.sums
    counts = np.array([sums.moves[0, state] for state in range(3)] + [sums.ends[0]], dtype=float) + 0.5
    total = counts.sum()
    share = counts / total

    def draw(rng):
        mdp = world_of(WALK, rng).mdp
        return [*mdp.transitions.toarray()[0], mdp.ending[0]]

    mean, apart = spread(draw, 1000)
    deviation = np.sqrt(share * (1 - share) / (total + 1))
    np.testing.assert_allclose(mean, share, atol=4.5 * np.max(deviation) / np.sqrt(1000))
    np.testing.assert_allclose(apart, deviation, rtol=0.12)


def test_an_end_that_was_never_seen_stays_out_of_drawn_worlds_where_nothing_ever_ended():
    mdp = saver.Unknown(2, 1, 3)
    problem = saver.Problem(
        mdp, [[1.0], [1.0]], [[1.0], [1.0]], guardrails=[saver.Guardrail("kept", Bounded(0, 1), alpha=0.1)]
    )
    log = [saver.Episode([0, 1, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1], final_state=1)] * 10
    problem = replace(problem, history=saver.History.of(problem, log))
    world = world_of(problem, np.random.default_rng(0))
    np.testing.assert_allclose(world.mdp.transitions.toarray(), [[0, 1], [1, 0]], rtol=1e-12)
    assert not world.mdp.ending.any()


def test_means_of_coins_come_from_a_beta_and_others_from_a_normal_by_hand():
    coins = moments([[1] * 3 + [0] * 17])
    mean, apart = spread(lambda rng: law_of(coins, Bounded(0, 1), rng).mean[0, 0])
    assert mean == pytest.approx(3.5 / 21, abs=0.005)
    assert apart == pytest.approx(np.sqrt(3.5 * 17.5 / 21**2 / 22), rel=0.06)
    others = moments([[1.0, 2.0, 3.0, 6.0]])  # mean 3, variance 14 / 3
    mean, apart = spread(lambda rng: law_of(others, None, rng).mean[0, 0])
    assert mean == pytest.approx(3.0, abs=0.08)
    assert apart == pytest.approx(np.sqrt(14 / 12), rel=0.06)


@pytest.mark.parametrize(
    ("columns", "promise", "coin"),
    [
        ([[0, 1, 1], [1]], Bounded(0, 1), True),
        ([[0, 1, 1], [1]], None, True),
        ([[0, 0]], Bounded(0, 1), True),
        ([[0, 0]], None, False),
        ([[0, 0]], Bounded(0, 0.5), False),
        ([[0, 1], [0.5]], Bounded(0, 1), False),
        ([[0, 2]], Bounded(0, 2), False),
        ([[], []], None, False),
        ([[0, 1]], Bounded(0, 9), True),
    ],
)
def test_what_was_always_0_or_1_is_a_coin(columns, promise, coin):
    seen = moments(columns)
    assert is_coin(seen, promise) == coin
    assert isinstance(law_of(seen, promise, None), Bernoulli) == coin


def test_two_values_have_a_mean_and_a_variance_within_bounds():
    mean = np.array([[0.5, 0.1, 0.9, 0.02, 0.0, 0.3]])
    variance = np.array([[0.04, 0.04, 0.05, 0.5, 0.1, 0.0]])  # the fourth and fifth are more than can be
    law = TwoValues.of(mean, variance, 0.0, 1.0)
    np.testing.assert_allclose(law.mean, mean, atol=1e-15)
    np.testing.assert_allclose(law.variance, np.minimum(variance, mean * (1 - mean)), atol=1e-15)
    assert law.lower.min() >= 0.0
    assert law.upper.max() <= 1.0
    np.testing.assert_allclose([law.lower[0, 0], law.upper[0, 0]], [0.3, 0.7])
    rng = np.random.default_rng(0)
    drawn = np.array([law.sample(rng, 0, 1) for _ in range(4000)])
    assert drawn.mean() == pytest.approx(0.1, abs=0.012)
    assert drawn.std() == pytest.approx(0.2, rel=0.1)


def test_laws_stay_within_what_is_promised():
    seen = moments([[1.0, 2.0, 6.0], [-3.0, 9.0]])
    bounded = law_of(seen, Bounded(-3, 9), np.random.default_rng(0))
    assert isinstance(bounded, TwoValues)
    normal = law_of(seen, SubGaussian(1.0, 0.0, 2.0), None)
    assert isinstance(normal, Gaussian)
    np.testing.assert_array_equal(normal.mean, [[2.0, 2.0]])
    np.testing.assert_array_equal(normal.variance, [[1.0, 1.0]])


def test_a_player_ends_episodes_as_often_as_a_row_lacks_to_1():
    made = scenario_of(WALK)
    player, ending = saver.Player(made.world, 0, tells_end=True), made.world.mdp.ending[0]
    drawn = [player.step(0, 0, 0)[1] for _ in range(4000)]
    assert np.mean(np.array(drawn) == END) == pytest.approx(ending, abs=4 * np.sqrt(0.25 / 4000))
    expected = made.world.mdp.transitions.toarray()[0]
    for state in range(3):
        assert np.mean(np.array(drawn) == state) == pytest.approx(expected[state], abs=0.032)
    without = replace(made, problem=replace(made.problem, history=None))
    assert "may end where" in only_reference(without, saver.COLLECTORS["saver-opt"])


def test_transitions_that_are_known_stay():
    made = saver.SCENARIOS["bandit"]()
    log = [saver.Episode([0], [0], [0.3], [0.5])] * 3
    problem = replace(made.problem, history=saver.History.of(made.problem, log))
    assert world_of(problem, np.random.default_rng(0)).mdp is problem.mdp


# -- rehearsals --


def test_half_widths_of_two_arms_by_hand():
    # 100 samples of arm 1 with sample variance 100 / 99, in which t has 99 degrees; 60 more of the same law
    found = rehearse(arms(), "on-policy", episodes=60, runs=20, drawn=False, points=1)
    alone = students.ppf(0.975, 99) * np.sqrt(100 / 99 / 100)
    assert found.log_alone["target"] == pytest.approx(alone, rel=0.01)
    after = students.ppf(0.975, 159) * np.sqrt(100 / 99 / 160)
    assert found.half_widths["target"][:, -1].mean() == pytest.approx(after, rel=0.03)
    assert found.checkpoints[-1] == 60
    assert np.all(found.baseline_share == 0.0)


def test_budgets_of_two_arms_by_hand():
    # The baseline keeps .9, .81 is required; arm 1 keeps .8, the baseline adds .09
    found = rehearse(arms(), "on-policy", episodes=60, runs=3, drawn=False)
    np.testing.assert_allclose(found.worst_budgets["kept"], 60 * (0.8 - 0.81), rtol=1e-9)
    np.testing.assert_allclose(found.relative["kept"], 60 * (0.8 - 0.81) / 0.81, rtol=1e-9)
    assert found.kept == 0.0
    safe = rehearse(arms(), "baseline", episodes=60, runs=3, drawn=False)
    np.testing.assert_allclose(safe.worst_budgets["kept"], 0.09, rtol=1e-9)
    assert (safe.kept, safe.nearest) == (1.0, "kept")
    assert np.all(safe.baseline_share == 1.0)


def test_intervals_hold_the_value_of_the_drawn_worlds():
    # 40 campaigns with level .95: below 31 has probability 3e-6
    found = rehearse(arms(), "on-policy", episodes=5, runs=40, points=1)
    assert found.held["target"].sum() >= 31
    assert found.half_widths["target"].shape == (40, 1)


def test_equal_seeds_give_equal_rehearsals_and_others_do_not():
    one, two, other = (rehearse(WALK, episodes=25, runs=3, seed=seed) for seed in (0, 0, 1))
    assert one.to_dict() == two.to_dict()
    assert one.rows() == two.rows()
    assert one.rows() != other.rows()
    fewer = rehearse(WALK, episodes=25, runs=2)
    assert fewer.rows() == one.rows()[:2]


def test_a_forecast_is_a_short_rehearsal_in_the_world_as_logged():
    found = forecast(WALK, 20, runs=3)
    assert (found.runs, found.drawn) == (3, False)
    few = forecast(WALK, 20, runs=4, seed=1)
    same = rehearse(WALK, episodes=20, runs=4, drawn=False, seed=1, points=1)
    assert few.to_dict() == same.to_dict()


def test_a_report_is_a_screen_and_the_rest_is_plain_data(tmp_path):
    told = []
    found = rehearse(WALK, episodes=40, runs=4, progress=told.append)
    assert told == [1] * 4
    lines = found.report().splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80
    assert "half-width, log alone" in found.report()
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["targets"]["target"]["half_width"]["median"] == found.half_width["target"][1]
    assert len(found.rows()) == 4
    assert found.plot(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert repr(found).startswith("Rehearsal(4 campaigns of 40 episodes with saver-opt: promise kept in")


def test_several_guardrails_and_targets_have_rows_of_their_own():
    kept = saver.Guardrail("kept", Bounded(0, 1), alpha=0.2)
    free = saver.Guardrail("cost", Bounded(0, 2), allowance=1.0, cost=True)
    stated = saver.Problem(
        saver.Unknown(1, 2, 1), {"x": [[0.0, 1.0]], "y": [[1.0, 0.0]]}, [[0.5, 0.5]], guardrails=[kept, free]
    )
    log = [
        saver.Episode([0], [n % 2], [n % 3], {"kept": [1.0], "cost": [0.5]}, final_state=END)
        for n in range(60)
    ]
    problem = replace(stated, history=saver.History.of(stated, log))
    found = rehearse(problem, episodes=30, runs=3)
    assert list(found.half_width) == ["x", "y"]
    assert set(found.relative) == {"kept", "cost"}
    assert "half-width of x, log alone" in found.report()
    assert "nearest to its line: " in found.report()
    assert {"half_width of y", "worst_budget of cost"} <= found.rows()[0].keys()


def test_simulate_takes_a_problem_with_a_log():
    found = saver.simulate(WALK, "saver-opt", episodes=30, runs=2, engine="reference")
    assert found.true_value == pytest.approx(world_of(WALK).value(WALK.target))
    with pytest.raises(InvalidProblem, match="the problem has no history"):
        saver.simulate(replace(WALK, history=None), "saver-opt")


def test_an_interval_without_bounds_is_infinite():
    answers = np.zeros(
        (1, 1), dtype=[(name, float) for name in ("estimates", "stderr", "freedom", "below", "above")]
    )
    answers["stderr"], answers["freedom"] = np.inf, np.nan
    low, high = ends_of(answers)
    assert (low[0, 0], high[0, 0]) == (-np.inf, np.inf)


def test_wilson_by_hand():
    z = 1.959964
    assert wilson(1.0, 200) == pytest.approx((1 / (1 + z * z / 200), 1.0))
    assert wilson(0.5, 100) == pytest.approx((0.40383, 0.59617), abs=1e-5)
    assert wilson(0.0, 10)[0] == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem": replace(WALK, history=None)}, "the problem has no history"),
        ({"problem": scenario_of(WALK)}, "problem is Scenario; it must be a saver.Problem"),
        ({"collector": "savr"}, "no collector 'savr'; did you mean 'saver'"),
        ({"collector": "saver"}, "known transitions"),
        ({"runs": 0}, "runs is 0"),
        ({"episodes": 1.5}, "episodes is 1.5"),
        ({"drawn": 1}, "drawn is 1"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_before_anything_is_played(change, message):
    with pytest.raises(saver.errors.SaverError, match=message):
        rehearse(**{"problem": WALK, "episodes": 10, "runs": 2, **change})


def test_a_figure_that_cannot_be_written_is_refused(tmp_path):
    found = rehearse(arms(), episodes=5, runs=2)
    with pytest.raises(InvalidProblem, match=r"must end in .png"):
        found.plot(tmp_path / "a.gif")
    with pytest.raises(InvalidProblem, match="there is no folder"):
        found.plot(tmp_path / "new" / "a.png")
