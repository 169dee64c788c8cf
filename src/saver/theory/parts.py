"""What the theory is made of: the paper's quantities at every node of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saver.design import dag, is_tree, tree
from saver.design.flows import Nodes
from saver.problem.bellman import by_step
from saver.problem.checks import Bools, Floats, Ints
from saver.problem.statement import Problem


@dataclass(frozen=True)
class Undefined:
    """In the place of a number that has no meaning here."""

    because: str

    def __str__(self) -> str:
        return f"not defined, because {self.because}"


Number = float | Undefined


class Nodewise(NamedTuple):
    """The paper's s_j^l: a state on a tree, a (step, state) that some behaviour can be in on a graph."""

    step: Ints  # [nodes]
    state: Ints  # [nodes]
    spread: Floats  # M(s), B_t(s) of Algorithm 2 on a graph, [nodes]
    policy: Floats  # b_*(a|s), normalised, [nodes, A]
    target: Floats  # [nodes, A]
    baseline: Floats  # [nodes, A]
    allowed: Bools  # [nodes, A]


def nodewise(problem: Problem, variance: Floats) -> Nodewise:
    """Everything at the nodes, from the design that the paper has for this kind of model."""
    mdp, nodes = problem.mdp, Nodes.of(problem.mdp)
    step, state = nodes.step, nodes.state
    if is_tree(mdp):
        design = tree(mdp, problem.target, variance)
        spread, policy = design.spread[state], design.policy[state]
    else:
        design = dag(mdp, problem.target, variance, time_indexed=True)
        spread, policy = design.spread[step, state], design.policy[step, state]
    target, baseline = by_step(mdp, problem.target)[step, state], by_step(mdp, problem.baseline)[step, state]
    return Nodewise(step, state, spread, policy, target, baseline, mdp.available[state])


def closed_policy(problem: Problem, variance: Floats) -> Floats:
    """b_* as a policy: tree, or dag by step."""
    if is_tree(problem.mdp):
        return tree(problem.mdp, problem.target, variance).policy
    return dag(problem.mdp, problem.target, variance, time_indexed=True).policy


def per_state(problem: Problem, at: Nodewise, values: Floats) -> Floats:
    """Node values as [S] on a tree, [L, S] on a graph; NaN where no behaviour can be."""
    mdp = problem.mdp
    table = np.full((mdp.horizon, mdp.states), np.nan)
    table[at.step, at.state] = values
    if not is_tree(mdp):
        return table
    flat = np.full(mdp.states, np.nan)
    flat[at.state] = values
    return flat


def label(problem: Problem, at: Nodewise, node: int) -> str:
    """How messages call a node."""
    name = problem.mdp.state_label(int(at.state[node]))
    return name if is_tree(problem.mdp) else f"{name} at step {at.step[node]}"
