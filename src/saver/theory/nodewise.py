"""What the theory is made of: the paper's quantities at every node of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saver._types import Bools, Floats, Ints
from saver.design import Design, dag, is_tree, tree
from saver.play.nodes import Nodes
from saver.problem.bellman import by_step
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
    tree: bool  # whether the model is one


def closed_design(problem: Problem, variance: Floats) -> Design:
    """b_* and M: those of a tree, or Algorithm 2's by step."""
    asked = problem.question
    if is_tree(problem.mdp):
        return tree(problem.mdp, asked.reference, asked.factor * variance)
    return dag(problem.mdp, asked.reference, asked.factor * variance, time_indexed=True)


def nodewise(problem: Problem, design: Design) -> Nodewise:
    """Everything at the nodes, from the design that the paper has for this kind of model."""
    mdp, nodes = problem.mdp, Nodes.of(problem.mdp)
    step, state = nodes.step, nodes.state
    at = (state,) if design.spread.ndim == 1 else (step, state)
    target, baseline = (
        by_step(mdp, problem.question.reference)[step, state],
        by_step(mdp, problem.baseline)[step, state],
    )
    return Nodewise(
        step,
        state,
        design.spread[at],
        design.policy[at],
        target,
        baseline,
        mdp.available[state],
        len(at) == 1,
    )


def per_state(problem: Problem, at: Nodewise, values: Floats) -> Floats:
    """Node values as [S] on a tree, [L, S] on a graph; NaN where no behaviour can be."""
    mdp = problem.mdp
    table = np.full(mdp.states if at.tree else (mdp.horizon, mdp.states), np.nan)
    table[at.state if at.tree else (at.step, at.state)] = values
    return table


def label(problem: Problem, at: Nodewise, node: int) -> str:
    """How messages call a node."""
    name = problem.mdp.state_label(int(at.state[node]))
    return name if at.tree else f"{name} at step {at.step[node]}"
