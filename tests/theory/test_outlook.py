"""The first screen of a diagnosis of a problem that carries a log."""

import json
from dataclasses import replace

import pytest
from logged import World

import saver
from saver import History
from saver.collect.showing import recall
from saver.theory.diagnosis import UNCOUNTED


@pytest.fixture(scope="module")
def carried():
    world = World.drawn(4, 3, 4, 0, 0.3)
    problem, log = world.problem(0.6), world.log(3000, 1)
    return world, replace(problem, history=recall(problem, log))


def test_the_first_screen_is_short_and_says_what_the_log_and_the_campaign_give(carried):
    _, problem = carried
    found = saver.diagnose(problem, episodes=200)
    screen = found.report()
    lines = screen.splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80
    assert lines[0] == "3,000 logged episodes, 200 to come, with saver-opt"
    outlook = found.outlook
    assert outlook.after["target"] <= outlook.alone["target"]
    assert f"the log alone gives +- {outlook.alone['target']:.3g}" in screen
    assert "baseline: about" in screen
    assert "nearest to its line: complaint" in screen
    begun = saver.Campaign(problem, "saver-opt", 200)
    low, high = begun.estimate().interval
    assert outlook.alone["target"] == pytest.approx((high - low) / 2)
    assert str(outlook.first) == str(begun.why())
    said = begun.compare(anytime=False)
    assert (said.verdict != "not yet known") == ("the log already answers" in screen)


def test_theory_comes_when_it_is_asked_for_and_quotes_nothing_that_cannot_run(carried):
    _, problem = carried
    found = saver.diagnose(problem, episodes=60)
    assert "paper" not in found.ways
    whole = found.report(theory=True)
    assert whole.startswith(found.report())
    assert UNCOUNTED in whole
    assert "The paper's theory" in whole
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["outlook"]["logged"] == 3000
    assert plain["outlook"]["answers"]["target"]["verdict"] in ("better", "worse", "not yet known")


def test_a_scenario_is_diagnosed_as_before():
    found = saver.diagnose(saver.SCENARIOS["bandit"](), episodes=100)
    assert found.outlook is None
    assert found.report() == found.report(theory=True) == found.report(theory=False)
    assert "paper" in found.ways


def test_what_has_hardly_changed_is_said_and_worse_is_said_in_plain_numbers(carried):
    _, problem = carried
    outlook = saver.diagnose(problem, episodes=30).outlook
    assert "hardly narrow it" in outlook.report()
    for compared in outlook.answers.values():
        if compared.verdict == "worse":
            assert f"worse than the baseline, by {abs(compared.difference.value):.4g} (" in outlook.report()


def test_sums_alone_have_an_outlook_too(carried):
    world, problem = carried
    sums = replace(problem, history=History.of(replace(problem, history=None), world.log(300, 1)))
    screen = saver.diagnose(sums, episodes=60).report()
    assert "baseline: about 100% of the episodes" in screen
    assert "is held up by complaint" in screen
