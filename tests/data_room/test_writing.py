"""Episodes written out are read back equal: Parquet, Minari, bandit feedback, campaigns."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_room.logs import SMALL, Shop

import saver
from saver import END, Collector, Episode
from saver.data import Episodes, from_campaign, read_log
from saver.errors import InvalidData, SaverError


def equal(one, other):
    assert one.state_labels == other.state_labels
    assert one.action_labels == other.action_labels
    assert one.ids.tolist() == other.ids.tolist()
    for name in ("offsets", "states", "actions", "rewards", "final_states", "complete"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    assert one.constraints.keys() == other.constraints.keys()
    for name in one.constraints:
        np.testing.assert_array_equal(one.constraints[name], other.constraints[name])
    assert (one.propensities is None) == (other.propensities is None)
    if one.propensities is not None:
        assert one.propensities.tolist() == other.propensities.tolist()


def mixed():
    """Ends of every kind, a guardrail that was not always measured, an episode that was cut off."""
    made = [
        Episode([0, 1], [0, 1], [0.1, 0.2], {"kept": None}, propensities=[0.5, 0.25], final_state=END),
        Episode([2], [1], [1 / 3], {"kept": [0.7]}, propensities=[1.0], final_state=1),
        Episode([1, 1], [0, 0], [1.0, 2.0], {"kept": [0.1, 0.2]}, propensities=[0.1, 0.2]),
        Episode([0], [0], [5.0], {"kept": [1.0]}, propensities=[0.9]),
    ]
    return Episodes.of(
        made, [True, True, True, False], state_labels=("b", "a", "c", "never met"), action_labels=("y", "x"),
        ids=np.array([7, 3, 5, 1]), kinds=np.array(["old", "new", "old", "new"], dtype=object),
    )  # fmt: skip


def test_parquet_is_read_back_equal_labels_ends_kinds_and_all(tmp_path):
    many = mixed()
    many.to_parquet(tmp_path / "log.parquet")
    options = {"guardrails": ["kept"], "propensity": "propensity", "complete": "complete", "kind": "kind"}
    back = read_log(tmp_path / "log.parquet", next_state="next_state", **options)
    equal(back, many)
    assert back.kinds.tolist() == many.kinds.tolist()
    equal(read_log(many.to_arrow(), next_state="next_state", **options), many)


def test_a_log_survives_the_way_out_and_back_and_says_the_same(tmp_path):
    shop = Shop.drawn(6, 2, 4, seed=5)
    many = read_log(shop.log(300, 0), next_state="next_state")
    many.to_parquet(tmp_path / "log.parquet")
    back = read_log(tmp_path / "log.parquet", next_state="next_state")
    equal(back, many)
    assert back.fit(4).reward == many.fit(4).reward


def test_parquet_holds_what_other_programs_expect(tmp_path):
    mixed().to_parquet(tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert rows[0] | {"kept": 0} == {
        "episode": 7, "step": 0, "state": "b", "action": "y", "reward": 0.1, "kept": 0, "propensity": 0.5,
        "next_state": "a", "complete": True, "kind": "old",
    }  # fmt: skip
    assert [row["next_state"] for row in rows] == ["a", None, "a", "a", "(not seen)", "(not seen)"]
    assert rows[0]["kept"] is None


def test_nothing_is_left_of_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(InvalidData, match="cannot write"):
        mixed().to_parquet(tmp_path / "no folder" / "log.parquet")
    with pytest.raises(InvalidData, match="a guardrail has the name 'state'"):
        replace(mixed(), constraints={"state": np.zeros(6)}).to_parquet(tmp_path / "log.parquet")
    assert list(tmp_path.iterdir()) == []


def test_minari_itself_opens_the_dataset_and_finds_every_episode(tmp_path, monkeypatch):
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    many = mixed()
    many.to_minari("saver/test-v0")
    found = minari.load_dataset("saver/test-v0")
    assert found.total_episodes == 4
    assert found.total_steps == 6
    assert found.observation_space.n == 6
    assert found.action_space.n == 2
    labels = json.loads(found.storage.metadata["description"])
    assert labels["states"] == ["b", "a", "c", "never met"]
    episodes = sorted(found.iterate_episodes(), key=lambda one: one.id)
    for number, (one, given) in enumerate(zip(episodes, many, strict=True)):
        assert one.observations[:-1].tolist() == given.states.tolist()
        assert one.actions.tolist() == given.actions.tolist()
        assert one.rewards.tolist() == given.rewards.tolist()
        assert one.infos["propensity"][:-1].tolist() == given.propensities.tolist()
        np.testing.assert_array_equal(
            one.infos["kept"][:-1], many.constraints["kept"][slice(*many.offsets[number : number + 2])]
        )
        assert len(one.observations) == len(one.infos["kept"]) == len(given) + 1
    assert [int(one.observations[-1]) for one in episodes] == [4, 1, 5, 5]
    assert [bool(one.terminations[-1]) for one in episodes] == [True, False, False, False]
    assert [bool(one.truncations[-1]) for one in episodes] == [False, True, True, True]
    with pytest.raises(InvalidData, match="Minari does not write"):
        many.to_minari("saver/test-v0")


def one_step(count=50, seed=0):
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(0, 3, count), rng.integers(0, 2, count)
    chances = np.where(actions == 0, 0.25, 0.75)
    return Episodes(
        np.arange(count + 1), states, actions, rng.random(count), {}, chances, np.full(count, -2),
        np.ones(count, bool),
    )  # fmt: skip


def test_bandit_feedback_has_the_documented_shapes_and_gives_the_same_estimate():
    """The shapes of the Open Bandit Pipeline, read anew; inverse propensity scoring by hand."""
    many = one_step()
    found = many.to_obp()
    assert set(found) == {
        "n_rounds", "n_actions", "context", "action_context", "action", "position", "reward",
        "expected_reward", "pscore",
    }  # fmt: skip
    n, actions = found["n_rounds"], found["n_actions"]
    assert (n, actions) == (50, 2)
    assert found["context"].ndim == 2
    assert found["context"].shape[0] == n
    assert found["action_context"].shape == (actions, actions)
    for name in ("action", "reward", "pscore"):
        assert found[name].shape == (n,)
    assert np.issubdtype(found["action"].dtype, np.integer)
    assert found["action"].min() >= 0
    assert found["action"].max() < actions
    assert ((found["pscore"] > 0) & (found["pscore"] <= 1)).all()
    assert found["position"] is None
    assert found["expected_reward"] is None
    target = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    pi = (found["context"] @ target)[np.arange(n), found["action"]]
    by_hand = np.mean(pi / found["pscore"] * found["reward"])
    assert many.fit(1).off_policy(target).importance.value == pytest.approx(by_hand)


def test_bandit_feedback_is_refused_without_propensities_and_for_long_episodes():
    with pytest.raises(InvalidData, match="no propensities"):
        replace(one_step(), propensities=None).to_obp()
    with pytest.raises(InvalidData, match="episode 7 has 2 steps"):
        mixed().to_obp()


def collected(collector, name="bandit", episodes=60, **options):
    scenario = saver.SCENARIOS[name]()
    campaign = saver.Campaign(
        scenario.problem, collector, episodes=episodes, seed=1, keep="episodes", **options
    )
    player = saver.Player(scenario.world, seed=2)
    rows = {}
    for _ in range(episodes):
        trial = campaign.ask()
        states, actions, rewards, constraints = player.run(trial)
        rows[trial.number] = [
            trial.row(t, s)[a] for t, (s, a) in enumerate(zip(states, actions, strict=True))
        ]
        campaign.tell(trial, states, actions, rewards, constraints)
    return campaign, rows


@pytest.mark.parametrize(
    ("collector", "name"), [("saver-opt", "bandit"), ("safe-on-policy", "lake"), ("saver", "gridworld")]
)
def test_a_campaign_is_written_with_the_propensities_and_kinds_of_its_trials(collector, name, tmp_path):
    campaign, rows = collected(collector, name)
    many = from_campaign(campaign)
    assert len(many) == 60
    for number, one in zip(many.ids.tolist(), many, strict=True):
        assert one.propensities.tolist() == pytest.approx(rows[number])
    kinds = {event.number: event.kind for event in campaign.events if hasattr(event, "kind")}
    assert many.kinds.tolist() == [kinds[number] for number in many.ids.tolist()]
    many.to_parquet(tmp_path / "campaign.parquet")
    back = read_log(
        tmp_path / "campaign.parquet", guardrails=["constraint"], propensity="propensity", kind="kind"
    )
    equal(back, many)


def test_tracked_campaigns_are_no_bandit_feedback_and_drawn_ones_are():
    tracked = from_campaign(collected("saver-opt")[0])
    assert not tracked.drawn
    with pytest.raises(InvalidData, match="tracked, not drawn"):
        tracked.to_obp()
    drawn = from_campaign(collected(Collector(design="target", explore="none", track="sample"))[0])
    assert drawn.to_obp()["pscore"].shape == (60,)


def test_a_campaign_that_kept_no_episodes_or_was_told_none_is_refused():
    problem = saver.SCENARIOS["bandit"]().problem
    with pytest.raises(SaverError, match="keep="):
        from_campaign(saver.Campaign(problem, "saver-opt", episodes=5))
    with pytest.raises(InvalidData, match="nothing has been told"):
        from_campaign(saver.Campaign(problem, "saver-opt", episodes=5, keep="episodes"))


def test_some_propensities_and_other_guardrails_are_refused():
    one, other = Episode([0], [0], [1.0], propensities=[1.0]), Episode([0], [0], [1.0])
    with pytest.raises(InvalidData, match="some episodes have propensities"):
        Episodes.of([one, other])
    with pytest.raises(InvalidData, match="episode 1 does not tell the guardrails"):
        Episodes.of([Episode([0], [0], [1.0], {"a": [1]}), Episode([0], [0], [1.0], {"b": [1]})])
    with pytest.raises(InvalidData, match="no episodes"):
        Episodes.of([])


def test_labels_kept_in_a_table_may_be_damaged_and_are_then_found_anew():
    table = pa.table(SMALL).replace_schema_metadata({b"saver": b'{"states": [1, "x"]'})
    assert read_log(table).state_labels == ("x", "y")
    table = pa.table(SMALL).replace_schema_metadata({b"saver": b'{"states": ["y", "z"]}'})
    assert read_log(table).state_labels == ("y", "z", "x")
