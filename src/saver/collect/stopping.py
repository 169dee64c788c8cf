"""When a campaign has answered."""

from __future__ import annotations

import math
from dataclasses import dataclass

from saver.errors import InvalidProblem
from saver.estimate.interval import DECLARE
from saver.problem import checks
from saver.problem.codec import portable
from saver.problem.statement import Problem


@portable("precise")
@dataclass(frozen=True)
class Precise:
    """Stop as soon as half the interval at all times is at most `half_width`, of every target.

    It needs a promise about rewards, `Problem(reward=...)`. Where transitions are known too, that interval
    holds at all times, and so at the moment that it chooses. Of a `saver.Unknown` it does in the limit of
    many episodes, and there is none before the start of `saver.estimate.asymptotic`, 1,183 at level .95.
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


def check_stopping(problem: Problem, until: Precise | None) -> None:
    """Refuse to stop a new campaign by an interval that is right in the limit only.

    Its moment would be one at which rewards seem to vary little, and what is rarer than one in as many
    samples as there are would never be seen.
    """
    if until is not None and problem.reward is None:
        raise InvalidProblem(
            f"until is {until}, and nothing is declared about rewards, so that no interval holds at the "
            f"moment that it chooses: {DECLARE}"
        )
