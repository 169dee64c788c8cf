"""The paper's ledger, Z as printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saver._types import Floats
from saver.play.stage import Play
from saver.problem.codec import portable
from saver.problem.history import Logged
from saver.problem.moments import Moments
from saver.safety.argument import paper_lower, paper_width
from saver.safety.ledger import Book, Ledger, Seen


@portable("paper-book")
@dataclass(eq=False)
class PaperBook(Book):
    """Constraints as they were told, and the frozen sum."""

    constraints: Moments = field(default_factory=lambda: Moments.empty((0, 0)))
    total: float = 0.0


class Paper(Ledger):
    """Z as printed: each episode adds its lower confidence value at the end of that episode, frozen."""

    def open(self) -> PaperBook:
        """Nothing seen."""
        return PaperBook(constraints=Moments.empty((self.problem.mdp.states, self.problem.mdp.actions)))

    def bounds(self, book: Any) -> Floats:
        """The lower confidence bounds now."""
        seen = book.constraints
        width = paper_width(self.problem, self.episodes, seen.counts)
        return paper_lower(self.promise, width, seen.counts, seen.mean)

    def lower(self, book: Any, play: Play) -> float:
        """V(b; lower bounds)."""
        return float(np.sum(play.weights * self.bounds(book)))

    def learn(self, book: Any, logged: Logged) -> None:
        """Means learn from anything."""
        super().learn(book, logged)
        book.constraints.merge(logged.seen)

    def tell(self, book: Any, number: int, play: Play, episode: Seen, complete: bool = True) -> None:
        """Learn from an episode, and add a designed one."""
        ticket = self.close(book, number, episode, complete)
        if episode is not None:
            book.constraints.extend(episode.states, episode.actions, episode.constraints)
        if not ticket.baseline:
            self.add(book, play)

    def add(self, book: Any, play: Play) -> None:
        """The lower value, which the episode's own observations have moved already."""
        book.total += self.lower(book, play)

    def earned(self, book: Any) -> float:
        """The frozen sum."""
        return float(book.total)


@portable("latest-book")
@dataclass(eq=False)
class LatestBook(PaperBook):
    """Not the sum, but the expected discounted visits of the designed trials, [S, A]."""

    visited: Any = None


class Latest(Paper):
    """As in the paper's proof: accumulated expected visits times the current lower bounds."""

    def open(self) -> LatestBook:
        """Nothing seen."""
        empty = super().open().constraints
        return LatestBook(constraints=empty, visited=np.zeros(empty.mean.shape))

    def add(self, book: Any, play: Play) -> None:
        """Accumulate the expected visits."""
        book.visited += play.weights

    def earned(self, book: Any) -> float:
        """Every designed episode, re-evaluated now."""
        return float(np.sum(book.visited * self.bounds(book)))


class Plugin(Latest):
    """`Latest` with width 0: what the paper's budget plots look like. It promises nothing."""

    def bounds(self, book: Any) -> Floats:
        """The sample means, the floor where nothing was seen."""
        seen = book.constraints
        return paper_lower(self.promise, np.zeros(seen.counts.shape), seen.counts, seen.mean)
