"""`simulate` and `Runs`: what they record, where they keep it, what they refuse."""

import dataclasses
import re

import numpy as np
import pytest

from saver import Collector, Gaussian, Runs, Scenario, World, scenarios, simulate
from saver.errors import InvalidData, InvalidProblem
from saver.simulator import Truth

ASKED = scenarios.bandit(actions=4, noisy_variance=1.0)


def test_what_is_recorded_by_hand():
    # The baseline alone: value .5 each time, required .375: budget k / 8, worst 1/8, everything baseline.
    found = simulate(ASKED, "baseline", episodes=8, runs=3, checkpoints=[2, 4])
    assert found.checkpoints.tolist() == [2, 4, 8]
    np.testing.assert_allclose(found.budget, [[0.25, 0.5, 1.0]] * 3)
    np.testing.assert_allclose(found.ledger, found.budget)
    np.testing.assert_allclose(found.worst_budget, 0.125)
    np.testing.assert_allclose(found.baseline_share, 1.0)
    assert found.violation_rate() == 0.0
    # Only action 0 is seen: Y is its mean, with bias .5 - V and variance 1e-4 / k.
    truth = 0.4 * 0.5 + 0.4 * 0.9 + 0.1 * (0.02 + 0.03)
    assert found.true_value == pytest.approx(truth)
    expected = 1e-4 / np.array([2, 4, 8]) + (0.5 - truth) ** 2
    np.testing.assert_allclose(found.conditional_mse, [expected] * 3)


def test_conditional_mse_by_hand_when_all_is_seen():
    truth = Truth(ASKED)
    counts = np.array([[1, 2, 4, 5]])
    c, variance = ASKED.problem.target, ASKED.world.reward.variance
    assert truth.conditional_mse(counts, "target") == pytest.approx(np.sum(c**2 * variance / counts))
    assert np.isnan(truth.conditional_mse(np.zeros((1, 4), dtype=int), "target"))


def test_empirical_and_conditional_errors_agree():
    # 300 runs: a relative standard error of sqrt(2 / 300); five of them have a probability below 1e-6.
    found = simulate(ASKED, "on-policy", episodes=60, runs=300, checkpoints=[60])
    empirical, error = found.mse()
    assert abs(empirical[-1] - found.conditional_mse[:, -1].mean()) < 5 * error[-1]


def test_equal_seeds_give_equal_results_and_runs_do_not_depend_on_each_other():
    one = simulate(ASKED, "saver", episodes=50, runs=3, seed=7)
    two = simulate(ASKED, "saver", episodes=50, runs=5, seed=np.random.SeedSequence(7))
    np.testing.assert_array_equal(one.estimates, two.estimates[:3])
    other = simulate(ASKED, "saver", episodes=50, runs=3, seed=8)
    assert not np.array_equal(one.estimates, other.estimates)
    sequence = np.random.SeedSequence(7)
    simulate(ASKED, "saver", episodes=5, runs=1, seed=sequence)
    assert sequence.n_children_spawned == 0


def test_default_checkpoints_end_with_the_last_episode():
    found = simulate(ASKED, "uniform", episodes=1000, runs=1)
    assert found.checkpoints[0] == 1
    assert found.checkpoints[-1] == 1000
    assert len(found.checkpoints) <= 30
    assert simulate(ASKED, "uniform", episodes=1, runs=1).checkpoints.tolist() == [1]


def test_importance_has_no_conditional_error():
    collector = Collector(
        design="target", explore="none", track="sample", ledger="none", gate="none", estimate="importance"
    )
    found = simulate(ASKED, collector, episodes=200, runs=20, checkpoints=[200])
    assert np.all(np.isnan(found.conditional_mse))
    empirical, error = found.mse()
    assert empirical[-1] < 0.1
    assert error[-1] > 0


def test_a_problem_that_is_wrong_about_its_world_can_be_simulated():
    # The world is worth half of what the problem says: the believed budget is then too high.
    poor = Gaussian(0.5 * ASKED.world.constraint.mean, 0.01)
    wrong = Scenario("wrong", World(ASKED.problem.mdp, ASKED.world.reward, poor), ASKED.problem, 100)
    found = simulate(wrong, "baseline", episodes=100, runs=1)
    assert found.ledger[0, -1] > found.budget[0, -1]
    assert found.violation_rate() == 1.0


def test_runs_survive_a_round_trip_and_bad_files_are_refused(tmp_path):
    found = simulate(ASKED, "saver", episodes=20, runs=2)
    path = tmp_path / "runs.npz"
    found.save(path)
    again = Runs.load(path)
    for field in dataclasses.fields(Runs):  # arrays, numbers, and arrays by name
        np.testing.assert_equal(getattr(again, field.name), getattr(found, field.name))
    assert [item.name for item in tmp_path.iterdir()] == ["runs.npz"]
    for content in (b"", b"PK\x03\x04broken", path.read_bytes()[:200], b"\x80\x04N."):
        bad = tmp_path / "bad.npz"
        bad.write_bytes(content)
        with pytest.raises(InvalidData, match=r"bad\.npz is not a file that Runs\.save wrote"):
            Runs.load(bad)
    with pytest.raises(InvalidData, match="nowhere"):
        Runs.load(tmp_path / "nowhere.npz")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(InvalidData, match=r"other\.npz is not a file"):
        Runs.load(tmp_path / "other.npz")


def test_files_with_other_shapes_and_missing_folders_are_refused(tmp_path):
    found = simulate(ASKED, "saver", episodes=20, runs=2)
    odd = dataclasses.replace(found, estimates=np.zeros((7, 3)))
    odd.save(tmp_path / "odd.npz")
    with pytest.raises(
        InvalidData, match=r"odd\.npz is not a file that Runs\.save wrote: estimates has shape"
    ):
        Runs.load(tmp_path / "odd.npz")
    with pytest.raises(InvalidData, match=r"cannot write .*: No such file or directory; give another path"):
        found.save(tmp_path / "nowhere" / "runs.npz")


def test_to_frame_gives_a_table_or_names_the_extra():
    found = simulate(ASKED, "uniform", episodes=10, runs=2, checkpoints=[5])
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(Exception, match=r"saver-rl\[frame\]"):
            found.to_frame()
        return
    frame = found.to_frame()
    assert len(frame) == 4
    assert frame["episode"].tolist() == [5, 10, 5, 10]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"collector": "nothing"}, "no collector 'nothing'"),
        ({"engine": "warp"}, "engine is 'warp'; it must be"),
        ({"runs": 0}, "runs is 0; it must be at least 1"),
        ({"episodes": 0}, "episodes is 0"),
        ({"checkpoints": [0]}, "checkpoints holds 0; it must be from 1 to 10"),
        ({"checkpoints": [11]}, "checkpoints holds 11"),
        ({"checkpoints": [1.5]}, "it must be a list of episode counts"),
        ({"checkpoints": [1, [2, 3]]}, "it must be a list of episode counts"),
        ({"threads": 0}, "threads is 0"),
        ({"scenario": None}, r"scenario is NoneType; it must be a saver\.Scenario"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    arguments = {"scenario": ASKED, "collector": "saver", "episodes": 10, "runs": 1} | change
    with pytest.raises(InvalidProblem, match=message):
        simulate(arguments.pop("scenario"), arguments.pop("collector"), **arguments)


def test_progress_counts_on_standard_error_and_does_not_change_results(capsys):
    shown = simulate(ASKED, "saver", episodes=10, runs=40, progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0] == "campaigns: 0 of 40"
    assert lines[-1] == "campaigns: 40 of 40"
    assert len(lines) <= 11
    told = []
    quiet = simulate(ASKED, "saver", episodes=10, runs=40, progress=told.append)
    np.testing.assert_array_equal(shown.estimates, quiet.estimates)
    assert sum(told) == 40
    assert capsys.readouterr().err == ""


def test_runs_show_themselves_in_one_line():
    shown = repr(simulate(ASKED, "saver", episodes=1200, runs=5, seed=1, checkpoints=[600]))
    assert re.fullmatch(
        r"Runs\(5 campaigns of 1,200 episodes at 2 checkpoints; at the end K \* MSE [\d.]+ ± [\d.]+, "
        r"baseline share [\d.]+%, violation rate 0\.00%\)",
        shown,
    )
