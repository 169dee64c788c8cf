"""Promises about rewards: numbers or tables, what they refuse, when they are equal, and how they travel."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

import saver
from saver import Bounded, Mdp, Problem, SubGaussian
from saver.errors import InvalidProblem
from saver.problem.codec import fingerprint, pack, unpack

MDP = Mdp(np.zeros((2, 3, 2)), 1, start=[0.5, 0.5])
SCALE = [[0.1, 2.0, 0.0], [1.0, 1.0, 3.0]]
LOW = [[0.0, -1.0, 0.0], [0.0, 0.0, -5.0]]
HIGH = [[1.0, 1.0, 1.0], [2.0, 1.0, 5.0]]
TABLES = {"sub-gaussian": SubGaussian(SCALE, LOW, 6.0), "bounded": Bounded(LOW, HIGH)}


def problem(**changes):
    given = {"alpha": 0.25, "baseline_value": 0.5, "constraint": SubGaussian(0.1)} | changes
    even = np.full((2, 3), 1 / 3)
    return Problem(MDP, even, even, **given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SubGaussian([[0.1, -0.1]]), r"scale\[0, 1\] is -0\.1; it must be at least 0"),
        (lambda: SubGaussian([[0.1, np.nan]]), r"scale\[0, 1\] is nan; every entry must be a finite number"),
        (lambda: SubGaussian([0.1, 0.2]), r"scale has shape \(2,\); it must be one number or \(states, act"),
        (lambda: SubGaussian([[0.1], [0.1, 0.2]]), "scale must be an array of numbers"),
        (lambda: SubGaussian(np.zeros((0, 2))), r"scale has shape \(0, 2\)"),
        (lambda: SubGaussian("0.1"), "scale is '0.1'; it must be a number"),
        (lambda: SubGaussian(None), "scale is None; it must be a number"),
        (
            lambda: SubGaussian(1.0, 0.5, [[1.0, 0.5]]),
            r"floor\[0, 1\] is 0\.5 and ceiling\[0, 1\] is 0\.5; floor must be below ceiling",
        ),
        (
            lambda: SubGaussian([[1.0, 1.0]], [[0.0]]),
            r"one shape, but scale has \(1, 2\) and floor has \(1, 1",
        ),
        (
            lambda: Bounded([[0.0, 2.0]], 1.0),
            r"low\[0, 1\] is 2 and high\[0, 1\] is 1; low must be below high",
        ),
        (lambda: Bounded([[0.0, np.inf]], 1.0), r"low\[0, 1\] is inf"),
        (lambda: problem(reward=0.1), r"reward is 0\.1; it must be a saver\.SubGaussian or a saver\.Bounded"),
        (lambda: problem(constraint=None), "constraint is None; it must be"),
        (
            lambda: problem(reward=SubGaussian([[0.1, 0.2]])),
            r"reward\.scale has shape \(1, 2\); for this model it must be one number or \(2, 3\)",
        ),
        (lambda: problem(reward=Bounded(0, np.ones((3, 2)))), r"reward\.high has shape \(3, 2\)"),
        (
            lambda: problem(reward=Bounded(0, 1, next_state=True)),
            "reward.next_state is True; .* leave it out",
        ),
        (
            lambda: problem(constraint=SubGaussian(SCALE)),
            r"constraint\.scale has shape \(2, 3\); promises for each pair are for rewards: give one number",
        ),
    ],
)
def test_what_cannot_be_promised_is_refused(make, message):
    with pytest.raises(InvalidProblem, match=message):
        make()


def test_tables_are_copied_and_cannot_be_written():
    scale = np.array(SCALE)
    promise = SubGaussian(scale)
    scale[0, 0] = 9.0
    for each in (promise, copy.deepcopy(promise), pickle.loads(pickle.dumps(promise))):
        assert each.scale[0, 0] == 0.1
        with pytest.raises(ValueError, match="read-only"):
            each.scale[0, 0] = 1.0


def test_a_model_sees_every_promise_as_tables():
    # bounds of the sub-Gaussian one: 1e4 scales and 1e-9 of the larger of |floor| and |ceiling| beyond both
    mine = TABLES["sub-gaussian"].tables(MDP)
    np.testing.assert_array_equal(mine.scale, SCALE)
    np.testing.assert_array_equal(mine.floor, LOW)
    np.testing.assert_array_equal(mine.ceiling, np.full((2, 3), 6.0))
    np.testing.assert_allclose(mine.low, np.array(LOW) - 1e4 * np.array(SCALE), atol=1e-8)
    np.testing.assert_allclose(mine.high, 6.0 + 1e4 * np.array(SCALE), atol=1e-8)
    assert mine.high[0, 2] > 6.0  # without noise an observation is its mean, up to rounding
    mine = TABLES["bounded"].tables(MDP)
    np.testing.assert_array_equal(mine.scale, [[0.5, 1.0, 0.5], [1.0, 0.5, 5.0]])
    for name, wanted in (("floor", LOW), ("low", LOW), ("ceiling", HIGH), ("high", HIGH)):
        np.testing.assert_array_equal(getattr(mine, name), wanted)
    for one in Bounded(0, 2).tables(MDP):
        assert (one.shape, one.dtype) == ((2, 3), np.float64)


def test_promises_that_say_the_same_are_equal():
    for make in (lambda: SubGaussian(0.1), lambda: SubGaussian(SCALE, LOW, 6.0), lambda: Bounded(LOW, HIGH)):
        assert make() == make()
        assert hash(make()) == hash(make())
        assert len({make(), make()}) == 1
        assert make() != dataclasses.replace(make(), next_state=True)
    assert Bounded(0, 1) == Bounded(0.0, 1.0) != Bounded(0.0, 2.0)
    assert SubGaussian(0.5, 0.0, 1.0) != Bounded(0.0, 1.0)
    assert SubGaussian(SCALE) != SubGaussian(np.array(SCALE) + 1e-9)
    assert SubGaussian([[0.1]]) != SubGaussian(0.1)
    assert Bounded(0.0, 1.0) != "bounded"
    zero, below = SubGaussian(1.0, [[0.0]]), SubGaussian(1.0, [[-0.0]])
    assert zero == below
    assert hash(zero) == hash(below)


@pytest.mark.parametrize("promise", [*TABLES.values(), SubGaussian(0.2), Bounded(-1.0, 2.0)])
def test_a_promise_about_rewards_comes_back_from_a_file(promise, tmp_path):
    asked = problem(reward=promise)
    saver.save(asked, tmp_path / "kept.json")
    again = saver.load(tmp_path / "kept.json")
    assert again.reward == promise
    assert fingerprint(again) == fingerprint(asked) != fingerprint(problem())
    for small in (False, True):
        assert unpack(json.loads(json.dumps(pack(promise, small=small)))) == promise


def test_a_problem_that_promises_nothing_about_rewards_is_written_as_before():
    assert "reward" not in pack(problem())
    assert fingerprint(problem(reward=SubGaussian(SCALE))) != fingerprint(problem(reward=SubGaussian(1.0)))


def test_the_reward_goes_along_when_something_else_is_replaced():
    asked = dataclasses.replace(problem(reward=TABLES["bounded"]), alpha=0.1)
    assert asked.reward == TABLES["bounded"]
