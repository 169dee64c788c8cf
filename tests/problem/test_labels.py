"""Labels may be said wherever a number may, are never mistaken for one, and come back in tables."""

import json

import numpy as np
import pytest

import saver
from saver.collect.reports import moments_table, steps_table
from saver.errors import InvalidData, InvalidProblem
from saver.estimate import Log
from saver.problem.codec import pack, unpack
from saver.problem.convert import spoken

STATES, ACTIONS = ("home", "list", "gone"), ("old", "new")
EDGES = [("home", "old", "list", 0.5), ("home", "old", "gone", 0.5), ("home", "new", "list", 1.0)]


def shop(**options):
    given = {"terminal": ["gone"], "state_names": STATES, "action_names": ACTIONS} | options
    return saver.Mdp.from_edges(EDGES, 3, 2, 2, **given)


def problem_of(mdp, **options):
    half = np.full((mdp.states, mdp.actions), 0.5)
    kept = saver.Guardrail("kept", saver.Bounded(0, 1), alpha=0.5)
    return saver.Problem(mdp, half, half, guardrails=[kept], **options)


def campaign_of(mdp, **options):
    return saver.Campaign(problem_of(mdp), "on-policy", episodes=20, seed=1, **options)


UNKNOWN = saver.Unknown(3, 2, 2, state_names=STATES, action_names=ACTIONS, start="home")


# -- models ------------------------------------------------------------------------------------------------


def test_a_model_is_stated_in_labels_as_in_numbers():
    plain = saver.Mdp.from_edges(
        [(0, 0, 1, 0.5), (0, 0, 2, 0.5), (0, 1, 1, 1.0)], 3, 2, 2, start=0, terminal=[2]
    )
    said = shop(start="home")
    np.testing.assert_array_equal(said.transitions.toarray(), plain.transitions.toarray())
    np.testing.assert_array_equal(said.start, plain.start)
    assert said.terminal == plain.terminal == (2,)
    assert UNKNOWN.start.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: shop(start="hme"), "start is 'hme', which is no state; did you mean 'home'\\? known: home"),
        (lambda: shop(terminal=["gon"]), r"terminal\[0\] is 'gon', which is no state; did you mean 'gone'"),
        (lambda: saver.Unknown(3, 1, 1, state_names=("a", "b", "a")), "state_names holds 'a' twice"),
        (lambda: shop(action_names=("old", "nwe")), "action of edge 2 is 'new', which is no action"),
        (lambda: shop(state_names=None), "state of edge 0 is 'home', and the model has no state_names"),
        (lambda: saver.Unknown(2, 1, 1, start="x"), "start is 'x', and the model has no state_names"),
    ],
)
def test_a_wrong_label_in_a_model_is_named_with_the_nearest(build, message):
    with pytest.raises(InvalidProblem, match=message):
        build()


def test_of_many_labels_ten_are_shown():
    many = saver.Unknown(100, 1, 1, state_names=[f"s{i}" for i in range(100)])
    with pytest.raises(InvalidData, match=r"did you mean 's42'.*s8, s9 and 90 others$"):
        many.state_labels.number("state", "s42 ")


# -- what is said ------------------------------------------------------------------------------------------


def test_numbers_beside_labels_stay_numbers():
    assert spoken("states", ["home", 1]).tolist() == ["home", 1]
    assert spoken("states", ("1", np.int64(1))).tolist() == ["1", 1]
    assert spoken("states", np.array(["a", "b"])).tolist() == ["a", "b"]
    assert spoken("states", np.array([1, 2], dtype=np.int8)).dtype == np.int64


@pytest.mark.parametrize("value", ["home", ["a", 1.0], ["a", True], ["a", None], [["a"]], [None], [0.5]])
def test_what_is_neither_number_nor_label_is_refused(value):
    with pytest.raises(InvalidData, match="states must be a sequence of whole numbers, or of labels"):
        spoken("states", value)


def test_a_text_of_digits_is_a_label_and_never_a_number():
    mdp = saver.Unknown(3, 2, 2, state_names=("2", "0", "1"), action_names=("1", "0"))
    told = saver.Episode(["2", "1"], ["1", "0"], [0.0, 0.0], final_state="0").check(mdp)
    assert (told.states.tolist(), told.actions.tolist(), told.final_state) == ([0, 2], [0, 1], 1)
    with pytest.raises(InvalidData, match=r"states\[0\] is '0', and the model has no state_names; say"):
        saver.Episode(["0"], [0], [0.0]).check(saver.Unknown(3, 2, 1))


def test_an_episode_keeps_labels_until_a_model_numbers_them():
    told = saver.Episode(["home", "list"], ["new", 0], [1.0, 2.0], [1, 1], final_state="gone")
    assert told.states.tolist() == ["home", "list"]
    assert not told.states.flags.writeable
    found = told.check(UNKNOWN.__class__(3, 2, 2, state_names=STATES, action_names=ACTIONS))
    assert (found.states.tolist(), found.actions.tolist(), found.final_state) == ([0, 1], [1, 0], 2)
    assert found.states.dtype == np.int64
    assert not found.states.flags.writeable
    assert told.states.tolist() == ["home", "list"]  # as it was
    again = unpack(json.loads(json.dumps(pack(told))))
    assert (again.states.tolist(), again.actions.tolist()) == (["home", "list"], ["new", 0])
    assert told.until(1).states.tolist() == ["home"]


# -- campaigns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mdp", [shop(), UNKNOWN], ids=["known", "unknown"])
def test_a_campaign_told_in_labels_is_the_campaign_told_in_numbers(mdp):
    said, plain = campaign_of(mdp, keep="episodes"), campaign_of(mdp, keep="episodes")
    rng = np.random.default_rng(3)
    for _ in range(20):
        one, two = said.ask(), plain.ask()
        first, second = one.act(0, "home"), one.act(1, "list")
        assert (first, second) == (ACTIONS[two.act(0, 0)], ACTIONS[two.act(1, 1)])
        assert type(two.act(0, np.int64(0))) is int
        np.testing.assert_array_equal(one.row(0, "home"), two.row(0, 0))
        rewards, kept = rng.random(2), [1.0, 0.0]
        moves = [ACTIONS.index(first), ACTIONS.index(second)]
        said.tell(one, ["home", "list"], [first, second], rewards, kept, final_state=saver.END)
        plain.tell(two, [0, 1], moves, rewards, kept, final_state=saver.END)
    assert said.state() == plain.state()
    assert said.estimate() == plain.estimate()


def test_the_last_state_may_be_a_label():
    campaign = campaign_of(UNKNOWN)
    trial = campaign.ask()
    actions = [trial.act(0, "home"), trial.act(1, "list")]
    with pytest.raises(InvalidData, match="final_state is 'lst', which is no state; did you mean 'list'"):
        campaign.tell(trial, ["home", "list"], actions, [0, 0], [1, 1], final_state="lst")
    campaign.tell(trial, ["home", "list"], actions, [0, 0], [1, 1], final_state="list")
    pair = 1 * 2 + ACTIONS.index(actions[1])
    assert campaign._state.sums.moves[pair, 1] == 1


def test_a_wrong_label_is_refused_and_changes_nothing():
    campaign = campaign_of(UNKNOWN)
    trial = campaign.ask()
    with pytest.raises(InvalidData, match="state is 'hoem', which is no state; did you mean 'home'"):
        trial.act(0, "hoem")
    before = campaign.state()
    with pytest.raises(InvalidData, match=r"actions\[0\] is 'nw', which is no action; did you mean 'new'"):
        campaign.tell(trial, ["home"], ["nw"], [0], [1])
    assert campaign.state() == before


def test_without_action_names_the_action_of_a_labelled_state_is_a_number():
    mdp = saver.Unknown(2, 2, 1, state_names=("a", "b"))
    trial = campaign_of(mdp).ask()
    assert trial.act(0, "b") == trial.act(0, 1)
    assert type(trial.act(0, "b")) is int


def test_logs_and_history_take_labels():
    mdp = shop()
    log, plain = Log(mdp, np.full((3, 2), 0.5)), Log(mdp, np.full((3, 2), 0.5))
    log.add(["home", "list"], ["old", "new"], [1.0, 2.0])
    log.add(["home"], ["old"], [3.0], final_state="gone")
    plain.add([0, 1], [0, 1], [1.0, 2.0])
    plain.add([0], [0], [3.0], final_state=2)
    assert log.estimate() == plain.estimate()
    problem = problem_of(mdp)
    said = saver.History.of(problem, [saver.Episode(["home", "list"], ["old", "new"], [1, 2], [1, 0])])
    numbers = saver.History.of(problem, [saver.Episode([0, 1], [0, 1], [1, 2], [1, 0])])
    assert pack(said) == pack(numbers)
    with pytest.raises(InvalidData, match=r"history\[0\]: states\[1\] is 'lis', which is no state; did you"):
        saver.History.of(problem, [saver.Episode(["home", "lis"], ["old", "new"], [1, 2], [1, 0])])


# -- what comes back ---------------------------------------------------------------------------------------


def test_tables_and_reports_speak_labels_and_can_be_told_again(tmp_path):
    campaign = campaign_of(shop(), keep="episodes")
    for _ in range(10):
        trial = campaign.ask()
        actions = [trial.act(0, "home"), trial.act(1, "list")]
        campaign.tell(trial, ["home", "list"], actions, [1.0, 2.0], [1, 1])
    steps = steps_table(campaign.problem, campaign.events)
    assert steps["state"] == ["home", "list"] * 10
    assert set(steps["action"]) == {"old", "new"}
    moments = moments_table(campaign.problem, campaign._state)
    assert moments["state"] == ["home", "home", "list", "list"]
    assert moments["action"] == ["old", "new", "old", "new"]
    assert {row.name for row in campaign.uncertainty()} >= {"action 1 (new) in state 0 (home)"}
    assert "action 0 (old) in state 1 (list)" in campaign.report(tmp_path).read_text()


def test_tables_of_a_model_without_names_hold_numbers():
    campaign = campaign_of(saver.Mdp(np.zeros((1, 2, 1)), 1), keep="episodes")
    trial = campaign.ask()
    campaign.tell(trial, [0], [trial.act(0, 0)], [1.0], [1.0])
    steps = steps_table(campaign.problem, campaign.events)
    assert (steps["state"], type(steps["state"][0]), type(steps["action"][0])) == ([0], int, int)
    assert moments_table(campaign.problem, campaign._state)["action"] == [0, 1]


def test_pictures_call_pairs_by_their_names():
    assert shop().pair_names[:3] == ["home, old", "home, new", "list, old"]
    assert saver.Unknown(1, 2, 1, action_names=ACTIONS).pair_names == ["old", "new"]
    assert saver.Unknown(2, 1, 1, action_names=["go"]).pair_names == ["0, go", "1, go"]
    assert saver.Unknown(2, 1, 1).pair_names is None
