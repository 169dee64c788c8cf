"""From a design to the policy of one episode."""

from __future__ import annotations

import numpy as np

from saver.problem.checks import Bools, Floats


def follow_design(design: Floats, counts: Floats, unseen: Bools) -> Floats:
    """In every state argmax_a b(a|s) / T(s,a), as a deterministic policy; ties go to the lowest index.

    A pair in `unseen` ([S, A]: it has weight and was never sampled) is taken first: a design that gives it
    nothing would leave a bias for ever. `counts` has the shape of `design`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(design > 0, design / counts, 0.0)
    score = np.where(unseen, np.inf, score)
    choice = np.argmax(score, axis=-1)
    policy: Floats = np.eye(design.shape[-1])[choice]
    return policy
