"""Behaviours followed, and mixed with a safe one until they are safe: one compiled call each.

Behaviours are by rows; `row` is the row of each node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner, jit
from saver._types import Floats
from saver.kernels.solve.onestate import ROUNDING
from saver.kernels.solve.passes import best, magnitudes, objective
from saver.play.nodes import followed

TRIES = 8  # to make a behaviour safe in phases
MIX = 1e-3  # of uniform play in a starting point
MOST = 0.999  # of the safest behaviour in a starting point


@jit
def visited(nodes: Any, b: Any, means: Any, apart: bool) -> tuple[Floats, Floats, Floats]:
    """The flow by nodes, the visits and the constraint values of b, [nodes, A], for means [m, S, A].

    The visits are [1, S, A], or, `apart`, [2, S, A]: of all steps, and of those before the last.
    """
    flow, _, N, value = followed(nodes, b, means[0])
    visits, values = np.zeros((2 if apart else 1, N.shape[0], N.shape[1])), np.zeros(len(means))
    visits[0], values[0] = N, value
    for i in range(nodes.layer[len(nodes.layer) - 2] if apart else 0):
        for a in range(N.shape[1]):
            visits[1, nodes.state[i], a] += flow[i, a]
    if len(means) > 1:
        factor, t = 1.0, 0
        for i in range(len(flow)):
            s = nodes.state[i]
            if nodes.step[i] > t:
                factor, t = factor * nodes.discount, nodes.step[i]
            for a in range(N.shape[1]):
                for k in range(1, len(means)):
                    values[k] += factor * flow[i, a] * means[k, s, a]
    return flow, visits, values


@jit
def safest(model: Any, mean: Any) -> tuple[Floats, float]:
    """The behaviour by nodes that earns most, and what it earns."""
    choice = np.zeros(len(model.state), dtype=np.uint64)
    top = best(model, np.zeros(mean.size), mean.ravel(), 1.0, choice)
    b = np.zeros((len(choice), mean.shape[1]))
    for i in range(len(choice)):
        b[i, choice[i]] = 1.0
    return b, top


@jit
def begun(nodes: Any, row: Any, row_state: Any, hint: Any, even: Any, asked: Any) -> Floats:
    """A policy, [1, S, A] or [L, S, A], with a little of everything, mixed until it is safe, by rows."""
    b, otherwise = np.empty((len(row), even.shape[1])), np.empty((len(row_state), even.shape[1]))
    for i in range(len(b)):
        s, t = nodes.state[i], nodes.step[i] if len(hint) > 1 else 0
        for a in range(b.shape[1]):
            b[i, a] = (1.0 - MIX) * hint[t, s, a] + MIX * even[s, a]
    for i in range(len(otherwise)):
        otherwise[i] = even[row_state[i]]
    flow, _, earned = visited(nodes, b, asked.steer, False)
    share = min(MOST, missing_share(asked, earned, np.zeros(len(earned))))
    return by_row(row, (1.0 - share) * flow + share * asked.safest, otherwise)


@jit
def at_stake(nodes: Any, row: Any, b: Any, asked: Any, spans: Any) -> Any:
    """What there is to learn for b, sum w / N in units of the largest w, over the span of each guardrail."""
    _, N, _ = visited(nodes, by_node(row, b), asked.steer, len(asked.w) > 1)
    learn, scale = objective(asked.w.ravel(), N.ravel(), N.ravel(), 0.0) / asked.w.max(), np.zeros(len(spans))
    for i in range(len(spans)):
        if spans[i] > 0.0:
            scale[i] = learn / spans[i]
    return scale


@jit
def made_safe(nodes: Any, row: Any, b: Any, asked: Any) -> Any:
    """b with just enough of the safest flow mixed in for the constraints to hold; its visits and sizes.

    By nodes the value of a mixture is the mixture of the values but for rounding; in phases it is not
    quite. So a few tries are made, each bolder, the last of them by nodes.
    """
    apart, own = len(asked.w) > 1, by_node(row, b)
    flow, N, earned = visited(nodes, own, asked.means, apart)
    share, mixed, sizes = 0.0, b, sizes_of(asked, N)
    for k in range(TRIES):
        if missing_share(asked, earned, ROUNDING * sizes) == 0.0:
            break
        share += (1.0 - share) * min(1.0, 2.0**k * missing_share(asked, earned, np.zeros(len(earned))))
        both = (1.0 - share) * flow + share * asked.safest
        if k < TRIES - 2:
            mixed = by_row(row, both, b)
            _, N, earned = visited(nodes, by_node(row, mixed), asked.means, apart)
        else:
            mixed = by_row(np.arange(len(both)).astype(row.dtype), both, own)
            _, N, earned = visited(nodes, mixed, asked.means, apart)
        sizes = sizes_of(asked, N)
    return mixed, N, sizes


@inner
def by_node(row: Any, b: Any) -> Any:
    """A behaviour by rows as one by nodes."""
    if len(b) == len(row):
        return b
    found = np.empty((len(row), b.shape[1]))
    for i in range(len(row)):
        found[i] = b[row[i]]
    return found


@jit
def by_row(row: Any, flow: Any, otherwise: Any) -> Floats:
    """A flow by nodes as a behaviour by rows: `otherwise` where nothing flows."""
    b = np.zeros(otherwise.shape)
    for i in range(len(flow)):
        for a in range(b.shape[1]):
            b[row[i], a] += flow[i, a]
    for i in range(len(b)):
        mass = 0.0
        for a in range(b.shape[1]):
            mass += b[i, a]
        for a in range(b.shape[1]):
            b[i, a] = b[i, a] / mass if mass > 0.0 else otherwise[i, a]
    return b


@inner
def sizes_of(asked: Any, N: Any) -> Any:
    """The size of the numbers whose difference each constraint is, for a behaviour with visits N."""
    return magnitudes(asked.required, asked.means.reshape(len(asked.means), -1), N[0].ravel())


@inner
def missing_share(asked: Any, earned: Any, rounding: Any) -> Any:
    """The share of the safest flow that makes a flow which earns `earned` feasible, up to `rounding`, [m]."""
    share = 0.0
    for i in range(len(earned)):
        missing = asked.required[i] - earned[i]
        if missing > rounding[i]:
            share = max(share, min(1.0, missing / max(asked.safest_values[i] - earned[i], missing)))
    return share


ROUNDED = 1e-9  # of what is required: less than this is not missing


@jit
def learnable(w: Any, available: Any, states: Any, most: float) -> bool:
    """Whether `weighed` has nothing to refuse, which is found sooner."""
    for s in range(w.shape[0]):
        for a in range(w.shape[1]):
            if not 0.0 <= w[s, a] <= most or (w[s, a] > 0.0 and not (available[s, a] and states[s])):
                return False
    return True


@jit
def reaches(top: float, required: float) -> bool:
    """Whether the best that there is meets what is required, but for rounding."""
    return top >= required - ROUNDED * abs(required)
