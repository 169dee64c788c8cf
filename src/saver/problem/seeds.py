"""Random streams: passed in, never global, never from the clock."""

from __future__ import annotations

import numpy as np

from saver.problem import checks


def child_seed(seed: int | np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """The child of a seed at `key`, without changing the caller's object."""
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(checks.whole("seed", seed, 0, 2**128))
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))
