"""The baseline as it was observed: how often each action was taken in each state."""

from __future__ import annotations

from typing import Any

import numpy as np

from saver._types import Floats
from saver.data.episodes import Episodes

MOST = 10**7  # cells that are counted step by step
EXPECTED = 5.0  # observations of a cell that takes part in the test
FAR = 6.0  # standard errors


def observed(many: Episodes, counts: Any, mdp: Any, by_step: bool) -> tuple[Floats, tuple[str, ...]]:
    """Frequencies, and notes; in a state never met, what is done on average, and at a step likewise."""
    S, total = counts.shape[0], counts.sum(axis=1, keepdims=True)
    usual = counts.sum(axis=0) / counts.sum()
    policy = np.tile(usual, (mdp.states, 1))
    policy[:S] = np.where(total > 0, counts / np.maximum(total, 1), usual)
    notes, lost = [], int(np.sum(total == 0))
    if lost:
        notes.append(
            f"the baseline was never seen in {lost} states, and is taken to do there what it does on average"
        )
    if mdp.horizon * counts.size > MOST and not by_step:
        return policy, tuple(notes)
    cells = (many.steps * S + many.states) * counts.shape[1] + many.actions
    seen = np.bincount(cells, minlength=mdp.horizon * counts.size).reshape(mdp.horizon, *counts.shape)
    if by_step:
        each = np.tile(policy, (mdp.horizon, 1, 1))
        there = seen.sum(axis=2, keepdims=True)
        each[:, :S] = np.where(there > 0, seen / np.maximum(there, 1), each[:, :S])
        return each, tuple(notes)
    if (errors := unsteady(seen, policy[:S])) > FAR:
        notes.append(
            "what the baseline does depends on the step "
            f"({errors:.0f} standard errors): fit with by_step=True, or put the step into the state"
        )
    return policy, tuple(notes)


def unsteady(seen: Any, policy: Floats) -> float:
    """Pearson's sum over cells (seen - n b)^2 / (n b), less its mean, over its deviation.

    n(t,s) visits at a step, b the frequencies of all steps together. Of k cells of a state and step k - 1
    are free, and those of one step are fixed by b.
    """
    expected = seen.sum(axis=2, keepdims=True) * policy
    used = (expected >= EXPECTED).all(axis=2, where=policy > 0) & (expected.sum(axis=2) > 0)
    steps = used.sum(axis=0)  # in which a state takes part
    kinds = (policy > 0).sum(axis=1) - 1
    free = float(np.sum(np.maximum(steps - 1, 0) * kinds))
    if free == 0.0:
        return 0.0
    apart = np.divide((seen - expected) ** 2, expected, out=np.zeros(seen.shape), where=expected > 0)
    return float(np.sum(apart[used]) - free) / float(np.sqrt(2.0 * free))
