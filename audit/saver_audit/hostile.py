"""Worlds built against the certificate. Every one keeps its promises, so the certificate must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.problem import Bounded, Empirical, Gaussian, Mdp, Scenario
from saver.scenarios import find_scenario
from saver.scenarios.assembly import always, bandit_model
from saver.scenarios.tree import tree_model
from saver_audit.making import (
    WAYS,
    Seen,
    asked,
    coins_of,
    grid,
    guarded,
    normal_of,
    one_outcome,
    with_constraints,
    with_rewards,
)
from saver_audit.rewards import REWARDS

EDGE = 0.97  # of what is required: just below the line
UP, STEPS = 1, 6  # the better of two states; steps between them
EVEN = np.full((2, 3), 0.5)  # P(next is UP), [S, A]
STICKY = np.array([[0.6, 0.2, 0.3], [0.9, 0.4, 0.7]])
GOOD, SAFE, ALPHA = 0.3, 0.5, 0.3  # share of good contexts, the baseline's value, and what may be lost of it


def _unsafe_looks_good() -> Scenario:
    """What earns nothing of the constraint is what the target needs most, and seems certain at first."""
    seen, target = normal_of([[0.5, 0.9, 0.0, 0.0]], 0.25), [[0.1, 0.1, 0.4, 0.4]]
    made = asked(bandit_model(4), seen, alpha=0.1, episodes=1000, target=target)
    return with_rewards(made, Gaussian([[0.5, 0.5, 0.0, 1.0]], [[1e-4, 1e-4, 4.0, 4.0]]))


def _rare_disasters() -> Scenario:
    """The bandit's constraints as coins that nearly always win, or nearly never."""
    made = find_scenario("bandit")
    mean = np.array(made.world.constraint.mean)
    return with_constraints(made, coins_of(np.where(mean > 0.1, np.minimum(0.995, mean + 0.4), 0.01)))


def _coins() -> Scenario:
    made = find_scenario("tree", alpha=0.05)
    return with_constraints(made, coins_of(np.clip(made.world.constraint.mean, 0.05, 0.95)))


def _noisier() -> Scenario:
    made = find_scenario("bandit")
    return with_constraints(made, normal_of(made.world.constraint.mean, 1.0))


def _at_the_edge(way: str) -> Scenario:
    """A bandit whose target earns just less than what is required of a learned value, with noisy rewards.

    Whoever believes a little too much of V0 plays it too often, at once.
    """
    seen = normal_of([[0.5, EDGE * 0.375]], 0.1**2)
    made = asked(bandit_model(2), seen, alpha=0.25, episodes=400, target=[[0.0, 1.0]])
    return replace(guarded(made, "learned", WAYS.index(way)), name=f"edge {way}")


# -- noise that the next state explains, with more to come where it looks good -------------------------------


def _ladder(upward: Floats, discount: float = 1.0) -> Mdp:
    """Two states; every action leads up or down."""
    return Mdp(np.stack([1.0 - upward, upward], axis=-1), horizon=STEPS, discount=discount)


def _pushed() -> Scenario:
    """An observation is above its mean by half if the next state is the better one, else below by half."""
    mean = np.array([[0.4, 0.0, 0.1], [1.0, 0.5, 0.6]])

    def shown(state: int, action: int, next_state: int) -> float:
        return float(mean[state, action]) + (0.5 if next_state == UP else -0.5)

    seen = normal_of(mean, 0.25, next_state=True)
    return asked(_ladder(EVEN), seen, alpha=0.2, episodes=200, shown=shown)


def _next_coins(declared: bool) -> Scenario:
    """The coin that is observed is the next state, and who is up stays up."""

    def shown(state: int, action: int, next_state: int) -> float:
        return float(next_state == UP)

    seen = coins_of(STICKY, next_state=declared)
    return asked(_ladder(STICKY, 0.95), seen, alpha=0.1, episodes=200, shown=shown)


def _split(declared: bool) -> Scenario:
    """The same by laws: what the next state explains is its own mean, and is observed a step later."""
    seen = normal_of([[0.0] * 3, [1.0] * 3], 0.25, next_state=declared)
    return asked(_ladder(STICKY), seen, alpha=0.1, episodes=500)


NEXT_STATE: dict[str, Callable[[], Scenario]] = {
    "next state": _pushed,
    "next state, coins": partial(_next_coins, True),
    "next state, coins, not declared": partial(_next_coins, False),  # nor needed: see `safety.capital`
    "next state, split": partial(_split, True),
    "next state, split, not declared": partial(_split, False),
}


# -- coins near 0 and near 1 ---------------------------------------------------------------------------------


def _coins_near_1(alpha: float, episodes: int) -> Scenario:
    seen = coins_of([[0.99, 0.999, 0.9, 0.5, 0.01, 0.001]])
    return asked(bandit_model(6), seen, alpha=alpha, episodes=episodes)


def _coins_near_0() -> Scenario:
    seen = coins_of([[0.02, 0.06, 0.02, 0.002, 0.001, 0.0]])
    return asked(bandit_model(6), seen, alpha=0.5, episodes=1000)


def _coins_on_a_tree() -> Scenario:
    mdp = tree_model(3, 3)
    seen = coins_of(np.broadcast_to([0.99, 0.999, 0.001], (mdp.states, 3)))
    return asked(mdp, seen, alpha=0.02, episodes=1000)


def _coins_on_a_graph() -> Scenario:
    moves = np.random.default_rng(0).dirichlet(np.ones(4), size=(4, 4))
    seen = coins_of([[0.99, 0.999, 0.95, 0.001]] * 4)
    return asked(Mdp(moves, horizon=3), seen, alpha=0.02, episodes=500)


# -- earners that look better than they are ------------------------------------------------------------------


def _lucky_arms() -> Scenario:
    """Thirty arms earn less than required; the luckiest seems to earn more than the baseline."""
    seen = normal_of([[0.5, *np.linspace(0.455, 0.47, 30)]], 0.0625)
    return asked(bandit_model(31), seen, alpha=0.05, episodes=1000)


def _lucky_coins() -> Scenario:
    """Thirty coins that win for a while."""
    seen = coins_of([[0.9, *np.linspace(0.82, 0.85, 30)]])
    return asked(bandit_model(31), seen, alpha=0.05, episodes=1000)


def _lucky_ways() -> Scenario:
    """As many ways through a graph."""
    rng = np.random.default_rng(0)
    moves, means = rng.dirichlet(np.ones(6), size=(6, 5)), rng.uniform(0.4, 0.44, (6, 4))
    seen = normal_of(np.column_stack([np.full(6, 0.5), means]), 0.0625)
    return asked(Mdp(moves, horizon=3), seen, alpha=0.1, episodes=500)


# -- boxes that are almost never visited ---------------------------------------------------------------------


def _rare(
    chances: ArrayLike,
    first: list[float],
    mean: float,
    *,
    alpha: float,
    scale: float,
    floor: float = 0.0,
    ceiling: float = 1.0,
) -> Scenario:
    """The second of two steps has a small chance to be where the mean is at the floor or the ceiling."""
    moves = np.zeros((3, 3, 3))
    moves[0, :, 2] = chances
    moves[0, :, 1] = 1.0 - moves[0, :, 2]
    seen = normal_of([first, [0.5] * 3, [mean] * 3], scale**2, floor, ceiling)
    return asked(Mdp(moves, horizon=2), seen, alpha=alpha, episodes=500)


def _long_road() -> Scenario:
    """Some actions may leave the road for good; what is off it earns nothing."""
    leaves = np.array([0.0, 0.002, 0.01])
    moves = np.array([np.column_stack([1.0 - leaves, leaves]), [[0.0, 1.0]] * 3])
    seen = normal_of([[0.6, 0.62, 0.6], [0.0] * 3], 0.04)
    return asked(Mdp(moves, horizon=40), seen, alpha=0.03, episodes=300)


# -- policies that are drawn where nothing else is random ----------------------------------------------------


def _all_or_nothing() -> Scenario:
    """The target is worth as much as the baseline; what it draws is worth all or nothing."""
    seen, target = normal_of([[0.5, 1.0, 0.0]], 1e-4), [[0.1, 0.45, 0.45]]
    return asked(bandit_model(3), seen, alpha=0.1, episodes=1000, target=target)


def _drawn_baseline() -> Scenario:
    """Baseline and target are drawn, on a tree of coins."""
    mdp = tree_model(3)
    seen, safe = coins_of([[0.95, 0.05]] * mdp.states), [[0.9, 0.1]] * mdp.states
    return asked(mdp, seen, alpha=0.3, episodes=500, baseline=safe)


# -- other ranges, and discounts -----------------------------------------------------------------------------


def _discounted_tree() -> Scenario:
    mdp = tree_model(4, 2, 0.6)
    return asked(mdp, coins_of([[0.9, 0.1]] * mdp.states), alpha=0.1, episodes=500)


def _discounted_graph() -> Scenario:
    made, mean = grid(0.9, 0.1, horizon=8, discount=0.7, alpha=0.05)
    return with_constraints(made, coins_of(mean), episodes=500)


def _other_range() -> Scenario:
    """Either -2 or 3."""
    law = Empirical([[[3.0] * wins + [-2.0] * (20 - wins) for wins in (14, 18, 8, 4, 1)]])
    return asked(bandit_model(5), Seen(law, Bounded(-2.0, 3.0)), alpha=0.2, episodes=1000)


def _below_zero() -> Scenario:
    """Means down to a floor of -1."""
    made, mean = grid(0.7, -1.0, horizon=6, alpha=0.1)
    return with_constraints(made, normal_of(mean, 0.25, -1.0), episodes=500)


# -- starts that decide what an episode is worth: who looks before deciding can choose -----------------------


def contexts(count: int, scale: float | None = None, steps: int = 1) -> Scenario:
    """The target takes action 1; an episode stays in the context in which it starts, for so many steps.

    Action 1 earns 1 in some contexts and nothing in the others: less than is required. Whoever cancels, or
    loses, the trials that would start elsewhere sees it earn 1 always. Coins where no scale is given.
    """
    mean = np.full((count, 2), SAFE)
    mean[:, 1] = np.arange(count) < GOOD * count
    moves = np.broadcast_to(np.eye(count)[:, None], (count, 2, count)) * (steps > 1)
    mdp = Mdp(moves, horizon=steps, start=np.full(count, 1.0 / count))
    seen = coins_of(mean) if scale is None else normal_of(mean, scale**2)
    return asked(mdp, seen, alpha=ALPHA, episodes=300, target=always(mdp, 1))


HOSTILE: dict[str, Callable[[], Scenario]] = {
    "unsafe looks good": _unsafe_looks_good,
    "rare disasters": _rare_disasters,
    "coins, alpha .05": _coins,
    "noise x 10": _noisier,
    "one outcome": lambda: one_outcome(_noisier()),
    "tiny alpha": partial(find_scenario, "gridworld", alpha=0.02),
    "nothing to spare": partial(find_scenario, "tree", alpha=0.01, delta=0.01),
    **NEXT_STATE,
    **{f"at the edge, {way}": partial(_at_the_edge, way) for way in WAYS},
    "coins near 1": partial(_coins_near_1, 0.05, 1000),
    "coins near 1, alpha .01": partial(_coins_near_1, 0.01, 2000),
    "coins near 0": _coins_near_0,
    "coins on a tree": _coins_on_a_tree,
    "coins on a graph": _coins_on_a_graph,
    "lucky arms": _lucky_arms,
    "lucky coins": _lucky_coins,
    "lucky ways": _lucky_ways,
    # good until the first fall; poor but for what is found at times
    "rare pits": partial(
        _rare, [0.0, 0.03, 0.01], [0.5, 0.49, 0.49], -10.0, alpha=0.05, scale=0.1, floor=-10.0
    ),
    "rare treasures": partial(
        _rare, [0.0, 0.01, 0.003], [0.5, 0.1, 0.0], 20.0, alpha=0.1, scale=0.2, ceiling=20.0
    ),
    "long road": _long_road,
    "all or nothing": _all_or_nothing,
    "drawn baseline": _drawn_baseline,
    "discounted tree": _discounted_tree,
    "discounted graph": _discounted_graph,
    "from -2 to 3": _other_range,
    "below zero": _below_zero,
    "contexts of coins": partial(contexts, 10),
    "contexts of coins, steps": partial(contexts, 10, steps=3),
    **REWARDS,
}
