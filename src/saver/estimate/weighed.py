"""What intervals at all times write down: weights, trials in the order of asking, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from saver.problem.codec import portable
from saver.safety.entries import Ordered, Status, Visits


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
    status: str = Status.OUT
    pairs: Any = None
    rewards: Any = None
    play: Any = field(default=None, init=False)  # visits, and whether it goes one way: known from the trial
    kept: Any = None  # the same, once it is out no longer: pairs, visits, sure


@portable("reward-tally")
@dataclass(eq=False)
class RewardTally(Visits):
    """Sums over trials, [pairs] where it says by pair."""

    T: Any  # samples, by pair
    total: Any  # their sum, by pair
    W: Any  # the weights of the samples, by pair
    V: Any  # those for a fair estimate, by pair
    Q: Any  # their squares, by pair
    episodes: int = 0  # that were told
    gained: float = 0.0  # sum of w R
    drawn: float = 0.0  # sum of v R
    noise: float = 0.0  # sum of w^2 scale^2, or of w^2 (R - guess)^2 where rewards are bounded
    asked: int = 0  # trials in all
    hidden: int = 0  # of these, those of which nothing is told
    hidden_noise: float = 0.0  # their largest sum of w^2 scale^2


@portable("reward-book")
@dataclass(eq=False)
class RewardBook(Ordered):
    """What is written down."""

    versions: dict[int, Any] = field(default_factory=dict)  # weights these were asked with, and the latest
    asked: int = 0  # trials in all
