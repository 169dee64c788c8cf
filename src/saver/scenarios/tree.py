"""The paper's Experiment 3, and the pair of trees behind its lower bound."""

from __future__ import annotations

import math

import numpy as np

from saver.errors import InvalidProblem
from saver.problem import Bernoulli, Bounded, Gaussian, Mdp, Problem, Scenario, SubGaussian, World
from saver.problem.checks import between, number, whole
from saver.scenarios.assembly import always, scenario


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
    quiet_target = between("quiet_target", quiet_target, 0.0, 1.0, closed=(True, True))
    reward_seed = whole("reward_seed", reward_seed, 0)
    mdp = tree_model(depth, actions, discount)
    shape = (mdp.states, actions)
    first = np.arange(actions) == 0
    shared = (1 - quiet_target) / (actions - 1)
    return scenario(
        "tree",
        mdp,
        reward=Gaussian(
            np.random.default_rng(reward_seed).random(shape),
            np.broadcast_to(np.where(first, quiet_variance, noisy_variance), shape),
        ),
        constraint_mean=np.broadcast_to(first.astype(float), shape),
        target=np.broadcast_to(np.where(first, quiet_target, shared), shape),
        baseline=always(mdp, 0),
        alpha=alpha,
        delta=delta,
        constraint_variance=constraint_variance,
        episodes=episodes,
    )


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
    shape = (mdp.states, mdp.actions)
    between("constraint_variance", constraint_variance, 0.0, math.inf, closed=(True, False))
    constraint = Gaussian(np.broadcast_to(np.array([1.0, 0.0]), shape), constraint_variance)
    problem = Problem(
        mdp,
        np.full(shape, 0.5),
        always(mdp, 0),
        alpha=alpha,
        delta=delta,
        baseline_value=2.0,
        constraint=SubGaussian(math.sqrt(constraint_variance)),
        reward=Bounded(0.0, 1.0),
    )

    def one(name: str, last: float) -> Scenario:
        means = np.full(shape, mean)
        means[2, 1] = last
        return Scenario(name, World(mdp, Bernoulli(means), constraint), problem, episodes)

    return one("lower-bound", mean), one("lower-bound-prime", mean - gap)
