"""What the trials that are out are expected to do: sums that an ask reads and never adds up anew.

Expected visits are kept in units of 2^-40, as integers: adding and taking away are exact, in any order, and
nothing is left when no trial is out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.collect.setup import Setup
from saver.safety import Play

UNIT = 2.0**40  # of one visit


class Footprint(NamedTuple):
    """One trial: the cells node * A + action that it may visit and how often, and its play without them."""

    kind: str
    cells: Any
    visits: Any
    pairs: Any
    play: Play


class Outstanding:
    """The sums over the trials that are out."""

    def __init__(self, setup: Setup, reach: Any = None) -> None:
        mdp, self.grid, self.reach = setup.problem.mdp, setup.stage.grid, reach
        self.shape = (len(setup.stage.nodes.state), mdp.actions)
        self.trials: dict[int, Footprint] = {}
        self.visits: dict[str, Any] = {}
        self.expecting = np.zeros((mdp.states, mdp.actions), dtype=np.int64)  # trials that may visit a pair

    def add(self, number: int, kind: str, play: Play) -> None:
        """A trial goes out."""
        flow, weights = play.flow, play.weights
        if not self.grid.mdp.known:  # as the plan says where episodes go
            flow = flow * (0.0 if self.reach is None else self.reach[:, None])
            weights = self.grid.by_state(flow)
        flow, pairs = flow.ravel(), np.flatnonzero(weights)
        cells = np.flatnonzero(flow)
        found = Footprint(kind, cells, np.rint(UNIT * flow[cells]).astype(np.int64), pairs, play.light())
        self.trials[number] = found
        self._count(found, 1)

    def take(self, number: int) -> Play:
        """A trial is out no longer; its play."""
        found = self.trials.pop(number)
        self._count(found, -1)
        return found.play

    def _count(self, trial: Footprint, sign: int) -> None:
        if trial.kind not in self.visits:
            self.visits[trial.kind] = np.zeros(self.shape, dtype=np.int64)
        self.visits[trial.kind].ravel()[trial.cells] += sign * trial.visits
        self.expecting.ravel()[trial.pairs] += sign

    def expected(self, kinds: tuple[str, ...]) -> Floats | None:
        """Expected visits of the trials of these kinds, [nodes, A]; None where none is out."""
        if not self.trials:
            return None
        total: Any = sum(self.visits[kind] for kind in kinds if kind in self.visits)
        result: Floats = np.asarray(total) / UNIT
        return result
