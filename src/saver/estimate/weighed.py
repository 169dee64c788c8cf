"""What intervals at all times write down: weights, trials in the order of asking, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from saver.problem.codec import portable
from saver.safety.entries import OUT

HIDDEN = "hidden"


@portable("weights")
@dataclass(frozen=True, eq=False)
class Weights:
    """Of samples of the trials from one on, and what their rewards are guessed to be, [pairs] each."""

    until: int  # the trial from which on others are made
    w: Any
    guess: Any
    v: Any = None  # for a fair estimate


@portable("entry")
@dataclass(eq=False)
class Entry:
    """A trial in order of asking."""

    version: int
    most: float = 0.0  # the largest sum of w^2 scale^2 of any way that it can go
    status: str = OUT
    pairs: Any = None
    rewards: Any = None
    play: Any = field(default=None, init=False)  # visits, and whether it goes one way: known from the trial
    kept: Any = None  # the same, once it is out no longer: pairs, visits, sure


@portable("reward-tally")
@dataclass(eq=False)
class RewardTally:
    """Sums over trials, [pairs] where it says by pair.

    Attributes:
        T, total: samples and their sum, by pair.
        W: the weights of the samples, by pair.
        V: those for a fair estimate; Q: their squares, by pair.
        episodes: that were told.
        gained: sum of w R; `drawn`: sum of v R.
        noise: sum of w^2 scale^2, or of w^2 (R - guess)^2 where rewards are bounded.
        asked: trials in all.
        hidden: of these, those of which nothing is told.
        hidden_noise: their largest sum of w^2 scale^2.
        missed: visits of hidden trials that go one way, by pair.
        most: visits that the other hidden trials can have made, by pair.
        awaited, walked: visits expected of trials that go several ways, and those seen, by pair.
    """

    T: Any
    total: Any
    W: Any
    V: Any
    Q: Any
    episodes: int = 0
    gained: float = 0.0
    drawn: float = 0.0
    noise: float = 0.0
    asked: int = 0
    hidden: int = 0
    hidden_noise: float = 0.0
    missed: Any = None
    most: Any = None
    awaited: Any = None
    walked: Any = None


@portable("reward-book")
@dataclass(eq=False)
class RewardBook:
    """What is written down.

    Attributes:
        first: over the trials before the first that is out.
        lines: trials from that one on.
        versions: the weights that these were asked with, and the latest, by number.
        asked: trials in all.
    """

    first: RewardTally
    lines: dict[int, Entry] = field(default_factory=dict)
    versions: dict[int, Any] = field(default_factory=dict)
    asked: int = 0
