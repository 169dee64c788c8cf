"""The ask/tell campaign: hand-worked episodes, refusals, and one suite that every collector passes."""

import dataclasses
import json
import threading

import numpy as np
import pytest
from worlds import CELLS, UNKNOWN, WORLDS

from saver import (
    COLLECTORS,
    Bounded,
    Campaign,
    Collector,
    Episode,
    Knowledge,
    Mdp,
    Problem,
    SubGaussian,
    scenarios,
    simulate,
)
from saver.collect.decide import follow_design
from saver.errors import CampaignEnded, InvalidData, InvalidProblem
from saver.problem import value
from saver.simulator import Player, knowledge_of

BANDIT = Mdp(np.zeros((1, 2, 1)), 1)


def two_actions(**changes):
    numbers = {"alpha": 0.5, "baseline_value": 1.0, "constraint": SubGaussian(0.1)} | changes
    return Problem(BANDIT, [[0.5, 0.5]], [[1.0, 0.0]], **numbers)


def fixed_noise(collector, episodes=10):
    """Action 0 always gives reward 1 and constraint 1; action 1 rewards 0, 2, 0, 2, ... and constraint .3."""
    campaign, seen, rows = Campaign(two_actions(), collector, episodes), 0, []
    for _ in range(episodes):
        trial = campaign.ask()
        action = trial.act(0, 0)
        reward = 1.0 if action == 0 else 2.0 * (seen % 2)
        seen += action
        campaign.tell(trial, [0], [action], [reward], [1.0 if action == 0 else 0.3])
        rows.append((trial.kind, action, round(campaign.believed, 6)))
    return rows


def test_the_first_ten_episodes_of_saver_by_hand():
    # required = .5, isqrt(10) = 3 explorations. Playing action 0 is playing the baseline: +.5 exactly.
    # After n plays of action 1 the bound is max(.3 n - u(.01 n), previous + low), u the mixture at level
    # .0375 with rho = .05 / (2 log(1/.0375) + log(1 + 2 log(1/.0375))) = .0058203; u(.01) = .31494 > .3. The
    # box has level .0075 / 2 and rho = .0029259, from .04: low = 0, 0, .039392, .088641 after 0 to 3 plays.
    # 1 explore 0: .5. 2 explore 1 (least tried): .5 + 0 - .5 >= 0, played; bound 0, budget 0. 3 explore 0.
    # Scores are b / (T + 1), T the designed visits of an action.
    # 4: deviations sqrt(log 220 / n) = 1.642, 2.322 for n = 2, 1 samples: b = .414, .586, T = 0, 0: 1; its
    # bound is .6 - u(.02) = .182822. 5: sample deviation sqrt 2 at action 1: b = .349 / 1 > .651 / 2: 0.
    # 6: n = 3, 2: .305 / 2 < .695 / 2: 1. 7: b = .275, .725 over 2, 3: 1, but .397214 + .088641 - .5 < 0.
    # 8: n = 4, 3: .318 / 2 < .682 / 3: 1. 9: n = 4, 4: .3340 / 2 > .6660 / 4: 0. 10: .310 / 3 < .690 / 4: 1.
    assert fixed_noise("saver") == [
        ("explore", 0, 0.5),
        ("explore", 1, 0.0),
        ("explore", 0, 0.5),
        ("design", 1, 0.182822),
        ("design", 0, 0.682822),
        ("design", 1, 0.397214),
        ("baseline", 0, 0.897214),
        ("design", 1, 0.621782),
        ("design", 0, 1.121782),
        ("design", 1, 0.853434),
    ]


def test_the_first_ten_episodes_of_saver_paper_by_hand():
    # Z adds max(0, mean - .1 sqrt(log 220 / T)) - .5 for a designed episode, .5 for a baseline one.
    # 1: 1 - .232242 - .5 = .267758. 2: .3 - .232242 - .5, so Z = -.164484. 3: Z < 0, baseline.
    # 4: k > 3, b = .414, .586 over ALL visits 2, 1: action 1, now T = 2: .3 - .164220 - .5. And so on.
    assert fixed_noise("saver-paper") == [
        ("explore", 0, 0.267758),
        ("explore", 1, -0.164484),
        ("baseline", 0, 0.335516),
        ("design", 1, -0.028703),
        ("baseline", 0, 0.471297),
        ("design", 1, 0.137212),
        ("design", 1, -0.178909),
        ("baseline", 0, 0.321091),
        ("design", 1, 0.017229),
        ("design", 1, -0.277583),
    ]


def test_the_retrospective_gate_breaks_the_promise_in_the_very_first_episode():
    # The baseline is action 1, worth 1; action 0 is worth 0 and comes first in turn.
    mdp = Mdp(np.zeros((1, 2, 1)), 1)
    problem = Problem(
        mdp, [[0.5, 0.5]], [[0.0, 1.0]], alpha=0.25, baseline_value=1.0, constraint=SubGaussian(0.1)
    )
    paper = Campaign(problem, "saver-paper", 10).ask()
    assert (paper.kind, paper.act(0, 0)) == ("explore", 0)  # the true budget is now 0 - .75
    ours = Campaign(problem, "saver", 10).ask()
    assert (ours.kind, ours.act(0, 0)) == ("baseline", 1)


# -- one suite for every collector ---------------------------------------------------------------------------


def begin(name, world, episodes=60, seed=0):
    asked, collector = WORLDS[world], COLLECTORS[name]
    return Campaign(asked.problem, collector, episodes, knowledge=knowledge_of(asked, collector), seed=seed)


def advance(campaign, player, count):
    rows = []
    for _ in range(count):
        trial = campaign.ask()
        episode = player.run(trial)
        campaign.tell(trial, *episode)
        rows.append((trial.number, trial.kind, *map(tuple, episode), campaign.believed))
    return rows


def player_of(world, seed=5):
    return Player(WORLDS[world].world, np.random.default_rng(seed))


@pytest.mark.parametrize(("name", "world"), CELLS)
def test_reproducible_from_its_seed_with_legal_actions_and_pure_acts(name, world):
    first = advance(begin(name, world), player_of(world), 60)
    assert advance(begin(name, world), player_of(world), 60) == first
    campaign, mdp = begin(name, world), WORLDS[world].problem.mdp
    for _ in range(20):
        trial = campaign.ask()
        for t in range(mdp.horizon):
            for s in range(mdp.states):
                action = trial.act(t, s)
                assert trial.row(t, s)[action] > 0
                assert trial.act(t, s) == action
        campaign.tell(trial, *player_of(world).run(trial))
    assert trial.kind in ("explore", "design", "earn", "baseline")
    if name == "baseline":
        assert trial.kind == "baseline"


@pytest.mark.parametrize(("name", "world"), CELLS)
def test_it_goes_on_identically_from_plain_data(name, world):
    asked, campaign, player = WORLDS[world], begin(name, world), player_of(world)
    advance(campaign, player, 25)
    left_out = campaign.ask()
    kept = json.loads(json.dumps(campaign.state()))
    twin = Campaign.restore(asked.problem, COLLECTORS[name], kept)
    assert twin.state() == campaign.state()
    players = [player_of(world, 9), player_of(world, 9)]
    rows = []
    for one, its in zip((campaign, twin), players, strict=True):
        one.tell(left_out, *its.run(left_out))
        rows.append(advance(one, its, 25))
    assert rows[0] == rows[1]
    assert twin.estimate() == campaign.estimate()
    assert repr(twin.budget) == repr(campaign.budget)


@pytest.mark.parametrize(("name", "world"), CELLS)
def test_tells_out_of_order_reach_the_same_estimate(name, world):
    rng, player = np.random.default_rng(3), player_of(world)
    campaigns = [begin(name, world), begin(name, world)]
    pairs = [[one.ask() for one in campaigns] for _ in range(12)]
    episodes = [player.run(trials[0]) for trials in pairs]
    for order, index in ((range(12), 0), (rng.permutation(12), 1)):
        for i in order:
            campaigns[index].tell(pairs[i][index], *episodes[i])
    ordered, shuffled = (one.estimate() for one in campaigns)
    assert shuffled.value == pytest.approx(ordered.value, nan_ok=True)
    assert shuffled.covered == pytest.approx(ordered.covered)
    assert campaigns[1].budget.certified == pytest.approx(campaigns[0].budget.certified, nan_ok=True)


@pytest.mark.parametrize(("name", "world"), CELLS)
def test_the_estimate_converges_and_the_promise_is_kept(name, world):
    # Ten runs: the mean within 5 standard errors. `baseline` sees one policy only and cannot converge.
    asked = WORLDS[world]
    found = simulate(asked, name, episodes=400, runs=10, checkpoints=[100])
    if COLLECTORS[name].promises:
        assert found.violation_rate() == 0.0
    if name == "baseline":
        return
    error = found.estimates[:, -1] - found.true_value
    if COLLECTORS[name].estimate == "importance" or world in UNKNOWN:
        assert abs(error.mean()) < 5 * error.std() / np.sqrt(10)
        return
    assert abs(error.mean()) < 5 * np.sqrt(found.conditional_mse[:, -1].mean() / 10)
    assert found.conditional_mse[:, -1].mean() < found.conditional_mse[:, 0].mean()


# -- knowledge, parallel asks, history -----------------------------------------------------------------------


def test_an_agnostic_collector_receives_nothing_by_any_path():
    asked = WORLDS["bandit"]
    everything = Knowledge(
        mean=asked.world.reward.mean,
        variance=asked.world.reward.variance,
        constraint_mean=asked.world.constraint.mean,
    )
    told = Campaign(asked.problem, "saver", 60, knowledge=everything)
    assert advance(told, player_of("bandit"), 60) == advance(
        begin("saver", "bandit"), player_of("bandit"), 60
    )
    assert told.state()["knowledge"] == {}
    seen = []

    def mine(statistics):
        seen.append(statistics)
        return asked.problem.target

    campaign = Campaign(asked.problem, Collector(design=mine, explore="none"), 30, knowledge=everything)
    first = campaign.ask()
    assert np.all(seen[0].variance == 0)
    assert np.all(seen[0].mean == 0)
    campaign.abandon(first)


def test_missing_knowledge_is_said():
    with pytest.raises(InvalidProblem, match="the collector knows variance, which was not given"):
        Campaign(two_actions(), "safe-oracle", 10)
    with pytest.raises(InvalidProblem, match=r"variance has shape \(2,\); it must be \(1, 2\)"):
        Campaign(two_actions(), "safe-oracle", 10, knowledge=Knowledge(variance=[1.0, 2.0]))


def test_a_users_design_is_followed_and_checked():
    problem = two_actions(alpha=1.0)
    collector = Collector(design=lambda s: [[0.25, 0.75]], explore="none")
    campaign = Campaign(problem, collector, 400)
    actions = []
    for _ in range(400):
        trial = campaign.ask()
        actions.append(trial.act(0, 0))
        campaign.tell(trial, [0], [actions[-1]], [0.0], [0.5])
    assert np.mean(actions) == pytest.approx(0.75, abs=0.01)
    bad = Campaign(problem, Collector(design=lambda s: [[0.25, 0.25]], explore="none"), 10)
    with pytest.raises(ValueError, match=r"the policy that the design returned.* sums to 0\.5"):
        bad.ask()


def test_the_tracker_by_hand():
    design = np.array([[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]])
    counts = np.array([[3.0, 2.0], [1.0, 4.0], [0.0, 0.0]])
    first = np.zeros((3, 2), dtype=bool)
    np.testing.assert_array_equal(follow_design(design, counts, first), [1, 0, 0])  # .2 = .8 / 4
    first[2, 1] = True
    assert follow_design(design, counts, first)[2] == 0  # 1 / 0 ties: lowest index
    counts[2, 0] = 1.0
    assert follow_design(design, counts, first)[2] == 1


def test_a_pair_with_weight_is_sampled_once_early_and_twice_in_the_end_whatever_the_design():
    campaign = Campaign(two_actions(alpha=1.0), Collector(design=lambda s: [[1.0, 0.0]], explore="none"), 10)
    actions = []
    for _ in range(10):
        trial = campaign.ask()
        actions.append(trial.act(0, 0))
        campaign.tell(trial, [0], [actions[-1]], [float(len(actions))], [0.5])
    assert actions == [0, 1, 0, 0, 0, 1, 0, 0, 0, 0]  # episode 6 is the first of the second half
    assert np.isfinite(campaign.estimate().stderr)


def test_parallel_asks_do_not_all_play_one_action():
    campaign = Campaign(two_actions(alpha=1.0), Collector(design=lambda s: [[0.5, 0.5]], explore="none"), 100)
    actions = [campaign.ask().act(0, 0) for _ in range(20)]
    assert sum(actions) == 10


def test_history_feeds_the_statistics_and_not_the_budget():
    history = [Episode([0], [0], [1.0], [1.0]), Episode([0], [0], [3.0], [0.9])]
    campaign = Campaign(two_actions(), "saver", 100, history=history)
    assert campaign.counts.tolist() == [[2, 0]]
    assert campaign.budget.episodes == 0
    assert campaign.budget.certified == 0.0
    with pytest.raises(InvalidData, match=r"history\[1\] is a tuple; it must be a saver\.Episode"):
        Campaign(two_actions(), "saver", 100, history=[history[0], ([0], [0], [1.0], [1.0])])
    with pytest.raises(InvalidData, match=r"history\[0\]: the episode has no constraints"):
        Campaign(two_actions(), "saver", 100, history=[Episode([0], [0], [1.0])])


def test_baseline_episodes_can_be_kept_out_of_the_statistics():
    for learn, expected in ((True, 1), (False, 0)):
        collector = dataclasses.replace(COLLECTORS["baseline"], learn_from_baseline=learn)
        campaign = Campaign(two_actions(), collector, 10)
        campaign.tell(campaign.ask(), [0], [0], [1.0], [1.0])
        assert campaign.counts[0, 0] == expected
        assert campaign.budget.baseline_episodes == 1


def test_exploration_takes_turns_where_nothing_is_random_and_covers_where_asked():
    campaign = Campaign(scenarios.bandit(alpha=1.0).problem, "saver", 150)
    played = []
    for _ in range(12):
        trial = campaign.ask()
        assert (trial.kind, trial.draws) == ("explore", None)
        played.append(trial.act(0, 0))
        campaign.tell(trial, [0], [played[-1]], [0.0], [0.5])
    assert sorted(played) == list(range(12))
    grid = scenarios.gridworld(alpha=1.0).problem
    assert Campaign(grid, "saver", 100).ask().draws is not None
    lock = Mdp.from_edges([(s, 1, s + 1, 1.0) for s in range(4)], 5, 3, 5)
    problem = Problem(
        lock,
        np.full((5, 3), 1 / 3),
        np.eye(3)[[0] * 5],
        alpha=1.0,
        baseline_value=0.5,
        constraint=SubGaussian(0.1),
    )
    trial = Campaign(problem, Collector(explore="coverage"), 100).ask()
    assert trial.policy.shape == (5, 5, 3)


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        (
            ([0], [1], [0.0], [0.5]),
            "action 1 in state 0 at step 0 has probability 0 under trial 2; tell the act",
        ),
        (([0], [0], [np.nan], [0.5]), r"rewards\[0\] is nan"),
        (([0], [0], [0.0], [1.5]), r"constraints\[0\] is 1\.5, outside the declared bounds \[0, 1\]"),
        (([0], [0], [0.0], [np.inf]), r"constraints\[0\] is inf"),
        (([0], [0], [0.0, 1.0], [0.5]), r"rewards has shape \(2,\) but states has \(1,\)"),
        (([0, 0], [0, 0], [0.0, 0.0], [0.5, 0.5]), "has 2 steps; it must have 1 to 1"),
        (([], [], [], []), "has 0 steps"),
    ],
)
def test_what_cannot_have_happened_is_refused_and_changes_nothing(episode, message):
    campaign = Campaign(two_actions(constraint=Bounded(0.0, 1.0)), "saver", 10)
    campaign.tell(campaign.ask(), [0], [0], [1.0], [1.0])
    trial = campaign.ask()
    if trial.act(0, 0) == 1:
        campaign.abandon(trial)
        campaign = Campaign(two_actions(constraint=Bounded(0.0, 1.0), alpha=0.01), "saver", 10)
        campaign.tell(campaign.ask(), [0], [0], [1.0], [1.0])
        trial = campaign.ask()
    before = json.dumps(campaign.state())
    with pytest.raises(InvalidData, match=message):
        campaign.tell(trial, *episode)
    assert json.dumps(campaign.state()) == before


def test_another_way_than_was_drawn_is_refused_where_the_promise_is_about_the_draws():
    # Counted when it was asked: a draw of the baseline's action as the baseline, whatever is told later.
    campaign = Campaign(two_actions(alpha=1.0), "safe-on-policy", 40, seed=1)
    for _ in range(40):
        trial = campaign.ask()
        action = trial.act(0, 0)
        if trial.kind != "baseline":
            before = json.dumps(campaign.state())
            message = (
                f"action {1 - action} in state 0 at step 0 is not action {action}, which trial .* drew; tell"
            )
            with pytest.raises(InvalidData, match=message):
                campaign.tell(trial, [0], [1 - action], [0.0], [0.5])
            assert json.dumps(campaign.state()) == before
        campaign.tell(trial, [0], [action], [0.0], [0.5])
    assert campaign.counts.min() > 5
    free = Campaign(two_actions(), "on-policy", 4)  # promises nothing
    trial = free.ask()
    free.tell(trial, [0], [1 - trial.act(0, 0)], [0.0], [0.5])
    grid = scenarios.gridworld(size=2, horizon=2, alpha=1.0)
    for k in range(5):  # random paths: the promise is about the policy, any of its ways may be told
        campaign = Campaign(grid.problem, "safe-on-policy", 20, seed=k)
        trial = campaign.ask()
        other = dataclasses.replace(trial, draws=1.0 - trial.draws)
        campaign.tell(trial, Player(grid.world, k).run(other))


def test_trials_are_told_once_and_only_if_asked():
    campaign, other = Campaign(two_actions(), "saver", 10), Campaign(two_actions(), "uniform", 10)
    trial = campaign.ask()
    campaign.tell(trial, [0], [0], [1.0], [1.0])
    with pytest.raises(InvalidData, match="trial 1 was told already"):
        campaign.tell(trial, [0], [0], [1.0], [1.0])
    with pytest.raises(InvalidData, match="trial 7 was never asked; 1 were"):
        campaign.tell(7, [0], [0], [1.0], [1.0])
    second = campaign.ask()
    campaign.abandon(second)
    for refuse in (lambda: campaign.abandon(second), lambda: campaign.tell(second, [0], [0], [1.0], [1.0])):
        with pytest.raises(InvalidData, match="trial 2 was abandoned"):
            refuse()
    third = campaign.ask()
    strangers = [other.ask() for _ in range(3)]
    with pytest.raises(InvalidData, match="trial 3 is of another campaign"):
        campaign.tell(strangers[2], [0], [0], [1.0], [1.0])
    campaign.tell(third.number, [0], [third.act(0, 0)], [1.0], [1.0])  # by number, as after a restart
    assert campaign.budget.episodes == 2


def test_impossible_and_cut_off_trajectories_are_refused():
    asked = scenarios.tree(depth=3)
    campaign = Campaign(asked.problem, "on-policy", 5)
    trial = campaign.ask()
    with pytest.raises(InvalidData, match=r"stops after step 0, but .* always goes on"):
        campaign.tell(trial, [0], [0], [0.0], [1.0])
    with pytest.raises(InvalidData, match="action 0 in state 0 at step 0 cannot lead to state 2"):
        campaign.tell(trial, [0, 2, 5], [0, 0, 0], [0.0] * 3, [1.0] * 3)


def test_a_campaign_ends():
    campaign = Campaign(two_actions(), "saver", 1)
    campaign.ask()
    with pytest.raises(CampaignEnded, match="all 1 episodes have been asked for"):
        campaign.ask()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Campaign(two_actions(), "savr", 10),
            "no collector 'savr'; did you mean 'saver'. known: saver, ",
        ),
        (lambda: Campaign(None, "saver", 10), r"problem is NoneType; it must be a saver\.Problem"),
        (lambda: Campaign(two_actions(), "saver", 0), "episodes is 0; it must be at least 1"),
        (lambda: Campaign(two_actions(), "saver", 10, seed=-1), "seed is -1; it must be at least 0"),
        (lambda: Collector(design="best"), "design is 'best'; it must be one of target, closed"),
        (lambda: Collector(gate="none"), "ledger is 'certified' and gate is 'none'; a gate needs a ledger"),
        (lambda: Collector(track="none"), "track is 'none'; it must be one of designed, all, sample"),
        (lambda: Collector(replan=0.5), r"replan is 0\.5; it must be at least 1"),
        (lambda: Collector(bonus=-1.0), "bonus is -1; it must be at least 0"),
        (lambda: Collector(knows=("everything",)), "knows is 'everything'; it must be one of mean"),
    ],
)
def test_bad_campaigns_and_collectors_are_refused(make, message):
    with pytest.raises(InvalidProblem, match=message):
        make()


def test_a_state_of_another_collector_is_refused():
    state = Campaign(two_actions(), "saver", 10).state()
    del state["state"]["books"]["used"]
    with pytest.raises(InvalidData, match="was changed or damaged since it was taken"):
        Campaign.restore(two_actions(), "saver", state)
    with pytest.raises(InvalidData, match=r"not one that Campaign\.state\(\) gave"):
        Campaign.restore(two_actions(), "saver", {})
    with pytest.raises(InvalidData, match=r"the state is a str; give the dict .* json\.loads"):
        Campaign.restore(two_actions(), "saver", json.dumps(state))


def test_trials_refuse_steps_and_states_that_are_not_there():
    trial = Campaign(two_actions(), "uniform", 10).ask()
    for step, state in ((0, 1), (1, 0), (-1, 0), (0, -1), ("0", 0), (0, None), (0, 0.5)):
        with pytest.raises(InvalidData, match=r"(step|state) is .*; it must be from 0 to 0"):
            trial.act(step, state)
    assert value(BANDIT, trial.policy, np.array([[1.0, 0.0]])) == 0.5


# -- what a caller may do with its arrays --------------------------------------------------------------------


def test_trials_cannot_be_written():
    trial = Campaign(scenarios.gridworld().problem, "uniform", 10).ask()
    for array in (trial.policy, trial.draws):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_a_design_may_use_its_array_again():
    mine = np.zeros((1, 2))

    def design(statistics):
        mine[:] = [[0.98, 0.02]] if statistics.episode % 2 else [[0.0, 1.0]]
        return mine

    campaign = Campaign(
        two_actions(alpha=1.0), Collector(design=design, explore="none", track="sample", replan=1.0), 9
    )
    first, _ = campaign.ask(), campaign.ask()
    np.testing.assert_array_equal(first.policy, [[0.98, 0.02]])


def test_a_buffer_of_observations_may_be_used_again():
    asked = scenarios.gridworld(size=2, horizon=2)
    campaign, buffer = Campaign(asked.problem, "safe-on-policy", 20), np.zeros(2)
    trials = [campaign.ask() for _ in range(3)]
    player = Player(asked.world, 3)
    for trial in (trials[2], trials[1]):  # the first one is still out: what is told waits for it
        states, actions, rewards, constraints = player.run(trial)
        buffer[: len(constraints)] = constraints
        campaign.tell(trial, states, actions, rewards, buffer[: len(constraints)])
        before = json.dumps(campaign.state())
        buffer[:] = 99.0
        assert json.dumps(campaign.state()) == before


@pytest.mark.parametrize(
    ("problem", "collector"),
    [
        (two_actions(alpha=0.9), "saver"),
        (two_actions(delta=0.5), "saver"),
        (two_actions(constraint=SubGaussian(0.2)), "saver"),
        (scenarios.bandit().problem, "saver"),
        (two_actions(), "saver-opt"),
        (two_actions(), "safe-on-policy"),
    ],
)
def test_a_state_goes_back_only_to_its_own_problem_and_collector(problem, collector):
    state = Campaign(two_actions(), "saver", 10).state()
    with pytest.raises(InvalidData, match="the state is of another problem or collector"):
        Campaign.restore(problem, collector, state)
    assert Campaign.restore(two_actions(), "saver", state).state() == state


def test_damaged_states_are_refused():
    good = Campaign(two_actions(), "saver", 10).state()
    for change in (
        {"format": 0},
        {"state": {"~": "state"}},
        {"state": None},
        {"out": {}},
        {"knowledge": [1]},
    ):
        with pytest.raises(InvalidData, match="the state"):
            Campaign.restore(two_actions(), "saver", good | change)


def test_odd_arguments_are_refused():
    for make, message in (
        (lambda: Campaign(two_actions(), "saver", 10, history=5), "history is 5; it must hold episodes"),
        (
            lambda: Campaign(two_actions(), "saver", 10, knowledge=3),
            r"knowledge is int; it must be a saver\.Knowledge",
        ),
        (lambda: Collector(knows="variance"), "knows is 'variance'; it must be a tuple"),
        (
            lambda: Collector(learn_from_baseline="no"),
            "learn_from_baseline is 'no'; it must be True or False",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    bounded = two_actions(constraint=Bounded(0.0, 1.0))
    with pytest.raises(InvalidData, match=r"constraints\[0\] is 50, outside the declared bounds"):
        Campaign(bounded, "saver", 10, history=[Episode([0], [0], [1.0], [50.0])])


# -- threads, designs that call back, slips of the unit ------------------------------------------------------


def test_threads_share_a_campaign():
    asked = scenarios.bandit()
    campaign = Campaign(asked.problem, "saver-opt", 200, seed=1)
    numbers, errors = [], []

    def work(seed):
        player = Player(asked.world, seed)
        try:
            for _ in range(25):
                trial = campaign.ask()
                numbers.append(trial.number)
                campaign.tell(trial, *player.run(trial))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(numbers) == list(range(1, 201))
    assert campaign.budget.episodes == 200


def test_a_design_that_calls_back_is_refused():
    holder = {}

    def design(statistics):
        holder["campaign"].ask()
        return statistics.problem.target

    collector = Collector(design=design, explore="none")
    campaign = holder["campaign"] = Campaign(scenarios.bandit().problem, collector, 10)
    with pytest.raises(InvalidData, match="ask was called from inside a design"):
        campaign.ask()


def test_a_slip_of_the_unit_buys_no_budget():
    campaign = Campaign(scenarios.bandit().problem, "saver", 10)
    trial = campaign.ask()
    with pytest.raises(
        InvalidData, match=r"constraints\[0\] is 1e\+06, outside the declared bounds \[-1000, 1001\]"
    ):
        campaign.tell(trial, [0], [trial.act(0, 0)], [0.0], [1e6])
    campaign.tell(trial, [0], [trial.act(0, 0)], [0.0], [1.4])  # noise may leave the range of the means
    assert campaign.budget.certified <= 1.4
