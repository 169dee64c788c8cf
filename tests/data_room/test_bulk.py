"""Many episodes taken in at once say the same as one by one."""

import numpy as np
import pytest

from saver import END, Bounded, Episode, Guardrail, History, Mdp, Player, Problem, Unknown, scenarios
from saver.collect import Campaign
from saver.errors import InvalidData
from saver.estimate import Log
from saver.problem.codec import pack
from saver.problem.episode import Columns
from saver.problem.moments import tallied

CALLS = Guardrail("calls", Bounded(0.0, 2.0), allowance=1.0, cost=True)
KEPT = Guardrail("kept", Bounded(0.0, 1.0), alpha=0.5, baseline_value=0.9)
BASELINE = np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
MDP = Unknown(4, 3, 5, discount=0.9)


def played(count, seed=0, likely=True, finals=True):
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        length = int(rng.integers(1, 6))
        s = rng.integers(0, 4, length)
        a = np.array([rng.choice(3, p=BASELINE[state]) for state in s])
        kept = rng.random(length) if rng.random() < 0.8 else None
        final = int(rng.integers(0, 4)) if length == 5 else END
        made.append(
            Episode(
                s,
                a,
                rng.normal(2.0, 3.0, length),
                {"calls": rng.random(length) * 2, "kept": kept},
                propensities=BASELINE[s, a] if likely else None,
                final_state=final if finals else None,
            )
        )
    return made


def same(one, other):
    assert dict(one.moves) == dict(other.moves)
    assert one.ends.tolist() == other.ends.tolist()
    assert one.starts.tolist() == other.starts.tolist()
    assert one.episodes == other.episodes
    assert one.paid.keys() == other.paid.keys()
    assert [one.paid[key] for key in one.paid] == pytest.approx([other.paid[key] for key in one.paid])
    same_moments(one.rewards, other.rewards)
    assert one.weighted == pytest.approx(other.weighted, rel=1e-10)
    assert one.weighted_seen.tolist() == other.weighted_seen.tolist()


def same_moments(one, other):
    assert one.counts.tolist() == other.counts.tolist()
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(one.squares, other.squares, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("finals", [True, False])
def test_history_is_the_same_all_at_once_and_one_by_one(finals):
    problem = Problem(MDP, BASELINE, BASELINE, guardrails=[CALLS, KEPT])
    episodes = played(300, finals=finals)
    slow, fast = History.of(problem, episodes), History.of(problem, Columns.of(episodes))
    same(fast.sums, slow.sums)
    assert fast.made_for == slow.made_for
    for name in ("calls", "kept"):
        one, other = fast.rails[name], slow.rails[name]
        same_moments(one.seen, other.seen)
        np.testing.assert_allclose(one.realised, other.realised, rtol=1e-12)
        numbers = [(x.count, x.gained, x.noise, x.length, x.squares, x.guessed) for x in (one, other)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-10)
    assert fast.rails["kept"].count < 300  # some were not measured
    assert pack(fast)  # it can be written


def test_a_log_is_the_same_all_at_once_and_one_by_one_also_in_parts():
    mdp = scenarios.lake().problem.mdp
    problem, world = scenarios.lake().problem, scenarios.lake().world
    campaign, player = Campaign(problem, "baseline", episodes=200, seed=1), Player(world, seed=2)
    episodes = []
    for _ in range(200):
        trial = campaign.ask()
        one = Episode(*player.run(trial))
        row = problem.baseline[one.states, one.actions] if problem.baseline.ndim == 2 else None
        episodes.append(
            Episode(one.states, one.actions, one.rewards, {"constraint": one.constraints}, propensities=row)
        )
        campaign.tell(trial, *one)
    slow, fast = Log(mdp, problem.first), Log(mdp, problem.first)
    for one in episodes:
        slow.add(one)
    fast.extend(Columns.of(episodes[:70]))
    fast.extend(Columns.of(episodes[70:]))
    same(fast.sums, slow.sums)
    for kind in ("certainty", "certainty-estimated", "importance"):
        assert fast.estimate(kind).value == pytest.approx(slow.estimate(kind).value)
        assert fast.estimate(kind).interval == pytest.approx(slow.estimate(kind).interval)


def test_cut_off_episodes_teach_moves_and_are_not_weighted():
    one = Episode([0, 1], [0, 1], [1.0, 2.0], propensities=[0.5, 0.5])
    slow, fast = Log(MDP, BASELINE), Log(MDP, BASELINE)
    slow.add(one, complete=False)
    slow.add(one)
    fast.extend(Columns.of([one, one], complete=[False, True]))
    same(fast.sums, slow.sums)
    assert fast.sums.ends.sum() == 1


def test_episodes_come_back_as_they_went_in():
    episodes = played(20)
    for given, found in zip(episodes, Columns.of(episodes), strict=True):
        assert found.states.tolist() == given.states.tolist()
        assert found.final_state == given.final_state
        assert (found.constraints["kept"] is None) == (given.constraints["kept"] is None)
        assert found.propensities.tolist() == given.propensities.tolist()


def test_cut_at_the_horizon_the_next_state_is_seen():
    many = Columns.of([Episode([0, 1, 2], [0, 0, 1], [1.0, 2.0, 3.0], final_state=3), Episode([3], [0], [1])])
    cut = many.until(2)
    assert cut.states.tolist() == [0, 1, 3]
    assert cut.final_states.tolist() == [2, -2]
    assert cut.offsets.tolist() == [0, 2, 3]


WRONG = {
    "states[1] is 4": Episode([0, 4], [0, 0], [1.0, 1.0], {"calls": [1, 1], "kept": None}),
    "has 6 steps": Episode([0] * 6, [0] * 6, [1.0] * 6, {"calls": [1] * 6, "kept": None}),
    "probability 0 under the baseline": Episode([0], [2], [1.0], {"calls": [1], "kept": None}),
    "outside the declared bounds": Episode([0], [0], [1.0], {"calls": [3], "kept": None}),
    "is None, and the baseline's value is learned": Episode([0], [0], [1.0], {"calls": None, "kept": [1]}),
    "final_state is 2 after 1 of 5": Episode([0], [0], [1.0], {"calls": [1], "kept": None}, final_state=2),
    "final_state is 9": Episode([0] * 5, [0] * 5, [1] * 5, {"calls": [1] * 5, "kept": None}, final_state=9),
}


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_episode_among_many_is_refused_in_the_same_words(said):
    problem = Problem(MDP, BASELINE, BASELINE, guardrails=[CALLS, KEPT])
    episodes = [*played(10, likely=False), WRONG[said], *played(10, 1, likely=False)]
    with pytest.raises(InvalidData) as slow:
        History.of(problem, episodes)
    with pytest.raises(InvalidData) as fast:
        History.of(problem, Columns.of(episodes))
    assert str(fast.value) == str(slow.value)
    assert said in str(fast.value)
    assert "history[10]" in str(fast.value)


def test_other_propensities_than_the_baselines_are_refused():
    problem = Problem(MDP, BASELINE, BASELINE, guardrails=[CALLS, KEPT])
    wrong = Episode([0], [0], [1.0], {"calls": [1], "kept": None}, propensities=[0.6])
    with pytest.raises(InvalidData, match=r"history\[4\].*propensities\[0\] is 0.6"):
        History.of(problem, Columns.of([*played(4), wrong]))


def test_an_impossible_move_and_a_wrong_end_are_refused_where_transitions_are_known():
    mdp = Mdp.from_edges([(0, 0, 1, 1.0), (1, 0, 2, 0.5), (1, 0, 0, 0.5)], 3, 1, 3, terminal=[2])
    good = Episode([0, 1], [0, 0], [1.0, 1.0])
    log = Log(mdp, np.ones((3, 1)))
    log.extend(Columns.of([good, good]))
    assert log.episodes == 2
    for wrong in (Episode([0, 0], [0, 0], [1.0, 1.0]), Episode([0], [0], [1.0])):
        with pytest.raises(InvalidData):
            log.extend(Columns.of([good, wrong]))
    assert log.episodes == 2


def test_rare_codes_are_tallied_by_sorting_as_by_counting():
    rng = np.random.default_rng(0)
    codes, values = rng.integers(0, 50, 1000), rng.random(1000)
    for one, other in zip(tallied(codes, values, 50), tallied(codes, values, 2**40), strict=True):
        np.testing.assert_allclose(one, other)
