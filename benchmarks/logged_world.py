"""A world whose logs are written here, with labels as users have them; nothing of the library is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
NAMES = ("episode", "step", "state", "action", "reward", "complaint", "next_state")


@dataclass(frozen=True)
class Shop:
    """Some states, each with a few that may follow; in P the last column is the end of the episode."""

    P: Array  # [S, A, S + 1]
    start: Array
    policy: Array  # what is logged
    reward: Array  # means, [S, A]
    complaint: Array  # probabilities, [S, A]
    horizon: int

    @classmethod
    def drawn(
        cls, states: int = 50, actions: int = 3, horizon: int = 6, seed: int = 0, end: float = 0.1
    ) -> Shop:
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

    def value(self, policy: Array, mean: Array, discount: float = 1.0) -> float:
        """By the recursion, written out anew."""
        S = len(self.start)
        V = np.zeros(S + 1)
        for _ in range(self.horizon):
            V[:S] = np.sum(policy * (mean + discount * self.P @ V), axis=1)
        return float(self.start @ V[:S])

    def log(self, episodes: int, seed: int, labels: bool = True, noise: float = 1.0, first: int = 0) -> Any:
        """Columns of a log, all episodes drawn side by side; numbered from `first`."""
        rng = np.random.default_rng(seed)
        S = len(self.start)
        moves, acts = np.cumsum(self.P, axis=2), np.cumsum(self.policy, axis=1)
        s = rng.choice(S, size=episodes, p=self.start)
        alive, parts = np.arange(first, first + episodes), []
        for t in range(self.horizon):
            n = len(alive)
            a = np.minimum((acts[s] < rng.random(n)[:, None]).sum(axis=1), self.policy.shape[1] - 1)
            reward = self.reward[s, a] + noise * rng.normal(size=n)
            complaint = (rng.random(n) < self.complaint[s, a]).astype(float)
            to = np.minimum((moves[s, a] < rng.random(n)[:, None]).sum(axis=1), S)
            parts.append((alive, np.full(n, t), s, a, reward, complaint, to))
            alive, s = alive[to < S], to[to < S]
        whole = [np.concatenate(part) for part in zip(*parts, strict=True)]
        order = np.lexsort((whole[1], whole[0]))
        columns = {name: column[order] for name, column in zip(NAMES, whole, strict=True)}
        return self.labelled(columns) if labels else columns

    def labelled(self, columns: dict[str, Array]) -> Any:
        """An Arrow table in which states and actions have names, and an episode that is over has `left`."""
        import pyarrow as pa

        S, A = self.reward.shape
        pages = pa.array([f"page-{s:02d}" for s in range(S)] + ["left"])
        offers = pa.array([f"offer {chr(97 + a)}" for a in range(A)])
        named = {
            "state": pages.take(pa.array(columns["state"])),
            "next_state": pages.take(pa.array(columns["next_state"])),
            "action": offers.take(pa.array(columns["action"])),
        }
        return pa.table(columns | named)
