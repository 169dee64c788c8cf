"""What a plan believed of the world, so that what a trial will earn can be foreseen when it is asked.

No promise rests on it: a certificate that compares what a trial earned with a guess holds for any guess that
was made before, and is the tighter the better the guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saver._jit import jit
from saver._types import Floats
from saver.play.policy import Policy
from saver.problem.checks import read_only
from saver.problem.codec import portable
from saver.problem.moving import earned


@portable("foresight")
@dataclass(frozen=True, eq=False)
class Foresight:
    """A model of what was seen."""

    indptr: Any  # indptr, indices, data: where a pair leads, [S * A, S] by rows
    indices: Any
    data: Any
    start: Any  # [S]
    gains: Any  # what a pair earns of each guardrail, [m, S * A]

    @classmethod
    def of(cls, statistics: Any, means: Floats) -> Foresight:
        """Constraint means are [m, S, A]; of a pair never seen the average of the others is believed."""
        rows, counts = statistics.model.transitions, statistics.counts
        indptr, indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
        return cls(
            indptr, indices, rows.data, statistics.model.start, gained(read_only(means), read_only(counts))
        )

    def __post_init__(self) -> None:
        for name in ("indptr", "indices", "data", "start", "gains"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def worths(self, policy: Policy) -> Floats:
        """What a policy of one action in each row is worth of each guardrail, [m]."""
        mdp = policy.grid.mdp
        mass, sums = self.room(mdp.horizon)
        choice = policy.rows if policy.chosen else np.argmax(policy.rows, axis=1)
        factors = np.asarray(mdp.discount ** np.arange(mdp.horizon), dtype=np.float64)
        earned(*self.moves, self.start, choice.astype(np.int64), policy.grid.slot, policy.by_step,
               factors, self.gains, 0, mass, sums)  # fmt: skip
        return sums[-1]

    def room(self, steps: int) -> tuple[Floats, Floats]:
        """For where a policy goes, and what it earns, before each step."""
        return np.zeros((steps + 1, len(self.start))), np.zeros((steps + 1, len(self.gains)))

    @property
    def moves(self) -> tuple[Any, Any, Any]:
        """Where pairs lead."""
        return self.indptr, self.indices, self.data


@jit
def gained(means: Any, counts: Any) -> Any:
    """What pairs earn, [m, S * A]: where one was never seen the average of all that was."""
    m, S, A = means.shape
    found = np.empty((m, S * A))
    for i in range(m):
        total, n = 0.0, 0.0
        for s in range(S):
            for a in range(A):
                total += counts[s, a] * means[i, s, a]
                n += counts[s, a]
        for s in range(S):
            for a in range(A):
                found[i, s * A + a] = means[i, s, a] if counts[s, a] > 0 else total / max(n, 1.0)
    return found
