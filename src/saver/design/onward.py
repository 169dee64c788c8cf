"""Moves that are learned apart from rewards: what follows the last action of an episode is not told.

    f = sum w / N + sum v / N^-,   N^- = visits before the last step

is the objective of pairs twice over. Arrays of weights, prices and visits then have two halves, of N and of
N^-; a visit before the last step earns both prices, one at the last step the first alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._jit import inner


@inner
def keep_early(N: Any, pairs: Any) -> None:
    """Before the last step is counted: fill the second half of N, if it has one, with the first."""
    for p in range(len(N) - pairs):
        N[pairs + p] = N[p]


@inner
def early_prices(g: Any, pairs: Any) -> Any:
    """What a visit before the last step earns, [pairs]."""
    if len(g) == pairs:
        return g
    both = np.empty(pairs)
    for p in range(pairs):
        both[p] = g[p] + g[pairs + p]
    return both
