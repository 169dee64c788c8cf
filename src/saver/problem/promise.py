"""What is promised about one observation: how far it may be from its mean, and where means may lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saver._types import Floats
from saver.errors import InvalidProblem
from saver.problem import checks
from saver.problem.codec import portable

if TYPE_CHECKING:
    from saver.problem.mdp import Mdp

FAR = 1e4  # scales
ROUNDING = 1e-9  # of the range of the means


class Tables(NamedTuple):
    """A promise about each pair of a model, [S, A] each; an observation outside [low, high] is refused."""

    scale: Floats
    floor: Floats
    ceiling: Floats
    low: Floats
    high: Floats


class Promise(checks.Frozen, ABC):
    """What both kinds share. Equal are promises of one kind that say the same, in numbers or in tables."""

    next_state: bool
    scale: Any
    floor: Any
    ceiling: Any

    @property
    @abstractmethod
    def bounds(self) -> tuple[Any, Any]:
        """Outside of these no observation is believed."""

    @property
    def by_pair(self) -> dict[str, tuple[int, ...]]:
        """The shapes of what was given for each pair."""
        return {name: item.shape for name, item in vars(self).items() if isinstance(item, np.ndarray)}

    def tables(self, mdp: Mdp) -> Tables:
        """The promise about each pair of this model."""
        shape = (mdp.states, mdp.actions)
        for name, given in self.by_pair.items():
            if given != shape:
                raise InvalidProblem(
                    f"{name} has shape {given}; for this model it must be one number or {shape}"
                )
        parts = (self.scale, self.floor, self.ceiling, *self.bounds)
        return Tables(*(checks.frozen(np.broadcast_to(np.asarray(part), shape)) for part in parts))

    def of_episode(self, shortest: float, longest: float) -> tuple[float, float]:
        """Between which an episode's value lies whose sum of discount^t is from `shortest` to `longest`."""
        least, most = self.floor, self.ceiling
        return least * (shortest if least >= 0 else longest), most * (longest if most >= 0 else shortest)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Promise) or type(self) is not type(other):
            return NotImplemented
        return all(np.array_equal(item, vars(other)[name]) for name, item in vars(self).items())

    def __hash__(self) -> int:
        return hash(tuple(tuple(np.ravel(item).tolist()) for item in vars(self).values()))

    def _check(self, *names: str, low: str, high: str) -> None:
        """Freeze these numbers or tables; `low` must be below `high`."""
        checks.flag("next_state", self.next_state)
        for name in names:
            given = getattr(self, name)
            plain = not hasattr(given, "__len__") or isinstance(given, str | bytes)
            wanted = "one number or (states, actions)"
            vars(self)[name] = checks.number(name, given) if plain else checks.table(name, given, wanted)
        if len(set(self.by_pair.values())) > 1:
            shapes = " and ".join(f"{name} has {shape}" for name, shape in self.by_pair.items())
            raise InvalidProblem(f"tables of a promise must have one shape, but {shapes}")
        lows, highs = np.broadcast_arrays(getattr(self, low), getattr(self, high))
        if len(bad := np.argwhere(lows >= highs)):
            at, place = checks.at(bad[0]), tuple(bad[0])
            raise InvalidProblem(
                f"{low}{at} is {checks.show(lows[place])} and {high}{at} is {checks.show(highs[place])}; "
                f"{low} must be below {high}"
            )


@portable("sub-gaussian")
@dataclass(frozen=True, eq=False)
class SubGaussian(Promise):
    """A promise: noise is `scale`-sub-Gaussian and every mean in [floor, ceiling].

    The noise of each observation is so given everything observed before it: independent from step to step and
    from episode to episode. Noise that an episode's steps share (one user, one patient) needs a scale that is
    larger by the square root of the number of steps.

    `next_state=True` says that noise may also depend on the state that the action leads to. About rewards
    each number may be a table, [S, A].
    """

    scale: Any
    floor: Any = 0.0
    ceiling: Any = 1.0
    next_state: bool = False

    def __post_init__(self) -> None:
        self._check("scale", "floor", "ceiling", low="floor", high="ceiling")
        checks.within("scale", np.asarray(self.scale), 0.0)

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Outside of these no observation is believed: a slip of the unit would buy a false budget.

        Noise that is `scale`-sub-Gaussian is never FAR scales away from a mean in [floor, ceiling].
        """
        slack = FAR * self.scale + ROUNDING * np.maximum(np.abs(self.floor), np.abs(self.ceiling))
        return self.floor - slack, self.ceiling + slack


@portable("bounded")
@dataclass(frozen=True, eq=False)
class Bounded(Promise):
    """A promise: every observation lies in [low, high], its noise independent from step to step.

    Steps that share their noise need `SubGaussian` with a larger scale instead: see there, also for
    `next_state` and for tables.
    """

    low: Any
    high: Any
    next_state: bool = False

    def __post_init__(self) -> None:
        self._check("low", "high", low="low", high="high")

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Outside of these no observation is believed."""
        return self.low, self.high

    @property
    def scale(self) -> Any:
        """Hoeffding: a variable in [low, high] is (high - low) / 2 sub-Gaussian."""
        return (self.high - self.low) / 2

    @property
    def floor(self) -> Any:
        """The smallest possible mean."""
        return self.low

    @property
    def ceiling(self) -> Any:
        """The largest possible mean."""
        return self.high


def check_promise(name: str, given: Any) -> None:
    """Refuse what promises nothing."""
    if not isinstance(given, SubGaussian | Bounded):
        raise InvalidProblem(f"{name} is {given!r}; it must be a saver.SubGaussian or a saver.Bounded")
