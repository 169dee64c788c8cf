"""The decision core: a state is a fold of events, decisions change nothing, replay decides nothing."""

import dataclasses
import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from worlds import CELLS as SMALL, WORLDS

import saver
from saver import COLLECTORS, Campaign, Collector, Episode, Player, scenarios
from saver.collect import Setup
from saver.collect.campaign import happen
from saver.collect.decide import decide
from saver.collect.events import Abandoned, Asked, Recalled, Told
from saver.collect.snapshot import dump
from saver.collect.state import State
from saver.errors import InvalidData, InvalidProblem
from saver.problem.codec import pack, unpack
from saver.simulator import knowledge_of

DATA = Path(__file__).parents[1] / "data"
CELLS = [*SMALL, ("coverage", "gridworld"), ("importance", "gridworld"), ("own", "tree")]
MORE = {
    "coverage": Collector(explore="coverage"),
    "importance": Collector(track="sample", estimate="importance"),
    "own": Collector(design=lambda statistics: statistics.problem.target, track="sample"),
}


def recipe(name):
    return MORE.get(name) or COLLECTORS[name]


def happened(name, world, episodes=40, out=4):
    """A campaign with history, trials out, late and abandoned, and everything that happened to it."""
    asked, collector = WORLDS[world], recipe(name)
    past = Campaign(asked.problem, "baseline", 3, seed=9)
    history = [Player(asked.world, seed).run(past.ask()) for seed in range(3)]
    known = knowledge_of(asked, collector)
    campaign = Campaign(
        asked.problem, collector, episodes, knowledge=known, history=history, seed=4, keep="episodes"
    )
    player, rng, waiting = Player(asked.world, 3), np.random.default_rng(2), []
    for k in range(episodes):
        trial = campaign.ask()
        waiting.append((trial, player.run(trial)))
        if len(waiting) >= out:
            told, episode = waiting.pop(int(rng.integers(len(waiting))))
            if k % 11 == 5:
                campaign.abandon(told)
            else:
                campaign.tell(told, episode)
    return campaign, Setup(asked.problem, collector, episodes, known)


def through_json(event):
    return unpack(json.loads(json.dumps(pack(event, small=True))))


@pytest.mark.parametrize(("name", "world"), CELLS)
def test_a_state_is_a_fold_of_its_events_cut_anywhere(name, world, monkeypatch):
    campaign, setup = happened(name, world)
    events = [through_json(event) for event in campaign.events]
    assert {type(event) for event in events} == {Asked, Told, Abandoned, Recalled}

    def no_decision(*arguments, **options):
        raise AssertionError("replay must not decide")

    monkeypatch.setattr(type(setup.designer), "design", no_decision)
    for ledger in set(map(type, setup.ledgers.values())):
        monkeypatch.setattr(ledger, "freeze", no_decision)
    state, kept = State.begin(setup, 4), None
    for place, event in enumerate(events):
        state = happen(setup, state, event)
        if place == len(events) // 2:
            kept = json.loads(json.dumps(dump(setup, state)))
    live = campaign.state()
    assert dump(setup, state, list(campaign.events)) == live
    twin = Campaign.restore(setup.problem, setup.collector, kept)
    later = twin.state()["state"]
    assert later == kept["state"]
    middle = unpack(kept["state"])
    assert middle.asked < state.asked
    resumed = restored(setup, kept)
    for event in events[len(events) // 2 + 1 :]:
        resumed = happen(setup, resumed, event)
    assert dump(setup, resumed, list(campaign.events)) == live


def restored(setup, plain):
    from saver.collect.snapshot import load

    return load(setup.problem, setup.collector, plain)[1]


@pytest.mark.parametrize(("name", "world"), CELLS)
def test_deciding_changes_nothing_and_gives_the_same_again(name, world):
    asked, collector = WORLDS[world], recipe(name)
    setup = Setup(asked.problem, collector, 30, knowledge_of(asked, collector))
    state, player = State.begin(setup, 1), Player(asked.world, 1)
    for _ in range(8):
        before = json.dumps(dump(setup, state))
        events = [decide(setup, state) for _ in range(2)]
        assert json.dumps(dump(setup, state)) == before
        assert pack(events[0], small=True) == pack(events[1], small=True)
        state = happen(setup, state, events[0])
        trial = state.out[events[0].number]
        state = happen(setup, state, Told(trial.number, player.run(trial)))


def test_an_asked_names_what_it_can_and_holds_small_integers_where_it_follows():
    campaign, setup = happened("saver", "gridworld")
    asked = [event for event in campaign.events if isinstance(event, Asked)]
    by_kind = {event.kind: event for event in asked}
    assert by_kind["baseline"].policy == "baseline"
    assert by_kind["explore"].policy == "explore"
    followed = by_kind["design"].policy
    assert followed.dtype == np.uint8
    assert followed.shape == (len(setup.stage.nodes.state),)
    assert sum(event.plan is not None for event in asked) == len(
        {id(event.plan) for event in asked if event.plan is not None}
    )
    assert 1 < sum(event.plan is not None for event in asked) < len(asked)


def test_exploration_by_coverage_is_solved_once_and_kept(monkeypatch):
    from saver.collect import setup as preparing

    solved = []
    original = preparing.coverage
    monkeypatch.setattr(preparing, "coverage", lambda mdp: solved.append(1) or original(mdp))
    asked = WORLDS["gridworld"]
    campaign, player = Campaign(asked.problem, Collector(explore="coverage"), 100), Player(asked.world)
    kinds = set()
    for _ in range(10):
        trial = campaign.ask()
        campaign.tell(trial, player.run(trial))
        kinds.add(trial.kind)
    twin = Campaign.restore(asked.problem, campaign.collector, campaign.state())
    for one in (campaign, twin):
        kinds |= {one.ask().kind for _ in range(3)}
    assert "explore" in kinds
    assert solved == [1]


def test_snapshots_are_compact():
    # 300 states, 10 steps, 300 trials out: as lists of numbers the policies alone took 6 MB.
    rng = np.random.default_rng(0)
    S, A = 300, 3
    edges = [
        (s, a, int(to), 0.2) for s in range(S) for a in range(A) for to in rng.choice(S, 5, replace=False)
    ]
    mdp = saver.Mdp.from_edges(edges, S, A, 10)
    baseline = np.eye(A)[rng.integers(0, A, S)]
    world = saver.World(
        mdp, saver.Gaussian(rng.random((S, A)), 1.0), saver.Gaussian(rng.random((S, A)), 0.01)
    )
    problem = saver.Problem(
        mdp, rng.dirichlet(np.ones(A), S), baseline, alpha=0.9,
        baseline_value=world.constraint_value(baseline), constraint=saver.SubGaussian(0.1),
    )  # fmt: skip
    campaign, player = Campaign(problem, "saver", 400), Player(world, 1)
    for _ in range(20):
        trial = campaign.ask()
        campaign.tell(trial, player.run(trial))
    for _ in range(300):
        campaign.ask()
    state = campaign.state()
    assert len(json.dumps(state)) < 600_000
    twin = Campaign.restore(problem, "saver", state)
    assert twin.state() == state
    assert twin.ask().same_as(campaign.ask())


def test_events_are_kept_only_when_asked_for():
    campaign = Campaign(WORLDS["bandit"].problem, "saver", 10)
    campaign.ask()
    with pytest.raises(InvalidProblem, match=r'only by Campaign\(\.\.\., keep="episodes"\)'):
        _ = campaign.events
    with pytest.raises(InvalidProblem, match="keep is 'all'; it must be one of moments, episodes"):
        Campaign(WORLDS["bandit"].problem, "saver", 10, keep="all")


def test_both_ways_of_telling_are_the_same():
    asked = WORLDS["gridworld"]
    campaigns = [Campaign(asked.problem, "safe-on-policy", 20, seed=2) for _ in range(2)]
    for k in range(12):
        trials = [campaign.ask() for campaign in campaigns]
        episode = Player(asked.world, k).run(trials[0])
        campaigns[0].tell(trials[0], episode)
        campaigns[1].tell(trials[1], *episode)
    states = [campaign.state() for campaign in campaigns]
    assert states[0] == states[1]


def test_what_was_told_must_be_an_episode_or_four_sequences():
    campaign = Campaign(WORLDS["bandit"].problem, "saver", 10)
    trial = campaign.ask()
    action = trial.act(0, 0)
    good = Episode([0], [action], [0.0], [0.5])
    for told, message in (
        ((good, [0], [0.0], [0.5]), "told with more beside it"),
        (([0],), "1 of four sequences were told; tell a saver.Episode, or states, actions"),
        ((Episode([0], [action], [0.0]),), "the episode has no constraints"),
        (([0], [action], [0.0]), "the episode has no constraints"),
        (
            (Episode([0], [action], [0.0], [0.5], propensities=[0.3]),),
            r"propensities\[0\] is 0\.3, but trial 1 takes that action with probability 1;",
        ),
    ):
        with pytest.raises(InvalidData, match=message):
            campaign.tell(trial, *told)
    campaign.tell(trial, Episode([0], [action], [0.0], [0.5], propensities=[1.0], final_state=saver.END))
    assert campaign.budget.episodes == 1


def test_what_was_torn_by_an_interrupt_does_not_go_on(monkeypatch):
    asked = WORLDS["gridworld"]
    campaign, player = Campaign(asked.problem, "saver", 30, seed=1), Player(asked.world, 1)
    trial = campaign.ask()

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(campaign._setup.ledgers["used"]), "close", interrupt)
        with pytest.raises(KeyboardInterrupt):
            campaign.tell(trial, player.run(trial))
    for go_on in (campaign.ask, campaign.state, lambda: campaign.abandon(trial)):
        with pytest.raises(InvalidData, match="half changed; restore it from the last state that was kept"):
            go_on()


def test_readers_see_only_whole_campaigns():
    asked = WORLDS["gridworld"]
    campaign, player = Campaign(asked.problem, "saver", 400, seed=1), Player(asked.world, 1)
    errors, done = [], threading.Event()

    def read():
        try:
            while not done.is_set():
                told = campaign.budget.episodes
                assert campaign.estimate().covered >= 0.0
                assert told <= campaign.budget.episodes
                assert len(campaign.outstanding) <= 31
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        waiting = []
        for _ in range(150):
            trial = campaign.ask()
            waiting.append((trial, player.run(trial)))
            if len(waiting) > 30:
                campaign.tell(*waiting.pop(0))
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert errors == []


def test_equal_collectors_have_equal_states():
    problem = WORLDS["bandit"].problem
    state = Campaign(problem, Collector(bonus=1, caution=np.float64(0.0)), 10).state()
    assert Campaign.restore(problem, Collector(), state).episodes == 10


def test_a_damaged_archive_in_a_state_is_refused():
    asked = WORLDS["bandit"]
    known = knowledge_of(asked, COLLECTORS["safe-oracle"])
    state = Campaign(asked.problem, "safe-oracle", 10, knowledge=known).state()
    state["knowledge"]["variance"]["zip"] = "AAAA" + state["knowledge"]["variance"]["zip"][4:]
    with pytest.raises(InvalidData, match="was changed or damaged since it was taken"):
        Campaign.restore(asked.problem, "safe-oracle", state)


def test_the_trials_that_are_out_are_there_after_a_restart():
    asked = WORLDS["gridworld"]
    campaign = Campaign(asked.problem, "safe-on-policy", 20, seed=2)
    trials = [campaign.ask() for _ in range(4)]
    campaign.tell(trials[1], Player(asked.world).run(trials[1]))
    campaign.abandon(trials[2].number)
    twin = Campaign.restore(asked.problem, "safe-on-policy", json.loads(json.dumps(campaign.state())))
    assert [trial.number for trial in twin.outstanding] == [1, 4]
    for here, there in zip(campaign.outstanding, twin.outstanding, strict=True):
        assert here.same_as(there)
        twin.tell(there, Player(asked.world).run(there))  # one that never ran can still be run
    assert twin.outstanding == {}
    with pytest.raises(InvalidData, match="trial 3 was abandoned already"):
        twin.abandon(3)
    assert repr(trials[0]).startswith("Trial(number=1, kind='")


def test_a_campaign_shows_itself_in_a_line_and_its_settings_cannot_be_changed():
    campaign = Campaign(WORLDS["bandit"].problem, "saver", 10)
    campaign.ask()
    assert repr(campaign) == (
        "Campaign(design closed-form, ledger certified: 0 told of 10 episodes, 0 of them baseline, 1 out, "
        "0 abandoned, 0 cancelled)"
    )
    for name in ("episodes", "problem", "collector"):
        with pytest.raises(AttributeError):
            setattr(campaign, name, 5)


# -- states and problems of earlier versions -----------------------------------------------------------------


def kept_campaign():
    """What the kept state is of: a gridworld with designs and earners out, told late and abandoned.

    Nothing could be promised about rewards then.
    """
    asked = scenarios.gridworld(size=2, horizon=3, noisy_variance=1.0, alpha=0.1)
    asked = dataclasses.replace(asked, problem=dataclasses.replace(asked.problem, reward=None))
    campaign, player = Campaign(asked.problem, "saver-opt", 60, seed=1), Player(asked.world, 1)
    for _ in range(30):
        trial = campaign.ask()
        campaign.tell(trial, player.run(trial))
    trials = [campaign.ask() for _ in range(14)]
    campaign.abandon(trials[2])
    campaign.tell(trials[1], player.run(trials[1]))
    campaign.tell(trials[4], player.run(trials[4]))
    return asked, campaign


def test_a_state_of_this_format_opens_and_goes_on():
    asked, _ = kept_campaign()
    kept = json.loads((DATA / "state-6.json").read_text(encoding="utf-8"))
    campaign = Campaign.restore(asked.problem, "saver-opt", kept)
    assert campaign.budget.episodes == 32
    assert {trial.kind for trial in campaign.outstanding} == {"design", "earn"}
    assert campaign.believed == pytest.approx(1.3567870145465366, rel=1e-9)  # what was believed then
    player = Player(asked.world, 7)
    for _ in range(5):
        trial = campaign.ask()
        campaign.tell(trial, player.run(trial))
    assert campaign.estimate().covered > 0


@pytest.mark.parametrize("older", [1, 2, 3, 4, 5])
def test_a_state_of_an_earlier_format_is_refused_by_name(older):
    problem = scenarios.bandit(actions=3).problem
    kept = json.loads((DATA / f"state-{older}.json").read_text(encoding="utf-8"))
    with pytest.raises(InvalidData, match=f"the state has format {older}; this version reads 6"):
        Campaign.restore(problem, "saver", kept)
