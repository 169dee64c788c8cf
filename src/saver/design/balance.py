"""The behaviour that is best by its worst guardrail, and the proof that none is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.design.walk import Walk
from saver.errors import Infeasible
from saver.kernels.solve.game import game
from saver.kernels.solve.mixing import ROUNDED

COLUMNS = 500  # behaviours that are mixed at most
CLOSED = 1e-10  # a difference between the worst and its bound that is rounding
NEEDED = 1e-9  # the weight of a guardrail that takes part in a conflict


class Balance(NamedTuple):
    """A mixture of behaviours whose least (V_i - required_i) / scale_i is `worst`."""

    worst: float
    flow: Floats  # [nodes, A]
    values: Floats  # [m]
    y: Floats  # [m], not negative, of sum 1
    bound: float  # max over all behaviours of sum y_i (V_i - required_i) / scale_i: none has a better worst


def balanced(
    walk: Walk, means: Floats, required: Floats, scales: Floats, enough: float = 1.0,
    known: Sequence[Floats] = (),
) -> Balance:  # fmt: skip
    """max over behaviours of min_i (V_i - required_i) / scale_i, by columns.

    In turn: the best mixture of the behaviours found so far is a small game, which weighs the guardrails by
    y; the behaviour that is best by these weights bounds what any mixture can reach, and joins. Stops too at
    a worst that is positive and a share of `enough` of its bound. `known` are behaviours to begin with.
    """
    flows, values = [], []
    for b in known:
        flow, _, earned = walk.follow(b, means)
        flows.append(flow)
        values.append(earned)
    y = np.full(len(means), 1.0 / len(means))
    certificate, least = y, np.inf
    for _ in range(COLUMNS):
        b, top = walk.safest(np.tensordot(y / scales, means, 1))
        bound = top - float(np.sum(y * required / scales))
        if bound < least:
            certificate, least = y, bound
        flow, _, earned = walk.follow(b, means)
        flows.append(flow)
        values.append(earned)
        payoff = (np.array(values).T - required[:, None]) / scales[:, None]
        worst, x, y = game(payoff)
        size = CLOSED * float(np.max(np.abs(required) / scales) + np.max(np.abs(payoff)))
        if least - worst <= size or 0.0 < enough * least <= worst or len(means) == 1:
            break
    used = np.flatnonzero(x)
    flow = np.sum([x[k] * flows[k] for k in used], axis=0)
    return Balance(float(worst), flow, x @ np.array(values), certificate, least)


def refuse(found: Balance, required: Floats, scales: Floats, names: Sequence[str] | None) -> None:
    """Raise `Infeasible` if the bound says that the guardrails cannot be met together."""
    if found.bound >= -ROUNDED * float(np.sum(found.y * np.abs(required) / scales)):
        return
    labels = [repr(i) for i in range(len(required))] if names is None else [repr(name) for name in names]
    clash = [int(i) for i in np.flatnonzero(found.y > NEEDED)]
    told = [
        f"{labels[i]} requires {required[i]:g}, the best attainable point has {found.values[i]:g}"
        for i in clash
    ]
    if len(clash) == 1:
        who = f"guardrail {labels[clash[0]]}"
    else:
        first = ", ".join(labels[i] for i in clash[:-1])
        who = f"guardrails {first} and {labels[clash[-1]]} together"
    raise Infeasible(
        f"no behaviour meets {who}: {', '.join(told)}; require less, or correct the constraint means"
    )
