"""What is kept of episodes: counts and sums, not the episodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._types import Ints
from saver.problem.codec import portable
from saver.problem.columns import NOT_SEEN, Columns
from saver.problem.episode import Episode
from saver.problem.model import END, Model
from saver.problem.moments import Moments

DENSE = 2**20  # codes that are counted in a table of their own


@portable("sums")
@dataclass(eq=False)
class Sums:
    """What a log keeps of its episodes.

    Attributes:
        rewards: counts, means and squares of each pair.
        moves: how often pair s * A + a led to a state, {(pair, state): count}.
        ends: how often an episode ended before the horizon after a pair, [S * A].
        paid: the sum of the rewards with which a pair led to a state, {(pair, state): sum}, END for an end.
        starts: how often an episode began in a state, [S].
        weighted_seen: pairs of importance-weighted episodes, [S, A].
        episodes: taken in.
        weighted: count, mean and squares of importance-weighted returns.
    """

    rewards: Moments
    moves: Any
    ends: Any
    weighted_seen: Any
    paid: Any
    starts: Any
    episodes: int = 0
    weighted: tuple[int, float, float] = (0, 0.0, 0.0)

    @classmethod
    def empty(cls, mdp: Model) -> Sums:
        """Nothing seen."""
        shape = (mdp.states, mdp.actions)
        return cls(
            Moments.empty(shape), Counter(), np.zeros(mdp.states * mdp.actions), np.zeros(shape, bool),
            Counter(), np.zeros(mdp.states),
        )  # fmt: skip

    def __post_init__(self) -> None:
        self.moves, self.paid = Counter(self.moves), Counter(self.paid)

    def merge(self, other: Sums) -> None:
        """Take in what another has seen."""
        self.rewards.merge(other.rewards)
        self.moves.update(other.moves)
        self.paid.update(other.paid)
        self.ends, self.starts = self.ends + other.ends, self.starts + other.starts
        self.episodes += other.episodes

    def add(self, mdp: Any, episode: Episode, complete: bool = True) -> None:
        """Take in an episode that was checked before."""
        s, a, r = episode.states, episode.actions, episode.rewards
        self.episodes += 1
        states, actions = s.tolist(), a.tolist()
        self.starts[states[0]] += 1
        onward = [*states[1:], last_outcome(mdp, episode, complete)]
        for at, action, state, reward in zip(states, actions, onward, r.tolist(), strict=True):
            if state is not None:
                pair = at * mdp.actions + action
                self.paid[pair, state] += reward
                if state == END:
                    self.ends[pair] += 1
                else:
                    self.moves[pair, state] += 1
        self.rewards.extend(s, a, r)

    def add_all(self, mdp: Any, many: Columns) -> None:
        """Take in many episodes that were checked before: the same as one by one, to rounding."""
        pairs, onward = many.states * mdp.actions + many.actions, many.following(mdp)
        self.episodes += len(many)
        self.starts = self.starts + np.bincount(many.states[many.offsets[:-1]], minlength=mdp.states)
        seen = onward != NOT_SEEN
        width = mdp.states + 1  # an end comes first
        codes, counts, paid = tallied(
            (pairs * width + onward + 1)[seen], many.rewards[seen], len(self.ends) * width
        )
        at, to = (codes // width).tolist(), (codes % width - 1).tolist()
        for pair, state, count, reward in zip(at, to, counts.tolist(), paid.tolist(), strict=True):
            self.paid[pair, state] += reward
            if state == END:
                self.ends[pair] += count
            else:
                self.moves[pair, state] += count
        self.rewards.extend_all(many.states, many.actions, many.rewards)


def tallied(codes: Ints, values: Any, size: int) -> tuple[Ints, Ints, Any]:
    """The codes that occur, how often, and the sums of their values; codes are below `size`."""
    if size <= max(DENSE, 4 * len(codes)):
        counts = np.bincount(codes, minlength=size)
        found = np.flatnonzero(counts)
        return found, counts[found], np.bincount(codes, values, size)[found]
    found, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return found, counts, np.bincount(place, values, len(found))


def last_outcome(mdp: Any, episode: Episode, complete: bool) -> int | None:
    """Where the last action led: to a state, to the end of the episode (END), or nobody saw it (None).

    An episode that is complete before the horizon has ended, wherever it was then.
    """
    if complete and len(episode) < mdp.horizon:
        return END
    return None if mdp.known else episode.final_state
