"""Who cancels a trial because of where it would start chooses among paths: such a trial is not dropped."""

import copy
import json
import math
import warnings

import numpy as np
import pytest
from kept import Kept, observed

import saver
from saver import Bounded, Campaign, Mdp, Problem, SubGaussian, Unknown
from saver.errors import AssumptionWarning, InvalidData, InvalidProblem
from saver.kernels.bounds.boundaries import best_rho, mixture
from saver.play import Stage, stage_of
from saver.safety import LEDGERS, registry
from saver.safety.certified import Certified
from saver.safety.modelfree import ModelFree
from saver_audit.losses import some
from saver_audit.manners import BY_START, VETO_CASES, VETOES, Case

K, DELTA = 40, 0.05
MANY, ONE = Mdp(np.zeros((2, 2, 2)), 1, start=[0.5, 0.5]), Mdp(np.zeros((2, 2, 2)), 1, start=0)
NORMAL, MODEL_FREE = SubGaussian(0.1), Unknown(2, 2, horizon=2)
OTHER = np.array([[0.0, 1.0]] * 2)


def problem(mdp=MANY, promise=NORMAL, **options):
    given = {"alpha": 0.2, "baseline_value": 0.5, "constraint": promise, "delta": DELTA} | options
    return Problem(mdp, [[0.5, 0.5]] * 2, [[1.0, 0.0]] * 2, **given)


def kept(asked, kind=Certified, **options):
    ledger = Kept(asked, K, stage_of(asked.mdp), kind, **options)
    ledger.ask(1, ledger.stage.play(OTHER))
    return ledger


# -- in the ledgers ------------------------------------------------------------------------------------------


def test_the_newest_leaves_a_trace_where_it_was_seen_and_paths_are_random():
    for mdp, losses, unseen, stays in (
        (MANY, "hostile", False, True),
        (MANY, "hostile", True, False),
        (MANY, "random", False, False),
        (ONE, "hostile", False, False),  # the draws say where it goes, and the promise counts what they say
    ):
        ledger = kept(problem(mdp), losses=losses)
        before = ledger.plain()["first"]
        ledger.cancel(1, unseen)
        assert (ledger.plain()["first"] != before) == stays
        assert ledger.ordered == stays
        assert ledger.budget() == 0.0  # it never ran


def test_what_it_may_hide_in_a_known_model_by_hand():
    """One step from one of two starts, h = 1/2: X strays by at most 1/2 + 1/2, v = .01 + .25."""
    ledger = kept(problem())
    ledger.cancel(1, False)
    tally = ledger.first
    assert (tally.strays, tally.sum_v) == (1.0, pytest.approx(0.26))
    assert tally.most.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    level = 0.2 * 0.1 * DELTA
    never = mixture(0.01, best_rho(0.08, level), level)
    assert ledger.ledger.hides(tally, ()) == (pytest.approx(never), pytest.approx(0.01))


@pytest.mark.parametrize("next_state", [False, True])
def test_returns_pay_the_range_of_the_path_beside_the_noise(next_state):
    """Two steps: returns in [0, 2]. The noise is fresh whatever was seen; the path may have been chosen."""
    promise = SubGaussian(0.2, next_state=next_state)
    noise = (0.2 * 2) ** 2 if next_state else 0.04 * 2
    whole = (0.2 * 2 + 1.0) ** 2 if next_state else 0.08 + 1.0
    level = 0.2 * 0.1 * DELTA
    for unseen, fresh, path in ((False, noise, 2.0), (True, whole, 0.0)):
        ledger = kept(problem(MODEL_FREE, promise, baseline_value=1.0), ModelFree)
        ledger.ask(2, ledger.stage.play(OTHER))
        ledger.cancel(1, unseen)
        ledger.tell(2, None, observed([0, 0], [1, 1], [0.8, 0.7]))
        never = mixture(fresh, best_rho(8 * whole, level), level)
        u = mixture(2 * whole, best_rho(whole * K / 2, 0.9 * DELTA), 0.9 * DELTA)
        assert ledger.seen_worth(ledger.first) == pytest.approx(1.5 - path - never - u)


def test_bounded_returns_take_it_for_lost():
    found = []
    for happens in ("cancel", "abandon"):
        ledger = kept(problem(MODEL_FREE, Bounded(0.0, 1.0), baseline_value=1.0), ModelFree)
        getattr(ledger, happens)(1, *([False] if happens == "cancel" else []))
        ledger.ask(2, ledger.stage.play(OTHER))
        ledger.tell(2, None, observed([0, 0], [1, 1], [1.0, 1.0]))
        found.append((ledger.seen_worth(ledger.first), ledger.budget()))
    assert found[0][0] == found[1][0]
    assert found[0][1] > found[1][1]  # it never ran: no value, no requirement


def test_a_vetoed_baseline_trial_may_have_hidden_a_path_on_either_side():
    rail = saver.Guardrail("kept", SubGaussian(0.2), alpha=0.2)
    asked = Problem(MODEL_FREE, [[0.5, 0.5]] * 2, [[1.0, 0.0]] * 2, guardrails=rail, delta=DELTA)
    for unseen in (True, False):
        ledger = Kept(asked, K, stage_of(MODEL_FREE), registry.LEARNED_BASELINE[ModelFree])
        for number in (1, 2):
            ledger.ask(number, None)
        ledger.cancel(1, unseen)
        ledger.tell(2, None, observed([0, 0], [0, 0], [0.5, 0.5]))
        level = 0.2 * 0.25 * 0.1 * DELTA
        whole, fresh = 1.08, 1.08 if unseen else 0.08
        never = mixture(fresh, best_rho(8 * whole, level), level)
        assert ledger.ledger.safe_hides(ledger.first.safe) == (
            pytest.approx(never + (0.0 if unseen else 2.0)),
            pytest.approx(whole),
        )


# -- in campaigns --------------------------------------------------------------------------------------------


def test_a_trial_that_was_acted_in_cannot_be_cancelled_unseen():
    campaign = Campaign(problem(), "saver", 20)
    trial = campaign.ask()
    campaign.cancel(trial, unseen=True)
    trial = campaign.ask()
    with pytest.raises(InvalidData, match="step is 9"):
        trial.act(9, 1)
    assert not trial.looked
    copy.copy(trial).act(0, 1)
    for said in (trial, trial.number):
        with pytest.raises(InvalidData, match="unseen is True, but trial 2 was asked how to act"):
            campaign.cancel(said, unseen=True)
    again = Campaign.restore(campaign.problem, "saver", json.loads(json.dumps(campaign.state())))
    with pytest.raises(InvalidData, match="unseen is True, but trial 2"):
        again.cancel(2, unseen=True)
    with pytest.raises(InvalidProblem, match="unseen is 'yes'; it must be True or False"):
        campaign.cancel(trial, unseen="yes")
    campaign.cancel(trial)
    assert repr(campaign).endswith("0 abandoned, 2 cancelled)")


def test_a_loss_declared_random_is_warned_of_once_where_its_start_was_seen():
    def lost(mdp, losses, looks, how="abandon"):
        campaign = Campaign(problem(mdp), "saver", 20, losses=losses)
        for _ in range(2):
            trial = campaign.ask()
            if looks:
                trial.act(0, 0)
            getattr(campaign, how)(trial)

    for how in ("abandon", "cancel"):
        with pytest.warns(AssumptionWarning, match='losses="hostile"') as caught:
            lost(MANY, "random", True, how)
        assert len(caught) == 1
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lost(MANY, "random", False), lost(MANY, "hostile", True), lost(ONE, "random", True)


# -- who attacks ---------------------------------------------------------------------------------------------


class Dropping(Certified):
    """Believes that nobody looked."""

    def cancel(self, book, number, unseen):
        super().cancel(book, number, True)


class DroppingReturns(ModelFree):
    """The same where transitions are unknown."""

    def cancel(self, book, number, unseen):
        super().cancel(book, number, True)


class Random(Certified):
    """Believes that what is lost has nothing to do with where it starts."""

    def __init__(self, terms):
        super().__init__(terms._replace(losses="random"))


FOUND = [
    ("vetoed one by one", "ten contexts", Dropping, "broken"),
    ("vetoed one by one", "ten contexts, coins", Dropping, "broken"),
    ("vetoed one by one", "many contexts", Dropping, "broken"),
    ("vetoed one by one", "many contexts, coins", Dropping, "broken"),
    ("vetoed one by one", "ten contexts, learned", Dropping, "broken"),
    ("vetoed one by one", "ten contexts, unknown", DroppingReturns, "broken"),
    ("vetoed one by one", "ten contexts, coins, unknown", DroppingReturns, "broken"),
    ("vetoed in batches", "ten contexts, unknown", DroppingReturns, "over"),
    ("vetoed at first", "ten contexts, loud, unknown", DroppingReturns, "broken"),
    ("most lost by their starts", "ten contexts", Random, "over"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("manner", "world", "wrong", "how"), FOUND)
def test_every_attack_finds_a_ledger_that_does_not_look(manner, world, wrong, how, monkeypatch):
    """Three of five have a probability of .0012 at delta = .05; the right ledger errs in none."""
    case = Case(manner, world, "safe-on-policy", DELTA)
    right = np.array(some(case, 1, range(5)))
    assert np.all(right[:, :2] > -1e-9)
    if issubclass(wrong, ModelFree):
        monkeypatch.setitem(registry.MODEL_FREE, Certified, wrong)
    else:
        monkeypatch.setitem(LEDGERS, "certified", wrong)
        monkeypatch.setitem(
            registry.LEARNED_BASELINE, wrong, type("Both", (wrong, registry.LEARNED_BASELINE[Certified]), {})
        )
    found = np.array(some(case, 1, range(5)))
    assert np.sum(found[:, 0 if how == "broken" else 1] < -1e-9) >= 3


def test_every_veto_and_every_world_is_counted_at_both_deltas():
    assert {case.manner for case in VETO_CASES} == set(VETOES)
    assert {case.world for case in VETO_CASES} <= set(BY_START)
    assert {name for name in BY_START if "unknown" not in name} <= {case.world for case in VETO_CASES}
    assert len(VETO_CASES) == len(set(VETO_CASES))
    for case in VETO_CASES:
        assert Case(case.manner, case.world, case.collector, 0.5) in VETO_CASES
        made = case.make()
        rail = made.problem.rails[0]
        target = Stage(made.world.mdp).play(np.array(made.problem.target)).value(made.means[0])
        true = made.world.constraint_value(made.problem.baseline)
        assert target < rail.required_at(true) < true  # there is something to break
        assert math.isclose(made.problem.delta, case.delta)
