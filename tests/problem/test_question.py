"""What is asked: weights of either sign; designs for them by hand, by the program, by any reference."""

import dataclasses
import itertools

import numpy as np
import pytest

import saver
from saver import Bounded, Problem
from saver.design import exact, tree
from saver.errors import InvalidPolicy, InvalidProblem
from saver.problem import visits, weights
from saver.problem.bellman import mixture, question
from saver.problem.codec import fingerprint
from saver.scenarios.assembly import bandit_model

COINS = Bounded(0.0, 1.0)


def bandit(target, **options):
    given = {"alpha": 0.5, "baseline_value": 0.5, "constraint": COINS, **options}
    return Problem(bandit_model(3), target, [[1.0, 0.0, 0.0]], **given)


def test_weights_of_values_and_differences_by_hand():
    asked = bandit([[0.2, 0.5, 0.3]], estimand="difference").question
    np.testing.assert_allclose(asked.first, [[-0.8, 0.5, 0.3]])
    np.testing.assert_allclose(asked.size, [[0.8, 0.5, 0.3]])
    several = bandit({"a": [[0.0, 0.6, 0.4]], "b": [[0.0, 0.8, 0.2]]}).question
    assert list(several.weights) == ["a", "b"]
    np.testing.assert_allclose(several.size, [[0.0, 1.0, np.sqrt(0.2)]])
    np.testing.assert_allclose(several.reference, [[0.0, 0.7, 0.3]])


def test_what_both_policies_do_alike_has_no_weight():
    made = saver.SCENARIOS["tree"]()
    same = dataclasses.replace(made.problem, target=made.problem.baseline, estimand="difference")
    assert np.all(same.question.size == 0.0)
    assert saver.Campaign(same, "saver", 5).estimate().value == 0.0


def test_one_value_is_asked_as_before():
    problem = saver.SCENARIOS["gridworld"]().problem
    asked = problem.question
    assert asked.reference is problem.target
    assert np.array_equal(asked.size, weights(problem.mdp, problem.target))
    assert np.all(asked.factor == 1.0)
    named = dataclasses.replace(problem, target={"new": problem.target})
    assert fingerprint(named) != fingerprint(problem)
    assert np.array_equal(named.question.size, asked.size)


def test_the_design_for_a_difference_by_hand():
    # On a bandit b is proportional to |c| deviation: .8, 1, .9 of 2.7.
    problem = bandit([[0.2, 0.5, 0.3]], estimand="difference")
    variance = np.array([[1.0, 4.0, 9.0]])
    b = np.array([[0.8, 1.0, 0.9]]) / 2.7
    found = tree(problem.mdp, problem.question.reference, problem.question.factor * variance)
    np.testing.assert_allclose(found.policy, b)
    best = exact(problem, variance)
    np.testing.assert_allclose(best.policy[0], b, atol=1e-6)
    assert best.limit == pytest.approx(2.7**2)


@pytest.mark.parametrize("estimand", ["value", "difference"])
@pytest.mark.parametrize("seed", range(3))
def test_on_trees_the_closed_form_is_the_exact_optimum_for_several_targets(seed, estimand):
    made = saver.SCENARIOS["tree"](depth=3)
    rng, mdp = np.random.default_rng(seed), made.problem.mdp
    policies = {str(i): rng.dirichlet(np.ones(mdp.actions), mdp.states) for i in range(3)}
    problem = dataclasses.replace(made.problem, target=policies, estimand=estimand)
    variance = rng.random((mdp.states, mdp.actions))
    asked = problem.question
    closed = tree(mdp, asked.reference, asked.factor * variance).policy
    cost, d = asked.size**2 * variance, visits(mdp, closed)
    used = cost > 0
    assert np.sum(cost[used] / d[used]) == pytest.approx(exact(problem, variance).limit, rel=1e-4)


def test_any_reference_gives_the_same_design_on_a_tree():
    made = saver.SCENARIOS["tree"](depth=3)
    mdp, rng = made.problem.mdp, np.random.default_rng(5)
    variance = rng.random((mdp.states, mdp.actions))
    size = question(mdp, {"t": made.problem.target}, made.problem.baseline, "value").size
    designs = []
    for other in (mdp.uniform, rng.dirichlet(np.ones(mdp.actions), mdp.states)):
        factor = (size / weights(mdp, other)) ** 2
        designs.append(tree(mdp, other, np.where(np.isfinite(factor), factor, 0.0) * variance).policy)
    own = tree(mdp, made.problem.target, variance).policy
    reached = mdp.reachable & (mdp.available.sum(axis=1) > 1)
    for found in designs:
        np.testing.assert_allclose(found[reached], own[reached], atol=1e-9)


def test_a_mixture_visits_as_its_parts_do_on_average():
    made = saver.SCENARIOS["gridworld"](size=3)
    mdp, policies = made.problem.mdp, [made.problem.target, made.problem.baseline]
    mean = np.mean([visits(mdp, policy) for policy in policies], axis=0)
    np.testing.assert_allclose(visits(mdp, mixture(mdp, policies)), mean, atol=1e-12)


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        ({}, InvalidProblem, "target has no policy"),
        ({"baseline": [[1, 0, 0]]}, InvalidProblem, "'baseline', which is taken"),
        ({3: [[1, 0, 0]]}, InvalidProblem, "has the name 3"),
        ({"a": [[1, 0]]}, InvalidPolicy, r"target\['a'\]"),
    ],
)
def test_bad_targets_are_named(target, error, text):
    with pytest.raises(error, match=text):
        bandit(target)


def test_a_bad_estimand_is_named():
    with pytest.raises(InvalidProblem, match="estimand is 'ratio'"):
        bandit([[1, 0, 0]], estimand="ratio")


def test_problems_with_names_can_be_saved_and_loaded(tmp_path):
    problem = bandit({"a": [[0.0, 0.6, 0.4]], "b": [[0.0, 0.8, 0.2]]}, estimand="difference")
    saver.save(problem, tmp_path / "p.json")
    again = saver.load(tmp_path / "p.json")
    assert fingerprint(again) == fingerprint(problem)
    assert list(again.targets) == ["a", "b"]
    for name, policy in itertools.chain(problem.targets.items()):
        assert np.array_equal(again.targets[name], policy)


def test_exact_designs_for_differences_are_no_worse_than_those_for_values():
    problem = saver.SCENARIOS["gridworld"](size=3).problem
    other = dataclasses.replace(problem, estimand="difference")
    variance = np.random.default_rng(0).random((problem.mdp.states, problem.mdp.actions))
    own, value = exact(other, variance), exact(problem, variance)
    cost, d = other.question.size**2 * variance, visits(problem.mdp, value.policy)
    used = cost > 0
    assert own.limit <= np.sum(cost[used] / np.maximum(d[used], 1e-12)) * (1 + 1e-3)
