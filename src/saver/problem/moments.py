"""What is kept of episodes: moments of what was observed in each pair, counts and sums; not the episodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._jit import brief, jit
from saver._types import Floats, Ints
from saver.problem.codec import portable
from saver.problem.episode import Columns, Episode
from saver.problem.model import END, NOT_SEEN, Model

DENSE = 2**20  # codes that are counted in a table of their own


def moment_step(count: Any, mean: float, squares: float, value: float) -> tuple[float, float]:
    """Welford: the mean and the sum of squared deviations after the `count`-th value."""
    before = value - mean
    mean = mean + before / count
    return mean, squares + before * (value - mean)


_step = jit(moment_step)


@brief
def take_in(counts: Any, mean: Any, squares: Any, states: Any, actions: Any, values: Any) -> None:
    """Take observations in, one after the other."""
    for i in range(len(states)):
        s, a = states[i], actions[i]
        counts[s, a] += 1
        mean[s, a], squares[s, a] = _step(counts[s, a], mean[s, a], squares[s, a], values[i])


@portable("moments")
@dataclass(eq=False)
class Moments:
    """Counts, means and sums of squared deviations, [S, A] each."""

    counts: Any
    mean: Any
    squares: Any

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> Moments:
        """Nothing observed yet."""
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape))

    def extend(self, states: Any, actions: Any, values: Any) -> None:
        """Take the observations of one episode in."""
        take_in(self.counts, self.mean, self.squares, states, actions, values)

    def extend_all(self, states: Any, actions: Any, values: Any) -> None:
        """`extend` by the observations of many episodes: the same, to rounding."""
        size, shape = self.mean.size, self.mean.shape
        pairs = states * shape[1] + actions
        counts, some = np.bincount(pairs, minlength=size), np.zeros(size)
        some[pairs] = values  # about one of its values the mean of equal values is exact
        mean = some + np.bincount(pairs, values - some[pairs], size) / np.maximum(counts, 1)
        squares = np.bincount(pairs, (values - mean[pairs]) ** 2, size)
        self.merge(Moments(counts.reshape(shape), mean.reshape(shape), squares.reshape(shape)))

    def merge(self, other: Moments) -> None:
        """Take in what another has seen (Chan, Golub and LeVeque 1983)."""
        counts = self.counts + other.counts
        share = other.counts / np.maximum(counts, 1)
        apart = other.mean - self.mean
        self.squares = self.squares + other.squares + apart**2 * self.counts * share
        self.mean = np.where(self.counts > 0, self.mean + apart * share, other.mean)
        self.counts = counts

    def times(self, sign: float) -> Moments:
        """Of the observations times 1 or -1."""
        return Moments(self.counts, sign * self.mean, self.squares)

    @property
    def variance(self) -> Floats:
        """The sample variance: divides by T - 1, and is 0 where T < 2."""
        return self.squares / np.maximum(self.counts - 1, 1)


@portable("sums")
@dataclass(eq=False)
class Sums:
    """What a log keeps of its episodes."""

    rewards: Moments  # counts, means and squares of each pair
    moves: Any  # how often pair s * A + a led to a state, {(pair, state): count}
    ends: Any  # how often an episode ended before the horizon after a pair, [S * A]
    weighted_seen: Any  # pairs of importance-weighted episodes, [S, A]
    paid: Any  # the sum of the rewards with which a pair led to a state, {(pair, state): sum}, END for an end
    starts: Any  # how often an episode began in a state, [S]
    episodes: int = 0  # taken in
    # count, mean and squares of importance-weighted returns
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
        """Take in an episode that was checked before.

        It is `add_all` of one, which would take 42 us in the place of 2: a campaign does this in every tell.
        """
        states, actions, A = episode.states.tolist(), episode.actions.tolist(), mdp.actions
        self.episodes += 1
        self.starts[states[0]] += 1
        last = NOT_SEEN if mdp.known or episode.final_state is None else int(episode.final_state)
        onward = [*states[1:], END if complete and len(states) < mdp.horizon else last]
        for s, a, to, reward in zip(states, actions, onward, episode.rewards.tolist(), strict=True):
            self._move(s * A + a, to, 1, reward)
        self.rewards.extend(episode.states, episode.actions, episode.rewards)

    def add_all(self, mdp: Any, many: Columns) -> None:
        """Take in many episodes that were checked before: the same as one by one, to rounding."""
        pairs, onward = many.states * mdp.actions + many.actions, many.following(mdp)
        self.episodes += len(many)
        self.starts = self.starts + np.bincount(many.states[many.offsets[:-1]], minlength=mdp.states)
        width = mdp.states - NOT_SEEN  # what was not seen comes first, then an end
        codes, *told = tallied(pairs * width + onward - NOT_SEEN, many.rewards, len(self.ends) * width)
        at, to = (codes // width).tolist(), (codes % width + NOT_SEEN).tolist()
        for row in zip(at, to, *(column.tolist() for column in told), strict=True):
            self._move(*row)
        self.rewards.extend_all(many.states, many.actions, many.rewards)

    def _move(self, pair: int, state: int, count: int, reward: float) -> None:
        """A pair led to a state so often, with rewards of this sum."""
        if state == NOT_SEEN:
            return
        self.paid[pair, state] += reward
        if state == END:
            self.ends[pair] += count
        else:
            self.moves[pair, state] += count


def tallied(codes: Ints, values: Any, size: int) -> tuple[Ints, Ints, Any]:
    """The codes that occur, how often, and the sums of their values; codes are below `size`."""
    if size <= max(DENSE, 4 * len(codes)):
        counts = np.bincount(codes, minlength=size)
        found = np.flatnonzero(counts)
        return found, counts[found], np.bincount(codes, values, size)[found]
    found, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return found, counts, np.bincount(place, values, len(found))
