"""From a design to the policy of one episode."""

from __future__ import annotations

import numpy as np

from saver._jit import brief
from saver._types import Bools, Floats, Ints


@brief
def follow_design(design: Floats, counts: Floats, first: Bools) -> Ints:
    """In every row argmax_a b(a|s) / T(s,a), [n]; ties go to the lowest index.

    T counts visits, and what `Setup.ahead` adds to them, so that a design is followed from the first visit
    on. Without that, as in the paper, every action that the design may take goes first once: where a row is
    met seldom, that is most of a campaign.

    A pair in `first` goes before all others: one that has weight and was never sampled would leave a bias for
    ever if the design gave it nothing. All three are [n, A].
    """
    choice = np.zeros(len(design), dtype=np.int64)
    for i in range(len(design)):
        best = -1.0
        for a in range(design.shape[1]):
            score = design[i, a] / counts[i, a] if design[i, a] > 0.0 else 0.0
            score = np.inf if first[i, a] else score
            if score > best:
                best, choice[i] = score, a
    return choice
