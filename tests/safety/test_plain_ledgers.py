"""What the ledgers without a certificate make of trials that are out or lost: by hand."""

import numpy as np
import pytest
from kept import problem

from saver import SCENARIOS, Guardrail, Problem, SubGaussian
from saver.errors import InvalidProblem
from saver.play import Stage, stage_of
from saver.safety import LEDGERS, Ledger, Terms
from saver.safety.registry import ledger_for

PLAIN = ["plugin", "latest", "paper"]


def ledger_of(name):
    # Floor 0, required .5, the baseline worth 1: it adds .5.
    asked = problem(alpha=0.5, baseline_value=1.0)
    stage = Stage(asked.mdp)
    return LEDGERS[name](Terms(asked, 10, stage)), stage.play(np.array([[0.0, 1.0]])), stage


@pytest.mark.parametrize("name", PLAIN)
def test_a_trial_that_is_out_may_cost_what_is_required(name):
    ledger, play, _ = ledger_of(name)
    book = ledger.open()
    before = ledger.budget(book)
    ledger.ask(book, 1, ledger.freeze(book, play, False), play)
    assert ledger.budget(book) == pytest.approx(before - 0.5)
    assert not ledger.certifies


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(
    ("baseline", "ran", "adds"),
    [(False, False, -0.5), (False, True, -0.5), (True, False, 0.0), (True, True, 0.5)],
)
def test_a_lost_trial(name, baseline, ran, adds):
    # Of a designed one nothing is known but the floor; of the baseline, if it ran, all.
    ledger, play, stage = ledger_of(name)
    book, followed = ledger.open(), stage.play(ledger.problem.baseline) if baseline else play
    before = ledger.budget(book)
    ledger.ask(book, 1, ledger.freeze(book, followed, baseline), followed)
    ledger.abandon(book, 1, followed, ran)
    assert ledger.budget(book) == pytest.approx(before + adds)


@pytest.mark.parametrize("name", PLAIN)
def test_a_trial_above_the_requirement_costs_nothing_while_it_is_out_and_counts_if_it_ran(name):
    # Floor .8: worth at least .8, .3 more than required.
    asked = problem(alpha=0.5, baseline_value=1.0, constraint=SubGaussian(0.1, 0.8, 1.2))
    stage = Stage(asked.mdp)
    ledger, play = LEDGERS[name](Terms(asked, 10, stage)), stage.play(np.array([[0.0, 1.0]]))
    for ran, adds in ((False, 0.0), (True, 0.3)):
        book = ledger.open()
        before = ledger.budget(book)
        ledger.ask(book, 1, ledger.freeze(book, play, False), play)
        assert ledger.budget(book) == pytest.approx(before)
        ledger.abandon(book, 1, play, ran)
        assert ledger.budget(book) == pytest.approx(before + adds)


def test_a_ledger_that_certifies_must_bound_a_value_that_is_learned(monkeypatch):
    class Floor(Ledger):
        certifies = True
        tell = earned = None

    class Bounding(Floor):
        def values(self, book):
            return 0.0, 1.0

    known = SCENARIOS["bandit"]().problem
    rail = Guardrail("calls", SubGaussian(0.1, 0.0, 1.0), alpha=0.25)
    terms = Terms(Problem(known.mdp, known.target, known.baseline, guardrails=rail), 10, stage_of(known.mdp))
    monkeypatch.setitem(LEDGERS, "floor", Floor)
    with pytest.raises(InvalidProblem, match="the baseline's value of 'calls' is learned, of which"):
        ledger_for("floor", terms)
    monkeypatch.setitem(LEDGERS, "floor", Bounding)
    assert isinstance(ledger_for("floor", terms), Bounding)
