"""What is believed about the constraint value earned so far.

budget = sum over told trials of (value - required), required = (1 - alpha) baseline_value. A baseline trial
counts with exactly `baseline_value`. A trial that is out, or was given up, may or may not run: it counts with
min(0, V(b; floor) - required).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from saver.problem.checks import Floats
from saver.problem.moments import Moments
from saver.problem.statement import Problem
from saver.safety.plays import Play
from saver.safety.widths import paper_lower, paper_width


class Episode(NamedTuple):
    """What a told episode shows a ledger."""

    states: Any
    actions: Any
    constraints: Any


class Ledger(ABC):
    """Counting that all ledgers share; a subclass says what the told designed trials are worth."""

    def __init__(self, problem: Problem, episodes: int) -> None:
        self.problem = problem
        self.episodes = episodes
        self.baseline_told = 0
        self.designed_told = 0
        self.lost = 0.0  # what trials that were given up may have cost
        self.out: dict[int, float] = {}  # what each trial that is out may cost

    def floor_value(self, play: Play) -> float:
        """V(b; floor): the value with every pair at the floor."""
        return self.problem.constraint.floor * float(play.weights.sum())

    def lower(self, play: Play) -> float:
        """A lower value of a candidate."""
        return self.floor_value(play)

    def ask(self, number: int, play: Play | None) -> None:
        """A trial goes out; `play` is None for the baseline."""
        required = self.problem.required
        self.out[number] = 0.0 if play is None else min(0.0, self.floor_value(play) - required)

    def tell(self, number: int, play: Play | None, episode: Episode) -> None:
        """A trial came back."""
        del self.out[number]
        if play is None:
            self.baseline_told += 1
        else:
            self.designed_told += 1

    def abandon(self, number: int, play: Play | None) -> None:
        """A trial is given up."""
        self.lost += self.out.pop(number)

    @abstractmethod
    def earned(self) -> float:
        """The believed constraint value of the told designed trials."""

    def budget(self) -> float:
        """The believed budget."""
        problem = self.problem
        safe = self.baseline_told * (problem.alpha * problem.baseline_value)
        spent = self.earned() - self.designed_told * problem.required
        return safe + spent + self.lost + sum(self.out.values())

    def state(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "baseline_told": self.baseline_told,
            "designed_told": self.designed_told,
            "lost": self.lost,
            "out": [[number, cost] for number, cost in self.out.items()],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Back from plain data."""
        self.baseline_told, self.designed_told = state["baseline_told"], state["designed_told"]
        self.lost = state["lost"]
        self.out = dict(state["out"])


class Paper(Ledger):
    """Z as printed: each episode adds its lower confidence value at the end of that episode, frozen."""

    def __init__(self, problem: Problem, episodes: int, constraints: Moments) -> None:
        super().__init__(problem, episodes)
        self.constraints = constraints
        self.total = 0.0

    def bounds(self) -> Floats:
        """The lower confidence bounds now."""
        width = paper_width(self.problem, self.episodes, self.constraints.counts)
        return paper_lower(self.problem, width, self.constraints.counts, self.constraints.mean)

    def lower(self, play: Play) -> float:
        """V(b; lower bounds)."""
        return float(np.sum(play.weights * self.bounds()))

    def tell(self, number: int, play: Play | None, episode: Episode) -> None:
        """Add the lower value of a designed episode; the statistics have seen it already."""
        super().tell(number, play, episode)
        if play is not None:
            self.total += self.lower(play)

    def earned(self) -> float:
        """The frozen sum."""
        return self.total

    def state(self) -> dict[str, Any]:
        """Plain data."""
        return super().state() | {"total": self.total}

    def load(self, state: dict[str, Any]) -> None:
        """Back from plain data."""
        super().load(state)
        self.total = state["total"]


class Latest(Paper):
    """As in the paper's proof: accumulated expected visits times the current lower bounds."""

    def __init__(self, problem: Problem, episodes: int, constraints: Moments) -> None:
        super().__init__(problem, episodes, constraints)
        self.visited = np.zeros((problem.mdp.states, problem.mdp.actions))

    def tell(self, number: int, play: Play | None, episode: Episode) -> None:
        """Accumulate the expected visits of a designed episode."""
        Ledger.tell(self, number, play, episode)
        if play is not None:
            self.visited += play.weights

    def earned(self) -> float:
        """Every designed episode, re-evaluated now."""
        return float(np.sum(self.visited * self.bounds()))

    def state(self) -> dict[str, Any]:
        """Plain data."""
        return super().state() | {"visited": self.visited.tolist()}

    def load(self, state: dict[str, Any]) -> None:
        """Back from plain data."""
        super().load(state)
        self.visited = np.array(state["visited"])


class Plugin(Latest):
    """`Latest` with width 0: what the paper's budget plots look like. It promises nothing."""

    def bounds(self) -> Floats:
        """The sample means, the floor where nothing was seen."""
        return paper_lower(
            self.problem, np.zeros(self.visited.shape), self.constraints.counts, self.constraints.mean
        )
