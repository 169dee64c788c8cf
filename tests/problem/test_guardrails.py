"""Guardrails: four ways of saying what is required, costs, refusals, files, episodes of unequal length."""

import dataclasses
import json
import re

import gymnasium
import numpy as np
import pytest

import saver
from saver import Bounded, Campaign, Episode, Guardrail, Problem, SubGaussian
from saver.errors import InvalidData, InvalidProblem, SaverError
from saver.play import Stage
from saver.problem.mdp import GymTable, greedy
from saver.safety import LEDGERS, Terms

UNIT = SubGaussian(0.1, 0.0, 1.0)
MDP = saver.Mdp(np.zeros((1, 2, 1)), horizon=1)


def asked(*guardrails, **options):
    """A bandit of two actions, the first of which is the baseline."""
    return Problem(MDP, [[0.5, 0.5]], [[1.0, 0.0]], guardrails=guardrails, **options)


def guard(name="calm", promise=UNIT, **said):
    return Guardrail(name, promise, **({"alpha": 0.25, "baseline_value": 0.5} | said))


# -- what is required ----------------------------------------------------------------------------------------

WAYS = {
    # how it is said, then in units where more is better: required, what a baseline episode adds, V0
    "alpha": ({"alpha": 0.25, "baseline_value": 0.5}, 0.375, 0.125, 0.5),
    "allowance": ({"allowance": 0.125, "baseline_value": 0.5}, 0.375, 0.125, 0.5),
    "at_least": ({"at_least": 0.375, "baseline_value": 0.5}, 0.375, 0.125, 0.5),
    "alpha of a cost": ({"alpha": 0.25, "baseline_value": 0.5, "cost": True}, -0.625, 0.125, -0.5),
    "allowance of a cost": ({"allowance": 0.125, "baseline_value": 0.5, "cost": True}, -0.625, 0.125, -0.5),
    "at_most": ({"at_most": 0.625, "baseline_value": 0.5, "cost": True}, -0.625, 0.125, -0.5),
    "twice the cost": ({"alpha": 1.5, "baseline_value": 0.2, "cost": True}, -0.5, 0.3, -0.2),
    "an allowance at nothing": ({"allowance": 0.1, "baseline_value": 0.0}, -0.1, 0.1, 0.0),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_required_and_what_the_baseline_adds(way):
    said, required, credit, value = WAYS[way]
    (rail,) = asked(Guardrail("calm", UNIT, **said)).rails
    assert (rail.required, rail.credit, rail.value) == pytest.approx((required, credit, value))
    assert (rail.low, rail.high, rail.exact, rail.learned) == (value, value, True, False)
    cost = said.get("cost", False)
    assert rail.sign == (-1.0 if cost else 1.0)
    assert (rail.promise.floor, rail.promise.ceiling) == ((-1.0, 0.0) if cost else (0.0, 1.0))
    assert rail.promise.scale == 0.1
    for at in (
        value,
        value + 0.1,
    ):  # both are linear in V0, and a baseline episode keeps what is not required
        assert rail.required_at(at) + rail.credit_at(at) == pytest.approx(at)


@pytest.mark.parametrize(
    ("promise", "negated"),
    [
        (Bounded(0.5, 3.0), Bounded(-3.0, -0.5)),
        (SubGaussian(0.2, -1.0, 4.0), SubGaussian(0.2, -4.0, 1.0)),
        (Bounded(0.0, 1.0, next_state=True), Bounded(-1.0, 0.0, next_state=True)),
    ],
)
def test_a_promise_about_costs_is_turned_round_once(promise, negated):
    (rail,) = asked(
        guard(promise=promise, alpha=0.5, baseline_value=1.0 if promise.ceiling > 1 else 0.5, cost=True)
    ).rails
    assert rail.promise == negated


def test_an_interval_of_a_cost_is_turned_round():
    (rail,) = asked(guard(alpha=0.5, baseline_value=(0.2, 0.3), cost=True)).rails
    assert (rail.low, rail.high, rail.value) == pytest.approx((-0.3, -0.2, -0.25))
    assert not rail.exact
    assert not rail.learned


def test_a_value_that_is_not_given_is_learned_between_what_the_promise_allows():
    mdp = saver.Mdp(np.ones((1, 2, 1)), horizon=3)
    (rail,) = Problem(
        mdp, [[0.5, 0.5]], [[1.0, 0.0]], guardrails=[Guardrail("cost", UNIT, at_most=2.0, cost=True)]
    ).rails
    assert rail.learned
    assert (rail.low, rail.high) == (-3.0, 0.0)


def test_the_short_form_is_one_guardrail_called_constraint():
    short = Problem(MDP, [[0.5, 0.5]], [[1.0, 0.0]], alpha=0.25, baseline_value=0.5, constraint=UNIT)
    (rail,), (long,) = short.rails, asked(guard("constraint")).rails
    assert rail.name == "constraint"
    assert dataclasses.asdict(rail) == dataclasses.asdict(long)
    assert short.guardrails == ()


def test_shares_of_delta_are_equal_or_as_given():
    assert [rail.level for rail in asked(guard("a"), guard("b"), delta=0.1).rails] == [0.05, 0.05]
    split = asked(guard("a", share=0.8), guard("b", share=0.2), delta=0.1)
    assert [rail.level for rail in split.rails] == pytest.approx([0.08, 0.02])
    assert split.rail("b").level == pytest.approx(0.02)


# -- what is refused -----------------------------------------------------------------------------------------

REFUSED = {
    "two ways at once": (
        lambda: guard(allowance=0.1),
        "guardrail 'calm': alpha and allowance are given as what is required; give exactly one of",
    ),
    "no way": (
        lambda: guard(alpha=None),
        "guardrail 'calm': nothing is given as what is required; give exactly one",
    ),
    "at_most without cost": (
        lambda: guard(alpha=None, at_most=0.7),
        "guardrail 'calm': at_most is given and cost is False; give at_least, or cost=True",
    ),
    "at_least of a cost": (
        lambda: guard(alpha=None, at_least=0.7, cost=True),
        "guardrail 'calm': at_least is given and cost is True; give at_most, because lower is better",
    ),
    "an alpha beyond 1": (lambda: guard(alpha=1.5), "guardrail 'calm': alpha is 1.5; it must be in (0, 1]"),
    "a negative allowance": (
        lambda: guard(alpha=None, allowance=-0.1),
        "guardrail 'calm': allowance is -0.1; it must be positive",
    ),
    "an interval upside down": (
        lambda: guard(baseline_value=(0.6, 0.4)),
        "guardrail 'calm': baseline_value is (0.6, 0.4), upside down; give (low, high)",
    ),
    "no number": (lambda: guard(baseline_value="much"), "guardrail 'calm': baseline_value is 'much'"),
    "a promise for each pair": (
        lambda: guard(promise=SubGaussian([[0.1, 0.2]])),
        "guardrail 'calm': promise.scale has shape (1, 2); promises for each pair are for rewards",
    ),
    "no promise": (
        lambda: guard(promise=0.1),
        "guardrail 'calm': promise is 0.1; it must be a saver.SubGaussian",
    ),
    "no name": (lambda: guard(""), "a guardrail has the name ''; a name must be a text"),
    "a share beyond 1": (lambda: guard(share=1.5), "guardrail 'calm': share is 1.5"),
    "equal names": (
        lambda: asked(guard("a"), guard("a")),
        "guardrails has the name 'a' twice; names must differ",
    ),
    "shares that do not add to 1": (
        lambda: asked(guard("a", share=0.5), guard("b", share=0.4)),
        "the shares of delta are a: 0.5, b: 0.4; give all, adding to 1, or none",
    ),
    "a share for some": (
        lambda: asked(guard("a", share=0.5), guard("b")),
        "the shares of delta are a: 0.5, b: None; give all, adding to 1, or none",
    ),
    "a baseline that cannot meet at_least": (
        lambda: asked(guard(alpha=None, at_least=0.6)),
        "guardrail 'calm': at_least is 0.6, but the baseline has 0.5: it cannot meet this by itself",
    ),
    "a baseline that may not meet at_least": (
        lambda: asked(guard(alpha=None, at_least=0.5, baseline_value=(0.4, 0.6))),
        "guardrail 'calm': at_least is 0.5, but the baseline has (0.4, 0.6): it cannot meet this by itself",
    ),
    "a baseline that cannot meet at_most": (
        lambda: asked(guard(alpha=None, at_most=0.4, cost=True)),
        "guardrail 'calm': at_most is 0.4, but the baseline has 0.5: it cannot meet this by itself",
    ),
    "a value beyond the promise": (
        lambda: asked(guard(baseline_value=1.5)),
        "guardrail 'calm': baseline_value is 1.5, but calm means in [0, 1] allow the baseline only [0, 1]",
    ),
    "a cost beyond the promise": (
        lambda: asked(guard(baseline_value=1.5, cost=True)),
        "guardrail 'calm': baseline_value is 1.5, but calm means in [0, 1] allow the baseline only [0, 1]",
    ),
    "a share of nothing": (
        lambda: asked(guard(baseline_value=0.0)),
        "guardrail 'calm': baseline_value is 0; it must be positive, because alpha is a share of it",
    ),
    "both forms": (
        lambda: asked(guard(), alpha=0.25),
        "alpha and guardrails are given; say it in the guardrail alone",
    ),
    "half of the short form": (
        lambda: Problem(MDP, [[0.5, 0.5]], [[1.0, 0.0]], alpha=0.25, constraint=UNIT),
        "baseline_value is None; it must be given with alpha and constraint",
    ),
    "no guardrail": (lambda: asked("calm"), "guardrails"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_guarded_is_refused_by_name(case):
    make, message = REFUSED[case]
    with pytest.raises(SaverError, match=re.escape(message)) as caught:
        make()
    assert isinstance(caught.value, InvalidProblem)


@pytest.fixture
def campaign():
    """Two guardrails, one of them learned from two logged episodes."""
    calm, quick = guard(), guard("quick", alpha=None, allowance=0.1, baseline_value=None, cost=True)
    return Campaign(asked(calm, quick), "saver", 20, seed=1, history=[logged(0.5, 0.3), logged(0.4, 0.2)])


def logged(calm, quick, action=0):
    return Episode([0], [action], [1.0], {"calm": [calm], "quick": [quick]})


TOLD = {
    "an unknown name": (
        {"calm": [0.5], "quick": [0.2], "cheap": [1.0]},
        "constraints has 'cheap', which is not guarded; known: calm, quick",
    ),
    "a missing name": (
        {"calm": [0.5]},
        "constraints has no 'quick'; tell every guardrail, with None for one that was not measured",
    ),
    "one sequence": (
        [0.5],
        "constraints is one sequence, and calm, quick are guarded; tell {name: sequence}",
    ),
    "another length": (
        {"calm": [0.5], "quick": [0.2, 0.3]},
        "constraints['quick'] has shape (2,) but states has (1,); they must be equally long",
    ),
    "beyond belief": (
        {"calm": [0.5], "quick": [1e6]},
        "constraints['quick'][0] is 1e+06, outside the declared bounds [-1000, 1001]",
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_is_told_of_guardrails_is_refused_and_nothing_changes(campaign, case):
    constraints, message = TOLD[case]
    trial = campaign.ask()
    before = json.dumps(campaign.state())
    with pytest.raises(InvalidData, match=re.escape(message)):
        campaign.tell(trial, [0], [trial.act(0, 0)], [1.0], constraints)
    assert json.dumps(campaign.state()) == before
    campaign.tell(trial, [0], [trial.act(0, 0)], [1.0], {"calm": [0.5], "quick": None})


def test_history_under_another_policy_is_refused():
    with pytest.raises(
        InvalidData, match=r"history\[1\]: action 1 in state 0 at step 0 has probability 0 under"
    ):
        Campaign(asked(guard()), "saver", 20, history=[one(0), one(1)])


def one(action):
    return Episode([0], [action], [1.0], [0.5])


def test_a_name_that_is_not_guarded_is_refused_wherever_it_is_asked_for():
    problem = asked(guard("calm"), guard("quick"))
    table = [[0.5, 0.5]]
    with pytest.raises(InvalidProblem, match="no guardrail 'clam'; did you mean 'calm'"):
        problem.rail("clam")
    with pytest.raises(InvalidProblem, match="no guardrail 'cheap'"):
        problem.means({"calm": table, "quick": table, "cheap": table})
    with pytest.raises(InvalidProblem, match="constraint_mean has no table of 'quick'"):
        problem.means({"calm": table})
    with pytest.raises(InvalidProblem, match="constraint_mean is one table, and calm, quick are guarded"):
        problem.means(table)


def test_means_are_read_with_costs_turned_round():
    problem = asked(guard("calm"), guard("slow", cost=True))
    found = problem.means({"slow": [[0.2, 0.4]], "calm": [[0.5, 0.3]]})
    np.testing.assert_array_equal(found, [[[0.5, 0.3]], [[-0.2, -0.4]]])


# -- files and changes ---------------------------------------------------------------------------------------


def test_a_problem_with_guardrails_goes_to_a_file_and_back(tmp_path):
    problem = asked(
        guard("a", share=0.7),
        guard(
            "b", Bounded(0.0, 2.0), alpha=None, at_most=1.5, baseline_value=(0.4, 0.6), cost=True, share=0.2
        ),
        guard("c", alpha=None, allowance=0.1, baseline_value=None, share=0.1),
    )
    saver.save(problem, tmp_path / "problem.json")
    again = saver.load(tmp_path / "problem.json")
    assert again.guardrails == problem.guardrails
    for ours, theirs in zip(problem.rails, again.rails, strict=True):
        assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)


def test_a_world_with_several_laws_goes_to_a_file_and_back(tmp_path):
    scenario = saver.SCENARIOS["shop"](learned=True)
    saver.save(scenario, tmp_path / "shop.json")
    again = saver.load(tmp_path / "shop.json")
    assert list(again.world.laws) == ["complaints", "latency", "refunds"]
    np.testing.assert_array_equal(again.means, scenario.means)
    for ours, theirs in zip(scenario.laws, again.laws, strict=True):
        assert type(ours) is type(theirs)
        np.testing.assert_array_equal(ours.variance, theirs.variance)
    assert again.problem.guardrails == scenario.problem.guardrails


def test_replace_changes_one_thing_of_either_form():
    short = Problem(MDP, [[0.5, 0.5]], [[1.0, 0.0]], alpha=0.25, baseline_value=0.5, constraint=UNIT)
    assert dataclasses.replace(short, alpha=0.5).rails[0].required == 0.25
    assert dataclasses.replace(short, baseline_value=(0.4, 0.6)).rails[0].low == 0.4
    assert dataclasses.replace(short, delta=0.01).rails[0].level == 0.01
    long = asked(guard("a"), guard("b"))
    tighter = dataclasses.replace(long.guardrails[1], alpha=0.1)
    changed = dataclasses.replace(long, guardrails=(long.guardrails[0], tighter))
    assert [rail.required for rail in changed.rails] == pytest.approx([0.375, 0.45])
    assert [rail.required for rail in long.rails] == [0.375, 0.375]
    with pytest.raises(InvalidProblem, match="guardrail 'b': alpha and at_least are given"):
        dataclasses.replace(tighter, at_least=0.3)
    longer = dataclasses.replace(
        short, alpha=None, baseline_value=None, constraint=None, guardrails=[guard()]
    )
    assert longer.rails[0].required == 0.375


# -- costs, and episodes of unequal length -------------------------------------------------------------------


def cliff():
    env = gymnasium.make("CliffWalking-v1").unwrapped
    return env.P, env.initial_state_distrib


def taxi():
    env = gymnasium.make("Taxi-v4").unwrapped
    return env.P, env.initial_state_distrib


def expected_cost(mdp, policy, cost):
    """Step by step: where episodes are, and what the next step costs there."""
    moves = mdp.transitions.toarray().reshape(mdp.states, mdp.actions, mdp.states)
    here, total = np.array(mdp.start), 0.0
    for _ in range(mdp.horizon):
        here = np.where(np.isin(np.arange(mdp.states), mdp.terminal), 0.0, here)
        taken = here[:, None] * policy
        total += float(np.sum(taken * cost))
        here = np.einsum("sa,sat->t", taken, moves)
    return total


@pytest.mark.parametrize(("make", "horizon", "dearest"), [(taxi, 40, 10.0), (cliff, 60, 100.0)])
def test_a_policy_that_costs_more_is_never_worth_more(make, horizon, dearest):
    P, start = make()
    table = GymTable.of(P)
    mdp = table.model(horizon, start)
    cost = table.mean(np.maximum(0.0, -table.rows[:, 4]))  # a step costs 1, an illegal or deadly one more
    shares = (1.0, 0.95, 0.8, 0.5, 0.0)
    Q = table.optimal(0.99)
    costs = [expected_cost(mdp, greedy(Q, share), cost) for share in shares]
    assert np.all(np.diff(costs) > 0.0)
    baseline = greedy(Q, 0.95)
    (rail,) = problem_rails = Problem(
        mdp,
        greedy(Q, 0.5),
        baseline,
        guardrails=[
            Guardrail("cost", Bounded(0.0, dearest), at_most=2 * costs[1], baseline_value=costs[1], cost=True)
        ],
    ).rails
    worth = [saver.problem.value(mdp, greedy(Q, share), rail.sign * cost) for share in shares]
    np.testing.assert_allclose(worth, np.negative(costs), rtol=1e-9)
    assert np.all(np.diff(worth) < 0.0)
    assert len(problem_rails) == 1
    assert rail.value == pytest.approx(worth[1])
    assert rail.value > rail.required == pytest.approx(-2 * costs[1])


def test_the_least_that_an_episode_can_be_worth_is_negative_and_grows_with_its_length():
    P, start = cliff()
    table = GymTable.of(P)
    mdp = table.model(60, start)
    baseline = greedy(table.optimal(0.99), 0.95)
    problem = Problem(
        mdp,
        baseline,
        baseline,
        guardrails=[Guardrail("cost", Bounded(0.0, 100.0), alpha=0.5, baseline_value=30.0, cost=True)],
    )
    stage = Stage(mdp)
    ledger = LEDGERS["certified"](Terms(problem, 100, stage))
    lengths = {}
    for share in (1.0, 0.5):
        policy = greedy(table.optimal(0.99), share)
        lengths[share] = float(saver.problem.weights(mdp, policy).sum())
        assert ledger.floor_value(stage.play(policy)) == pytest.approx(-100.0 * lengths[share])
    assert lengths[1.0] == pytest.approx(13.0)
    assert lengths[0.5] > 20.0
