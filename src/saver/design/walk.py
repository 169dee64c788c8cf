"""One model as a planner walks it: the passes for whole arrays."""

from __future__ import annotations

from copy import copy

import numpy as np

from saver._types import Floats
from saver.errors import InvalidData
from saver.kernels.solve.descent import forward
from saver.kernels.solve.mixing import by_row, safest, visited
from saver.kernels.solve.passes import best, discounted
from saver.kernels.solve.search import Unrolled
from saver.play.nodes import Nodes
from saver.problem.checks import read_only
from saver.problem.mdp import Mdp

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
        made.nodes, made.steps = self.nodes.changed(**parts), self.steps.changed(**parts)
        made.phases = None if self.phases is None else self.phases.changed(**parts)
        return made

    def even(self, model: Unrolled) -> Floats:
        """Uniform play, by rows."""
        return np.asarray(self._even[model.row_state])

    def by_node(self, b: Floats) -> Floats:
        """A behaviour by rows as one by nodes."""
        if len(b) == len(self.nodes.state):
            return b
        if self.phases is None or len(b) != len(self.phases.row_state):
            raise InvalidData(
                f"the behaviour to start from has {len(b)} rows, the model {len(self.nodes.state)} nodes; "
                "take one from a planner of the same model"
            )
        return np.asarray(b[self.phases.row])

    def by_row(self, model: Unrolled, flow: Floats, otherwise: Floats) -> Floats:
        """A flow by nodes as a behaviour by rows: `otherwise` where nothing flows."""
        return by_row(model.row, flow, otherwise)

    def follow(self, b: Floats, means: Floats, apart: bool = False) -> tuple[Floats, Floats, Floats]:
        """The flow by nodes, the visits and the constraint values of b, for means [m, S, A].

        The visits are [1, S, A], or, `apart`, [2, S, A]: of all steps, and of those before the last.
        """
        return visited(self.nodes, read_only(self.by_node(b)), read_only(means), apart)

    def best(self, g: Floats, mean: Floats, multiplier: float) -> float:
        """The largest g . N + multiplier V_c of any behaviour."""
        return float(best(self.steps, g.ravel(), mean.ravel(), multiplier, NOWHERE))

    def safest(self, mean: Floats) -> tuple[Floats, float]:
        """The behaviour by nodes that earns most, and what it earns."""
        return safest(self.steps, read_only(mean))

    def fading(self, model: Unrolled, b: Floats) -> Floats:
        """Discounted visits over visits of b, [S, A]: what a visit counts in the constraint value."""
        mass, weight = np.zeros(len(model.state)), np.zeros(len(model.row_state))
        y, N, D = np.empty(b.size), np.zeros(self._even.size), np.zeros(self._even.size)
        forward(model, b.ravel(), b.ravel(), 0.0, y, mass, weight, N)
        discounted(model, y, mass, D)
        return np.divide(D, N, out=np.ones(N.size), where=N > 0).reshape(self._even.shape)
