"""Episodes as they come in, reduced to what the estimates need."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saver._types import Floats, Ints
from saver.errors import InvalidProblem
from saver.estimate.certainty import certainty, certainty_estimated, covered_share
from saver.estimate.importance import importance, importance_return
from saver.estimate.interval import Estimate
from saver.problem import checks
from saver.problem.bellman import weights
from saver.problem.codec import portable
from saver.problem.episode import Episode
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments, moment_step
from saver.problem.promise import Bounded, SubGaussian

ESTIMATORS = ("certainty", "certainty-estimated", "importance")


@portable("sums")
@dataclass(eq=False)
class Sums:
    """What a log keeps of its episodes.

    Attributes:
        rewards: counts, means and squares of each pair.
        moves: how often pair s * A + a led to a state, {(pair, state): count}.
        ends: how often an episode ended before the horizon after a pair, [S * A].
        weighted_seen: pairs of importance-weighted episodes, [S, A].
        episodes: taken in.
        weighted: count, mean and squares of importance-weighted returns.
    """

    rewards: Moments
    moves: Any
    ends: Any
    weighted_seen: Any
    episodes: int = 0
    weighted: tuple[int, float, float] = (0, 0.0, 0.0)

    @classmethod
    def empty(cls, mdp: Mdp) -> Sums:
        """Nothing seen."""
        shape = (mdp.states, mdp.actions)
        return cls(Moments.empty(shape), Counter(), np.zeros(mdp.states * mdp.actions), np.zeros(shape, bool))

    def __post_init__(self) -> None:
        if not isinstance(self.moves, Counter):
            self.moves = Counter(self.moves)


class Log:
    """A record of episodes that answers what the target is worth.

    For example:

        log = Log(mdp, target, reward=saver.Bounded(0, 5))
        log.add(states=[0, 2], actions=[1, 0], rewards=[0.3, 1.2])
        log.estimate().interval
    """

    def __init__(
        self,
        mdp: Mdp,
        target: ArrayLike,
        sums: Sums | None = None,
        *,
        reward: SubGaussian | Bounded | None = None,
    ) -> None:
        self.target: Floats = checks.frozen(checks.policy(mdp, target, "target"))
        self.mdp, self.reward = mdp, reward
        if reward is not None:
            if not isinstance(reward, SubGaussian | Bounded):
                raise InvalidProblem(
                    f"reward is {reward!r}; it must be a saver.SubGaussian or a saver.Bounded"
                )
            reward.tables(mdp)
        self.sums = Sums.empty(mdp) if sums is None else sums

    @property
    def episodes(self) -> int:
        """Taken in so far."""
        return self.sums.episodes

    @property
    def rewards(self) -> Moments:
        """Counts, means and squares of each pair."""
        return self.sums.rewards

    def add(
        self,
        states: ArrayLike | Episode,
        actions: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        propensities: ArrayLike | None = None,
    ) -> None:
        """Take in one episode, as an `Episode` or as sequences; `states[t]` is where `actions[t]` was taken.

        `propensities[t]` is the probability with which `actions[t]` was taken: the importance estimate uses
        the episodes that have them. A broken or impossible episode is refused and changes nothing.
        """
        episode = states
        if not isinstance(episode, Episode):
            episode = Episode(states, actions, rewards, propensities=propensities)
        take(self.mdp, self.target, self.sums, episode.check(self.mdp), episode.propensities)

    @property
    def moves(self) -> Any:
        """How often each pair led to each state, [S * A, S] sparse."""
        return move_counts(self.mdp, self.sums)

    def estimate(self, kind: str = "certainty", level: float = 0.95) -> Estimate:
        """The value of the target, by one of "certainty", "certainty-estimated" and "importance"."""
        return estimate(self.mdp, self.target, self.sums, kind, level, self.reward)


def take(mdp: Mdp, target: Floats, sums: Sums, episode: Episode, propensities: Floats | None) -> None:
    """Add an episode that was checked before; with propensities it counts for importance weighting too."""
    s, a, r = episode.states, episode.actions, episode.rewards
    if propensities is not None:
        weighted = importance_return(mdp, target, s, a, r, propensities)
        count, mean, squares = sums.weighted
        sums.weighted = (count + 1, *moment_step(count + 1, mean, squares, weighted))
        sums.weighted_seen[s, a] = True
    sums.episodes += 1
    pairs: Ints = s * mdp.actions + a
    sums.moves.update(zip(pairs[:-1].tolist(), s[1:].tolist(), strict=True))
    if len(s) < mdp.horizon:
        sums.ends[pairs[-1]] += 1
    sums.rewards.extend(s, a, r)


def estimate(
    mdp: Mdp,
    target: Floats,
    sums: Sums,
    kind: str = "certainty",
    level: float = 0.95,
    reward: SubGaussian | Bounded | None = None,
    against: Floats | None = None,
) -> Estimate:
    """The value of the target, by one of ESTIMATORS, or what it is above that of `against`.

    `reward` is what is promised about one reward.
    """
    if kind == "certainty":
        return certainty(mdp, target, sums.rewards, level, reward, against)
    if kind == "certainty-estimated":
        return certainty_estimated(
            mdp, target, sums.rewards, move_counts(mdp, sums), sums.ends, level, reward, against
        )
    if kind == "importance" and against is None:
        return importance(*sums.weighted, covered_share(weights(mdp, target), sums.weighted_seen), level)
    raise InvalidProblem(f"kind is {kind!r}; it must be one of {', '.join(ESTIMATORS)}")


def move_counts(mdp: Mdp, sums: Sums) -> Any:
    """How often each pair led to each state, [S * A, S] sparse."""
    shape = (mdp.states * mdp.actions, mdp.states)
    if not sums.moves:
        return sparse.csr_array(shape)
    index = np.array(list(sums.moves)).T
    counts = np.array(list(sums.moves.values()), dtype=np.float64)
    return sparse.coo_array((counts, (index[0], index[1])), shape=shape).tocsr()
