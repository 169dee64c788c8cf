"""Logs of which what is shown of a policy is above what it is worth: the smallest that were found.

Each is complete, of the baseline, and keeps what is declared: `Bounded`, of which the guide says that the
steps of an episode may depend on each other as they like. Of ten logs three or more have a probability below
6e-5 at the .0075 = LOG delta that what is shown may fail with.
"""

import numpy as np

from saver import END, Bounded, Campaign, Guardrail, Problem, Unknown
from saver.collect import showing
from saver.collect.showing import recall
from saver.problem.bellman import by_step
from saver.problem.episode import Columns
from saver.safety.modelfree import LOG

DELTA, LOGS, TOO_MANY = 0.05, 10, 3


def logged(states, actions, seen):
    """Episodes of one length, [n, L] each."""
    n, L = states.shape
    columns = states.ravel(), actions.ravel(), np.zeros(n * L), {"constraint": seen.ravel()}
    return Columns(np.arange(n + 1) * L, *columns, None, np.full(n, END), np.ones(n, bool))


def problem_of(mdp, target, baseline, **said):
    rail = Guardrail("constraint", Bounded(0.0, 1.0), **said)
    return Problem(mdp, target, baseline, guardrails=[rail], delta=DELTA)


def too_high(problem, draw, true, monkeypatch):
    """Of how many logs the target is said to be worth more above what is required than it is."""
    monkeypatch.setattr(showing, "PARTS", ())  # no designs: fewer policies, and much faster
    shown = [recall(problem, draw(np.random.default_rng([7, i]))).shown for i in range(LOGS)]
    targets = [by_step(problem.mdp, problem.first)] * LOGS
    assert all(np.array_equal(one.policies[0], table) for one, table in zip(shown, targets, strict=True))
    return sum(one.floors["constraint"][0] > true + 1e-9 for one in shown)


# -- what the steps of an episode share ----------------------------------------------------------------------

STEPS, BAD = 20, 0.1  # of the episodes that go to state 1; of these every observation there is 0


def shared(rng, n=20_000):
    """The first action leads to 1 or 2, and there the episode stays; a tenth in 1 sees nothing but 0."""
    there = rng.random(n) < 0.5
    bad = there & (rng.random(n) < BAD)
    states, actions = np.zeros((2, n, STEPS), dtype=np.int64)
    states[:, 1:], actions[:, 0] = np.where(there, 1, 2)[:, None], ~there
    seen = np.ones((n, STEPS))
    seen[bad, 1:] = 0.0
    return logged(states, actions, seen)


SHARED = 1.0 + (STEPS - 1) * (1.0 - BAD)  # what the target is worth, who always goes to 1
BASE = 1.0 + (STEPS - 1) * (1.0 - BAD / 2.0)
REQUIRED = (SHARED + BASE) / 2.0


def shared_problem():
    open_to = np.array([[1, 1], [1, 0], [1, 0]], dtype=bool)
    mdp = Unknown(3, 2, STEPS, start=[1.0, 0.0, 0.0], available=open_to)
    target, baseline = [[[first, 1.0 - first], [1.0, 0.0], [1.0, 0.0]] for first in (1.0, 0.5)]
    return problem_of(mdp, target, baseline, alpha=1.0 - REQUIRED / BASE, baseline_value=BASE)


def test_what_steps_share_is_not_taken_for_chance(monkeypatch):
    assert too_high(shared_problem(), shared, SHARED - REQUIRED, monkeypatch) < TOO_MANY


def test_the_promise_holds_where_steps_share_what_they_see():
    """Five of ten campaigns have a probability below 1e-4 at delta."""
    problem, broken = shared_problem(), 0
    for i in range(LOGS):
        history = shared(np.random.default_rng([7, i]))
        campaign, budget, worst = Campaign(problem, "safe-on-policy", 40, history=history, seed=i), 0.0, 0.0
        rng = np.random.default_rng([8, i])
        for _ in range(40):
            trial = campaign.ask()
            budget += (BASE if trial.kind == "baseline" else SHARED) - REQUIRED
            worst = min(worst, budget)
            first = trial.act(0, 0)
            seen = np.ones(STEPS)
            seen[1:] = 1.0 - (first == 0 and rng.random() < BAD)
            states, actions = np.full((2, STEPS), 1 + first)
            states[0], actions[0], actions[1:] = 0, first, 0
            campaign.tell(trial, states, actions, np.zeros(STEPS), seen, final_state=END)
        broken += worst < -1e-9
    assert broken < 5


# -- moves that depend on what nobody sees -------------------------------------------------------------------

UNLIKE, OFTEN, SELDOM = 0.3, 0.7, 0.06


def hidden(rng, n=20_000):
    """Three in ten see nothing but 0 after the first step.

    Action 1 sends these to 2 and others to 1; action 0 sends all to 1. The baseline prefers 1, so that those
    whom it meets in 1 are mostly not like that. There it seldom takes what the target takes, which changes
    nothing.
    """
    unlike, first = rng.random(n) < UNLIKE, rng.random(n) < OFTEN
    where = np.where(first & unlike, 2, 1)
    second = (rng.random(n) < SELDOM) & (where == 1)
    zeros = np.zeros(n, dtype=np.int64)
    later = 1.0 - unlike
    return logged(
        np.stack([zeros, where, where], axis=1),
        np.stack([first, second, zeros], axis=1).astype(np.int64),
        np.stack([np.ones(n), later, later], axis=1),
    )


def test_moves_may_depend_on_what_nobody_sees(monkeypatch):
    baseline, target = np.zeros((2, 3, 3, 2))
    baseline[..., 0] = target[..., 0] = 1.0
    baseline[0, 0], baseline[1, 1], target[1, 1] = (1.0 - OFTEN, OFTEN), (1.0 - SELDOM, SELDOM), (0.0, 1.0)
    mdp = Unknown(3, 2, 3, start=[1.0, 0.0, 0.0])
    problem = problem_of(mdp, target, baseline, allowance=0.01)  # all policies are worth the same
    assert too_high(problem, hidden, 0.01, monkeypatch) < TOO_MANY


# -- the order of a log --------------------------------------------------------------------------------------


def by_outcome(rng, n=10_000):
    """One step; action 0 fails in a tenth, 1 in three tenths. The failures stand first."""
    actions = (rng.random(n) < 0.2).astype(np.int64)
    seen = (rng.random(n) >= np.where(actions == 1, 0.3, 0.1)).astype(float)
    order = np.argsort(seen, kind="stable")
    return logged(np.zeros((n, 1), dtype=np.int64), actions[order, None], seen[order, None])


def test_a_log_may_stand_in_any_order(monkeypatch):
    problem = problem_of(Unknown(1, 2, 1), [[0.0, 1.0]], [[0.8, 0.2]], allowance=0.08, baseline_value=0.86)
    assert too_high(problem, by_outcome, 0.7 - 0.78, monkeypatch) < TOO_MANY


def test_so_many_are_beyond_chance():
    share = LOG * DELTA
    few = sum(
        np.prod(np.arange(LOGS - k + 1, LOGS + 1)) / max(1, np.prod(np.arange(1, k + 1)))
        * share**k * (1.0 - share) ** (LOGS - k)
        for k in range(TOO_MANY)
    )  # fmt: skip
    assert 1.0 - few < 6e-5
