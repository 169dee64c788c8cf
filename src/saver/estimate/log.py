"""Episodes as they come in, reduced to what the estimates need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saver._types import Floats
from saver.errors import InvalidData, InvalidProblem
from saver.estimate.certainty import certainty, certainty_estimated, covered_share
from saver.estimate.importance import importance, take_all_weighted, take_weighted
from saver.estimate.interval import Estimate
from saver.estimate.recursion import Moves
from saver.kernels.bounds.spread import Promised
from saver.problem import checks
from saver.problem.bellman import weights
from saver.problem.episode import Columns, Episode
from saver.problem.history import suspects
from saver.problem.model import END
from saver.problem.moments import Moments, Sums
from saver.problem.promise import Bounded, SubGaussian

ESTIMATORS = ("certainty", "certainty-estimated", "importance")


class Log:
    """A record of episodes that answers what the target is worth.

    For example:

        log = Log(mdp, target, reward=saver.Bounded(0, 5))
        log.add(states=[0, 2], actions=[1, 0], rewards=[0.3, 1.2])
        log.estimate().interval
    """

    def __init__(
        self,
        mdp: Any,
        target: ArrayLike,
        sums: Sums | None = None,
        *,
        reward: SubGaussian | Bounded | None = None,
    ) -> None:
        self.target: Floats = checks.frozen(checks.policy(mdp, target, "target", known=False))
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
        *,
        final_state: int | str | None = None,
        complete: bool = True,
    ) -> None:
        """Take in one episode, as an `Episode` or as sequences; `states[t]` is where `actions[t]` was taken.

        States and actions may be said by their names.

        `propensities[t]` is the probability with which `actions[t]` was taken: the importance estimate uses
        the episodes that have them and are complete. `final_state` is where the last action led, `saver.END`
        if it ended the episode: say it of every episode that lasts to the horizon or of none, because ends
        alone would make a `saver.Unknown` seem to end too often. complete=False says that the episode was cut
        off and went on. A broken or impossible episode is refused and changes nothing.
        """
        checks.flag("complete", complete)
        episode = states
        if not isinstance(episode, Episode):
            episode = Episode(states, actions, rewards, propensities=propensities, final_state=final_state)
        weighted = episode.propensities if complete else None
        checked = episode.check(self.mdp, complete)
        if weighted is not None:
            take_weighted(self.mdp, self.target, self.sums, checked, weighted)
        self.sums.add(self.mdp, checked, complete)

    def extend(self, episodes: Columns) -> None:
        """Take in many episodes at once, as `saver.data.read_log` gives them; if one is refused, none is."""
        if not isinstance(episodes, Columns):
            raise InvalidData(
                f"episodes is {type(episodes).__name__}; give what saver.data.read_log gives; add others "
                "one by one"
            )
        for number in suspects(self.mdp, episodes):
            episodes[number].check(self.mdp, bool(episodes.complete[number]))
        weighted = episodes if episodes.complete.all() else episodes.select(episodes.complete)
        if episodes.propensities is not None and len(weighted):
            take_all_weighted(self.mdp, self.target, self.sums, weighted)
        self.sums.add_all(self.mdp, episodes)

    @property
    def moves(self) -> Any:
        """How often each pair led to each state, [S * A, S] sparse."""
        return seen_moves(self.mdp, self.sums).counts

    def estimate(self, kind: str = "certainty", level: float = 0.95) -> Estimate:
        """The value of the target, by one of "certainty", "certainty-estimated" and "importance"."""
        return estimate(self.mdp, self.target, self.sums, kind, level, self.reward)


def estimate(
    mdp: Any, target: Floats, sums: Sums, kind: str = "certainty", level: float = 0.95,
    reward: Promised = None, against: Floats | None = None,
) -> Estimate:  # fmt: skip
    """The value of the target, by one of ESTIMATORS, or what it is above that of `against`.

    `reward` is what is promised about one reward.
    """
    if kind == "certainty" and mdp.known:
        return certainty(mdp, target, sums.rewards, level, reward, against)
    if kind in ("certainty", "certainty-estimated"):  # where nothing else is known they are one
        return certainty_estimated(mdp, target, sums.rewards, seen_moves(mdp, sums), level, reward, against)
    if kind == "importance" and against is None and mdp.known:
        return importance(*sums.weighted, covered_share(weights(mdp, target), sums.weighted_seen), level)
    if kind == "importance":
        raise InvalidProblem(
            "kind is 'importance', which answers for the target alone and where transitions are known; ask "
            "for 'certainty'"
        )
    raise InvalidProblem(f"kind is {kind!r}; it must be one of {', '.join(ESTIMATORS)}")


def seen_moves(mdp: Any, sums: Sums) -> Moves:
    """The moves of a log as arrays."""
    places = np.array(sorted(sums.moves), dtype=np.int64).reshape(-1, 2)
    rows, shape = places[:, 0], (mdp.states * mdp.actions, mdp.states)
    at = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    keys = [tuple(place) for place in places.tolist()]
    counts = np.array([sums.moves[key] for key in keys], dtype=np.float64)
    paid = np.array([sums.paid[key] for key in keys], dtype=np.float64)
    ends_paid = np.zeros(shape[0])
    for pair in np.flatnonzero(sums.ends).tolist():
        ends_paid[pair] = sums.paid[pair, END]
    table = sparse.csr_array((counts, places[:, 1], at), shape=shape)
    return Moves(table, sums.ends, paid, ends_paid, sums.starts)
