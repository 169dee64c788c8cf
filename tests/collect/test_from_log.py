"""Campaigns that begin with a log where transitions are unknown: what it shows is played, and counted."""

import json
from dataclasses import replace

import numpy as np
import pytest
from logged import World, episode_of, played

import saver
from saver import Campaign, Episode, Guardrail, History
from saver.collect.shares import solve
from saver.collect.showing import FEWEST, recall, tried_only
from saver.engine.layout import only_reference
from saver.errors import AssumptionWarning, InvalidData
from saver.problem.codec import fingerprint, pack, unpack
from saver.safety.fromlog import FromLog
from saver.safety.modelfree import LOG
from saver.theory.believed import believed_scenario


@pytest.fixture(scope="module")
def desk():
    """A world of the help desk's size, its log of 8,000 episodes, and the problem with it."""
    world = World.drawn(4, 4, 6, 0, 0.3)
    log = world.log(8000, 1)
    problem = world.problem(0.8)
    return world, log, replace(problem, history=recall(problem, log))


def test_what_a_log_shows_of_the_target_is_below_the_truth_and_lets_it_run(desk):
    world, _, problem = desk
    shown, (rail,) = problem.history.shown, problem.rails
    base, target = (world.shop.value(b, world.shop.complaint) for b in (world.shop.policy, world.target))
    truth = -target - rail.required_at(-base)
    assert shown.names[0] == "the target"
    assert 0.0 < shown.floors["complaint"][0] < truth
    assert (shown.first, shown.second) == (2666, 5334)


@pytest.mark.parametrize(
    ("size", "alpha", "logged", "episodes", "most"),
    [((4, 4, 6), 0.4, 20_000, 400, 0.05), ((6, 3, 8), 0.35, 10_000, 300, 0.15)],
)
def test_a_campaign_spends_little_on_the_baseline_where_its_log_shows_that_it_may(
    size, alpha, logged, episodes, most
):
    world = World.drawn(*size, 0, 0.3)
    problem, log = world.problem(alpha), world.log(logged, 100)
    campaign, _, worst = played(world, problem, log, episodes, 0)
    assert campaign.budget.baseline_episodes <= most * episodes
    assert worst >= 0.0
    before = Campaign(problem, "saver-opt", episodes, history=History.of(problem, log))
    assert [before.ask().kind for _ in range(5)] == ["baseline"] * 5  # sums alone show no policy


def test_the_ledger_by_hand(desk):
    world, _, problem = desk
    (rail,), floors = problem.rails, problem.history.shown.floors["complaint"]
    campaign = Campaign(problem, "saver-opt", 50, seed=1)
    setup, state = campaign._setup, campaign._state
    ledger, book = setup.used, state.books["used"]
    assert isinstance(ledger, FromLog)
    assert ledger.main.rail.level == pytest.approx((1.0 - LOG) * rail.level)
    credit = min(rail.credit_at(value) for value in ledger.values(book))
    play = [setup.stage.play(policy) for policy in setup.known]
    assert [ledger.main.shown(one) for one in play] == floors.tolist()

    def out(number, one, baseline=False):
        ledger.ask(book, number, ledger.freeze(book, one, baseline), one)

    least = -world.shop.horizon - max(rail.required_at(v) for v in (rail.low, rail.high))
    other = setup.stage.play(setup.stage.grid.policy(problem.mdp.uniform))
    out(1, play[0])
    assert ledger.known(book) == min(0.0, floors[0])
    episode = Episode([0], [0], [0.0], [-0.0])
    ledger.tell(book, 1, play[0], episode)
    assert ledger.known(book) == pytest.approx(floors[0])
    out(2, setup.baseline_play, baseline=True)
    assert ledger.known(book) == pytest.approx(floors[0])  # it may never run
    ledger.tell(book, 2, setup.baseline_play, episode)
    assert ledger.known(book) == pytest.approx(floors[0] + credit)
    out(3, other)
    assert ledger.known(book) == pytest.approx(floors[0] + credit + least)
    ledger.abandon(book, 3, other, ran=False)  # it may have run
    assert ledger.known(book) == pytest.approx(floors[0] + credit + least)
    out(4, play[0])
    ledger.abandon(book, 4, play[0], ran=True)  # what it was worth is known all the same
    assert ledger.known(book) == pytest.approx(2 * floors[0] + credit + least)
    out(5, other)
    ledger.cancel(book, 5, unseen=False)
    assert ledger.known(book) == pytest.approx(2 * floors[0] + credit + least)
    assert ledger.budget(book) == max(ledger.known(book), ledger.main.budget(book.main))


def test_lost_trials_of_policies_that_are_worth_more_count_apart(desk):
    _, _, problem = desk
    campaign = Campaign(problem, "saver-opt", 50, seed=1)
    setup, state = campaign._setup, campaign._state
    main, book = setup.used.main, state.books["used"].main
    plays = [setup.stage.play(setup.known[0]), setup.stage.play(setup.stage.grid.policy(problem.mdp.uniform))]
    for number, play in enumerate(plays, 1):
        main.ask(book, number, main.freeze(book, play, False), play)
        main.abandon(book, number, play, True)
    lows = [gone.low for gone in book.gone]
    assert lows == [main.lower(main.open(), plays[0]), main.least] or len(set(lows)) == 2
    assert min(lows) == main.least


def test_a_campaign_goes_on_from_its_state_and_from_a_store_as_it_would_have(desk, tmp_path):
    world, _, problem = desk
    url = f"sqlite:///{tmp_path / 'campaign.db'}"
    alone = Campaign(problem, "saver-opt", 60, seed=3)
    rng, seen = np.random.default_rng(0), []
    with saver.open(url, "desk", problem=problem, collector="saver-opt", episodes=60, seed=3) as kept:
        for _ in range(30):
            ours, theirs = alone.ask(), kept.ask()
            assert ours.follows.key == theirs.follows.key
            seen.append(episode_of(world, ours, rng))
            alone.tell(ours, seen[-1])
            kept.tell(theirs, seen[-1])
    again = Campaign.restore(problem, "saver-opt", json.loads(json.dumps(alone.state())))
    with saver.open(url, "desk") as kept:
        for _ in range(10):
            trials = [one.ask() for one in (alone, again, kept)]
            assert len({trial.follows.key for trial in trials}) == 1
            for one, trial in zip((alone, again, kept), trials, strict=True):
                one.tell(trial, episode_of(world, trial, np.random.default_rng(trial.number)))
        assert kept.budget == alone.budget == again.budget
        assert kept.verify()
        assert "complaint" in str(kept.why())


def test_what_a_log_shows_comes_back_from_plain_data(desk):
    _, _, problem = desk
    other = unpack(json.loads(json.dumps(pack(problem))))
    assert fingerprint(other) == fingerprint(problem)
    shown, back = problem.history.shown, other.history.shown
    assert back.names == shown.names
    assert np.array_equal(back.policies, shown.policies)
    assert np.array_equal(back.floors["complaint"], shown.floors["complaint"])


def test_floors_made_for_another_requirement_are_not_used(desk):
    _, _, problem = desk
    (guard,) = problem.guardrails
    for other in (
        replace(problem, delta=0.01),
        replace(problem, guardrails=(replace(guard, alpha=0.2),)),
        replace(problem, guardrails=(replace(guard, baseline_value=0.3),)),
    ):
        with pytest.warns(AssumptionWarning, match="made for another requirement, promise or delta"):
            assert Campaign(other, "saver-opt", 10)._setup.shown is None
    target = replace(problem, target=problem.baseline[::-1].copy() * 0.5 + problem.baseline * 0.5)
    assert Campaign(target, "saver-opt", 10)._setup.shown is not None  # what was shown is still true


def test_few_episodes_and_known_transitions_show_nothing(desk):
    world, log, problem = desk
    stated = replace(problem, history=None)
    few = log.select(np.arange(len(log)) < FEWEST - 1)
    assert recall(stated, few).shown is None
    assert recall(stated, list(few)).shown is None
    told = world.told(0.4)
    past = [one.but(final_state=None) for one in few]
    assert recall(told, past).shown is None
    with pytest.raises(InvalidData, match="history is 5; it must hold episodes"):
        recall(stated, 5)


def test_one_by_one_and_side_by_side_show_the_same(desk):
    _, log, problem = desk
    stated = replace(problem, history=None)
    part = log.select(np.arange(len(log)) < 600)
    one, all_ = recall(stated, list(part)), recall(stated, part)
    assert np.allclose(one.shown.floors["complaint"], all_.shown.floors["complaint"])


def test_the_target_runs_behind_the_guarantee_from_its_first_episode(desk):
    _, _, problem = desk
    campaign = Campaign(problem, "safe-on-policy", 20, seed=0)
    assert {campaign.ask().kind for _ in range(20)} == {"design"}


def test_several_guardrails_are_all_asked(desk):
    _, log, problem = desk
    costs = {"complaint": log.constraints["complaint"], "kept": 1.0 - log.constraints["complaint"]}
    both = replace(log, constraints=costs)
    rails = (*problem.guardrails, Guardrail("kept", saver.Bounded(0, 1), alpha=0.01))
    stated = replace(problem, guardrails=rails, history=None)
    shown = recall(stated, both).shown
    assert set(shown.floors) == {"complaint", "kept"}
    assert shown.floors["kept"][0] < shown.floors["complaint"][0]
    campaign = Campaign(stated, "saver-opt", 30, history=both)
    said = campaign.why()
    assert {need.name for need in said.needs} == {"complaint", "kept"}
    worst = max(said.needs, key=lambda need: need.short)
    assert (said.binding or worst.name) == worst.name


def test_why_names_the_guardrail_and_what_is_short(desk):
    _, log, problem = desk
    (guard,) = problem.guardrails
    tight = replace(problem, guardrails=(replace(guard, alpha=0.01),), history=None)
    campaign = Campaign(tight, "saver-opt", 30, history=log.select(np.arange(len(log)) < 400))
    trial = campaign.ask()
    said = campaign.why(trial)
    assert (trial.kind, said.kind, said.binding) == ("baseline", "baseline", "complaint")
    (need,) = said.needs
    assert need.cost
    assert need.short > 0.0
    credit = min(
        tight.rails[0].credit_at(value)
        for value in campaign._setup.used.values(campaign._state.books["used"])
    )
    assert need.episodes == np.ceil(need.short / credit)
    assert "trial 1 plays the baseline" in str(said)
    assert "at most" in str(said)
    with pytest.raises(InvalidData, match="trial 7 was never asked"):
        campaign.why(7)
    wide = Campaign(problem, "saver-opt", 30)
    assert wide.why().wanted == ""
    assert "it can be afforded" in str(wide.why())


def test_shares_by_hand():
    """Two policies, each alone on one pair: shares go with the roots of the prices."""
    price, seen = np.array([4.0, 1.0, 0.0]), np.full(3, 1e-9)
    N = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    free = solve(price, seen, 100.0 * N, np.zeros((0, 3)), np.zeros(0))
    assert free == pytest.approx([2 / 3, 1 / 3, 0.0], abs=2e-3)
    gains, room = 100.0 * np.array([[-1.0, 0.5, 1.0]]), np.array([0.0])
    bound = solve(price, seen, 100.0 * N, gains, room)
    assert bound[0] == pytest.approx(bound[1] / 2 + bound[2], abs=2e-3)  # the budget is spent
    assert (
        solve(price, np.array([1e9, 1e-9, 1e-9]), 100.0 * N, gains, room)[1] > 0.99
    )  # what was logged counts


def test_designs_leave_out_what_nobody_ever_tried():
    base = np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]])
    reference = np.array([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]])
    design = np.array([[[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]])
    assert tried_only(design, reference, base)[0] == pytest.approx(
        np.array([[0.4, 0.6, 0.0], [1.0, 0.0, 0.0]])
    )


def test_a_problem_with_a_history_is_simulated_in_plain_python(desk):
    _, _, problem = desk
    made, _ = believed_scenario(problem)
    scenario = replace(made, problem=problem)
    assert only_reference(scenario, saver.COLLECTORS["saver-opt"]) == "a problem with a history"
