"""Episodes as they come in, reduced to what the estimates need."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saver.errors import InvalidProblem
from saver.estimate.certainty import certainty, certainty_estimated, covered_share
from saver.estimate.importance import importance, importance_return
from saver.estimate.interval import Estimate
from saver.problem import checks
from saver.problem.bellman import weights
from saver.problem.checks import Floats, Ints
from saver.problem.mdp import Mdp
from saver.problem.moments import Moments, moment_step

ESTIMATORS = ("certainty", "certainty-estimated", "importance")


class Log:
    """A record of episodes that answers what the target is worth.

    For example:

        log = Log(mdp, target)
        log.add(states=[0, 2], actions=[1, 0], rewards=[0.3, 1.2])
        log.estimate().interval
    """

    def __init__(self, mdp: Mdp, target: ArrayLike) -> None:
        self.target: Floats = checks.frozen(checks.policy(mdp, target, "target"))
        self.mdp = mdp
        self.episodes = 0
        self.rewards = Moments.empty((mdp.states, mdp.actions))
        self._moves: Counter[tuple[int, int]] = Counter()
        self._ends = np.zeros(mdp.states * mdp.actions)
        self._weighted = (0, 0.0, 0.0)  # count, mean, squares of importance-weighted returns
        self._weighted_seen = np.zeros((mdp.states, mdp.actions), dtype=bool)

    def add(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        propensities: ArrayLike | None = None,
    ) -> None:
        """Take in one episode; `states[t]` is where `actions[t]` was taken, there is no final state.

        `propensities[t]` is the probability with which `actions[t]` was taken: the importance estimate uses
        the episodes that have them. A broken or impossible episode is refused and changes nothing.
        """
        columns = [("rewards", rewards)]
        if propensities is not None:
            columns.append(("propensities", propensities))
        s, a, (r, *rest) = checks.trajectory(self.mdp, states, actions, *columns)
        self.take(s, a, r, rest[0] if rest else None)

    def take(self, s: Ints, a: Ints, r: Floats, propensities: Floats | None) -> None:
        """`add` for an episode that was checked before."""
        if propensities is not None:
            weighted = importance_return(self.mdp, self.target, s, a, r, propensities)
            count, mean, squares = self._weighted
            self._weighted = (count + 1, *moment_step(count + 1, mean, squares, weighted))
            self._weighted_seen[s, a] = True
        self.episodes += 1
        pairs = s * self.mdp.actions + a
        self._moves.update(zip(pairs[:-1].tolist(), s[1:].tolist(), strict=True))
        if len(s) < self.mdp.horizon:
            self._ends[pairs[-1]] += 1
        self.rewards.extend(s, a, r)

    @property
    def moves(self) -> Any:
        """How often each pair led to each state, [S * A, S] sparse."""
        if not self._moves:
            return sparse.csr_array((self.mdp.states * self.mdp.actions, self.mdp.states))
        index = np.array(list(self._moves)).T
        counts = np.array(list(self._moves.values()), dtype=np.float64)
        shape = (self.mdp.states * self.mdp.actions, self.mdp.states)
        return sparse.coo_array((counts, (index[0], index[1])), shape=shape).tocsr()

    def estimate(self, kind: str = "certainty", level: float = 0.95) -> Estimate:
        """The value of the target, by one of "certainty", "certainty-estimated" and "importance"."""
        if kind == "certainty":
            return certainty(self.mdp, self.target, self.rewards, level)
        if kind == "certainty-estimated":
            return certainty_estimated(self.mdp, self.target, self.rewards, self.moves, self._ends, level)
        if kind == "importance":
            c = weights(self.mdp, self.target)
            return importance(*self._weighted, covered_share(c, self._weighted_seen), level)
        raise InvalidProblem(f"kind is {kind!r}; it must be one of {', '.join(ESTIMATORS)}")

    def state(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "episodes": self.episodes,
            "rewards": self.rewards.state(),
            "moves": [[*move, count] for move, count in self._moves.items()],
            "ends": self._ends.tolist(),
            "weighted": list(self._weighted),
            "weighted_seen": self._weighted_seen.tolist(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Back from plain data."""
        self.episodes, self.rewards = state["episodes"], Moments.load(state["rewards"])
        self._moves = Counter({(pair, to): count for pair, to, count in state["moves"]})
        self._ends = np.array(state["ends"])
        count, mean, squares = state["weighted"]
        self._weighted = (count, mean, squares)
        self._weighted_seen = np.array(state["weighted_seen"], dtype=bool)
