"""What the solver is asked, what it works on, and when it stops: plain arrays and numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saver._types import Floats
from saver.design.several import width
from saver.design.unrolled import Unrolled


class Program(NamedTuple):
    """One program: the objective, m guardrails, and the visits and the values of a feasible behaviour."""

    w: Floats  # [S * A], or [2 * S * A] where moves are learned apart; so are visits and prices
    c: Floats  # [m, S * A]
    required: Floats  # [m]
    aim: Floats  # [m], required, less what is mere rounding: what steps steer for
    safest: Floats  # like w
    safest_values: Floats  # [m]


class Search(NamedTuple):
    """What one call of `descend` hands to the next; `numbers` and `guards` hold what is listed below."""

    b: Floats  # [rows * A], the last plain step
    y: Floats  # the extrapolated point
    push: Floats  # its advantages in the prices; between steps the growth of b
    pull: Floats  # its advantages in the constraint; in all, times their multipliers, if there are several
    kept: Floats  # the y of the smallest limit
    mass: Floats  # [nodes]
    weight: Floats  # [rows]
    N: Floats  # like w
    g: Floats  # prices of y
    average: Floats  # prices, averaged over iterations
    certificate: Floats  # prices of the largest bound
    numbers: Floats
    guards: Floats  # [rows below, m]
    earn: Floats  # [like w, columns], prices and constraints as a table, if there are several guardrails
    table: Floats  # [rows * A, columns], the advantages in each of them
    stake: Floats  # [rows, 2], their units

    @classmethod
    def of(cls, model: Unrolled, b: Floats, program: Program) -> Search:
        """A search that starts at b."""
        numbers = np.zeros(NUMBERS)
        numbers[[MOMENTUM, STEP]], numbers[[LIMIT, LAST, BEST]] = 1.0, np.inf
        b, mass, weight = b.ravel(), np.zeros(len(model.state)), np.zeros(len(model.row_state))
        rows = b.copy(), b.copy(), np.ones(b.size), np.zeros(b.size), b.copy()
        guards, size = len(program.c), len(program.w)
        columns = width(guards) if guards > 1 else 0
        g, average, certificate, N = (np.zeros(size) for _ in range(4))
        earn, table = np.zeros((size, columns)), np.zeros((b.size, columns))
        if guards > 1:
            earn[:, 1 : guards + 1] = np.tile(program.c.T, (size // program.c.shape[1], 1))
        held, stake = np.zeros((GUARDS, guards)), np.zeros((len(weight) if columns else 0, 2))
        visited = mass, weight, N, g, average, certificate
        return cls(*rows, *visited, numbers, held, earn, table, stake)


(
    ITERATION,  # how many there were; the next two are of the step to come
    MOMENTUM,
    BETA,
    STEP,
    LAST,  # the limit at the last look
    LIMIT,  # the smallest limit
    BOUND,  # the largest bound, and with its certificate
    SLACK,  # its D
    BEST,  # gap that counted as progress, and
    BEST_AT,  # when
    WORK,  # flow updates
    NUMBERS,
) = range(12)
(
    SCALE,  # the multipliers by which safety at stake is measured
    MULTIPLIER,  # of y
    MEAN_MULTIPLIER,  # averaged like the prices
    EARNED,  # V_i of y
    HELD,  # the multipliers of the largest bound
    GUARDS,
) = range(6)

GOING, DONE = 0, 1


class Rules(NamedTuple):
    """When to stop."""

    tolerance: float  # a relative gap
    settle: float  # an improvement of the limit from look to look
    iterations: int
    least: int  # iterations before anything else ends it
    work: float  # flow updates
    stall: int  # iterations in which the gap does not shrink by a hundredth
    pause: int  # iterations after which to hand back, to be called again

    def left(self, iterations: int, work: float, stall: int) -> Rules:
        """What is left of the effort after so much of it."""
        return self._replace(iterations=self.iterations - iterations, work=self.work - work, stall=stall)

    def pausing(self, pause: int) -> Rules:
        """The same with another pause."""
        return self._replace(pause=pause)
