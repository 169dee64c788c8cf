"""Answers of a campaign: any policy, differences, verdicts, stopping, extending, where the uncertainty is."""

import csv
import dataclasses
import importlib.util
import json
import math

import numpy as np
import pytest

import saver
from saver import Bounded, Campaign, Precise, Problem, SubGaussian
from saver.collect.answers import comparison
from saver.collect.reports import moments_table, steps_table
from saver.errors import CampaignEnded, InvalidData, InvalidPolicy, InvalidProblem, SaverError
from saver.estimate import Estimate
from saver.problem.codec import pack
from saver.scenarios.assembly import bandit_model
from saver_audit.hostile import HOSTILE

TARGET = [[0.2, 0.5, 0.3]]
REWARDS = {0: [1.0, 3.0], 1: [4.0, 6.0, 5.0], 2: [0.0, 2.0]}  # means 2, 5, 1
POLICIES = {"a": [[0.0, 0.6, 0.4]], "b": [[0.5, 0.0, 0.5]]}


def problem_of(target=TARGET, **options):
    given = {
        "alpha": 0.9,
        "baseline_value": 0.5,
        "constraint": Bounded(0.0, 1.0),
        "reward": Bounded(0.0, 6.0),
    }
    return Problem(bandit_model(3), target, [[1.0, 0.0, 0.0]], **{**given, **options})


def told(problem, collector="uniform", rewards=REWARDS, episodes=50, **options):
    """Each arm is told its rewards as often as it is drawn, until all have been."""
    campaign, left = (
        Campaign(problem, collector, episodes, **options),
        {a: list(r) for a, r in rewards.items()},
    )
    while any(left.values()):
        trial = campaign.ask()
        action = trial.act(0, 0)
        if not left.get(action):
            campaign.cancel(trial)
            continue
        campaign.tell(trial, [0], [action], [left[action].pop(0)], [0.5])
    return campaign


def test_any_policy_and_any_difference_by_hand():
    campaign = told(problem_of())
    assert campaign.estimate().value == pytest.approx(0.2 * 2 + 0.5 * 5 + 0.3 * 1)
    assert campaign.estimate([[0.0, 0.0, 1.0]]).value == pytest.approx(1.0)
    assert campaign.estimate("baseline").value == pytest.approx(2.0)
    found = campaign.estimate(against="baseline")
    assert found.value == pytest.approx(3.2 - 2.0)
    # (c - c_0)^2 variance / T, the variance of a pair of two being (2 s^2 + 4 d^2) / 5 and so on
    spread = campaign.estimate([[1.0, 0.0, 0.0]]).stderr
    assert campaign.estimate([[0.0, 1.0, 0.0]], against=[[0.0, 1.0, 0.0]]).stderr == 0.0
    both = campaign.estimate([[1.0, 0.0, 0.0]], against=[[0.0, 1.0, 0.0]]).stderr
    assert both == pytest.approx(math.hypot(spread, campaign.estimate([[0.0, 1.0, 0.0]]).stderr))
    assert campaign.estimate("target", against=[[0.0, 1.0, 0.0]]).value == pytest.approx(3.2 - 5.0)


def test_the_problem_says_what_estimate_answers():
    campaign = told(problem_of(estimand="difference"))
    assert campaign.estimate().value == pytest.approx(1.2)
    assert campaign.estimate("target").value == pytest.approx(3.2)
    assert campaign.estimate("target", against="baseline") == campaign.estimate()


def test_of_several_targets_one_must_be_said():
    campaign = told(problem_of(POLICIES))
    assert campaign.estimate("a").value == pytest.approx(0.6 * 5 + 0.4 * 1)
    assert campaign.estimate("a", against="b").value == pytest.approx(3.4 - 1.5)
    for ask in (campaign.estimate, campaign.compare, campaign.uncertainty):
        with pytest.raises(InvalidProblem, match="of is not given, and the problem has 2 targets"):
            ask()


def test_intervals_at_all_times_of_other_policies_hold_and_say_why_they_are_wide():
    rng, problem = np.random.default_rng(1), problem_of(reward=SubGaussian(0.5, 0.0, 6.0))
    campaign = Campaign(problem, "uniform", 400)
    for _ in range(400):
        trial = campaign.ask()
        action = trial.act(0, 0)
        campaign.tell(trial, [0], [action], [float([2, 5, 1][action] + rng.uniform(-0.5, 0.5))], [0.5])
    own, other = campaign.estimate(anytime=True), campaign.estimate([[0.0, 0.0, 1.0]], anytime=True)
    for found, truth in (
        (own, 3.2),
        (other, 1.0),
        (campaign.estimate("target", against="baseline", anytime=True), 1.2),
    ):
        assert found.holds == "at all times"
        assert found.interval[0] <= truth <= found.interval[1]
        assert np.diff(found.interval)[0] < 2.0
    widths = [np.diff(found.interval)[0] for found in (own, other)]
    assert widths[1] > 1.2 * widths[0]
    assert any("plan mismatch" in reason for reason in other.reasons)


def test_importance_weights_know_one_value():
    problem = problem_of()
    campaign = Campaign(problem, "sepec-none", 10)
    with pytest.raises(InvalidProblem, match="weighted for its target alone"):
        campaign.estimate([[1.0, 0.0, 0.0]])
    with pytest.raises(InvalidProblem, match="knows the value of one target"):
        Campaign(dataclasses.replace(problem, estimand="difference"), "sepec-none", 10)


# -- is it better ------------------------------------------------------------------------------------------


def test_verdicts_by_hand():
    def verdict(value, low, high, episodes=100):
        return comparison(Estimate(value, 1.0, (low, high), 1.0), episodes)

    assert verdict(1.0, 0.1, 1.9).verdict == "better"
    assert verdict(-1.0, -1.9, -0.1).verdict == "worse"
    open_ = verdict(1.0, -1.0, 3.0)  # twice as wide as it may be: four times as many episodes
    assert (open_.verdict, open_.more) == ("not yet known", 300)
    assert str(open_).startswith("not yet known: 1 in [-1, 3], at one time; about 300 episodes more")
    assert verdict(-1.0, -3.0, 1.0).more == 300
    assert verdict(0.0, -1.0, 1.0).more is None
    assert verdict(1.0, -math.inf, math.inf).more is None


def test_compare_becomes_sure_and_stays_right():
    rng, problem = (
        np.random.default_rng(2),
        problem_of(reward=SubGaussian(2.0, -9.0, 9.0), estimand="difference"),
    )
    campaign, seen = Campaign(problem, "saver-opt", 600), []
    while not campaign.done:
        trial = campaign.ask()
        action = trial.act(0, 0)
        campaign.tell(
            trial, [0], [action], [float(np.clip(rng.normal([2, 5, 1][action], 2.0), -9, 9))], [0.5]
        )
        seen.append(campaign.compare())
    known = [one.verdict != "not yet known" for one in seen]
    assert 20 < known.index(True) < 600
    assert {one.verdict for one in seen} == {"not yet known", "better"}
    assert all(one.interval[0] <= 1.2 <= one.interval[1] for one in seen)
    assert seen[known.index(True) // 2].more > 0


# -- may I stop --------------------------------------------------------------------------------------------


def run_until(campaign, player):
    while not campaign.done:
        trial = campaign.ask()
        campaign.tell(trial, player.run(trial))
    return sum(campaign.counts.ravel())


def test_a_campaign_stops_as_soon_as_it_is_precise_and_no_sooner():
    made = saver.SCENARIOS["bandit"]()
    until = Precise(0.1, level=0.9)
    campaign = Campaign(made.problem, "saver-opt", 2000, until=until)
    player = saver.Player(made.world, 1)
    asked = run_until(campaign, player)
    low, high = campaign.estimate(level=0.9, anytime=True).interval
    assert (high - low) / 2 <= 0.1
    assert 50 < asked < 2000
    assert (
        campaign.ended == f"after {asked} of 2,000 episodes the answer has a half-width of 0.1 at level 0.9"
    )
    with pytest.raises(CampaignEnded, match="the answer has a half-width of 0"):
        campaign.ask()
    twin = Campaign(made.problem, "saver-opt", 2000)
    other = saver.Player(made.world, 1)
    for _ in range(asked):
        before = twin.estimate(level=0.9, anytime=True).interval
        trial = twin.ask()
        twin.tell(trial, other.run(trial))
    assert (before[1] - before[0]) / 2 > 0.1


def test_what_is_out_of_reach_ends_with_the_last_episode_and_says_so():
    made = saver.SCENARIOS["bandit"]()
    campaign, player = Campaign(made.problem, "saver", 30, until=Precise(1e-4)), saver.Player(made.world, 1)
    assert run_until(campaign, player) == 30
    assert campaign.ended.startswith("all 30 episodes have been asked for, and the half-width is ")
    assert campaign.ended.endswith(", not 0.0001: extend it")
    campaign.extend(5)
    assert (campaign.done, campaign.ended, campaign.episodes) == (False, "", 35)
    assert "30 told of 35 episodes" in repr(campaign)
    assert run_until(campaign, player) == 35


def test_an_extension_survives_a_restart_and_replay():
    made = saver.SCENARIOS["tree"](depth=2)
    campaign = Campaign(made.problem, "saver-opt", 10, until=Precise(1e-6), keep="episodes")
    player = saver.Player(made.world, 1)
    run_until(campaign, player)
    campaign.extend(7)
    again = Campaign.restore(made.problem, "saver-opt", json.loads(json.dumps(campaign.state())))
    assert again.until == Precise(1e-6)
    one, two = saver.Player(made.world, 9), saver.Player(made.world, 9)
    for mine, own in ((campaign, one), (again, two)):
        run_until(mine, own)
    assert json.dumps(pack(campaign.estimate().interval)) == json.dumps(pack(again.estimate().interval))
    assert campaign.budget == again.budget
    with pytest.raises(CampaignEnded, match="all 17 episodes"):
        again.ask()
    assert type(campaign.events[20]).__name__ == "Extended"


@pytest.mark.parametrize("wrong", [0, -3, 1.5, True, None])
def test_a_wrong_extension_changes_nothing(wrong):
    campaign = Campaign(problem_of(), "saver", 3)
    before = campaign.state()
    with pytest.raises(InvalidProblem, match="episodes is"):
        campaign.extend(wrong)
    assert campaign.state() == before


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_a_level_outside_of_0_to_1_is_refused(level):
    campaign = told(problem_of())
    for ask in (campaign.estimate, campaign.compare):
        with pytest.raises(InvalidProblem, match="level is"):
            ask(level=level)
    with pytest.raises(InvalidProblem, match="level is"):
        Precise(0.1, level)
    with pytest.raises(InvalidProblem, match="half_width is"):
        Precise(level if level <= 0 else -level)


def test_wrong_policies_and_names_are_refused():
    campaign = told(problem_of())
    with pytest.raises(InvalidPolicy, match=r"of has shape \(1, 2\)"):
        campaign.estimate([[0.5, 0.5]])
    with pytest.raises(InvalidPolicy, match=r"against"):
        campaign.estimate(against=[[0.5, 0.5]])
    with pytest.raises(InvalidProblem, match="no target 'targt'; did you mean 'target'"):
        campaign.estimate("targt")


def test_diagnose_warns_of_what_is_out_of_reach():
    made = saver.SCENARIOS["bandit"]()
    far = saver.diagnose(made, 200, until=Precise(0.001)).verdict.until
    assert far.startswith(
        "warning: a half-width of 0.001 at level 0.95 is out of reach: 200 episodes give about "
    )
    near = saver.diagnose(made, 2000, until=Precise(0.5))
    assert near.verdict.until.startswith("a half-width of 0.5 at level 0.95 will be reached after about ")
    assert near.verdict.until in near.report()


# -- where is the uncertainty ------------------------------------------------------------------------------


def test_shares_of_the_variance_by_hand():
    campaign = told(problem_of())
    rows = campaign.uncertainty()
    alone = [campaign.estimate(np.eye(3)[[a]]).stderr ** 2 for a in range(3)]
    parts = np.array(TARGET[0]) ** 2 * alone
    assert [row.action for row in rows] == list(np.argsort(-parts))
    for row in rows:
        assert row.share == pytest.approx(parts[row.action] / parts.sum())
        assert row.samples == len(REWARDS[row.action])
        assert row.planned == pytest.approx(43 / 3)  # 50 less 7 told, and a third of each
    assert rows[0].name == f"action {rows[0].action} in state 0"


def test_a_pair_without_bounds_takes_all():
    campaign = Campaign(problem_of(reward=None), "uniform", 5)
    trial = campaign.ask()
    action = trial.act(0, 0)
    campaign.tell(trial, [0], [action], [1.0], [0.5])
    rows = campaign.uncertainty()
    assert [row.share for row in rows] == [1 / 3] * 3  # one sample says nothing of a variance either
    campaign = told(
        problem_of([[0.5, 0.5, 0.0]], reward=None), rewards={0: [1.0, 3.0], 2: [1.0]}, episodes=500
    )
    assert [(row.action, row.share) for row in campaign.uncertainty()] == [(1, 1.0), (0, 0.0)]


def test_trials_that_are_out_have_an_age():
    campaign = Campaign(problem_of(), "uniform", 5)
    first, second, third = (campaign.ask() for _ in range(3))
    campaign.abandon(second)
    assert campaign.outstanding == {first: 2, third: 0}


# -- tables, pictures, pages -------------------------------------------------------------------------------


def test_a_table_of_steps_or_of_moments():
    kept, campaign = told(problem_of(), keep="episodes"), told(problem_of())
    steps = steps_table(kept.problem, kept.events)
    assert list(steps) == ["trial", "kind", "step", "state", "action", "reward", "constraint", "complete"]
    assert sorted(steps["reward"]) == sorted(r for rewards in REWARDS.values() for r in rewards)
    assert set(steps["kind"]) == {"design"}
    moments = moments_table(campaign.problem, campaign._state)
    assert list(moments["reward_mean"]) == [2.0, 5.0, 1.0]
    assert list(moments["samples"]) == [2, 3, 2]
    np.testing.assert_allclose(moments["reward_variance"], [2.0, 1.0, 2.0])
    if importlib.util.find_spec("pandas") is None:
        with pytest.raises(SaverError, match=r"pip install 'saver-rl\[frame\]'"):
            kept.to_frame()
        return
    assert list(kept.to_frame().columns) == list(steps)
    assert list(campaign.to_frame().reward_mean) == [2.0, 5.0, 1.0]


def test_a_report_says_it_all(tmp_path):
    campaign = told(problem_of(POLICIES, estimand="difference"))
    path = campaign.report(tmp_path / "new" / "folder")
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "campaign.png", "looks.csv", "report.md", "uncertainty.csv",
    ]  # fmt: skip
    text = path.read_text(encoding="utf-8")
    for word in (
        "a: 1.4 in [",
        "b: -0.5 in [",
        "at all times",
        "## Against the baseline",
        "certified",
        "| action ",
    ):
        assert word in text
    with (path.parent / "looks.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["episodes"]) for row in rows] == list(range(1, 8))
    assert float(rows[-1]["value"]) == pytest.approx(1.4)


def test_looks_are_kept_now_and_then_and_survive_a_restart():
    made = saver.SCENARIOS["bandit"]()
    campaign, player = Campaign(made.problem, "saver", 300), saver.Player(made.world, 0)
    run_until(campaign, player)
    again = Campaign.restore(made.problem, "saver", json.loads(json.dumps(campaign.state())))
    looks = campaign._state.looks
    assert again._state.looks == looks
    assert 50 < len(looks) < 100
    assert looks[-1][0] >= 300 / 1.06
    assert sum(looks[-1][-4:]) == looks[-1][0]


def test_a_picture_that_cannot_be_drawn(tmp_path):
    campaign = told(problem_of())
    before = campaign.state()
    with pytest.raises(InvalidData, match="there is no folder"):
        campaign.plot(tmp_path / "none" / "here.png")
    with pytest.raises(InvalidData, match=r"must end in one of \.png, \.pdf, \.svg"):
        campaign.plot(tmp_path / "here.txt")
    with pytest.raises(InvalidData, match="no episode has been told yet"):
        Campaign(problem_of(), "saver", 3).plot(tmp_path / "here.png")
    assert campaign.state() == before
    assert list(tmp_path.iterdir()) == []
    assert campaign.plot(tmp_path / "here.svg").stat().st_size > 1000


# -- fair estimates ----------------------------------------------------------------------------------------


def test_a_fair_estimate_by_hand():
    # Weights of asking are c m / ... whatever they are: the value is sum c mean + sum v (R - mean) / m.
    campaign = told(problem_of(), keep="episodes")
    book = campaign._state.books["rewards target"].first
    c, mean = np.array(TARGET[0]), np.array([2.0, 5.0, 1.0])
    m = np.abs(book.V).sum()
    assert campaign.estimate(fair=True).value == pytest.approx(c @ mean + (book.drawn - book.V @ mean) / m)


def test_a_fair_estimate_is_kept_of_what_is_asked_only():
    for campaign, options in (
        (told(problem_of()), {"of": [[1.0, 0.0, 0.0]]}),
        (told(problem_of()), {"anytime": True}),
        (told(problem_of(reward=None)), {}),
    ):
        with pytest.raises(InvalidProblem, match="a fair estimate is kept of what the problem asks"):
            campaign.estimate(**options, fair=True)
    made = saver.SCENARIOS["bandit"]()
    with pytest.raises(InvalidProblem, match="fair is True, but"):
        saver.simulate(made, "sepec", runs=1, fair=True)


@pytest.mark.slow
def test_choices_do_not_bias_a_fair_estimate():
    # 8,000 campaigns: a standard error of .011; the plain bias is .3, and .05 + 3 x .011 is a chance of .001.
    made = HOSTILE["one outcome"]()
    found = saver.simulate(made, "saver-opt", episodes=200, runs=8000, seed=4, checkpoints=[], fair=True)
    plain, fair = ((part[:, -1] - found.true_value) for part in (found.estimates, found.fair))
    assert plain.mean() / plain.std() < -0.25
    assert abs(fair.mean() / fair.std()) < 0.05 + 3 * 0.0112
    assert np.mean(np.abs(fair) <= 1.96 * found.fair_stderr[:, -1]) == pytest.approx(0.95, abs=0.012)
