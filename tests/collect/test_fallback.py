"""What is played where the gate refuses: the baseline, or what surely earns most if that is likely more."""

import dataclasses
import json

import numpy as np
import pytest
from worlds import WORLDS

from saver import COLLECTORS, Campaign, Collector, Episode, Mdp, Player, Problem, SubGaussian, scenarios
from saver.collect import Setup
from saver.collect.campaign import happen
from saver.collect.decide import fall_back, visits
from saver.collect.snapshot import dump
from saver.collect.state import DESIGNED, State
from saver.errors import InvalidProblem
from saver.problem.codec import pack, unpack
from saver.simulator import knowledge_of

EARNER = Collector(design="uniform", explore="none", fallback="earner")


def test_which_collectors_earn():
    assert {name for name, recipe in COLLECTORS.items() if recipe.fallback == "earner"} == {
        "saver-opt",
        "exact-oracle",
    }
    assert Collector().fallback == "baseline"


@pytest.mark.parametrize(
    "options",
    [
        {"ledger": "none", "gate": "none"},
        {"ledger": "latest"},
        {"ledger": "plugin"},
        {"ledger": "paper"},
        {"gate": "retrospective"},
        {"track": "sample"},
        {"estimate": "importance"},
    ],
)
def test_an_earner_needs_a_certificate_and_a_tracked_design(options):
    recipe = Collector(**options)  # with the baseline it may be
    message = (
        f"fallback is 'earner', ledger '{recipe.ledger}', gate '{recipe.gate}', track '{recipe.track}' and "
        f"estimate '{recipe.estimate}'; an earner needs a certified ledger, the prospective gate, a tracked "
        "design and an estimate without propensities: use fallback='baseline'"
    )
    with pytest.raises(InvalidProblem) as refused:
        Collector(fallback="earner", **options)
    assert str(refused.value) == message


@pytest.mark.parametrize("value", ["none", None, "Earner", True])
def test_other_fallbacks_are_refused(value):
    with pytest.raises(InvalidProblem, match=f"fallback is {value!r}; it must be one of baseline, earner"):
        Collector(fallback=value)


def test_the_default_changes_no_file_and_no_fingerprint():
    assert "fallback" not in pack(Collector())
    assert pack(EARNER)["fallback"] == "earner"
    assert unpack(json.loads(json.dumps(pack(EARNER)))) == EARNER


# -- by hand -------------------------------------------------------------------------------------------------


def three_actions(scale=0.0, **changes):
    """The baseline is action 0, worth .5; .4 are required; the target is action 1."""
    numbers = {"alpha": 0.2, "baseline_value": 0.5, "constraint": SubGaussian(scale)} | changes
    return Problem(Mdp(np.zeros((1, 3, 1)), 1), [[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]], **numbers)


def follow(problem, wanted, worth, **options):
    """A campaign that wants these actions, one an episode; kinds and actions that it plays."""
    designs = [np.eye(3)[[action]] for action in wanted]
    collector = Collector(
        design=lambda statistics: designs[statistics.episode - 1],
        explore="none",
        fallback="earner",
        replan=1.0,
    )
    campaign, rows = Campaign(problem, collector, 100, **options), []
    for _ in wanted:
        trial = campaign.ask()
        action = trial.act(0, 0)
        campaign.tell(trial, [0], [action], [0.0], [worth[action]])
        rows.append((trial.kind, action))
    return rows, campaign


B, E1, D1, D2 = ("baseline", 0), ("earn", 1), ("design", 1), ("design", 2)


def test_without_noise_by_hand():
    """Nothing is known of an action that was not seen: .4 must be spare before it is tried, 4 baselines.

    Then action 1, worth .7, makes .7 of .4. Action 2, worth nothing, leaves .3, which is not enough for
    another: action 1 earns .3 more, and it is. And so on.
    """
    rows, campaign = follow(three_actions(), [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2], {0: 0.5, 1: 0.7, 2: 0.0})
    assert rows == [B, B, B, B, D1, D2, E1, D2, E1, D2, E1]
    assert campaign.believed == pytest.approx(4 * 0.1 + 4 * 0.3 - 3 * 0.4)
    assert campaign.budget.baseline_episodes == 4


@pytest.mark.parametrize(("worth", "earns"), [(0.5, True), (0.55, True), (0.499, False), (0.45, False)])
def test_it_is_played_only_if_it_is_likely_worth_the_baseline(worth, earns):
    """(V(b; lower ends) + V(b; means)) / 2 >= V0, and without noise both are what was seen."""
    rows, _ = follow(three_actions(), [1, 1, 1, 1, 1, 2, 2, 2], {0: 0.4, 1: worth, 2: 0.0})
    # The baseline was seen to be worth .4 an episode: else it would be the richest.
    assert rows == [B, B, B, B, D1, D2, *((E1, E1) if earns else (B, B))]


def test_an_earner_that_goes_where_the_baseline_goes_is_baseline():
    """Action 0 was seen to be worth .9: the richest is the baseline itself, and it is called so."""
    rows, campaign = follow(three_actions(), [1, 1, 1, 1, 1, 2, 2, 2], {0: 0.9, 1: 0.6, 2: 0.0})
    assert rows == [B, B, B, B, D1, D2, B, B]
    assert campaign.budget.baseline_episodes == 6


def test_history_moves_the_mean_and_not_the_lower_end():
    history = [Episode([0], [0], [0.0], [c]) for c in (0.7, 0.5)]
    campaign = Campaign(three_actions(), EARNER, 10, history=history)
    assert campaign.statistics().constraint_mean[0, 0] == pytest.approx(0.6)
    assert campaign._setup.used.ends(campaign._state.books["used"])[0][0, 0] == 0.0


def test_the_gate_may_refuse_an_earner_too():
    """At the very edge: the budget and what it is surely worth make .4, or a little less."""
    problem = three_actions(scale=0.1)
    collector = dataclasses.replace(EARNER, design=lambda s: np.eye(3)[[2]])
    setup = Setup(problem, collector, 100)
    state = State.begin(setup)
    book, ledger = state.books["used"], setup.used
    play = setup.stage.play(np.eye(3)[[1]])
    for number in (1, 2):
        ledger.ask(book, number, ledger.freeze(book, play, False), play)
        ledger.tell(book, number, play, Episode([0], [1], [0.0], [0.9]))
        state.constraints.extend(np.array([0]), np.array([1]), np.array([0.9]))
    low = ledger.ends(book)[0][0, 1]
    assert low > 0.5
    book.lost = 0.4 - low - ledger.budget(book) + 1e-6
    assert fall_back(setup, state)[0].kind == "earn"
    book.lost -= 2e-6
    assert fall_back(setup, state)[0].kind == "baseline"


def test_with_noise_the_half_rule_by_hand():
    """Each decision worked out again from what was told: lower ends, means, the gate."""
    problem = three_actions(scale=0.1)
    collector = Collector(
        design=lambda s: np.array([[0.0, 0.5, 0.5]]), explore="none", fallback="earner", replan=1.0
    )
    setup, rng = Setup(problem, collector, 120), np.random.default_rng(3)
    campaign, kinds = Campaign(problem, collector, 120, seed=1), []
    for _ in range(120):
        state = campaign._state
        book, ledger = state.books["used"], setup.used
        lower, budget = ledger.ends(book)[0][0], ledger.budget(book)
        best = int(np.argmax(lower))
        mean = state.constraints.mean[0, best] if state.constraints.counts[0, best] else 0.0
        earns = best != 0 and (lower[best] + mean) / 2 >= 0.5 and budget + lower[best] - 0.4 >= -1e-12 * 0.5
        trial = campaign.ask()
        action = trial.act(0, 0)
        if trial.kind == "design":
            assert action == 0 or budget + lower[action] >= 0.4 - 1e-12
        else:
            assert trial.kind == ("earn" if earns else "baseline")
            assert action == (best if earns else 0)
        kinds.append(trial.kind)
        campaign.tell(trial, [0], [action], [0.0], [(0.5, 0.75, 0.1)[action] + 0.1 * rng.normal()])
    assert all(kinds.count(kind) >= 5 for kind in ("design", "earn", "baseline"))


# -- in campaigns --------------------------------------------------------------------------------------------


def campaign_of(name, asked, episodes=120, **options):
    known = knowledge_of(asked, COLLECTORS[name])
    return (
        Campaign(asked.problem, name, episodes, knowledge=known, seed=2, **options),
        Player(asked.world, 2),
    )


GRID = scenarios.gridworld(size=2, horizon=3, noisy_variance=1.0, alpha=0.1)


@pytest.mark.parametrize("name", ["saver-opt", "exact-oracle"])
@pytest.mark.parametrize("world", ["bandit", "grid"])
def test_earners_count_as_designed(name, world):
    campaign, player = campaign_of(name, GRID if world == "grid" else WORLDS[world])
    state, setup, kinds = campaign._state, campaign._setup, []
    book = state.books["used"]
    for _ in range(60):
        trial, before = campaign.ask(), book.designed_told
        campaign.tell(trial, player.run(trial))
        if trial.kind == "earn":
            assert trial.draws is None
            assert trial.follows.chosen
            assert book.designed_told == before + 1  # and is never credited as the baseline
        kinds.append(trial.kind)
    assert state.told["earn"] == kinds.count("earn") > 0
    assert campaign.budget.baseline_episodes == kinds.count("baseline")
    total = visits(setup, state, True, DESIGNED)
    np.testing.assert_array_equal(total, state.counts["design"] + state.counts["earn"])
    assert state.counts["earn"].sum() > 0


def test_the_tracker_makes_up_for_what_was_earned():
    """Half and half is wanted, and action 1 earns: then the design need not ask for it."""
    collector = Collector(design=lambda s: np.array([[0.0, 0.5, 0.5]]), explore="none", fallback="earner")
    campaign, kinds, T = Campaign(three_actions(), collector, 60), [], np.zeros(3)
    for _ in range(60):
        trial = campaign.ask()
        action = trial.act(0, 0)
        if trial.kind == "design":
            assert action == (1 if T[1] <= T[2] else 2)
        T[action] += trial.kind != "baseline"
        campaign.tell(trial, [0], [action], [0.0], [(0.5, 0.7, 0.0)[action]])
        kinds.append((trial.kind, action))
    assert kinds.count(E1) > 20
    assert kinds.count(D2) > 15


def test_earners_that_are_out_are_expected_by_the_tracker():
    campaign, player = campaign_of("saver-opt", GRID)
    for _ in range(40):
        trial = campaign.ask()
        campaign.tell(trial, player.run(trial))
    before = visits(campaign._setup, campaign._state, True, DESIGNED).sum()
    while (trial := campaign.ask()).kind != "earn":
        campaign.tell(trial, player.run(trial))
        before = visits(campaign._setup, campaign._state, True, DESIGNED).sum()
    flow = campaign._setup.stage.play(trial.follows).flow
    now = visits(campaign._setup, campaign._state, True, DESIGNED)
    assert now.sum() == pytest.approx(before + flow.sum())


@pytest.mark.parametrize("asked", [WORLDS["bandit"], GRID], ids=["bandit", "grid"])
def test_a_campaign_with_earners_out_goes_on_from_plain_data_and_from_its_events(asked):
    campaign, player = campaign_of("saver-opt", asked, keep="episodes")
    waiting = []
    for k in range(95):
        trial = campaign.ask()
        waiting.append((trial, player.run(trial)))
        if len(waiting) > 2 * (k % 9):
            told, episode = waiting.pop(0)
            if k == 50:
                campaign.abandon(told)
            else:
                campaign.tell(told, episode)
    while not any(trial.kind == "earn" for trial in campaign.outstanding):
        trial = campaign.ask()
        waiting.append((trial, player.run(trial)))
    live = campaign.state()
    assert live["format"] == 6
    twin = Campaign.restore(asked.problem, "saver-opt", json.loads(json.dumps(live)))
    assert twin.state() == live
    state = State.begin(campaign._setup, 2)
    for event in campaign.events:
        state = happen(campaign._setup, state, unpack(json.loads(json.dumps(pack(event, small=True)))))
    assert dump(campaign._setup, state, list(campaign.events)) == live
    for one in (campaign, twin):
        for trial, episode in waiting:
            one.tell(trial.number, episode)
    assert twin.believed == campaign.believed
    assert campaign.ask().same_as(twin.ask())


def test_what_is_earned_is_safe_and_spares_baseline_episodes():
    asked = scenarios.bandit()
    shares = {}
    for fallback in ("baseline", "earner"):
        collector = dataclasses.replace(COLLECTORS["saver-opt"], fallback=fallback)
        campaign, player = Campaign(asked.problem, collector, 240, seed=4), Player(asked.world, 4)
        for _ in range(120):
            trial = campaign.ask()
            campaign.tell(trial, player.run(trial))
        shares[fallback] = campaign.budget.baseline_episodes / 120
        assert campaign.believed >= -1e-9
    assert shares["earner"] < 0.1
    assert shares["baseline"] > 0.3
