"""Campaigns whose transitions are learned: what is planned, refused, remembered and explained."""

from dataclasses import replace

import numpy as np
import pytest

from saver import (
    COLLECTORS,
    END,
    Bounded,
    Campaign,
    Collector,
    Knowledge,
    Player,
    Problem,
    SubGaussian,
    Unknown,
    diagnose,
    scenarios,
)  # fmt: skip
from saver.collect.frequencies import hoped
from saver.errors import InvalidData, InvalidProblem
from saver.kernels.believing import CREDIBLE, HOPE, shrunk, tried
from saver.play.foresight import Foresight

CONTEXTS = scenarios.contexts(contexts=3)
GRID = scenarios.unknown_gridworld(size=2, horizon=3)


def play(campaign, world, episodes, seed=1, out=1):
    """So many trials, a few out at once."""
    player, waiting = Player(world, seed, tells_end=True), []
    for _ in range(episodes):
        waiting.append(campaign.ask())
        if len(waiting) >= out:
            trial = waiting.pop(0)
            campaign.tell(trial, player.run(trial))
    return waiting


@pytest.mark.parametrize("name", ["saver", "revar", "sepec", "uniform", "oracle"])
def test_what_needs_a_model_says_so_and_names_the_others(name):
    with pytest.raises(InvalidProblem, match=r"needs known transitions.*saver-opt, safe-on-policy"):
        Campaign(CONTEXTS.problem, name, 10)


@pytest.mark.parametrize("ledger", ["paper", "latest"])
def test_ledgers_that_need_a_model_say_so(ledger):
    with pytest.raises(InvalidProblem, match="certified"):
        Campaign(CONTEXTS.problem, Collector(design="target", explore="none", ledger=ledger), 10)


def test_the_first_trials_follow_the_target():
    """Nothing is known: a tracked target takes its likeliest actions where nobody has been."""
    campaign = Campaign(replace(CONTEXTS.problem, alpha=1.0), "saver-opt", 100, seed=1)
    trial = campaign.ask()
    assert trial.kind in ("design", "baseline")
    plan = campaign._state.plan
    assert np.array_equal(plan.rows, CONTEXTS.problem.target)


def test_prices_are_drawn_to_those_of_the_target():
    """Visits 2 and 1: prices 4 k and k make the target's own visits the best."""
    usual, counts = np.array([[2.0, 1.0]]), np.array([[0, 10]])
    found = shrunk(np.array([[0.0, 3.0]]), usual, counts)
    assert found[0, 0] == pytest.approx(4 * 3.0)  # never seen: as the other, in units of x^2
    assert found[0, 1] == pytest.approx(3.0)
    even = shrunk(np.array([[8.0, 1.0]]), usual, np.array([[8, 8]]))
    assert even.tolist() == [
        [
            pytest.approx(4 * (8 * 2 + CREDIBLE * 1.5) / (8 + CREDIBLE)),
            pytest.approx((8 + CREDIBLE * 1.5) / (8 + CREDIBLE)),
        ]
    ]


def test_what_was_seen_seldom_is_taken_as_the_target_takes_it():
    """Shares of the usual 0, 1/2 and 1: (1, .1, .3) before it is a distribution again."""
    policy, usual = np.array([[[1.0, 0.0, 0.0]]]), np.array([[[0.5, 0.2, 0.3]]])
    tried(policy, usual, np.array([[int(CREDIBLE), int(CREDIBLE) // 2, 0]]))
    assert policy[0, 0].tolist() == pytest.approx([1.0 / 1.4, 0.1 / 1.4, 0.3 / 1.4])


def test_a_plan_leaves_no_unseen_pair_to_a_few_steps():
    """In whatever step a state is met, what was never taken there has at least half of its usual chance."""
    asked = scenarios.unknown_gridworld(size=3, horizon=6)
    campaign, looked = Campaign(asked.problem, "saver-opt", 60, seed=3), 0
    target = asked.problem.first
    for i in range(20):
        play(campaign, asked.world, 1, seed=i)
        plan, grid = campaign._state.plan, campaign._setup.stage.grid
        if plan is None or plan.foresight is None:
            continue  # made before anything was told
        never = (campaign.counts == 0)[grid.state] & (target[grid.state] > 0.0)
        looked += never.any()
        assert np.all(plan.rows[never] >= 0.5 * target[grid.state][never] - 1e-12)
    assert looked > 5


def test_hope_is_half_of_the_range_at_first_and_fades():
    problem = CONTEXTS.problem
    means = np.array([[[0.2, 0.9, 0.0, 0.4]] * 3])
    found = hoped(problem, means, np.array([[int(HOPE), 1, 0, 10**6]] * 3))
    assert found[0, 0].tolist() == pytest.approx([0.2 + 0.5 / 4, 1.0, 1.0, 0.4])


@pytest.mark.parametrize("asked", [CONTEXTS, GRID], ids=lambda asked: asked.name)
def test_a_move_that_nobody_foresaw_is_learned(asked):
    """Where the world leads is what is believed in the end."""
    campaign = Campaign(asked.problem, "safe-on-policy", 2000, seed=2)
    play(campaign, asked.world, 2000)
    model, world = campaign.statistics().model, asked.world.mdp
    assert np.all(np.abs(model.start - world.start) < 5 * np.sqrt(0.25 / 2000))
    seen = campaign.counts.ravel() > 100
    apart = np.abs((model.transitions - world.flow).toarray()[seen])
    assert seen.any()
    assert np.all(apart < 5 * np.sqrt(0.25 / 100))


def test_restored_with_trials_out_it_goes_on_the_same():
    for asked in (CONTEXTS, GRID):
        campaign = Campaign(asked.problem, "saver-opt", 300, seed=3)
        waiting = play(campaign, asked.world, 150, out=7)
        twin = Campaign.restore(asked.problem, "saver-opt", campaign.state())
        ends = []
        for one in (campaign, twin):
            player = Player(asked.world, 9, tells_end=True)
            for trial in waiting:
                one.tell(trial.number, player.run(trial))
            for _ in range(100):
                trial = one.ask()
                one.tell(trial, player.run(trial))
            ends.append((one.estimate(), one.budget, one.counts.tolist()))
        assert ends[0] == ends[1]


def test_trials_that_are_out_are_not_all_alike():
    """Ten at once, before anything more is told, share the actions as the plan does."""
    campaign = Campaign(replace(CONTEXTS.problem, alpha=1.0), "saver-opt", 2000, seed=3)
    play(campaign, CONTEXTS.world, 600)
    trials = [campaign.ask() for _ in range(20)]
    taken = {trial.act(0, 0) for trial in trials if trial.kind == "design"}
    assert len(taken) > 1


def test_what_is_uncertain_counts_moves():
    """Rewards that never vary: all that is uncertain is where moves lead."""
    only = np.ones((3, 1))
    promise = Bounded(0.0, 1.0)
    problem = Problem(
        Unknown(3, 1, 2, start=0), only, only, alpha=0.5, baseline_value=1.0, constraint=promise,
        reward=SubGaussian(0.0, 0.0, 2.0),
    )  # fmt: skip
    campaign = Campaign(problem, "on-policy", 100, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(100):
        trial, s = campaign.ask(), int(rng.integers(1, 3))
        campaign.tell(trial, [0, s], [0, 0], [0.0, float(s)], [1.0, 0.0], final_state=END)
    top = campaign.uncertainty()[0]
    assert (top.state, round(top.share, 6)) == (0, 1.0)
    share = campaign.counts[1, 0] / 100
    assert campaign.estimate().value == pytest.approx(share + 2 * (1 - share))
    assert campaign.estimate().stderr == pytest.approx(np.sqrt(share * (1 - share) / 99))


def test_steps_are_priced_apart_where_nobody_says_where_the_last_led():
    asked, plans = GRID, []
    for tells in (True, False):
        campaign = Campaign(asked.problem, "saver-opt", 200, seed=1)
        player = Player(asked.world, 2, tells_end=tells)
        for _ in range(100):
            trial = campaign.ask()
            campaign.tell(trial, player.run(trial))
        statistics = campaign.statistics()
        plans.append(statistics.moves.apart(statistics.counts))
    assert plans == [False, True]


def test_intervals_for_all_looks_are_those_in_the_limit_and_fair_ones_are_refused():
    campaign = Campaign(CONTEXTS.problem, "saver-opt", 60)
    play(campaign, CONTEXTS.world, 60)
    assert campaign.estimate(anytime=True).holds == "at all times, in the limit"
    with pytest.raises(InvalidProblem, match="a fair estimate is kept only where transitions are known"):
        campaign.estimate(fair=True)


@pytest.mark.parametrize("wrong", [1.0, True, np.nan, [1], -2, 9, "nowhere"])
def test_a_final_state_that_is_none_is_bad_data_and_changes_nothing(wrong):
    campaign = Campaign(CONTEXTS.problem, "on-policy", 10, seed=1)
    trial = campaign.ask()
    with pytest.raises(InvalidData, match="final_state is "):
        campaign.tell(trial, [0], [trial.act(0, 0)], [0.0], [0.5], final_state=wrong)
    campaign.tell(trial, [0], [trial.act(0, 0)], [0.0], [0.5], final_state=END)


def test_an_oracle_is_given_the_model_and_it_must_fit():
    world = CONTEXTS.world
    known = Knowledge(world.reward.mean, world.reward.variance, world.constraint.mean, world.mdp)
    campaign = Campaign(CONTEXTS.problem, "model-oracle", 30, knowledge=known)
    play(campaign, world, 30)
    assert campaign.statistics().model is world.mdp
    with pytest.raises(InvalidProblem, match="must be as large as the problem's"):
        Campaign(CONTEXTS.problem, "model-oracle", 30, knowledge=replace(known, model=GRID.world.mdp))
    assert "model" in COLLECTORS["model-oracle"].knows


def test_noise_inside_an_episode_is_declared():
    """(scale Gamma + span / 2)^2 against scale^2 sum discount^2t + (span / 2)^2: 3 steps, means in [0, 1]."""
    proxies = []
    for shared in (False, True):
        problem = replace(GRID.problem, constraint=SubGaussian(0.2, next_state=shared))
        campaign = Campaign(problem, "safe-on-policy", 10)
        proxies.append(campaign._setup.used.unit_proxy)
    assert proxies == pytest.approx([0.04 * 3 + 1.5**2, (0.2 * 3 + 1.5) ** 2])


def test_diagnosis_of_logs_is_that_of_their_world():
    """Many logs of a baseline that tries everything: nearly the limits of the true world."""
    asked = scenarios.bandit(actions=4, noisy_variance=1.0)
    baseline = 0.5 * asked.problem.baseline + 0.5 * asked.problem.mdp.uniform
    value = asked.world.constraint_value(baseline)
    problem = replace(asked.problem, baseline=baseline, baseline_value=value)
    player, old = Player(asked.world, 1), Campaign(problem, "baseline", 4000)
    from saver import History

    carried = replace(problem, history=History.of(problem, [player.run(old.ask()) for _ in range(4000)]))
    true, found = diagnose(replace(asked, problem=problem), 1000), diagnose(carried, 1000)
    assert found.unconstrained == pytest.approx(true.unconstrained, rel=0.15)
    assert found.notes[0].startswith("all is as 4,000 logged episodes show it")
    with pytest.raises(InvalidProblem, match="has no history"):
        diagnose(problem)


def test_diagnosis_of_a_simulated_world_counts_learning_its_moves():
    """The exact safe limit is the optimum with Var[c r + u], by another path to the same program."""
    from saver.design import Planner
    from saver.estimate.recursion import Answers, prices

    mdp, problem = GRID.world.mdp, GRID.problem
    reward = GRID.world.reward
    found = prices(mdp, Answers.of([problem.target]), reward.mean, reward.variance)
    weight = np.where(found.rewards > 0.0, found.rewards + found.moves, 0.0)
    best = Planner(mdp).solve(weight, GRID.means, problem.required, anchor=problem.baseline)
    told = diagnose(GRID, 1000)
    assert told.ways["exact"].limit == pytest.approx(best.limit, rel=1e-3)
    assert any("transitions are unknown" in note for note in told.notes)


def test_what_a_trial_will_earn_is_foreseen_in_the_model_of_its_plan():
    """Its ticket holds what a walk through the model of the plan, step by step, says of its actions."""
    campaign = Campaign(GRID.problem, "saver-opt", 200, seed=3)
    play(campaign, GRID.world, 120)
    again = Campaign.restore(GRID.problem, "saver-opt", campaign.state())
    book = campaign._setup.rail_books[0].used
    trial, same = campaign.ask(), again.ask()
    seen, tally = campaign._state.plan.foresight, campaign._state.books[book].first
    assert trial.kind == "design"
    mass, worth = seen.start, 0.0
    for t in range(GRID.problem.mdp.horizon):
        arriving = np.zeros(len(mass))
        for s in np.flatnonzero(mass):
            pair = s * 4 + trial.act(t, int(s))
            worth += mass[s] * seen.gains[0, pair]
            for e in range(seen.indptr[pair], seen.indptr[pair + 1]):
                arriving[seen.indices[e]] += mass[s] * seen.data[e]
        mass = arriving
    n, usual = tally.length, (0.5 + tally.gained / 3) / (1 + tally.length)
    guess = campaign._state.books[book].lines[trial.number].ticket.guess
    assert guess == pytest.approx((n * worth / 3 + 10 * usual) / (n + 10), rel=1e-12)
    assert guess == again._state.books[book].lines[same.number].ticket.guess


def test_a_pair_never_seen_is_foreseen_to_earn_the_average():
    campaign = Campaign(CONTEXTS.problem, "saver-opt", 100, seed=1)
    play(campaign, CONTEXTS.world, 4)
    told = campaign.statistics()
    found = Foresight.of(told, told.constraint_mean[None]).gains.reshape(3, 4)
    usual = np.sum(told.counts * told.constraint_mean) / told.counts.sum()
    assert np.all(found[told.counts == 0] == usual)
    assert np.array_equal(found[told.counts > 0], told.constraint_mean[told.counts > 0])
