"""What a search takes from the solve before: the scale of safety, and a certificate for the new means."""

from __future__ import annotations

import numpy as np

from saver._types import Floats
from saver.design.asking import spans
from saver.design.plan import Warm
from saver.design.walk import Walk
from saver.kernels.solve.mixing import at_stake
from saver.kernels.solve.search import HELD, SCALE, SLACK, Asked, Search, Unrolled


def carry(walk: Walk, model: Unrolled, search: Search, asked: Asked, warm: Warm | None, unit: float) -> None:
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
        search.guards[HELD], search.numbers[SLACK] = held / unit, 1.0
    if held.any():
        search.guards[SCALE] = held / unit
        return
    if len(held) == 1:
        span = asked.safest_values + walk.best(np.zeros(asked.w.size), -asked.steer[0], 1.0)
    else:
        span = spans(walk, asked.steer, asked.required)
    if np.any(span > 0):
        stake = at_stake(walk.nodes, model.row, search.b.reshape(-1, asked.w.shape[-1]), asked)
        search.guards[SCALE] = stake / unit / np.where(span > 0, span, np.inf)


def changed(warm: Warm, means: Floats, held: Floats) -> Floats:
    """sum m_i c_i of the solve before, less what `held` times the new means is."""
    if len(held) == len(warm.multipliers) == 1:
        return np.asarray(held[0] * (warm.mean - means[0]))
    before = warm.mean if len(warm.multipliers) > 1 else warm.multipliers[0] * warm.mean
    return np.asarray(before - np.tensordot(held, means, 1))
