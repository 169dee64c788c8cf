"""What a log shows of policies that it did not follow, as plain data: see `saver.safety.shown`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saver.problem.checks import read_only
from saver.problem.codec import fingerprint, portable


@portable("shown")
@dataclass(frozen=True, eq=False)
class Shown:
    """Policies that the first part of a log chose, and what the second part shows of them.

    An episode of policy i is worth at least floors[name][i] above what the guardrail of that name requires:
    step 16 of docs/proof/logs.md. Of all policies and guardrails at once, but for a part of delta.

    Attributes:
        policies: [M, L, S, A].
        names: what each is, in words.
        floors: by guardrail, [M].
        made_for: a hash of what is promised and required, and of its share of delta.
        first, second: episodes of the two parts.
    """

    policies: Any
    names: tuple[str, ...]
    floors: dict[str, Any]
    made_for: str
    first: int
    second: int

    def __post_init__(self) -> None:
        vars(self)["names"] = tuple(self.names)
        vars(self)["policies"] = read_only(self.policies)

    def fits(self, problem: Any) -> bool:
        """Whether this was shown of what a problem requires."""
        return self.made_for == required_by(problem)


def required_by(problem: Any) -> str:
    """A hash of what is promised and required, and of its share of delta."""
    items = [
        item
        for rail in problem.rails
        for item in (rail.name, rail.sign, rail.promise, rail.required_by, rail.low, rail.high, rail.level)
    ]
    return fingerprint(problem.mdp, problem.baseline, *items)
