"""How often to play each of the policies that a log shows: as is most precise among what can be afforded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saver._types import Floats
from saver.problem.bellman import visits

ENOUGH = 1.02  # a design must be so much better than what a log shows to come first
FEW = 1e-3  # shares below are none
START = 1e-6  # visits that stand for none


def shares_of(setup: Any, state: Any, facts: Any, made: Any) -> tuple[Floats, bool]:
    """The shares, at last the baseline's, and whether to play them before the design.

    The least sum of price / (seen + left N), N the visits that are expected, over the shares that the budgets
    which the log shows can bear until the end.
    """
    problem, left = setup.problem, max(state.left(setup.episodes), 1)
    model, tables = facts.model, [*setup.shown.policies, problem.baseline]
    N = np.array([visits(model, table).ravel() for table in tables])
    room, gains = budgets_of(setup, state)
    price = np.maximum(made.price, 0.0).ravel()
    seen = np.maximum(facts.counts.ravel(), START * left)
    found = solve(price, seen, left * N, left * gains, room)
    free = float(np.sum(price / (seen + left * made.flow.ravel())))
    return found, worth(price, seen, left * N, found) <= ENOUGH * free


def worth(price: Floats, seen: Floats, N: Floats, q: Floats) -> float:
    """The program's value."""
    return float(np.sum(price / (seen + q @ N)))


def budgets_of(setup: Any, state: Any) -> tuple[Floats, Floats]:
    """What the log shows can be spent of each guardrail, and what each policy adds, [m] and [m, M + 1]."""
    room, gains = [], []
    for row in setup.rail_books:
        if row.used is None:
            continue
        ledger, book = setup.ledgers[row.used], state.books[row.used]
        room.append(ledger.known(book))
        gains.append([*setup.shown.floors[row.rail.name], ledger.credit(book)])
    return np.array(room), np.array(gains).reshape(len(room), -1)


def solve(price: Floats, seen: Floats, N: Floats, gains: Floats, room: Floats) -> Floats:
    """Shares q of the policies with gains q + room >= 0, the last of which alone is always affordable."""
    from scipy.optimize import minimize

    M = len(N)

    def value(q: Floats) -> Any:  # its logarithm: pairs never seen would drown all others
        total = seen + q @ N
        found = float(np.sum(price / total))
        return math.log(found), -(N @ (price / total**2)) / found

    safe, even = np.zeros(M), np.full(M, 1.0 / M)
    safe[-1] = 1.0
    toward = gains @ (even - safe)
    far = min([1.0, *((gains @ safe + room)[toward < 0.0] / -toward[toward < 0.0])])
    start = safe + max(far, 0.0) / 2.0 * (even - safe)
    unit = np.maximum(np.abs(gains).max(axis=1, initial=0.0), 1e-12)
    bounds = [{"type": "eq", "fun": lambda q: np.sum(q) - 1.0, "jac": lambda q: np.ones(M)}]
    if len(room):
        held = {"fun": lambda q: (gains @ q + room) / unit, "jac": lambda q: gains / unit[:, None]}
        bounds.append({"type": "ineq", **held})
    found = minimize(
        value, start, jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * M, constraints=bounds,
        options={"maxiter": 100, "ftol": 1e-9},
    )  # fmt: skip
    q = np.where(found.x > FEW, found.x, 0.0)
    return q / q.sum() if np.all(np.isfinite(q)) and q.sum() > 0.0 else safe
