"""A small shop: what new pages do to conversion, while complaints, latency and refunds are guarded.

A visit begins on a landing page, another one for new visitors than for those who are back, and may go on to a
product and to the basket. The shop shows every page plain, which is the baseline, or with recommendations,
with a discount, or with a button that orders at once. Each of these sells more: recommendations are slow, the
button annoys and is regretted, the discount does a little of all.

All tables are [page, action]; "gone" ends the visit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._types import Floats
from saver.problem import Bounded, Guardrail, Mdp, Problem, SubGaussian
from saver.problem.checks import between, flag
from saver.problem.world import Bernoulli, Empirical, Gaussian, Scenario, World
from saver.scenarios.assembly import always

PAGES = ("landing, new", "landing, back", "product", "basket", "gone")
ACTIONS = ("plain", "recommend", "discount", "one click")
START = (0.6, 0.4, 0.0, 0.0, 0.0)
TO_PRODUCT = ((0.40, 0.60, 0.45, 0.20), (0.40, 0.55, 0.40, 0.20), (0.00,) * 4, (0.00,) * 4)
TO_BASKET = ((0.05, 0.05, 0.15, 0.40), (0.20, 0.20, 0.30, 0.60), (0.30, 0.35, 0.45, 0.50), (0.00,) * 4)
TARGET = ((0.40, 0.35, 0.15, 0.10), (0.40, 0.30, 0.15, 0.15), (0.30, 0.30, 0.25, 0.15), (0.25,) * 4)
ORDERS = ((0.0, 0.0, 0.01, 0.02), (0.01, 0.02, 0.03, 0.05), (0.03, 0.05, 0.08, 0.12), (0.3, 0.35, 0.5, 0.6))
COMPLAINTS = (
    (0.12, 0.20, 0.18, 0.32),
    (0.10, 0.18, 0.16, 0.28),
    (0.10, 0.20, 0.18, 0.28),
    (0.10, 0.22, 0.18, 0.28),
)  # whether the page was marked as unhelpful
LATENCY = ((0.4, 0.9, 0.5, 0.65), (0.4, 0.8, 0.5, 0.65), (0.5, 1.0, 0.6, 0.75), (0.6, 1.1, 0.7, 0.9))
SLOWEST = 2.0  # seconds, as latency; no page is slower on average
REFUNDS = ((0, 0, 2, 5), (1, 2, 6, 12), (3, 6, 16, 30), (30, 42, 100, 150))  # of THOUSAND pages
THOUSAND, PRICE = 1000, 20.0  # euros, of an order


def shop(
    *,
    alpha: float = 0.75,
    allowance: float = 0.32,
    at_most: float = 2.0,
    latency_deviation: float = 0.2,
    learned: bool = False,
    delta: float = 0.05,
    episodes: int = 5000,
) -> Scenario:
    """A small shop: conversion, with complaints, latency and refunds guarded.

    A reward is 1 for an order. A visit may bring (1 + `alpha`) times the complaints of the baseline, may wait
    `allowance` seconds longer than its visits, and may cost `at_most` euros in refunds. Of the baseline's
    values nothing is known where they are to be `learned`.
    """
    deviation = between("latency_deviation", latency_deviation, 0.0, np.inf, closed=(True, False))
    flag("learned", learned)
    mdp = shop_model()
    baseline = always(mdp, 0)
    refunds = [[np.where(np.arange(THOUSAND) < of, PRICE, 0.0) for of in row] for row in _table(REFUNDS)]
    world = World(
        mdp,
        reward=Bernoulli(_table(ORDERS)),
        constraint={
            "complaints": Bernoulli(_table(COMPLAINTS)),
            "latency": Gaussian(_table(LATENCY), deviation**2),
            "refunds": Empirical(refunds),
        },
    )

    def guarded(name: str, promise: SubGaussian | Bounded, **required: float) -> Guardrail:
        earned = None if learned else world.constraint_value(baseline, name)
        return Guardrail(name, promise, cost=True, baseline_value=earned, **required)

    guardrails = (
        guarded("complaints", Bounded(0.0, 1.0), alpha=alpha),
        guarded("latency", SubGaussian(deviation, 0.0, SLOWEST), allowance=allowance),
        guarded("refunds", Bounded(0.0, PRICE), at_most=at_most),
    )
    target = _table(TARGET)
    target[-1, 0] = 1.0
    problem = Problem(mdp, target, baseline, guardrails=guardrails, delta=delta, reward=Bounded(0.0, 1.0))
    return Scenario("shop", world, problem, episodes)


def shop_model() -> Mdp:
    """Where pages lead."""
    product, basket, gone = range(2, 5)
    moves = np.zeros((len(PAGES), len(ACTIONS), len(PAGES)))
    moves[:gone, :, product], moves[:gone, :, basket] = TO_PRODUCT, TO_BASKET
    moves[:gone, :, gone] = 1.0 - moves[:gone].sum(axis=2)
    return Mdp(
        moves, horizon=3, start=np.array(START), terminal=(gone,), state_names=PAGES, action_names=ACTIONS
    )


def _table(rows: Any) -> Floats:
    """[pages, actions], nothing where the visitor is gone."""
    return np.vstack([np.array(rows, dtype=np.float64), np.zeros(len(ACTIONS))])
