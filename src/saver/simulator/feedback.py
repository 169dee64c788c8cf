"""Declared rules by which feedback is lost, or comes late."""

from __future__ import annotations

from dataclasses import dataclass

from saver.errors import InvalidProblem
from saver.problem import checks

WHICH = ("random", "outcome", "sum", "start")
BACK = ("asked", "random", "best", "newest", "held")


@dataclass(frozen=True)
class Feedback:
    """What becomes of trials after they were asked. By default each is told before the next is asked.

    Attributes:
        lose: the share of trials that are abandoned.
        which: who is lost: "random", each by chance; "outcome", of those that wait the one whose constraints
            are lowest; "sum", the one that fell furthest below what its policy is worth, so that the told
            ones look best; "start", the one whose start and first action promise least. Where an episode is
            cut off goes by it too: anywhere, or after its best part.
        out: how many trials stay out between two asks.
        back: who comes back when more are out: "asked", the first asked; "random"; "best", the one with the
            highest constraints; "newest", the last asked; "held", all at once, after it was chosen which are
            lost, and the others best first.
        ran: what is said of a lost trial: True, it ran; None, nobody knows.
        straggle: how many of the first trials never come back and are never abandoned.
        cancel: up to this share of trials has not started when the others of a batch are in. They start,
            the newest first, until what will be told looks high without the rest, which is cancelled. Needs
            back="held"; the batch is then told in the order of asking.
        veto: up to this share of the trials asked are cancelled because of where they would start: those
            whose start and first action promise less than their policy is worth. Each as it is asked; with
            back="held" among a batch, when all of it is out.
        vetoes: how many trials are asked before vetoing stops; 0: it never does.
        cut: the share of episodes of several steps that are cut off, and told until then.
    """

    lose: float = 0.0
    which: str = "random"
    out: int = 0
    back: str = "asked"
    ran: bool | None = None
    straggle: int = 0
    cancel: float = 0.0
    cut: float = 0.0
    veto: float = 0.0
    vetoes: int = 0

    def __post_init__(self) -> None:
        for name in ("lose", "cut", "cancel", "veto"):
            closed = (True, name in ("lose", "cut"))
            self._set(name, checks.between(name, getattr(self, name), 0.0, 1.0, closed=closed))
        checks.choice("which", self.which, WHICH)
        checks.choice("back", self.back, BACK)
        for name in ("out", "straggle", "vetoes"):
            self._set(name, checks.whole(name, getattr(self, name), 0))
        if self.ran is not None and self.ran is not True:
            raise InvalidProblem(f"ran is {self.ran!r}; it must be True, or None where nobody knows")
        chooses = (self.which != "random" and self.lose > 0.0) or self.back in ("best", "held")
        if self.out == 0 and chooses:
            raise InvalidProblem(
                f"out is 0, which {self.which!r} and back {self.back!r}; with nobody else out there is no "
                "choice by outcome: give out at least 1"
            )
        if self.cancel > 0.0 and self.back != "held":
            raise InvalidProblem(
                f"cancel is {self.cancel:g} and back is {self.back!r}; what is cancelled is chosen when all "
                'of a batch are in: give back="held"'
            )
        if self.veto > 0.0 and (self.cancel > 0.0 or (self.out > 0) != (self.back == "held")):
            raise InvalidProblem(
                f"veto is {self.veto:g}, cancel {self.cancel:g}, out {self.out} and back {self.back!r}; "
                'trials are vetoed one by one, with out=0, or among a batch, with back="held", and are not '
                "cancelled in another way too"
            )

    @property
    def starts(self) -> bool:
        """Whether it matters where trials start."""
        return self.veto > 0.0 or (self.which == "start" and self.lose > 0.0)

    def _set(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)
