"""What a log cannot tell, and the models with their prices."""

from dataclasses import replace

import numpy as np
import pytest
from logged import World

from saver import SubGaussian, data


@pytest.fixture(scope="module")
def desk():
    """A log of 4 states and 4 actions, in labels, in which one action was never tried in one state."""
    world = World.drawn(4, 4, 6, 0, 0.3)
    policy = np.array(world.shop.policy)
    policy[2] = [0.0, 0.01, 0.495, 0.495]
    world = world._replace(shop=replace(world.shop, policy=policy))
    read = data.read_log(world.shop.log(1500, 1), next_state="next_state", guardrails=["complaint"])
    return world, read, read.fit(6)


def stated(fitted, **options):
    target = np.full((4, 4), 0.25)
    return fitted.problem(target, {"complaint": {"alpha": 0.4, "cost": True}}, **options)


def test_pairs_that_were_never_tried_are_named_with_what_they_leave_open(desk):
    _, _, fitted = desk
    lines = fitted.advice(stated(fitted, reward=SubGaussian(1.0, -2.0, 4.0)))
    never = next(line for line in lines if line.startswith("never tried"))
    assert never.startswith("never tried: 1 of 16 pairs")
    assert "action 0 (offer a) in state 2 (page-02) (0)" in never
    seldom = next(line for line in lines if line.startswith("seen seldom"))
    assert "(offer b) in state 2 (page-02)" in seldom
    model, counts = fitted.believed, fitted.sums.rewards.counts
    assert counts[2, 0] == 0
    from saver.problem import weights

    c = weights(model, np.full((model.states, 4), 0.25))[2, 0]
    left = next(line for line in lines if "leaves the target's value open" in line)
    assert f"{c * 6.0 / 2:.3g} to either side" in left
    unknown = fitted.advice(stated(fitted))
    assert any("nobody knows how much" in line for line in unknown)


def test_models_are_said_with_their_prices(desk):
    _, read, fitted = desk
    lines = "\n".join(fitted.advice(stated(fitted)))
    assert "model: unknown, with what the log shows of" in lines
    assert "of 1,000 episodes would be the baseline's" in lines
    assert "by returns alone another policy could run after about" in lines
    assert "model='mdp' would take frequencies for the truth: +- " in lines
    assert "if moves depend on state and action alone, the target costs at most" in lines
    exact = read.select(np.arange(len(read)) < 1500).fit(6, model="mdp")
    target = np.vstack([np.full((4, 4), 0.25)] * 1)
    target = np.pad(target, ((0, exact.model.states - 4), (0, 0)), constant_values=0.25)
    target = (
        target
        * exact.model.available
        / np.maximum((target * exact.model.available).sum(1, keepdims=True), 1e-9)
    )
    known = exact.problem(target, {"complaint": {"alpha": 0.4, "cost": True}})
    assert any(
        line.startswith("model: mdp takes what was seen for the truth") for line in exact.advice(known)
    )


def test_a_short_log_is_said_to_show_nothing(desk):
    _, read, _ = desk
    few = read.select(np.arange(len(read)) < 150).fit(6)
    target = np.full(few.baseline.shape, 1.0 / few.baseline.shape[-1])
    lines = few.advice(few.problem(target, {"complaint": {"alpha": 0.4, "cost": True}}))
    assert any("too short to show what policies are worth" in line for line in lines)
