"""Problems that are small enough to begin without a compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from saver._jit import plainly
from saver.problem.statement import Problem

F = TypeVar("F", bound=Callable[..., Any])
SMALL = 20  # pairs


def is_small(problem: Problem) -> bool:
    """Whether plain Python is quick enough for a problem: few pairs, one guardrail, known transitions."""
    mdp = problem.mdp
    return mdp.known and mdp.states * mdp.actions <= SMALL and len(problem.rails) == 1


def light(function: F) -> F:
    """A function of a problem, or of what has one, that begins without a compiler where that is small."""

    @functools.wraps(function)
    def begun(asked: Any, *arguments: Any, **options: Any) -> Any:
        problem = getattr(asked, "problem", asked)
        with plainly(isinstance(problem, Problem) and is_small(problem)):
            return function(asked, *arguments, **options)

    return cast(F, begun)
