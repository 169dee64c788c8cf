"""From a design to the policy of one episode."""

from __future__ import annotations

import numpy as np

from saver.problem.checks import Bools, Floats


def follow_design(design: Floats, counts: Floats, first: Bools) -> Floats:
    """In every state argmax_a b(a|s) / T(s,a), as a deterministic policy; ties go to the lowest index.

    A pair in `first` ([S, A]) goes before all others: one that has weight and was never sampled would leave a
    bias for ever if the design gave it nothing. `counts` has the shape of `design`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(design > 0, design / counts, 0.0)
    score = np.where(first, np.inf, score)
    choice = np.argmax(score, axis=-1)
    policy: Floats = np.eye(design.shape[-1])[choice]
    return policy
