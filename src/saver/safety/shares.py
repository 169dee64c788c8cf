"""How delta is split among the parts of the argument."""

from __future__ import annotations

from typing import NamedTuple

ARGUMENT = 2  # grows when delta is split otherwise, or what is proved: where returns are bet on it was 1


class Shares(NamedTuple):
    """How delta is split: hidden trials, the box, noise, and noise with paths."""

    hidden: float
    box: float
    noise: float
    paths: float


def shares(deterministic: bool, next_state: bool, losses: str = "hostile", bounded: bool = False) -> Shares:
    """Fixed before the first episode; they add to 1."""
    hidden = 0.1 if losses == "hostile" else 0.0
    if deterministic:
        return Shares(hidden, 0.15, 0.85 - hidden, 0.0)
    if bounded:  # what returns say is nearly always the larger: `capital`
        return Shares(hidden / 10, 0.02, 0.01, 0.97 - hidden / 10)
    rest = (1.0 - hidden) / 2
    return Shares(hidden, rest, rest, 0.0) if next_state else Shares(hidden, rest, rest / 2, rest / 2)


def shares_of_returns(bounded: bool, losses: str = "hostile") -> Shares:
    """The same where transitions are unknown: there is no box, and what is hidden of coins needs no share."""
    hidden = 0.1 if losses == "hostile" and not bounded else 0.0
    return Shares(hidden, 0.0, 1.0 - hidden, 0.0)


class Learning(NamedTuple):
    """How the noise's part is split where V0 is learned: both sums at once, designed trials, V0."""

    joint: float
    designed: float
    value: float


RETURNS = 0.8  # of the level of what returns say, where V0 is learned: that of designed trials


def learning(deterministic: bool, bounded: bool) -> Learning:
    """Fixed before the first episode; they add to 1."""
    if not deterministic:
        return Learning(0.0, 2 / 3, 1 / 3)
    return Learning(0.0, 0.8, 0.2) if bounded else Learning(0.5, 0.4, 0.1)


NOISE, PAIRS, NEVER = 0.4, 0.4, 0.2  # of the hidden share: of trials, of pairs, of cancelled trials
