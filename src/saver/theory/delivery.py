"""What comes back of the trials: how many are lost, how many are out, and what is declared of both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saver._types import Floats
from saver.collect.tracker import follow_design
from saver.play.stage import Play, Stage
from saver.problem import checks
from saver.safety import LOSSES, ORDERS

TRACKED = 100  # episodes that say how often which policy is played


@dataclass(frozen=True)
class Delivery:
    """What will come back, and in which words a campaign is told so.

    Attributes:
        lost: the share of trials of which nothing is ever told; they are abandoned in their turn.
        out: how many are out at once, the next one included; they are told in the order of asking.
        losses: what the campaign declares about who chooses the lost ones, "hostile" or "random".
        order: what it declares about the order in which trials start, "any" or "asked".
        ran: lost trials are known to have run.
    """

    lost: float = 0.0
    out: int = 1
    losses: str = "hostile"
    order: str = "any"
    ran: bool = False

    @classmethod
    def checked(cls, lost: float, out: int, losses: str, order: str, ran: bool) -> Delivery:
        """The same from what a user says."""
        lost = checks.between("losses", lost, 0.0, 1.0, closed=(True, False))
        out = checks.whole("out", out, 1)
        checks.choice("declared", losses, LOSSES)
        checks.choice("order", order, ORDERS)
        checks.flag("ran", ran)
        return cls(lost, out, losses, order, ran)

    @property
    def told(self) -> float:
        """The share that is told."""
        return 1.0 - self.lost

    @property
    def hidden(self) -> float:
        """The share that may have been lost because of its outcome."""
        return self.lost if self.losses == "hostile" else 0.0

    def __str__(self) -> str:
        """In words."""
        ran = ", known to have run" if self.ran else ""
        lost = (
            f"{100 * self.lost:.3g} % of the trials lost ({self.losses}{ran})"
            if self.lost
            else "nothing lost"
        )
        order = "in any order" if self.order == "any" else "in the order of asking"
        return f"{lost}, " + ("one trial at a time" if self.out == 1 else f"{self.out} out at once {order}")

    @property
    def complete(self) -> bool:
        """Whether everything comes back at once."""
        return self.lost == 0.0 and self.out == 1


AT_ONCE = Delivery()  # nothing is lost, and nothing is late


def tracked(stage: Stage, play: Play) -> list[Play]:
    """What is asked of a campaign that tracks a behaviour, episode by episode; every visit is as expected."""
    shape = play.behaviour.shape
    counts = np.ones(shape) if stage.deterministic else np.random.default_rng(1).random(shape)
    first, found = np.zeros(shape, dtype=bool), []
    for _ in range(TRACKED):
        rows = follow_design(play.behaviour, counts, first)
        found.append(stage.evaluate(stage.grid.choices(True, rows)))
        counts = counts + found[-1].flow
    return found


class Worth:
    """What trials of a behaviour add to the budget at least, by what is known of them: [boxes] each.

    One that ran adds low - required, one that may have run min(0, low - required). What goes where the
    baseline goes is known to be worth as much.
    """

    def __init__(self, plays: list[Play], baseline: Play, exact: float, required: float) -> None:
        self.weights = np.array([play.weights.ravel() for play in plays])
        self.same = np.array([play.goes_as(baseline) for play in plays])
        self.exact, self.required = exact, required

    def adds(self, lower: Floats, ran: bool) -> float:
        """On average over the trials."""
        low = np.where(self.same, self.exact, self.weights @ lower.ravel()) - self.required
        return float(np.mean(low if ran else np.minimum(0.0, low)))


def steps(out: int) -> Floats:
    """Episodes at which a campaign with so many trials out is looked at: there it changes fast."""
    return np.arange(1.0, 33.0) * math.ceil(out / 4.0) if out > 1 else np.zeros(0)
