"""One model as a planner walks it: the passes for whole arrays."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from saver._types import Floats
from saver.design import flows, passes
from saver.design.flows import Nodes
from saver.design.plan import Asked
from saver.design.unrolled import Unrolled
from saver.errors import InvalidData
from saver.problem.mdp import Mdp
from saver.problem.moving import still

TRIES = 8  # to make a behaviour safe in phases
NOWHERE = np.empty(0, dtype=np.uint64)  # for choices that nobody asks for


class Walk:
    """Behaviours by rows, their flows by nodes, and values of both.

    Rows are nodes, or, in `phases`, the states of each phase.
    """

    def __init__(self, mdp: Mdp) -> None:
        self.nodes = Nodes.of(mdp)
        self.steps = Unrolled.of(self.nodes)
        self.phases = Unrolled.in_phases(self.nodes)
        self._even = mdp.uniform

    def moved(self, mdp: Mdp) -> Walk:
        """The same of a model whose moves are the same, and have other chances."""
        made, parts = copy(self), {"data": mdp.flow.data.copy(), "start": mdp.start.copy()}
        made.nodes, made.steps = self.nodes._replace(**parts), self.steps.changed(**parts)
        made.phases = None if self.phases is None else self.phases.changed(**parts)
        return made

    def even(self, model: Unrolled) -> Floats:
        """Uniform play, by rows."""
        even: Floats = self._even[model.row_state]
        return even

    def by_node(self, b: Floats) -> Floats:
        """A behaviour by rows as one by nodes."""
        if len(b) == len(self.nodes.state):
            return b
        if self.phases is None or len(b) != len(self.phases.row_state):
            raise InvalidData(
                f"the behaviour to start from has {len(b)} rows, the model {len(self.nodes.state)} nodes; "
                "take one from a planner of the same model"
            )
        by_node: Floats = b[self.phases.row]
        return by_node

    def by_row(self, model: Unrolled, flow: Floats, otherwise: Floats) -> Floats:
        """A flow by nodes as a behaviour by rows: `otherwise` where nothing flows."""
        if model is not self.steps:
            flow = np.stack([np.bincount(model.row, x, len(model.row_state)) for x in flow.T], axis=1)
        mass = flow.sum(axis=1, keepdims=True)
        return np.where(mass > 0, flow / np.where(mass > 0, mass, 1.0), otherwise)

    def follow(self, b: Floats, means: Floats, apart: bool = False) -> tuple[Floats, Floats, Floats]:
        """The flow by nodes, the visits and the constraint values of b, for means [m, S, A].

        The visits are [S, A], or, `apart`, [2, S, A]: of all steps, and of those before the last.
        """
        b = self.by_node(b)
        flow, mass, N, value = flows.followed(self.nodes, still(b), still(means[0]))
        values = np.array([value])
        if len(means) > 1:
            D = np.zeros(N.size)
            passes.discounted(self.steps, b.ravel(), mass, D)
            values = means.reshape(len(means), -1) @ D
        return flow, self.apart(flow, N) if apart else N, values

    def apart(self, flow: Floats, N: Floats) -> Floats:
        """The visits N and those before the last step."""
        early, end = np.zeros(N.shape), self.nodes.layer[-2]
        np.add.at(early, self.nodes.state[:end], flow[:end])
        return np.stack([N, early])

    def best(self, g: Floats, mean: Floats, multiplier: float, choice: Any = NOWHERE) -> float:
        """The largest g . N + multiplier V_c of any behaviour; `choice` takes its actions, by nodes."""
        return float(passes.best(self.steps, g.ravel(), mean.ravel(), multiplier, choice))

    def safest(self, mean: Floats) -> tuple[Floats, float]:
        """The behaviour by nodes that earns most, and what it earns."""
        choice = np.zeros(len(self.nodes.state), dtype=np.uint64)
        top = self.best(np.zeros(mean.shape), mean, 1.0, choice)
        return np.eye(mean.shape[1])[choice], top

    def fading(self, model: Unrolled, b: Floats) -> Floats:
        """Discounted visits over visits of b, [S, A]: what a visit counts in the constraint value."""
        mass, weight = np.zeros(len(model.state)), np.zeros(len(model.row_state))
        y, N, D = np.empty(b.size), np.zeros(self._even.size), np.zeros(self._even.size)
        passes.forward(model, b.ravel(), b.ravel(), 0.0, y, mass, weight, N)
        passes.discounted(model, y, mass, D)
        return np.divide(D, N, out=np.ones(N.size), where=N > 0).reshape(self._even.shape)

    def made_safe(self, model: Unrolled, b: Floats, asked: Asked) -> tuple[Floats, Floats, list[float]]:
        """b with just enough of the safest flow mixed in for the constraints to hold; its visits and sizes.

        By nodes the value of a mixture is the mixture of the values but for rounding; in phases it is not
        quite. So a few tries are made, each bolder, the last of them by nodes.
        """
        flow, N, earned = self.follow(b, asked.means, asked.apart)
        share, mixed, sizes = 0.0, b, asked.sizes(N)
        for k in range(TRIES):
            if asked.holds(earned, sizes):
                break
            share += (1.0 - share) * min(1.0, 2.0**k * asked.share(earned))
            by = model if k < TRIES - 2 else self.steps
            mixed = self.by_row(
                by, (1.0 - share) * flow + share * asked.safest, self.by_node(b) if by is self.steps else b
            )
            _, N, earned = self.follow(mixed, asked.means, asked.apart)
            sizes = asked.sizes(N)
        return mixed, N, sizes
