"""What a solve is asked, what it gives, and what the next one takes from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.errors import InvalidData

HUGE, DETERS = 1e5, 10.0  # penalties, over the range of all means that matter


class Asked(NamedTuple):
    """One program: the objective, the constraint, and the flow, the visits and the value of the safest."""

    w: Floats  # [S, A]
    mean: Floats  # [S, A]
    steer: Floats  # [S, A], the means to steer by
    required: float
    safest: Floats  # [nodes, A], its flow
    safest_visits: Floats  # [S, A]
    safest_value: float

    def by_true_means(self) -> Asked:
        """The same, steered by the means themselves."""
        return self._replace(steer=self.mean)

    def size(self, N: Floats) -> float:
        """The size of the numbers whose difference the constraint is, for a behaviour with visits N."""
        return abs(self.required) + float(np.sum(N * np.abs(self.mean)))

    def share(self, earned: float) -> float:
        """The share of the safest flow that makes a flow which earns `earned` feasible."""
        missing, room = self.required - earned, self.safest_value - earned
        if missing <= 0:
            return 0.0
        return min(1.0, missing / room) if room > 0 else 1.0


def steered(w: Floats, mean: Floats, visits: Floats) -> Floats:
    """Constraint means with huge penalties of what nobody needs cut to what deters as well.

    With higher means more is feasible, so a bound for them is a bound. `visits` are those of the safest.
    """
    needed = (w > 0) | (visits > 0)
    low, high = mean[needed].min(), mean[needed].max()
    huge = ~needed & (mean < low - HUGE * (high - low)) & (low < high)
    return np.where(huge, low - DETERS * (high - low), mean) if huge.any() else mean


@dataclass(frozen=True, eq=False)
class Plan:
    """One solve: a behaviour with its limit, its certificate and the multiplier of safety.

    Attributes:
        behaviour: [nodes, A], or [phases and states, A] where the horizon is long; `Planner.unroll` gives the
            policy.
        limit: sum w / N of it.
        bound: no behaviour has less.
        multiplier: how fast the bound rises with what is required.
        rounding: of the limit, from rounding in the constraint value.
        iterations: how many it took.
        work: in flow updates.
    """

    behaviour: Floats
    limit: float
    bound: float
    multiplier: float
    rounding: float = 0.0
    iterations: int = 0
    work: float = 0.0

    @property
    def gap(self) -> float:
        """limit / bound - 1, and what rounding may hide."""
        if self.limit <= self.bound:
            return self.rounding
        return self.limit / self.bound - 1.0 + self.rounding if self.bound > 0 else math.inf


class Warm(NamedTuple):
    """All that a solve takes from an earlier one: where to start, and a certificate in real units."""

    behaviour: Floats  # [rows, A]
    prices: Floats  # [S, A]
    mean: Floats  # [S, A], the constraint means that prices and multiplier were for
    multiplier: float

    def flat(self) -> Floats:
        """One vector, to be stored."""
        return np.concatenate([np.ravel(part) for part in self])

    @classmethod
    def of(cls, flat: ArrayLike, states: int, actions: int) -> Warm:
        """Back from `flat`."""
        vector, pairs = np.array(flat, dtype=float), states * actions
        rows = (vector.size - 2 * pairs - 1) / actions
        if vector.ndim != 1 or rows < 1 or rows % 1:
            raise InvalidData(
                f"a vector of shape {vector.shape} holds no warm start for {states} states and {actions} "
                "actions; give the one that was taken from a planner of the same model"
            )
        behaviour, prices, mean, multiplier = np.split(vector, [-2 * pairs - 1, -pairs - 1, -1])
        first, second, third = (part.reshape(-1, actions) for part in (behaviour, prices, mean))
        return cls(first, second, third, float(multiplier[0]))
