"""Laws as plain arrays."""

from __future__ import annotations

import numpy as np

from saver._types import Floats
from saver.engine.kernel.forms import COIN, DATA, NORMAL
from saver.problem.laws import Bernoulli, Empirical, Gaussian, Law


def lay_law(law: Law) -> tuple[int, Floats, Floats, Floats]:
    """Kind, location and scale of a law; for data the first place and the number of each pair's values."""
    shape = law.mean.shape
    if type(law) is Gaussian:
        return NORMAL, law.mean, np.sqrt(law.variance), np.zeros(0)
    if type(law) is Bernoulli:
        return COIN, law.mean, np.zeros(shape), np.zeros(0)
    assert type(law) is Empirical
    cells = [cell for row in law.samples for cell in row]
    sizes = np.array([len(cell) for cell in cells], dtype=np.float64)
    first = np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    return DATA, first.reshape(shape), sizes.reshape(shape), np.concatenate(cells)
