"""What a plan comes to: its policy, and which pairs come first under it; the policies that decisions name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from saver._types import Ints
from saver.collect.events import BASELINE, EXPLORE, PLAN, Asked, Event, Plan
from saver.collect.setup import Setup
from saver.kernels.believing import UNNEEDED
from saver.play.policy import Policy


class Following(NamedTuple):
    """A plan that is followed.

    Attributes:
        needed: from which number of samples on a pair is needed, [S, A]; None where the plan is drawn from.
    """

    plan: Plan
    policy: Policy
    needed: Ints | None


def following(setup: Setup, plan: Plan, more: int) -> Following:
    """What a plan comes to, where `more` trials may be asked for than were planned."""
    policy = Policy(setup.stage.grid, plan.by_step, plan.rows)
    if setup.collector.track == "sample":
        return Following(plan, policy, None)
    if plan.needed is not None:
        return Following(plan, policy, plan.needed)
    return Following(plan, policy, unplanned(setup, policy, 1 if setup.designer.fixed else plan.since, more))


def unplanned(setup: Setup, policy: Policy, number: int, more: int = 0) -> Ints:
    """`Designer.needed`, without the pairs that a plan made for episode `number` will visit by itself.

    What comes first is played wherever its state is met, in a long episode again and again. The exact design
    gives every pair with weight its visits: only those with less than one to come, until the end of the
    campaign, have to come first.
    """
    designer, stage = setup.designer, setup.stage
    if not designer.exact_on_graph:
        return designer.needed
    to_come = (setup.episodes + more - number + 1) * stage.grid.by_state(stage.evaluate(policy).flow)
    return np.where(to_come >= 1.0, UNNEEDED, designer.needed)


def policy_of(setup: Setup, policy: Any, by_step: bool, plan: Policy | None, exploration: Any) -> Policy:
    """The policy that a decision names, or whose actions it holds; `exploration` is as in the state."""
    if not isinstance(policy, str):
        return setup.stage.grid.choices(by_step, policy)
    if policy == BASELINE:
        return setup.baseline
    if policy == EXPLORE:
        return exploration_of(setup, exploration)
    assert policy == PLAN
    assert plan is not None
    return plan


def policies_of(setup: Setup, events: Iterable[Event]) -> dict[int, Policy]:
    """The policy of each trial, as it was when it was asked, from the events alone."""
    plan, exploration, found = None, None, {}
    for event in events:
        if isinstance(event, Asked):
            if event.plan is not None:
                plan = Policy(setup.stage.grid, event.plan.by_step, event.plan.rows)
            exploration = exploration if event.exploration is None else event.exploration
            found[event.number] = policy_of(setup, event.policy, event.by_step, plan, exploration)
    return found


def exploration_of(setup: Setup, rows: Any) -> Policy:
    """What is explored by: uniform play, or what was computed once and kept."""
    return setup.exploration() if rows is None else Policy(setup.stage.grid, True, rows)
