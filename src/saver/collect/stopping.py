"""When a campaign has answered."""

from __future__ import annotations

import math
from dataclasses import dataclass

from saver.problem import checks
from saver.problem.codec import portable


@portable("precise")
@dataclass(frozen=True)
class Precise:
    """Stop as soon as half the interval at all times is at most `half_width`, of every target.

    Because that interval holds at all times, it holds at the moment that it chooses.
    """

    half_width: float
    level: float = 0.95

    def __post_init__(self) -> None:
        width = checks.between("half_width", self.half_width, 0.0, math.inf, closed=(False, False))
        object.__setattr__(self, "half_width", width)
        level = checks.between("level", self.level, 0.0, 1.0, closed=(False, False))
        object.__setattr__(self, "level", level)

    def __str__(self) -> str:
        return f"a half-width of {self.half_width:g} at level {self.level:g}"
