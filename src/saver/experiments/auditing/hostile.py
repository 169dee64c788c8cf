"""Worlds built against the certificate. Every one keeps its promises, so the certificate must hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from saver.experiments.auditing.asked import COINS, asked, grid, one_outcome, with_constraints, with_rewards
from saver.experiments.auditing.guarded import WAYS, at_the_edge
from saver.experiments.auditing.nextstate import NEXT_STATE
from saver.experiments.auditing.rewards import REWARDS
from saver.experiments.auditing.starts import contexts
from saver.problem import Bernoulli, Bounded, Empirical, Gaussian, Mdp, Scenario, SubGaussian
from saver.scenarios import find_scenario
from saver.scenarios.assembly import bandit_model
from saver.scenarios.tree import tree_model

# -- the first ones ------------------------------------------------------------------------------------------


def _unsafe_looks_good() -> Scenario:
    """What earns nothing of the constraint is what the target needs most, and seems certain at first."""
    law = Gaussian([[0.5, 0.9, 0.0, 0.0]], 0.25)
    made = asked(
        bandit_model(4), law, SubGaussian(0.5), alpha=0.1, episodes=1000, target=[[0.1, 0.1, 0.4, 0.4]]
    )
    return with_rewards(made, Gaussian([[0.5, 0.5, 0.0, 1.0]], [[1e-4, 1e-4, 4.0, 4.0]]))


def _rare_disasters() -> Scenario:
    """The bandit's constraints as coins that nearly always win, or nearly never."""
    made = find_scenario("bandit")
    mean = np.array(made.world.constraint.mean)
    return with_constraints(made, Bernoulli(np.where(mean > 0.1, np.minimum(0.995, mean + 0.4), 0.01)))


def _coins() -> Scenario:
    made = find_scenario("tree", alpha=0.05)
    return with_constraints(made, Bernoulli(np.clip(made.world.constraint.mean, 0.05, 0.95)))


def _noisier() -> Scenario:
    made = find_scenario("bandit")
    return with_constraints(made, Gaussian(made.world.constraint.mean, 1.0), SubGaussian(1.0))


# -- coins near 0 and near 1 ---------------------------------------------------------------------------------


def _coins_near_1(alpha: float, episodes: int) -> Scenario:
    law = Bernoulli([[0.99, 0.999, 0.9, 0.5, 0.01, 0.001]])
    return asked(bandit_model(6), law, COINS, alpha=alpha, episodes=episodes)


def _coins_near_0() -> Scenario:
    law = Bernoulli([[0.02, 0.06, 0.02, 0.002, 0.001, 0.0]])
    return asked(bandit_model(6), law, COINS, alpha=0.5, episodes=1000)


def _coins_on_a_tree() -> Scenario:
    mdp = tree_model(3, 3)
    law = Bernoulli(np.broadcast_to([0.99, 0.999, 0.001], (mdp.states, 3)))
    return asked(mdp, law, COINS, alpha=0.02, episodes=1000)


def _coins_on_a_graph() -> Scenario:
    moves = np.random.default_rng(0).dirichlet(np.ones(4), size=(4, 4))
    law = Bernoulli([[0.99, 0.999, 0.95, 0.001]] * 4)
    return asked(Mdp(moves, horizon=3), law, COINS, alpha=0.02, episodes=500)


# -- earners that look better than they are ------------------------------------------------------------------


def _lucky_arms() -> Scenario:
    """Thirty arms earn less than required; the luckiest seems to earn more than the baseline."""
    law = Gaussian([[0.5, *np.linspace(0.455, 0.47, 30)]], 0.0625)
    return asked(bandit_model(31), law, SubGaussian(0.25), alpha=0.05, episodes=1000)


def _lucky_coins() -> Scenario:
    """Thirty coins that win for a while."""
    law = Bernoulli([[0.9, *np.linspace(0.82, 0.85, 30)]])
    return asked(bandit_model(31), law, COINS, alpha=0.05, episodes=1000)


def _lucky_ways() -> Scenario:
    """As many ways through a graph."""
    rng = np.random.default_rng(0)
    moves, means = rng.dirichlet(np.ones(6), size=(6, 5)), rng.uniform(0.4, 0.44, (6, 4))
    law = Gaussian(np.column_stack([np.full(6, 0.5), means]), 0.0625)
    return asked(Mdp(moves, horizon=3), law, SubGaussian(0.25), alpha=0.1, episodes=500)


# -- boxes that are almost never visited ---------------------------------------------------------------------


def _rare(
    mean: float, promise: SubGaussian, chances: ArrayLike, first: list[float], alpha: float
) -> Scenario:
    """The second of two steps has a small chance to be where the mean is at the floor or the ceiling."""
    moves = np.zeros((3, 3, 3))
    moves[0, :, 2] = chances
    moves[0, :, 1] = 1.0 - moves[0, :, 2]
    law = Gaussian([first, [0.5] * 3, [mean] * 3], promise.scale**2)
    return asked(Mdp(moves, horizon=2), law, promise, alpha=alpha, episodes=500)


def _rare_pits() -> Scenario:
    """Good until the first fall."""
    return _rare(-10.0, SubGaussian(0.1, -10.0, 1.0), [0.0, 0.03, 0.01], [0.5, 0.49, 0.49], 0.05)


def _rare_treasures() -> Scenario:
    """Poor but for what is found at times."""
    return _rare(20.0, SubGaussian(0.2, 0.0, 20.0), [0.0, 0.01, 0.003], [0.5, 0.1, 0.0], 0.1)


def _long_road() -> Scenario:
    """Some actions may leave the road for good; what is off it earns nothing."""
    leaves = np.array([0.0, 0.002, 0.01])
    moves = np.array([np.column_stack([1.0 - leaves, leaves]), [[0.0, 1.0]] * 3])
    law = Gaussian([[0.6, 0.62, 0.6], [0.0] * 3], 0.04)
    return asked(Mdp(moves, horizon=40), law, SubGaussian(0.2), alpha=0.03, episodes=300)


# -- policies that are drawn where nothing else is random ----------------------------------------------------


def _all_or_nothing() -> Scenario:
    """The target is worth as much as the baseline; what it draws is worth all or nothing."""
    law, target = Gaussian([[0.5, 1.0, 0.0]], 1e-4), [[0.1, 0.45, 0.45]]
    return asked(bandit_model(3), law, SubGaussian(0.01), alpha=0.1, episodes=1000, target=target)


def _drawn_baseline() -> Scenario:
    """Baseline and target are drawn, on a tree of coins."""
    mdp = tree_model(3)
    law, safe = Bernoulli([[0.95, 0.05]] * mdp.states), [[0.9, 0.1]] * mdp.states
    return asked(mdp, law, COINS, alpha=0.3, episodes=500, baseline=safe)


# -- other ranges, and discounts -----------------------------------------------------------------------------


def _discounted_tree() -> Scenario:
    mdp = tree_model(4, 2, 0.6)
    return asked(mdp, Bernoulli([[0.9, 0.1]] * mdp.states), COINS, alpha=0.1, episodes=500)


def _discounted_graph() -> Scenario:
    made, mean = grid(0.9, 0.1, horizon=8, discount=0.7, alpha=0.05)
    return with_constraints(made, Bernoulli(mean), episodes=500)


def _other_range() -> Scenario:
    """Either -2 or 3."""
    wins = (14, 18, 8, 4, 1)  # of 20
    law = Empirical([[[3.0] * w + [-2.0] * (20 - w) for w in wins]])
    return asked(bandit_model(5), law, Bounded(-2.0, 3.0), alpha=0.2, episodes=1000)


def _below_zero() -> Scenario:
    """Means down to a floor of -1."""
    made, mean = grid(0.7, -1.0, horizon=6, alpha=0.1)
    return with_constraints(made, Gaussian(mean, 0.25), SubGaussian(0.5, -1.0, 1.0), 500)


HOSTILE: dict[str, Callable[[], Scenario]] = {
    "unsafe looks good": _unsafe_looks_good,
    "rare disasters": _rare_disasters,
    "coins, alpha .05": _coins,
    "noise x 10": _noisier,
    "one outcome": lambda: one_outcome(_noisier()),
    "tiny alpha": partial(find_scenario, "gridworld", alpha=0.02),
    "nothing to spare": partial(find_scenario, "tree", alpha=0.01, delta=0.01),
    **NEXT_STATE,
    **{f"at the edge, {way}": partial(at_the_edge, way) for way in WAYS},
    "coins near 1": partial(_coins_near_1, 0.05, 1000),
    "coins near 1, alpha .01": partial(_coins_near_1, 0.01, 2000),
    "coins near 0": _coins_near_0,
    "coins on a tree": _coins_on_a_tree,
    "coins on a graph": _coins_on_a_graph,
    "lucky arms": _lucky_arms,
    "lucky coins": _lucky_coins,
    "lucky ways": _lucky_ways,
    "rare pits": _rare_pits,
    "rare treasures": _rare_treasures,
    "long road": _long_road,
    "all or nothing": _all_or_nothing,
    "drawn baseline": _drawn_baseline,
    "discounted tree": _discounted_tree,
    "discounted graph": _discounted_graph,
    "from -2 to 3": _other_range,
    "below zero": _below_zero,
    "contexts of coins": partial(contexts, 10, COINS),
    "contexts of coins, steps": partial(contexts, 10, COINS, 3),
    **REWARDS,
}
