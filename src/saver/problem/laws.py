"""The distribution of a reward or a constraint observation in each (state, action) of a simulated world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from saver._types import Floats
from saver.errors import InvalidProblem
from saver.problem import checks
from saver.problem.codec import portable


@runtime_checkable
class Law(Protocol):
    """What a world needs to know of a distribution."""

    @property
    def mean(self) -> Any:
        """[S, A]."""

    @property
    def variance(self) -> Any:
        """[S, A]."""

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation; every call makes one draw."""


@portable("gaussian")
@dataclass(frozen=True, eq=False)
class Gaussian(checks.Frozen):
    """Normal observations. `variance` may be one number for all pairs."""

    mean: Any
    variance: Any

    def __post_init__(self) -> None:
        mean = _table("mean", self.mean)
        raw = checks.array("variance", self.variance)
        if raw.shape not in ((), mean.shape):
            raise InvalidProblem(f"variance has shape {raw.shape}; it must be one number or {mean.shape}")
        variance = np.broadcast_to(checks.within("variance", raw, 0.0), mean.shape)
        object.__setattr__(self, "mean", checks.frozen(mean))
        object.__setattr__(self, "variance", checks.frozen(variance))

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation."""
        return float(self.mean[state, action] + np.sqrt(self.variance[state, action]) * rng.standard_normal())


@portable("bernoulli")
@dataclass(frozen=True, eq=False)
class Bernoulli(checks.Frozen):
    """Observations 0 or 1."""

    mean: Any

    def __post_init__(self) -> None:
        mean = checks.within("mean", _table("mean", self.mean), 0.0, 1.0)
        object.__setattr__(self, "mean", checks.frozen(mean))

    @property
    def variance(self) -> Floats:
        """Mean (1 - mean)."""
        result: Floats = self.mean * (1.0 - self.mean)
        return result

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation."""
        return float(rng.random() < self.mean[state, action])


@portable("empirical")
@dataclass(frozen=True, eq=False)
class Empirical(checks.Frozen):
    """Observations drawn with replacement from `samples[state][action]`, real data of each pair."""

    samples: Any

    def __post_init__(self) -> None:
        if not isinstance(self.samples, Sequence | np.ndarray) or not len(self.samples):
            raise InvalidProblem(
                "samples must be nested sequences: samples[state][action] is a list of numbers"
            )
        rows = []
        for s, row in enumerate(self.samples):
            if not isinstance(row, Sequence | np.ndarray) or not len(row):
                raise InvalidProblem(f"samples[{s}] must hold a list of numbers for each action")
            actions = len(self.samples[0])
            if len(row) != actions:
                raise InvalidProblem(
                    f"samples[{s}] has {len(row)} actions but samples[0] has {actions}; they must agree"
                )
            rows.append(tuple(self._cell(s, a, cell) for a, cell in enumerate(row)))
        object.__setattr__(self, "samples", tuple(rows))
        object.__setattr__(self, "_mean", self._statistic(np.mean))
        object.__setattr__(self, "_variance", self._statistic(np.var))

    @property
    def mean(self) -> Floats:
        """The average of each pair's samples."""
        result: Floats = self._mean  # type: ignore[attr-defined]
        return result

    @property
    def variance(self) -> Floats:
        """The variance of a draw: divides by n."""
        result: Floats = self._variance  # type: ignore[attr-defined]
        return result

    def sample(self, rng: np.random.Generator, state: int, action: int) -> float:
        """One observation."""
        cell = self.samples[state][action]
        return float(cell[int(rng.random() * len(cell))])

    @staticmethod
    def _cell(state: int, action: int, cell: Any) -> Floats:
        name = f"samples[{state}][{action}]"
        values = checks.array(name, cell)
        if values.ndim != 1 or not len(values):
            raise InvalidProblem(f"{name} must be a list of at least one number")
        result: Floats = checks.frozen(values)
        return result

    def _statistic(self, of: Any) -> Floats:
        result: Floats = checks.frozen(np.array([[of(cell) for cell in row] for row in self.samples]))
        return result


def _table(name: str, value: Any) -> Floats:
    result = checks.array(name, value)
    if result.ndim != 2 or not result.size:
        raise InvalidProblem(f"{name} has shape {result.shape}; it must be (states, actions)")
    return result
