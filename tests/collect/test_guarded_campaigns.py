"""Campaigns with guardrails: known answers, what was not measured, and what is refused."""

import dataclasses
import json
import math

import numpy as np
import pytest
from worlds import WORLDS

from saver import (
    COLLECTORS,
    Bounded,
    Campaign,
    Episode,
    Gaussian,
    Guardrail,
    Mdp,
    Player,
    Problem,
    SubGaussian,
    World,
    simulate,
)
from saver.errors import InvalidData, InvalidProblem
from saver.simulator import knowledge_of

BANDIT = WORLDS["bandit"]
NOISE, V0 = BANDIT.problem.constraint, BANDIT.problem.baseline_value
SHORT = {"alpha": None, "baseline_value": None, "constraint": None}


def guarded(*rails, laws=None, scenario=BANDIT, **changes):
    """The scenario with these guardrails instead of its own, each with the scenario's law, or these."""
    law = scenario.world.constraint
    given = {rail.name: law for rail in rails} | (laws or {})
    problem = dataclasses.replace(scenario.problem, **SHORT, guardrails=rails, **changes)
    return dataclasses.replace(
        scenario, problem=problem, world=dataclasses.replace(scenario.world, constraint=given)
    )


def kinds(scenario, collector, episodes, seed=3, **options):
    """What was played, and the campaign."""
    known = knowledge_of(scenario, COLLECTORS[collector])
    campaign = Campaign(scenario.problem, collector, episodes, seed=seed, knowledge=known, **options)
    player, played = Player(scenario.world, seed + 1), []
    for _ in range(episodes):
        trial = campaign.ask()
        episode = player.run(trial)
        campaign.tell(trial, episode)
        played.append((trial.kind, episode.actions.tolist()))
    return played, campaign


WAYS = {
    "alpha": {"alpha": 0.25},
    "allowance": {"allowance": 0.125},
    "at_least": {"at_least": 0.375},
}


@pytest.mark.parametrize("collector", ["saver", "saver-opt", "safe-on-policy"])
def test_one_requirement_said_in_four_ways_is_one_campaign(collector):
    """alpha .25 of .5, an allowance of .125, at least .375; and as a cost of at most .625, one minus it."""
    assert (BANDIT.problem.alpha, V0) == (0.25, 0.5)
    short, first = kinds(BANDIT, collector, 300)
    for said in WAYS.values():
        played, campaign = kinds(guarded(Guardrail("x", NOISE, baseline_value=V0, **said)), collector, 300)
        assert played == short
        assert campaign.budget.of == {"x": first.budget.certified}
    law = BANDIT.world.constraint
    cost = Gaussian(1.0 - law.mean, law.variance)
    rail = Guardrail("x", NOISE, cost=True, at_most=0.625, baseline_value=0.5)
    mirrored = guarded(rail, laws={"x": cost})
    assert mirrored.problem.required == -0.625
    np.testing.assert_allclose(mirrored.means[0], law.mean - 1.0)


def test_a_guardrail_that_never_binds_changes_nothing_but_its_share_of_delta():
    main = Guardrail("main", NOISE, alpha=0.25, baseline_value=V0, share=0.5)
    idle = Guardrail("idle", NOISE, at_least=-50.0, baseline_value=V0, share=0.5)
    half = dataclasses.replace(BANDIT, problem=dataclasses.replace(BANDIT.problem, delta=0.025))
    played, campaign = kinds(half, "saver", 300)
    both = guarded(main, idle, laws={"idle": Gaussian(BANDIT.world.constraint.mean, 0.0)})
    with_idle, other = [], Campaign(both.problem, "saver", 300, seed=3)
    player = Player(half.world, 4)
    for _ in range(300):
        trial = other.ask()
        episode = player.run(trial)
        seen = {"main": episode.constraints, "idle": episode.constraints}
        other.tell(trial, *list(episode)[:3], seen)
        with_idle.append((trial.kind, episode.actions.tolist()))
    assert with_idle == played
    assert other.budget.of["main"] == campaign.budget.certified == other.budget.certified


def test_two_equal_guardrails_cost_what_the_union_costs():
    """Each at half of delta: one guardrail at half of delta plays the same."""
    half = dataclasses.replace(BANDIT, problem=dataclasses.replace(BANDIT.problem, delta=0.025))
    alone, one = kinds(half, "saver", 300)
    rails = [Guardrail(name, NOISE, alpha=0.25, baseline_value=V0) for name in "ab"]
    problem, player = guarded(*rails).problem, Player(BANDIT.world, 4)
    campaign, played = Campaign(problem, "saver", 300, seed=3), []
    for _ in range(300):
        trial = campaign.ask()
        episode = player.run(trial)
        campaign.tell(trial, *list(episode)[:3], {"a": episode.constraints, "b": episode.constraints})
        played.append((trial.kind, episode.actions.tolist()))
    assert played == alone
    assert campaign.budget.of == {"a": one.budget.certified, "b": one.budget.certified}


def test_the_budget_is_that_of_the_guardrail_nearest_to_its_line():
    """.2 above 10 required is nearer than .15 above 1."""
    mdp = Mdp(np.zeros((1, 2, 1)), 1)
    rails = [
        Guardrail("small", SubGaussian(0.0), at_least=1.0, baseline_value=1.15),
        Guardrail("large", SubGaussian(0.0, 0.0, 20.0), at_least=10.0, baseline_value=10.2),
    ]
    with pytest.raises(InvalidProblem, match=r"'small': baseline_value is 1.15, but small means in \[0, 1\]"):
        Problem(mdp, [[0.5, 0.5]], [[1.0, 0.0]], guardrails=rails)
    rails[0] = dataclasses.replace(rails[0], promise=SubGaussian(0.0, 0.0, 2.0))
    campaign = Campaign(Problem(mdp, [[0.5, 0.5]], [[1.0, 0.0]], guardrails=rails), "baseline", 5)
    trial = campaign.ask()
    campaign.tell(trial, [0], [0], [0.0], {"small": [1.15], "large": [10.2]})
    assert campaign.budget.plugin == pytest.approx(0.2)
    assert math.isnan(campaign.budget.certified)


# -- not measured --------------------------------------------------------------------------------------------


def test_what_was_not_measured_is_lost_for_that_guardrail_alone():
    rails = [Guardrail(name, NOISE, alpha=0.25, baseline_value=V0) for name in "ab"]
    problem = guarded(*rails).problem
    one, two = (Campaign(problem, "saver", 50, seed=1) for _ in range(2))
    player = Player(BANDIT.world, 5)
    for number in range(1, 31):
        first, second = one.ask(), two.ask()
        assert first.kind == second.kind
        episode = player.run(first)
        if number == 17:
            one.tell(first, *list(episode)[:3], {"a": episode.constraints, "b": None})
            two.tell(second, *list(episode)[:3], {"a": episode.constraints, "b": episode.constraints})
            before = two.budget.of["b"]
            assert one.budget.of["a"] == two.budget.of["a"]
            assert one.budget.of["b"] < before
            break
        for campaign, trial in ((one, first), (two, second)):
            seen = {"a": episode.constraints, "b": episode.constraints}
            campaign.tell(trial, *list(episode)[:3], seen)
    again = Campaign.restore(problem, "saver", json.loads(json.dumps(one.state())))
    assert again.budget == one.budget


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([0.5], "constraints is one sequence, and a, b are guarded; tell {name: sequence}"),
        ({"a": [0.5], "c": [0.5]}, "constraints has 'c', which is not guarded; known: a, b"),
        ({"a": [0.5]}, "constraints has no 'b'; tell every guardrail, with None"),
        ({"a": [0.5], "b": [0.5, 0.5]}, r"constraints\['b'\] has shape \(2,\) but states has \(1,\)"),
        ({"a": [0.5], "b": [5000.0]}, r"constraints\['b'\]\[0\] is 5000, outside the declared bounds"),
    ],
)
def test_what_cannot_be_told_changes_nothing(constraints, message):
    rails = [Guardrail(name, NOISE, alpha=0.25, baseline_value=V0) for name in "ab"]
    campaign = Campaign(guarded(*rails).problem, "saver", 50)
    trial = campaign.ask()
    before = campaign.state()
    with pytest.raises(InvalidData, match=message):
        campaign.tell(trial, [0], [trial.act(0, 0)], [0.5], constraints)
    assert campaign.state() == before


# -- a baseline that is measured -----------------------------------------------------------------------------


def logged(count, value=V0, seed=0, **changes):
    rng = np.random.default_rng(seed)
    return [Episode([0], [0], [0.5], [c], **changes) for c in value + 0.1 * rng.standard_normal(count)]


def test_history_under_another_policy_is_refused():
    campaign = Campaign(BANDIT.problem, "saver", 50, history=logged(3))
    assert campaign.counts.sum() == 3
    other = [*logged(2), Episode([0], [1], [0.5], [0.4])]
    with pytest.raises(InvalidData, match=r"history\[2\]: .* has probability 0 under the baseline"):
        Campaign(BANDIT.problem, "saver", 50, history=other)
    with pytest.raises(InvalidData, match=r"history\[0\]: propensities\[0\] is 0.5, but the baseline takes"):
        Campaign(BANDIT.problem, "saver", 50, history=logged(1, propensities=[0.5]))


def test_nothing_is_designed_before_the_baseline_is_known_to_earn():
    """alpha of a value that may still be 0 or less: the baseline is played until its lower end is above 0."""
    noisy = SubGaussian(1.0, -1.0, 1.0)
    law = Gaussian(BANDIT.world.constraint.mean, 1.0)
    asked = guarded(Guardrail("x", noisy, alpha=0.9), laws={"x": law})
    campaign, player = Campaign(asked.problem, "saver", 400, seed=2), Player(asked.world, 2)
    ledger, book = campaign._setup.used, campaign._state.books["used"]
    while True:
        low, high = ledger.values(book)
        trial = campaign.ask()
        if not book.out[trial.number].baseline:
            break
        campaign.tell(trial, player.run(trial))
    assert 0.0 < low < 0.5 < high
    assert book.baseline_told > 20


def test_more_history_leaves_fewer_baseline_episodes_to_play():
    asked = guarded(Guardrail("x", NOISE, alpha=0.25))
    found = {}
    for count in (0, 30, 300):
        campaign = kinds(asked, "saver", 200, history=logged(count))[1]
        found[count] = campaign._state.books["used"].baseline_told
    assert found[0] > found[30] > found[300]


def test_an_interval_believed_costs_little_and_a_point_nothing():
    point = kinds(guarded(Guardrail("x", NOISE, alpha=0.25, baseline_value=(V0, V0))), "saver", 200)
    assert point[0] == kinds(BANDIT, "saver", 200)[0]
    wide = kinds(guarded(Guardrail("x", NOISE, alpha=0.25, baseline_value=(0.45, 0.55))), "saver", 200)[1]
    assert wide.budget.baseline_episodes > point[1].budget.baseline_episodes


@pytest.mark.parametrize("world", ["bandit", "tree", "gridworld"])
@pytest.mark.parametrize("way", ["alpha", "allowance", "at_least"])
def test_a_learned_campaign_survives_a_restart(world, way):
    asked = WORLDS[world]
    line = asked.problem.rails[0]
    said = {"alpha": line.alpha, "allowance": line.credit, "at_least": line.required}[way]
    asked = guarded(Guardrail("x", asked.problem.constraint, **{way: said}), scenario=asked)
    known = knowledge_of(asked, COLLECTORS["saver"])
    campaign = Campaign(asked.problem, "saver", 60, knowledge=known, seed=1)
    player, waiting = Player(asked.world, 2), []
    for k in range(60):
        if k == 30:
            plain = json.loads(json.dumps(campaign.state()))
            again = Campaign.restore(asked.problem, "saver", plain)
            assert again.budget == campaign.budget
            campaign = again
        waiting.append(campaign.ask())
        if k % 3:
            trial = waiting.pop(0)
            campaign.tell(trial.number, player.run(trial))
    assert campaign.budget.certified <= campaign.budget.of["x"] + 1e-12


def test_bounded_and_random_paths_are_never_believed_above_the_truth():
    """Forty campaigns each at delta .05, believed against the true line at every checkpoint; exact counts."""
    for name, promise in (("bandit", Bounded(-1.0, 2.0)), ("gridworld", None), ("tree", None)):
        asked = WORLDS[name]
        rail = Guardrail("x", promise or asked.problem.constraint, alpha=asked.problem.alpha)
        found = simulate(
            guarded(rail, scenario=asked), "saver", episodes=120, runs=40, engine="reference", seed=7
        )
        assert np.mean(np.any(found.ledger > found.budget + 1e-9, axis=1)) <= 0.1
        assert found.violation_rate() <= 0.1


def test_a_world_and_its_problem_must_name_the_same():
    rails = [Guardrail(name, NOISE, alpha=0.25, baseline_value=V0) for name in "ab"]
    law = BANDIT.world.constraint
    problem = guarded(*rails).problem
    for wrong in (law, {"a": law}, {"a": law, "c": law}):
        world = World(BANDIT.world.mdp, BANDIT.world.reward, wrong)
        with pytest.raises(InvalidProblem, match="but problem guards a, b; they must agree"):
            dataclasses.replace(BANDIT, problem=problem, world=world)


def test_a_state_may_be_written_with_its_keys_sorted():
    rails = [Guardrail(name, NOISE, alpha=0.25, baseline_value=V0) for name in ("m", "z", "a")]
    laws = {"z": Gaussian(BANDIT.world.constraint.mean / 2 + 0.4, 0.01)}
    asked = guarded(*rails, laws=laws)
    campaign = kinds(asked, "saver", 20)[1]
    plain = json.loads(json.dumps(campaign.state(), sort_keys=True))
    again = Campaign.restore(asked.problem, "saver", plain)
    assert again.budget == campaign.budget
    for name, table in campaign.statistics().constraint_mean.items():
        np.testing.assert_array_equal(again.statistics().constraint_mean[name], table)
