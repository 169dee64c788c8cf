"""What the trials that are out are expected to do: sums that an ask reads and never adds up anew.

Expected visits are kept in units of 2^-40, as integers: adding and taking away are exact, in any order, and
nothing is left when no trial is out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saver._jit import brief
from saver._types import Floats
from saver.collect.setup import Setup
from saver.play import Play

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
        self._expecting = self.expecting.ravel()

    def add(self, number: int, kind: str, play: Play) -> None:
        """A trial goes out."""
        if self.grid.mdp.known:
            walked = play.once(_walked)
        else:  # as the plan says where episodes go
            flow = play.flow * (0.0 if self.reach is None else self.reach[:, None])
            walked = _visited(flow, self.grid.by_state(flow))
        self.trials[number] = found = Footprint(kind, *walked, play.light)
        self._count(found, 1)

    def take(self, number: int) -> Play:
        """A trial is out no longer; its play."""
        found = self.trials.pop(number)
        self._count(found, -1)
        return found.play

    def _count(self, trial: Footprint, sign: int) -> None:
        if trial.kind not in self.visits:
            self.visits[trial.kind] = np.zeros(self.shape[0] * self.shape[1], dtype=np.int64)
        count_out(self.visits[trial.kind], trial.cells, trial.visits, self._expecting, trial.pairs, sign)

    def expected(self, kinds: tuple[str, ...]) -> Floats | None:
        """Expected visits of the trials of these kinds, [nodes, A]; None where none is out."""
        if not self.trials:
            return None
        total: Any = sum(self.visits[kind] for kind in kinds if kind in self.visits)
        result: Floats = np.asarray(total) / UNIT
        return result.reshape(self.shape) if result.ndim else result


def _walked(play: Play) -> tuple[Any, Any, Any]:
    return _visited(play.flow, play.weights)


def _visited(flow: Floats, weights: Floats) -> tuple[Any, Any, Any]:
    """The cells of a flow, how often, and the pairs that have weight."""
    flat = flow.ravel()
    cells = np.flatnonzero(flat)
    return cells, np.rint(UNIT * flat[cells]).astype(np.int64), np.flatnonzero(weights)


@brief
def count_out(visits: Any, cells: Any, amounts: Any, expecting: Any, pairs: Any, sign: int) -> None:
    """Add a trial, or take it away."""
    for i in range(len(cells)):
        visits[cells[i]] += sign * amounts[i]
    for p in pairs:
        expecting[p] += sign
