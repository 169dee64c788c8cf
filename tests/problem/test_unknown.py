"""A model whose transitions nobody knows: what it takes, what it refuses, what is believed of it."""

import numpy as np
import pytest
from scipy import sparse

from saver import END, Bounded, Episode, Guardrail, Mdp, Problem, SubGaussian, Unknown, load, save
from saver.errors import InvalidData, InvalidProblem

EVEN = np.full((3, 2), 0.5)


def small(**options):
    return Unknown(3, 2, 4, **options)


def test_any_move_and_any_end_is_data():
    mdp = small()
    for states, final in (([0, 2, 1, 0], 2), ([2], END), ([1, 1], None), ([0, 1, 2, 0], END)):
        episode = Episode(states, [0] * len(states), [0.0] * len(states), final_state=final)
        assert episode.check(mdp) is episode


@pytest.mark.parametrize(
    ("states", "actions", "final", "complete", "message"),
    [
        ([3], [0], None, True, r"states\[0\] is 3; it must be from 0 to 2"),
        ([0], [2], None, True, r"actions\[0\] is 2; it must be from 0 to 1"),
        ([0] * 5, [0] * 5, None, True, "5 steps; it must have 1 to 4"),
        ([0] * 4, [0] * 4, 3, True, "final_state is 3; it must be from 0 to 2"),
        ([0, 1], [0, 0], 2, True, r"after 2 of 4 steps; tell saver.END if .* or complete=False .*a history"),
        ([0, 1], [0, 0], END, False, "nothing was cut off; tell it without complete=False"),
        ([0] * 4, [0] * 4, None, False, "nothing was cut off"),
    ],
)
def test_refuses_what_cannot_be(states, actions, final, complete, message):
    episode = Episode(states, actions, [0.0] * len(states), final_state=final)
    with pytest.raises(InvalidData, match=message):
        episode.check(small(), complete)


def test_a_given_start_and_missing_actions_are_enforced():
    available = np.array([[True, True], [True, False], [True, True]])
    mdp = small(start=1, available=available, state_names=("a", "b", "c"))
    with pytest.raises(InvalidData, match=r"starts in state 0 \(a\), which has probability 0"):
        Episode([0], [0], [0.0]).check(mdp)
    with pytest.raises(InvalidData, match=r"action 1 in state 1 \(b\) at step 0 is missing from the model"):
        Episode([1], [1], [0.0]).check(mdp)
    with pytest.raises(InvalidProblem, match="state 2 has no available action"):
        small(available=np.array([[True, True], [True, False], [False, False]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": 0}, "states is 0"),
        ({"actions": 2.5}, "actions is 2.5"),
        ({"horizon": 0}, "horizon is 0"),
        ({"discount": 0.0}, "discount is 0"),
        ({"start": 7}, "start is 7; it must be a state from 0 to 2"),
        ({"state_names": ["a"]}, "state_names has 1 entries; it must have 3"),
        ({"states": 10**6, "actions": 10**4}, "more than 10\\^9 pairs"),
    ],
)
def test_refuses_broken_numbers(options, message):
    given = {"states": 3, "actions": 2, "horizon": 4} | options
    sizes = [given.pop(name) for name in ("states", "actions", "horizon")]
    with pytest.raises(InvalidProblem, match=message):
        Unknown(*sizes, **given)


def test_a_known_model_refuses_a_rare_move_and_names_the_remedy():
    moves = np.zeros((2, 1, 2))
    moves[0, 0, 1] = 1.0
    known, unknown = Mdp(moves, 3), Unknown(2, 1, 3)
    rare = Episode([0, 0], [0, 0], [0.0, 0.0])
    with pytest.raises(InvalidData, match=r"cannot lead to state 0 in this model.*saver\.Unknown"):
        rare.check(known)
    rare.check(unknown)


def test_what_is_believed_are_frequencies():
    mdp = small()
    counts = sparse.csr_array((np.array([3.0, 1.0]), ([0, 0], [1, 2])), shape=(6, 3))
    ends = np.zeros(6)
    ends[0], ends[3] = 4.0, 2.0
    found = mdp.believed(counts, ends, np.array([6.0, 2.0, 0.0]))
    assert found.transitions[[0]].toarray().tolist() == [[0.0, 3 / 8, 1 / 8]]  # half of the outcomes are ends
    assert found.transitions[[3]].nnz == 0
    assert found.start.tolist() == [0.75, 0.25, 0.0]
    nothing = mdp.believed(sparse.csr_array((6, 3)), np.zeros(6), np.zeros(3))
    assert nothing.start.tolist() == pytest.approx([1 / 3] * 3)


def test_what_a_baseline_can_be_worth_without_a_model():
    """Episodes have 1 to 4 steps: discounted by .5 they last from 1 to 1.875."""
    mdp = small(discount=0.5)

    def rail(promise, **options):
        guard = Guardrail("x", promise, allowance=1.0, **options)
        (found,) = Problem(mdp, EVEN, EVEN, guardrails=[guard]).rails
        return found.low, found.high

    assert rail(Bounded(0.0, 2.0)) == (0.0, 3.75)
    assert rail(Bounded(1.0, 2.0)) == (1.0, 3.75)
    assert rail(Bounded(-2.0, -1.0)) == (-3.75, -1.0)
    assert rail(Bounded(1.0, 2.0), cost=True) == (-3.75, -1.0)
    assert rail(SubGaussian(0.1, floor=-1.0, ceiling=2.0)) == (-1.875, 3.75)
    with pytest.raises(InvalidProblem, match=r"allow the baseline only \[0, 1.875\]"):
        rail(Bounded(0.0, 1.0), baseline_value=2.0)


def test_files_keep_it(tmp_path):
    problem = Problem(
        small(state_names=("a", "b", "c")),
        EVEN,
        EVEN,
        alpha=0.2,
        baseline_value=1.0,
        constraint=Bounded(0.0, 1.0),
    )
    save(problem, tmp_path / "problem.json")
    again = load(tmp_path / "problem.json").mdp
    assert (again.states, again.actions, again.horizon, again.start) == (3, 2, 4, None)
    assert again.state_names == ("a", "b", "c")
    assert not again.known


def test_what_needs_a_model_says_so():
    from saver.design import Planner
    from saver.problem import weights

    for function in (Planner, lambda mdp: weights(mdp, EVEN)):
        with pytest.raises(InvalidProblem, match=r"saver\.Unknown; this needs known transitions"):
            function(small())
