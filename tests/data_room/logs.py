"""Worlds whose logs are written here, and logs of them, for the tests of this folder."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Shop:
    """A world of some states; in P the last column is the end."""

    P: np.ndarray  # [S, A, S + 1]
    start: np.ndarray
    policy: np.ndarray  # what is logged
    reward: np.ndarray  # means, [S, A]
    complaint: np.ndarray  # probabilities, [S, A]
    horizon: int

    @classmethod
    def drawn(cls, states=50, actions=3, horizon=6, seed=0, end=0.1):
        rng = np.random.default_rng(seed)
        P = np.zeros((states, actions, states + 1))
        for s in range(states):
            for a in range(actions):
                to = rng.choice(states, size=min(4, states), replace=False)
                P[s, a, to] = rng.dirichlet(np.full(len(to), 2.0)) * (1 - end)
                P[s, a, states] = 1.0 - P[s, a, :states].sum()
        return cls(
            P, rng.dirichlet(np.full(states, 2.0)), rng.dirichlet(np.full(actions, 5.0), states),
            rng.normal(1.0, 0.5, (states, actions)), rng.uniform(0.05, 0.4, (states, actions)), horizon,
        )  # fmt: skip

    def value(self, policy, mean, discount=1.0):
        """By the recursion, written out anew."""
        S = len(self.start)
        V = np.zeros(S + 1)
        for _ in range(self.horizon):
            V[:S] = np.sum(policy * (mean + discount * self.P @ V), axis=1)
        return float(self.start @ V[:S])

    def log(self, episodes, seed, labels=True, noise=1.0):
        """Columns of a log, all episodes drawn side by side."""
        rng = np.random.default_rng(seed)
        S = len(self.start)
        cumulated = np.cumsum(self.P, axis=2), np.cumsum(self.policy, axis=1)
        s = rng.choice(S, size=episodes, p=self.start)
        alive, parts = np.arange(episodes), []
        for t in range(self.horizon):
            u = rng.random(len(alive))
            a = np.minimum((cumulated[1][s] < u[:, None]).sum(axis=1), self.policy.shape[1] - 1)
            reward = self.reward[s, a] + noise * rng.normal(size=len(alive))
            complaint = (rng.random(len(alive)) < self.complaint[s, a]).astype(float)
            to = np.minimum((cumulated[0][s, a] < rng.random(len(alive))[:, None]).sum(axis=1), S)
            parts.append((alive, np.full(len(alive), t), s, a, reward, complaint, to))
            alive, s = alive[to < S], to[to < S]
        names = ("episode", "step", "state", "action", "reward", "complaint", "next_state")
        columns = {
            name: np.concatenate(part) for name, part in zip(names, zip(*parts, strict=True), strict=True)
        }
        order = np.lexsort((columns["step"], columns["episode"]))
        columns = {name: column[order] for name, column in columns.items()}
        return self.labelled(columns) if labels else columns

    def labelled(self, columns):
        S, A = self.reward.shape
        pages = pa.array([f"page-{s:02d}" for s in range(S)] + ["left"])
        offers = pa.array([f"offer {chr(97 + a)}" for a in range(A)])
        made = dict(columns)
        made["state"] = pages.take(pa.array(columns["state"]))
        made["next_state"] = pages.take(pa.array(columns["next_state"]))
        made["action"] = offers.take(pa.array(columns["action"]))
        return pa.table(made)


SMALL = {
    "episode": ["b", "b", "a", "a", "a"],
    "step": [1, 0, 0, 1, 2],
    "state": ["y", "x", "x", "y", "x"],
    "action": [10, 2, 2, 10, 2],
    "reward": [1.0, 2.0, 3.0, 4.0, 5.0],
    "complaint": [0, 1, 0, 1, 0],
}
