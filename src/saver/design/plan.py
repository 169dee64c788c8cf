"""What a solve is asked, what it gives, and what the next one takes from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from saver._types import Floats
from saver.design.posing import spans
from saver.design.walk import Walk
from saver.errors import InvalidData
from saver.kernels.solve.mixing import at_stake
from saver.kernels.solve.search import HELD, SCALE, Posed, Search, Unrolled


@dataclass(frozen=True, eq=False)
class Plan:
    """One solve: a behaviour with its limit, its certificate and the multipliers of its guardrails.

    Attributes:
        behaviour: [nodes, A], or [phases and states, A] where the horizon is long; `Planner.unroll` gives the
            policy.
        limit: sum w / N of it, and what is onward.
        bound: no behaviour has less.
        multipliers: how fast the bound rises with what each guardrail requires, [m].
        rounding: of the limit, from rounding in the constraint value.
        iterations: how many it took.
        work: in flow updates.
    """

    behaviour: Floats
    limit: float
    bound: float
    multipliers: Floats
    rounding: float = 0.0
    iterations: int = 0
    work: float = 0.0

    @property
    def multiplier(self) -> float:
        """The multiplier of the only guardrail, or the sum of all."""
        return float(np.sum(self.multipliers))

    @property
    def gap(self) -> float:
        """limit / bound - 1, and what rounding may hide."""
        if self.limit <= self.bound:
            return self.rounding
        return self.limit / self.bound - 1.0 + self.rounding if self.bound > 0 else math.inf


class Warm(NamedTuple):
    """All that a solve takes from an earlier one: where to start, and a certificate in real units."""

    behaviour: Floats  # [rows, A]
    prices: Floats  # [1, S, A], or [2, S, A] where moves are learned apart
    mean: Floats  # [S, A], the constraint means that the prices were for; of several, the sum by multipliers
    multipliers: Floats  # [m]

    def flat(self) -> Floats:
        """One vector, to be stored.

        If there are several multipliers it ends with their number, negated; if prices have two halves, with
        the numbers of both.
        """
        count = len(self.multipliers)
        tail = [-count, -2] if len(self.prices) > 1 else [-count] if count > 1 else []
        return np.concatenate([*map(np.ravel, self), tail])

    def prices_for(self, apart: bool) -> Floats:
        """The prices as a program needs them whose moves are learned apart, or are not: a copy."""
        found = np.zeros((1 + apart, *self.mean.shape))
        halves = min(len(found), len(self.prices))
        found[:halves] = self.prices[:halves]
        return found

    @classmethod
    def of(cls, flat: ArrayLike, states: int, actions: int) -> Warm:
        """Back from `flat`."""
        vector, pairs = np.array(flat, dtype=float), states * actions
        count, halves, end = 1, 1, vector.size
        if vector.ndim == 1 and end and vector[-1] < 0 and float(vector[-1]).is_integer():
            count, end = int(-vector[-1]), end - 1
            if end and count == 2 and vector[end - 1] < 0:
                count, halves, end = int(-vector[end - 1]), 2, end - 1
        rows = (end - (halves + 1) * pairs - count) / actions
        if vector.ndim != 1 or rows < 1 or rows % 1:
            raise InvalidData(
                f"a vector of shape {vector.shape} holds no warm start for {states} states and {actions} "
                "actions; give the one that was taken from a planner of the same model"
            )
        cuts = np.cumsum([rows * actions, halves * pairs, pairs]).astype(int)
        behaviour, prices, mean, multipliers = np.split(vector[:end], cuts)
        shape = (states, actions)
        return cls(
            behaviour.reshape(-1, actions), prices.reshape(halves, *shape), mean.reshape(shape), multipliers
        )


def carry(walk: Walk, model: Unrolled, search: Search, asked: Posed, warm: Warm | None, unit: float) -> None:
    """Give a search its scale of safety and the certificate of the last solve, moved to the new means:

    g' = max(g + sum m_i d (c_i old - c_i new), 0), d = discounted visits over visits, leaves
    g . N + sum m_i V_i what it was for behaviours like the last one.
    """
    held = np.zeros(len(asked.required))
    if warm is not None:
        if len(warm.multipliers) == len(held):
            held = warm.multipliers
        change = changed(warm, asked.steer, held)
        if walk.nodes.discount < 1 and change.any():
            change *= walk.fading(model, search.b)
        prices = warm.prices_for(asked.apart)
        prices[0] += change
        search.certificate[:] = np.maximum(prices, 0.0).ravel() / unit
        search.rails[HELD], search.numbers["slack"] = held / unit, 1.0
    if held.any():
        search.rails[SCALE] = held / unit
        return
    if len(held) == 1:
        span = asked.safest_values + walk.best(np.zeros(asked.w.size), -asked.steer[0], 1.0)
    else:
        span = spans(walk, asked.steer, asked.required)
    b = search.b.reshape(-1, asked.w.shape[-1])
    search.rails[SCALE] = at_stake(walk.nodes, model.row, b, asked, span)


def changed(warm: Warm, means: Floats, held: Floats) -> Floats:
    """sum m_i c_i of the solve before, less what `held` times the new means is."""
    if len(held) == len(warm.multipliers) == 1:
        return np.asarray(held[0] * (warm.mean - means[0]))
    before = warm.mean if len(warm.multipliers) > 1 else warm.multipliers[0] * warm.mean
    return np.asarray(before - np.tensordot(held, means, 1))
