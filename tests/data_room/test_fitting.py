"""From a log to a problem: what is known of the world that wrote it comes back."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from data_room.logs import SMALL, Shop

import saver
from saver.data import problem, read_log
from saver.data.fitted import believed
from saver.errors import InvalidData, InvalidPolicy, InvalidProblem

TWO = {
    "episode": [1, 1, 1, 2, 2, 3, 3, 3], "step": [0, 1, 2, 0, 1, 0, 1, 2],
    "state": list("aabababa"), "action": list("xyxxyxxx"), "reward": [1.0, 2, 3, 4, 5, 6, 7, 8],
    "complaint": [0, 1, 0, 0, 0, 1, 1, 0],
}  # fmt: skip


@pytest.fixture(scope="module")
def shop():
    return Shop.drawn(8, 3, 5, seed=3)


@pytest.fixture(scope="module")
def log(shop):
    return read_log(shop.log(4000, 1), next_state="next_state")


def test_counts_by_hand_with_the_move_after_the_horizon_not_taken_for_an_end():
    """Horizon 2: episodes 1 and 3 are cut there and lead on, episode 2 lasts to it and nobody saw more."""
    fitted = read_log(TWO).fit(2)
    assert dict(fitted.sums.moves) == {(0, 0): 1, (1, 1): 1, (0, 1): 2, (2, 0): 1}
    assert fitted.sums.ends.sum() == 0
    assert fitted.baseline.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    assert fitted.values["complaint"].value == pytest.approx((1 + 0 + 2) / 3)
    fitted = read_log(TWO).fit(3)
    assert fitted.sums.ends.tolist() == [0.0, 0.0, 0.0, 1.0]  # episode 2 is shorter: it ended after b, y
    assert fitted.reward.value == pytest.approx((6 + 9 + 21) / 3)
    assert fitted.model.state_names == ("a", "b")


def test_values_and_their_interval_by_hand():
    fitted = read_log(TWO).fit(3, 0.5)
    earned = [1 + 1 + 0.75, 4 + 2.5, 6 + 3.5 + 2]
    assert fitted.reward.value == pytest.approx(np.mean(earned))
    assert fitted.reward.stderr == pytest.approx(np.std(earned, ddof=1) / np.sqrt(3))
    half = 4.302652729911275 * np.std(earned, ddof=1) / np.sqrt(3)  # Student, two degrees of freedom
    assert fitted.reward.interval[1] == pytest.approx(np.mean(earned) + half)


def test_an_mdp_of_frequencies_has_an_end_and_lacks_what_was_never_seen(shop, log):
    fitted = log.fit(5, model="mdp")
    mdp = fitted.model
    assert isinstance(mdp, saver.Mdp)
    assert mdp.state_names[-1] == "(end)"
    assert mdp.terminal == (8,)
    assert "moves were seen once" in fitted.notes[0]
    sums = log.fit(5).sums
    seen = sums.rewards.counts > 0
    assert (mdp.available[:8] == seen).all()
    outcomes = sum(count for (pair, _), count in sums.moves.items() if pair == 0) + sums.ends[0]
    first = mdp.transitions[[0]].toarray()[0]
    assert first[8] == pytest.approx(sums.ends[0] / outcomes)
    stated = fitted.problem(shop.policy, {"complaint": {"alpha": 0.3, "cost": True}})
    campaign = saver.Campaign(stated, "saver-opt", episodes=10)
    assert campaign.ask().kind


def test_an_mdp_refuses_pairs_whose_moves_nobody_saw_because_they_are_no_ends():
    columns = {"episode": [1, 1, 2, 2], "step": [0, 1, 0, 1], "state": list("abbb"), "action": list("xyxy")}
    columns |= {"reward": [1.0] * 4, "complaint": [0] * 4}
    with pytest.raises(InvalidData, match=r"nobody saw where action 1 \(y\) in state 1 \(b\) leads"):
        read_log(columns).fit(2, model="mdp")
    assert read_log(columns).fit(1, model="mdp").model.horizon == 1  # nothing is before the last step
    assert read_log(TWO).fit(2, model="mdp").model.transitions[[3]].sum() == 0.0  # met at the end alone


def test_a_new_action_is_not_the_baselines_and_may_be_the_targets():
    fitted = read_log(TWO).fit(3, new_actions=["z"])
    assert fitted.baseline[:, 2].tolist() == [0.0, 0.0]
    target = pd.DataFrame({"state": ["a", "b"], "action": ["z", "x"], "probability": [1.0, 1.0]})
    stated = fitted.problem(target, {"complaint": {"alpha": 0.5, "cost": True}})
    assert stated.first.tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.raises(InvalidProblem, match="'z' is new, and nobody saw where it leads"):
        read_log(TWO).fit(3, new_actions=["z"], model="mdp")
    with pytest.raises(InvalidData, match="new_actions has 'x'"):
        read_log(TWO).fit(3, new_actions=["x"])


def test_episodes_that_were_cut_off_are_refused_or_dropped():
    table = pa.table(TWO | {"next_state": ["a", "b", None, "b", "a", "b", "a", None]})
    many = read_log(table, next_state="next_state")
    with pytest.raises(InvalidData, match="episode 2 stops after 2 of 3 steps, in 'a' and did not end there"):
        many.fit(3)
    fitted = many.fit(3, cut="drop")
    assert len(fitted.history) == 2
    assert "1 of 3 episodes were cut off and dropped" in fitted.notes[0]


def test_a_campaign_goes_on_from_the_log_and_the_problem_survives_a_file(log, shop, tmp_path):
    fitted = log.fit(5)
    stated = fitted.problem(shop.policy, {"complaint": {"alpha": 0.3, "cost": True}}, reward=None)
    assert stated.history.episodes == 4000
    assert isinstance(stated.mdp, saver.Unknown)
    saver.save(stated, tmp_path / "problem.json")
    back = saver.load(tmp_path / "problem.json")
    assert back.mdp.state_names == stated.mdp.state_names
    for one in (stated, back):
        campaign = saver.Campaign(one, "safe-on-policy", episodes=10, seed=1)
        assert campaign.estimate().covered == 1.0
    slow = saver.History.of(replace(stated, history=None), list(log.until(5)))
    assert stated.history.rails["complaint"].squares == pytest.approx(slow.rails["complaint"].squares)
    by_hand = saver.Campaign(replace(stated, history=None), "saver-opt", 10, history=fitted.history)
    assert by_hand.estimate().value == pytest.approx(saver.Campaign(stated, "saver-opt", 10).estimate().value)


def test_one_call_says_the_same_as_two(log, shop):
    table = shop.log(4000, 1)
    guard = saver.Guardrail("complaint", saver.Bounded(0, 1), alpha=0.3, cost=True)
    one = problem(table, shop.policy, guard, horizon=5, next_state="next_state", delta=0.1)
    two = log.fit(5).problem(shop.policy, [guard], delta=0.1)
    assert saver.problem.codec.fingerprint(one) == saver.problem.codec.fingerprint(two)


def test_what_makes_no_sense_is_refused_in_words():
    many = read_log(TWO)
    with pytest.raises(InvalidData, match="there are no episodes to learn from"):
        many.select([False, False, False]).fit(2)
    with pytest.raises(InvalidData, match=r"of shape \(1,\); it must be 3 booleans"):
        many.select([True])
    with pytest.raises(InvalidProblem, match="no kind of episodes 'old'"):
        many.select("old")
    with pytest.raises(InvalidData, match="guardrails is 3"):
        read_log(TWO, guardrails=3)
    with pytest.raises(InvalidProblem, match="guardrails is empty"):
        many.fit(2).problem(np.full((2, 2), 0.5), [])
    with pytest.raises(InvalidProblem, match="model is 'magic'"):
        many.fit(2, model="magic")
    with pytest.raises(InvalidProblem, match="by_step is 1; it must be True or False"):
        many.fit(2, by_step=1)


def test_a_fit_shows_itself_and_says_its_level():
    fitted = read_log(TWO).fit(3, level=0.8)
    assert repr(fitted) == "Fitted(Unknown of 2 states, 3 episodes, 0 notes)"
    assert "80 % interval" in fitted.report()
    same = read_log(TWO | {"complaint": [0] * 8}).fit(3)
    assert same.notes == (
        "complaint earned the same in every episode: its interval, of no width, says nothing",
    )


def test_several_targets_in_tables_of_labels(tmp_path):
    fitted = read_log(TWO).fit(3)
    (tmp_path / "new.csv").write_text("state,action,probability\na,y,0.25\na,x,0.75\nb,x,1\n")
    stated = fitted.problem(
        {"new": tmp_path / "new.csv", "even": np.full((2, 2), 0.5)},
        {"complaint": {"allowance": 0.5, "cost": True}},
    )
    assert stated.targets["new"].tolist() == [[0.75, 0.25], [1.0, 0.0]]


TARGETS = {
    "a,w,1\n": (InvalidData, "line 2, column 'action': there is no action 'w' in the log"),
    "a,x,1\nc,x,1\n": (InvalidData, "line 3, column 'state': there is no state 'c' in the log"),
    "a,x,0.5\nb,x,1\n": (InvalidPolicy, "the probabilities in 'a' sum to 0.5"),
    "a,x,1\n": (InvalidPolicy, "has no row for state 'b'"),
    "a,x,1\na,x,1\n": (InvalidData, "line 3, column 'probability': 'x' in 'a' has two rows"),
    "a,x,1.5\n": (InvalidData, "line 2, column 'probability': it is 1.5"),
    "a,x,\n": (InvalidData, "line 2, column 'probability': it is None"),
}


@pytest.mark.parametrize("rows", TARGETS)
def test_a_wrong_target_is_named_by_file_line_and_column(tmp_path, rows):
    kind, what = TARGETS[rows]
    path = tmp_path / "target.csv"
    path.write_text("state,action,probability\n" + rows)
    with pytest.raises(kind, match=r"target\.csv") as error:
        read_log(TWO).fit(3).policy(path)
    assert what in str(error.value)


def test_guardrails_need_a_promise_and_a_column():
    fitted = read_log(TWO | {"complaint": [0, 3, 0, 0, 0, 1, 1, 0]}).fit(3)
    with pytest.raises(InvalidProblem, match="complaint was seen from 0 to 3, which is no promise"):
        fitted.problem(fitted.baseline, {"complaint": {"alpha": 0.5, "cost": True}})
    with pytest.raises(InvalidProblem, match="did you mean 'complaint'"):
        fitted.problem(fitted.baseline, {"complain": {"alpha": 0.5}})
    with pytest.raises(InvalidProblem, match="'alfa'; did you mean 'alpha'"):
        fitted.problem(fitted.baseline, {"complaint": {"alfa": 1, "promise": saver.Bounded(0, 9)}})


def test_a_baseline_that_depends_on_the_step_is_said_and_can_be_fitted():
    """Action 1 with probability .2 at step 0 and .8 at step 1; 2,000 episodes in one state."""
    rng = np.random.default_rng(4)
    step = np.tile([0, 1], 2000)
    columns = {"episode": np.repeat(np.arange(2000), 2), "step": step, "state": np.zeros(4000, int)}
    columns |= {"action": (rng.random(4000) < np.where(step == 0, 0.2, 0.8)).astype(int)}
    columns |= {"reward": rng.random(4000), "complaint": rng.integers(0, 2, 4000)}
    many = read_log(columns)
    fitted = many.fit(2)
    assert fitted.baseline.shape == (1, 2)
    assert any("depends on the step" in note for note in fitted.notes)
    fitted = many.fit(2, by_step=True)
    assert fitted.notes == ()
    assert np.abs(fitted.baseline[:, 0, 1] - [0.2, 0.8]).max() < 4 * np.sqrt(0.16 / 2000)  # 1.3e-4
    assert fitted.off_policy(fitted.baseline).effective == pytest.approx(2000.0)  # all weights are 1
    stated = fitted.problem(fitted.baseline, {"complaint": {"alpha": 0.3, "cost": True}})
    assert saver.Campaign(stated, "safe-on-policy", episodes=10).ask()
    with pytest.raises(InvalidData, match="was logged, and has probability 0 under the behaviour"):
        many.fit(2, baseline=[[1.0, 0.0]]).off_policy([[0.5, 0.5]])


def test_a_steady_baseline_is_not_said_to_depend_on_the_step(log):
    assert log.fit(5).notes == ()


def test_scales_by_hand_and_what_they_contradict():
    """Two pairs with deviations 1 and 3; the steps of an episode share half of their noise."""
    rng = np.random.default_rng(0)
    n, length = 4000, 2
    shared = np.repeat(rng.normal(size=n), length)
    noise = np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=n * length)
    state = np.tile([0, 1], n)
    columns = {
        "episode": np.repeat(np.arange(n), length), "step": state, "state": state,
        "action": np.zeros(n * length, int),
        "reward": noise * np.where(state == 0, 1.0, 3.0), "complaint": rng.normal(size=n * length),
    }  # fmt: skip
    fitted = read_log(columns).fit(2)
    reward, fresh = fitted.scales["reward"], fitted.scales["complaint"]
    assert abs(reward.largest - 3.0) < 4 * reward.largest_stderr  # probability 6e-5
    assert reward.largest_stderr == pytest.approx(3.0 / np.sqrt(2 * n), rel=0.1)  # of normal noise
    assert abs(reward.deviation - np.sqrt(5.0)) < 4 * reward.stderr
    assert abs(reward.shared - 0.5) < 0.06
    assert reward.shared_errors > 10
    assert abs(fresh.shared_errors) < 4
    tight = saver.SubGaussian(2.0, -1.0, 1.0)
    assert any("above the promised scale 2" in said for said in reward.against(tight))
    assert any("shares noise" in said for said in reward.against(tight))
    assert fresh.against(saver.SubGaussian(1.05, -1.0, 1.0)) == ()
    assert "outside [0, 1]" in fresh.against(saver.Bounded(0, 1))[0]


def test_off_policy_of_the_logged_policy_itself_is_the_mean(log):
    fitted = log.fit(5)
    found = fitted.off_policy(fitted.baseline)
    assert found.importance.value == pytest.approx(fitted.reward.value)
    assert found.effective == pytest.approx(4000.0)
    assert found.certainty.value == pytest.approx(fitted.reward.value, rel=0.02)
    assert found.notes == ("propensities were not recorded: frequencies stand for them",)


def test_heavy_weights_are_said(shop, log):
    target = np.zeros((8, 3))
    target[:, int(np.argmin(shop.policy.sum(axis=0)))] = 1.0
    found = log.fit(5).off_policy(target)
    assert found.effective < 200
    assert any("importance weights are heavy" in note for note in found.notes)
    truth = shop.value(target, shop.reward)
    low, high = found.certainty.interval
    assert low < truth < high  # one interval: it misses with probability .05, and this seed does not


def test_recorded_propensities_are_used(shop):
    columns = shop.log(3000, 5, labels=False)
    columns["p"] = shop.policy[columns["state"], columns["action"]]
    many = read_log(columns, propensity="p")
    target = np.roll(shop.policy, 1, axis=1)
    found = many.fit(5).off_policy(target)
    log = saver.estimate.Log(many.fit(5, model="mdp").model, np.vstack([target, [1, 0, 0]]))
    log.extend(many.until(5))
    assert found.importance.value == pytest.approx(log.estimate("importance").value)
    assert found.importance.interval == pytest.approx(log.estimate("importance").interval)
    stated = many.fit(5, baseline=shop.policy).problem(target, {"complaint": {"alpha": 0.3, "cost": True}})
    assert stated.baseline == pytest.approx(shop.policy)
    other = many.fit(5, baseline=np.full((8, 3), 1 / 3))
    with pytest.raises(InvalidData, match="propensities"):
        other.problem(target, {"complaint": {"alpha": 0.3, "cost": True}})


def test_labels_of_another_log_are_refused(log, shop):
    stated = log.fit(5).problem(shop.policy, {"complaint": {"alpha": 0.3, "cost": True}})
    with pytest.raises(InvalidData, match="2 states that the problem does not have, the first 'x'"):
        saver.data.evaluate(stated, read_log(SMALL))


def test_evaluation_knows_labels_value_verdict_and_guardrails(log, shop):
    stated = log.fit(5).problem(shop.policy, {"complaint": {"alpha": 0.3, "cost": True}})
    few = read_log(shop.log(4000, 9).slice(0, 3000).filter(pa.compute.field("episode") < 500))
    found = saver.data.evaluate(stated, few)["target"]
    apart = shop.value(shop.policy, shop.reward) - shop.value(stated.baseline, shop.reward)
    assert found.comparison.interval[0] < apart < found.comparison.interval[1]
    assert found.comparison.verdict in ("better", "worse", "not yet known")
    truth = shop.value(shop.policy, shop.complaint)
    low, high = found.rails["complaint"].interval
    assert low < truth < high
    assert found.required["complaint"] == pytest.approx(1.3 * truth, rel=0.1)


def check_round_trip(shop, table, horizon, far):
    """Every estimate within `far` standard errors of the truth, the standard errors from the truth."""
    fitted = read_log(table, next_state="next_state").fit(horizon)
    S, A = shop.reward.shape
    assert fitted.model.state_names == tuple(f"page-{s:02d}" for s in range(S))
    counts = fitted.sums.rewards.counts
    model = believed(fitted.model, fitted.sums)
    P, n = shop.P.reshape(S * A, S + 1), np.zeros(S * A)
    for (pair, _), count in fitted.sums.moves.items():
        n[pair] += count
    n += fitted.sums.ends
    frequencies = np.hstack([model.transitions.toarray(), np.zeros((S * A, 1))])
    frequencies[:, S] = fitted.sums.ends / np.maximum(n, 1)
    z = (frequencies - P) / np.sqrt(np.maximum(P * (1 - P), 1e-12) / np.maximum(n, 1)[:, None])
    visits = counts.sum(axis=1)
    b = (fitted.baseline - shop.policy) / np.sqrt(shop.policy * (1 - shop.policy) / visits[:, None])
    r = (fitted.sums.rewards.mean - shop.reward) * np.sqrt(counts)
    v = [
        (fitted.reward.value - shop.value(shop.policy, shop.reward)) / fitted.reward.stderr,
        (fitted.values["complaint"].value - shop.value(shop.policy, shop.complaint))
        / fitted.values["complaint"].stderr,
    ]
    for name, found in (
        ("moves", z[(P > 0) & (n[:, None] * P > 20)]),
        ("baseline", b),
        ("rewards", r),
        ("values", v),
    ):
        assert np.max(np.abs(found)) < far, name
    assert not frequencies[P == 0].any()
    return fitted


def test_a_log_of_a_known_world_gives_it_back():
    """8 states, 1,500 episodes; about 200 numbers, each beyond 4.5 errors with probability 7e-6."""
    shop = Shop.drawn(8, 3, 6, seed=1)
    check_round_trip(shop, shop.log(1500, 2), 6, 4.5)


def test_intervals_hold_as_often_as_they_say():
    """100 logs of 300 episodes: 95 hold on average; fewer than 86 of 100 with probability 2e-4, each of 3."""
    shop = Shop.drawn(5, 2, 4, seed=2)
    target = np.roll(shop.policy, 1, axis=1)
    truths = (
        shop.value(shop.policy, shop.reward),
        shop.value(shop.policy, shop.complaint),
        shop.value(target, shop.reward),
    )
    held = np.zeros(3)
    for seed in range(100):
        fitted = read_log(shop.log(300, seed), next_state="next_state").fit(4)
        found = fitted.reward, fitted.values["complaint"], fitted.off_policy(target).certainty
        held += [one.interval[0] < truth < one.interval[1] for one, truth in zip(found, truths, strict=True)]
    assert (held >= 86).all()


def rewards_of(values, **columns):
    """A log of one state and one action with these rewards, one an episode."""
    count = len(values)
    given = {"episode": range(count), "step": [0] * count, "state": ["a"] * count, "action": ["x"] * count}
    return read_log({**given, "reward": values, "complaint": [0] * count, **columns}).fit(1)


def test_few_different_rewards_propose_their_bounds():
    fitted = rewards_of([0.0, 1.0, 1.0, 0.0])
    assert fitted.proposed_reward == saver.Bounded(0.0, 1.0)
    line = (
        "a promise about rewards that the log allows, if you can confirm it: reward=saver.Bounded(0.0, 1.0)\n"
    )
    assert line in fitted.report()
    assert rewards_of([1.0, 2.0, 3.0, 4.0, 5.0] * 3).proposed_reward == saver.Bounded(1.0, 5.0)


def test_many_different_rewards_propose_a_scale_a_little_beyond_what_was_seen():
    # -1 and 1 in turn, apart by less than 1e-3: deviation 1 without an error, and nothing farther than that.
    values = [(-1.0) ** k * (1.0 + 1e-6 * (k % 20)) for k in range(400)]
    found = rewards_of(values).proposed_reward
    assert isinstance(found, saver.SubGaussian)
    assert found.scale == pytest.approx(1.01, abs=0.011)
    assert (found.floor, found.ceiling) == (-1.01, 1.01)
    # One of them 60 away: normal noise whose farthest of 400 is there has deviation 60 / sqrt(2 log 800).
    far = rewards_of([*values[:-1], 60.0]).proposed_reward
    deviation = np.std([*values[:-1], 60.0], ddof=1)
    assert far.scale > 4 * deviation
    assert far.scale >= (60.0 - 0.16) / np.sqrt(2 * np.log(800))


def test_a_proposal_is_what_the_log_does_not_contradict_and_is_never_used_unasked(log, shop):
    fitted = log.fit(5)
    guards = {"complaint": {"alpha": 0.3, "cost": True}}
    assert fitted.problem(shop.policy, guards).reward is None
    stated = fitted.problem(shop.policy, guards, reward=fitted.proposed_reward)
    assert not [
        said for said in fitted.against(stated) if said.startswith("reward was") or "deviation" in said
    ]
    shown = fitted.report().splitlines()[-1]
    promise = eval(shown.partition("reward=")[2], {"saver": saver})
    assert promise == fitted.proposed_reward


@pytest.mark.parametrize("values", [[0.5] * 4, [0.1] * 10_000, list(range(11))[:1]])
def test_rewards_that_never_vary_propose_nothing(values):
    fitted = rewards_of(values)
    assert fitted.proposed_reward is None
    assert "the log shows nothing of how rewards vary: say between what they can lie" in fitted.report()


def test_rewards_of_pairs_seen_once_propose_nothing():
    states = [f"s{k}" for k in range(12)]
    assert rewards_of([float(k) for k in range(12)], state=states).proposed_reward is None
