"""What is promised about one observation: how far it may be from its mean, and where means may lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saver.errors import InvalidProblem
from saver.problem import checks
from saver.problem.codec import portable

FAR = 1e4  # scales
ROUNDING = 1e-9  # of the range of the means


@portable("sub-gaussian")
@dataclass(frozen=True)
class SubGaussian:
    """A promise: constraint noise is `scale`-sub-Gaussian and every constraint mean in [floor, ceiling].

    The noise of each observation is so given everything observed before it: independent from step to step and
    from episode to episode. Noise that an episode's steps share (one user, one patient) needs a scale that is
    larger by the square root of the number of steps.

    `next_state=True` says that noise may also depend on the state that the action leads to.
    """

    scale: float
    floor: float = 0.0
    ceiling: float = 1.0
    next_state: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.number("scale", self.scale))
        if self.scale < 0:
            raise InvalidProblem(f"scale is {self.scale:g}; it must be at least 0")
        _check_range(self, "floor", "ceiling")
        _check_next_state(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """Outside of these no observation is believed: a slip of the unit would buy a false budget.

        Noise that is `scale`-sub-Gaussian is never FAR scales away from a mean in [floor, ceiling].
        """
        slack = FAR * self.scale + ROUNDING * max(abs(self.floor), abs(self.ceiling))
        return self.floor - slack, self.ceiling + slack


@portable("bounded")
@dataclass(frozen=True)
class Bounded:
    """A promise: every constraint observation lies in [low, high], its noise independent from step to step.

    Steps that share their noise need `SubGaussian` with a larger scale instead: see there, also for
    `next_state`.
    """

    low: float
    high: float
    next_state: bool = False

    def __post_init__(self) -> None:
        _check_range(self, "low", "high")
        _check_next_state(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """Outside of these no observation is believed."""
        return self.low, self.high

    @property
    def scale(self) -> float:
        """Hoeffding: a variable in [low, high] is (high - low) / 2 sub-Gaussian."""
        return (self.high - self.low) / 2

    @property
    def floor(self) -> float:
        """The smallest possible mean."""
        return self.low

    @property
    def ceiling(self) -> float:
        """The largest possible mean."""
        return self.high


def _check_range(promise: Any, low: str, high: str) -> None:
    for name in (low, high):
        object.__setattr__(promise, name, checks.number(name, getattr(promise, name)))
    if getattr(promise, low) >= getattr(promise, high):
        raise InvalidProblem(
            f"{low} is {getattr(promise, low):g} and {high} is {getattr(promise, high):g}; "
            f"{low} must be below {high}"
        )


def _check_next_state(promise: Any) -> None:
    if not isinstance(promise.next_state, bool):
        raise InvalidProblem(f"next_state is {promise.next_state!r}; it must be True or False")
