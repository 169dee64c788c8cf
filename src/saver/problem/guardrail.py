"""What is guarded: as users say it (`Guardrail`), and as the safety argument reads it (`Rail`).

An episode must earn required = r0 + r1 V0 on average, V0 the baseline's value. A baseline episode then adds
credit = c0 + c1 V0, c0 = -r0, c1 = 1 - r1:

    alpha       r0 = 0,   r1 = 1 - alpha (of a cost: 1 + alpha)
    allowance   r0 = -a,  r1 = 1
    at_least x  r0 = x,   r1 = 0
    at_most x   r0 = -x,  r1 = 0

Costs are negated here, once: everywhere else more is better.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from saver._types import Floats
from saver.errors import InvalidProblem
from saver.problem import bellman, checks
from saver.problem.checks import read_only
from saver.problem.codec import portable
from saver.problem.episode import Episode
from saver.problem.promise import Bounded, SubGaussian, check_promise

CONSTRAINT = "constraint"  # the name of the one guardrail that a problem's short form means
WAYS = ("alpha", "allowance", "at_least", "at_most")
CLOSE = 1e-8


@portable("guardrail")
@dataclass(frozen=True)
class Guardrail:
    """One thing that must not get worse than the baseline would have made it, less an allowance.

    Exactly one of `alpha`, `allowance`, `at_least` and, for a cost, `at_most` says what an episode must earn
    on average.

    Attributes:
        name: what the numbers are told by.
        promise: `SubGaussian` or `Bounded`, about one observation, in the units in which it is told.
        alpha: the share of the baseline's value that may be given up, in (0, 1]; a cost may be (1 + alpha)
            times the baseline's.
        allowance: how much worse than the baseline an episode may be on average.
        at_least: what an episode must earn on average, whatever the baseline earns.
        at_most: what an episode may cost on average.
        baseline_value: of the baseline, exact; or (low, high), believed outright; or None: learned from
            `history` and from the baseline episodes of the campaign.
        cost: whether lower is better.
        share: of the problem's delta; by default equal shares.
    """

    name: str
    promise: SubGaussian | Bounded
    _: KW_ONLY
    alpha: float | None = None
    allowance: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    baseline_value: Any = None
    cost: bool = False
    share: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidProblem(f"a guardrail has the name {self.name!r}; a name must be a text")
        try:
            self._check()
        except InvalidProblem as cause:
            raise InvalidProblem(f"{_of(self)}{cause}") from None

    def _check(self) -> None:
        check_everywhere("promise", self.promise)
        checks.flag("cost", self.cost)
        given = [way for way in WAYS if getattr(self, way) is not None]
        if len(given) != 1:
            said = " and ".join(given) + " are" if given else "nothing is"
            raise InvalidProblem(
                f"{said} given as what is required; give exactly one of alpha, allowance, at_least, or "
                "at_most for a cost"
            )
        (way,) = given
        if way == ("at_least" if self.cost else "at_most"):
            wanted = "at_most, because lower is better" if self.cost else "at_least, or cost=True"
            raise InvalidProblem(f"{way} is given and cost is {self.cost}; give {wanted}")
        value = checks.number(way, getattr(self, way))
        if way == "alpha" and not self.cost:
            checks.between(way, value, 0.0, 1.0, closed=(False, True))
        elif way in ("alpha", "allowance"):
            checks.positive(way, value)
        vars(self)[way] = value
        if self.baseline_value is not None:
            vars(self)["baseline_value"] = _value(self.baseline_value)
        if self.share is not None:
            vars(self)["share"] = checks.between("share", self.share, 0.0, 1.0, closed=(False, True))


@dataclass(frozen=True, eq=False)
class Rail:
    """A guardrail as the argument reads it: more is better."""

    name: str  # of the guardrail
    sign: float  # -1 for a cost: observations are told times this
    promise: SubGaussian | Bounded  # about one observation times `sign`
    required_by: tuple[float, float]  # required_by, credit_by: (r0, r1) and (c0, c1)
    credit_by: tuple[float, float]
    low: float  # low, high: between these the baseline's value lies, as given, or as the promise leaves it
    high: float
    learned: bool  # whether the baseline's value is learned
    level: float  # the share of delta

    @property
    def exact(self) -> bool:
        """Whether the baseline's value is known."""
        return not self.learned and self.low == self.high

    @property
    def value(self) -> float:
        """The baseline's, or the middle of where it may lie."""
        return self.low if self.low == self.high else (self.low + self.high) / 2

    @property
    def required(self) -> float:
        """What an episode must earn on average if the baseline has `value`."""
        return self.required_at(self.value)

    @property
    def most_required(self) -> float:
        """The same at the worse end of where the baseline's value lies."""
        return max(self.required_at(self.low), self.required_at(self.high))

    @property
    def credit(self) -> float:
        """What a baseline episode then adds to the budget."""
        return self.credit_at(self.value)

    @property
    def alpha(self) -> float:
        """The share of `value` that may be given up."""
        c0, c1 = self.credit_by
        if c0 == 0.0:
            return abs(c1)
        return self.credit / abs(self.value) if self.value else math.inf

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Outside of these no observation is believed, as it is told, [1, 1] each."""
        low, high = sorted(self.sign * float(end) for end in self.promise.bounds)
        return read_only([[low]]), read_only([[high]])

    @property
    def unit(self) -> float:
        """What rounding is measured in."""
        return max(abs(self.low), abs(self.high), abs(self.required_by[0]))

    def of(self, episode: Episode) -> Episode | None:
        """An episode as the argument reads it, with this guardrail's observations; None if not measured."""
        if self.sign > 0.0 and type(episode.constraints) is np.ndarray:
            return episode
        column = self.column(episode)
        return None if column is None else episode.but(constraints=self.sign * column)

    def column(self, episode: Episode) -> Any:
        """Its observations as they were told; None if not measured."""
        given = episode.constraints
        return given[self.name] if isinstance(given, dict) else given

    def required_at(self, value: float) -> float:
        """What an episode must earn on average if the baseline has this value."""
        r0, r1 = self.required_by
        return r0 + r1 * value

    def credit_at(self, value: float) -> float:
        """What a baseline episode then adds to the budget."""
        c0, c1 = self.credit_by
        return c0 + c1 * value

    def relative(self, budget: float, value: float) -> float:
        """A budget in units of what is required."""
        return budget / (abs(self.required_at(value)) or self.unit or 1.0)


def rails_of(guardrails: tuple[Guardrail, ...], mdp: Any, baseline: Floats, delta: float) -> tuple[Rail, ...]:
    """The guardrails of a problem, checked against its baseline."""
    names = [guard.name for guard in guardrails]
    for name in names:
        if names.count(name) > 1:
            raise InvalidProblem(f"guardrails has the name {name!r} twice; names must differ")
    given = [guard.share for guard in guardrails if guard.share is not None]
    if given and (len(given) < len(names) or abs(sum(given) - 1.0) > CLOSE):
        shown = ", ".join(f"{guard.name}: {guard.share}" for guard in guardrails)
        raise InvalidProblem(f"the shares of delta are {shown}; give all, adding to 1, or none")
    if mdp.known:
        shortest = longest = float(bellman.weights(mdp, baseline).sum())
    else:
        shortest, longest = 1.0, float(np.sum(mdp.factors))
    return tuple(
        _rail(guard, (shortest, longest), delta * (1.0 / len(names) if guard.share is None else guard.share))
        for guard in guardrails
    )


def _rail(guard: Guardrail, steps: tuple[float, float], level: float) -> Rail:
    sign, promise = (-1.0, negated(guard.promise)) if guard.cost else (1.0, guard.promise)
    least, most = promise.of_episode(*steps)
    given = guard.baseline_value
    low, high = (least, most) if given is None else np.broadcast_to(given, 2).tolist()
    if given is not None and guard.cost:
        low, high = -high, -low
    rail = Rail(guard.name, sign, promise, *_by(guard), low, high, given is None, level)
    if given is not None:
        _check_given(guard, rail, least, most)
    return rail


def _by(guard: Guardrail) -> tuple[tuple[float, float], tuple[float, float]]:
    """(r0, r1) and (c0, c1)."""
    if guard.alpha is not None:
        share = -guard.alpha if guard.cost else guard.alpha
        return (0.0, 1.0 - share), (0.0, share)
    if guard.allowance is not None:
        return (-guard.allowance, 1.0), (guard.allowance, 0.0)
    line = guard.at_least if guard.at_least is not None else -float(guard.at_most or 0.0)
    return (line, 0.0), (-line, 1.0)


def _check_given(guard: Guardrail, rail: Rail, least: float, most: float) -> None:
    """A baseline episode must add to the budget, whatever the baseline's value is; and it can have that."""
    way, shown = "at_most" if guard.cost else "at_least", _shown(guard.baseline_value)
    earns = min(rail.credit_at(rail.low), rail.credit_at(rail.high)) > 0.0
    if not earns and guard.alpha is not None:
        raise InvalidProblem(
            f"{_of(guard)}baseline_value is {shown}; it must be positive, because alpha is a share of it: "
            "give an allowance instead"
        )
    if not earns:
        raise InvalidProblem(
            f"{_of(guard)}{way} is {getattr(guard, way):g}, but the baseline has {shown}: it cannot meet "
            "this by itself, and no budget can be earned; guard what the baseline keeps"
        )
    slack = CLOSE * max(abs(least), abs(most), abs(rail.low), abs(rail.high))
    if rail.high < least - slack or rail.low > most + slack:
        ends = sorted((rail.sign * least, rail.sign * most))
        floor, ceiling = guard.promise.floor, guard.promise.ceiling
        raise InvalidProblem(
            f"{_of(guard)}baseline_value is {shown}, but {guard.name} means in [{floor:g}, {ceiling:g}] "
            f"allow the baseline only [{ends[0]:g}, {ends[1]:g}]; correct the value or the range of the "
            f"{guard.name}"
        )


def _of(guard: Guardrail) -> str:
    return "" if guard.name == CONSTRAINT else f"guardrail {guard.name!r}: "


def _shown(value: Any) -> str:
    return f"({value[0]:g}, {value[1]:g})" if isinstance(value, tuple) else f"{value:g}"


def _value(given: Any) -> float | tuple[float, float]:
    """A number, or an interval."""
    if np.ndim(given) == 0:
        return checks.number("baseline_value", given)
    low, high = checks.numbers("baseline_value", given, 2)
    if low > high:
        raise InvalidProblem(
            f"baseline_value is ({checks.show(low)}, {checks.show(high)}), upside down; give (low, high)"
        )
    return (low, high) if low < high else low


def check_everywhere(name: str, promise: Any) -> None:
    """Refuse what promises nothing, or not one number for all pairs."""
    check_promise(name, promise)
    for part, shape in promise.by_pair.items():
        raise InvalidProblem(
            f"{name}.{part} has shape {shape}; promises for each pair are for rewards: give one number that "
            "holds for all pairs"
        )


def negated(promise: SubGaussian | Bounded) -> SubGaussian | Bounded:
    """The promise about minus the observations."""
    if isinstance(promise, Bounded):
        return Bounded(-promise.high, -promise.low, promise.next_state)
    return SubGaussian(promise.scale, -promise.ceiling, -promise.floor, promise.next_state)
