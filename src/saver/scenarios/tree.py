"""The paper's Experiment 3, and the pair of trees behind its lower bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from saver.errors import InvalidProblem
from saver.problem import Bernoulli, Gaussian, Mdp, Scenario
from saver.problem.checks import number, whole
from saver.scenarios.assembly import Stakes, always, favouring, scenario


def tree(
    *,
    depth: int = 4,
    actions: int = 2,
    quiet_variance: float = 0.01,
    noisy_variance: float = 20.0,
    quiet_target: float = 0.95,
    constraint_variance: float = 0.01,
    alpha: float = 0.25,
    delta: float = 0.05,
    discount: float = 1.0,
    episodes: int = 5000,
    reward_seed: int = 0,
) -> Scenario:
    """A full deterministic tree. Action 0 is quiet and safe; the others are noisy and worth no constraint.

    The target gives `quiet_target` to action 0 and shares the rest; reward means are uniform draws.
    """
    reward_seed = whole("reward_seed", reward_seed, 0)
    mdp = tree_model(depth, actions, discount)
    first, baseline = np.arange(actions) == 0, always(mdp, 0)
    mean = np.random.default_rng(reward_seed).random(baseline.shape)
    reward = Gaussian(mean, np.tile(np.where(first, quiet_variance, noisy_variance), (mdp.states, 1)))
    target = favouring(first, quiet_target, "quiet_target", mdp.states)
    stakes = Stakes(alpha, delta, constraint_variance, episodes)
    return scenario("tree", mdp, stakes, reward, means=baseline, target=target, baseline=baseline)


def tree_model(depth: int, actions: int = 2, discount: float = 1.0) -> Mdp:
    """The full tree with `depth` levels: action a leads from state s to state s * actions + 1 + a."""
    depth, actions = whole("depth", depth, 1, 100), whole("actions", actions, 2, 10**4)
    states = (actions**depth - 1) // (actions - 1)
    if states * actions > 10**8:
        raise InvalidProblem(f"depth {depth} with {actions} actions makes {states} states; choose less depth")
    inner = (states - 1) // actions
    child = np.arange(1, states)
    edges = np.column_stack([(child - 1) // actions, (child - 1) % actions, child, np.ones(inner * actions)])
    return Mdp.from_edges(edges, states, actions, depth, discount=discount)


def lower_bound_pair(
    *,
    mean: float = 0.5,
    gap: float = 0.2,
    alpha: float = 0.25,
    delta: float = 0.05,
    constraint_variance: float = 0.01,
    episodes: int = 5000,
) -> tuple[Scenario, Scenario]:
    """Two trees of depth 2 with Bernoulli rewards that differ in (state 2, action 1): mean or mean - gap.

    Telling them apart is what the regret lower bound (Theorem 1, appendix) charges for.
    """
    mean, gap = number("mean", mean), number("gap", gap)
    mdp = tree_model(2)
    baseline, means = always(mdp, 0), np.full((mdp.states, mdp.actions), mean)
    stakes, even = Stakes(alpha, delta, constraint_variance, episodes), np.full(means.shape, 0.5)
    one = scenario("lower-bound", mdp, stakes, Bernoulli(means), baseline, even, baseline)
    means[2, 1] = mean - gap
    return one, replace(one, name="lower-bound-prime", world=replace(one.world, reward=Bernoulli(means)))
