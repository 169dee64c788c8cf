"""What a campaign knows: all that can be asked of it without changing it."""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from saver._jit import plainly
from saver._types import Ints
from saver.collect import admit, answers, decide as deciding, reports, why as reasons
from saver.collect.answers import Comparison, Uncertain
from saver.collect.collectors import Collector
from saver.collect.events import Event, Trial
from saver.collect.knowledge import Statistics
from saver.collect.setup import Precise, Setup
from saver.collect.state import State, believed, budgets, nearest, policies_of
from saver.collect.why import Why
from saver.errors import InvalidData, InvalidProblem
from saver.estimate import Estimate
from saver.play.policy import Policy
from saver.problem.statement import BASELINE, Problem

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Budget:
    """What is known of safety after the told episodes.

    Attributes:
        certified: the true budget is at least this, at all times at once, with probability 1 - delta; NaN for
            collectors whose ledger certifies nothing. Of several guardrails, that which is nearest to its
            line relative to what it requires.
        plugin: the sample means' word for it; promises nothing.
        episodes: told so far.
        baseline_episodes: how many of these were the baseline's.
        of: what is certified of each guardrail, by name.
    """

    certified: float
    plugin: float
    episodes: int
    baseline_episodes: int
    of: dict[str, float] = field(default_factory=dict)


def reading(method: F, alone: bool = False) -> F:
    """Not while another thread changes the campaign."""

    @functools.wraps(method)
    def guarded(self: Known, *arguments: Any, **options: Any) -> Any:
        with self._lock, plainly(self._setup.small):
            if not alone:
                return method(self, *arguments, **options)
            if self._busy:
                raise InvalidData(f"{method.__name__} was called from inside a design; it must not be")
            if self._torn:
                raise InvalidData(
                    f"{method.__name__} cannot go on: an interrupt or an error has left this campaign half "
                    "changed; restore it from the last state that was kept"
                )
            self._busy = True
            try:
                return method(self, *arguments, **options)
            finally:
                self._busy = False

    return cast(F, guarded)


def alone(method: F) -> F:
    """One call at a time: other threads wait, and a design that calls back is refused."""
    return reading(method, alone=True)


class Known:
    """Answers from a state; who changes it is `Campaign`."""

    def __init__(self, setup: Setup, state: State, events: list[Event] | None) -> None:
        self._setup, self._state, self._events = setup, state, events
        self._lock, self._busy, self._torn = threading.RLock(), False, False
        self._width: tuple[Any, float] = (None, math.inf)

    @property
    def problem(self) -> Problem:
        """What is asked."""
        return self._setup.problem

    @property
    def collector(self) -> Collector:
        """How data are collected."""
        return self._setup.collector

    @property
    @reading
    def episodes(self) -> int:
        """How many trials may be asked for in all: as planned, and what `extend` has added."""
        return self._setup.episodes + self._state.more

    @property
    def until(self) -> Precise | None:
        """How precise an answer ends the campaign."""
        return self._setup.until

    @property
    def losses(self) -> str:
        """Who chooses what is told, as declared."""
        return self._setup.losses

    @property
    def order(self) -> str:
        """In which order trials start, as declared."""
        return self._setup.order

    @property
    @reading
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order, with `keep="episodes"`."""
        if self._events is None:
            raise InvalidProblem('events are kept only by Campaign(..., keep="episodes")')
        return tuple(self._events)

    @property
    @reading
    def policies(self) -> dict[int, Policy]:
        """The policy of each trial by its number, as it was when it was asked, with `keep="episodes"`."""
        return policies_of(self._setup, self.events)

    @reading
    def estimate(
        self,
        of: Any = None,
        *,
        against: Any = None,
        level: float = 0.95,
        anytime: bool = False,
        fair: bool = False,
    ) -> Estimate:
        """What the problem asks for, from what was told; or the value of any policy.

        `of` is the name of a target, which must be said where there are several, or a policy; `against`, the
        name of another, "baseline", or a policy, asks for the difference to it.

        The interval is for one look; with anytime=True it holds at all looks at once, however often one
        looks and whatever one does then: strictly where the problem promises something about rewards
        (`Problem(reward=...)`) and transitions are known, else in the limit of many episodes, and then it has
        no ends before a start (`reasons` says when that is). It is made for what the problem asks; of other
        policies, also of those that are chosen by what was seen, it holds as well, and is wider.

        With fair=True samples count as the weights say that they had when their trials were asked, so that no
        choice can bias the value: for outcomes that are both the reward and the constraint.
        """
        asked = answers.wanted(self.problem, of, against)
        return answers.estimate_of(self._setup, self._state, asked, level, anytime, fair)

    @reading
    def compare(self, of: Any = None, *, level: float = 0.95, anytime: bool = True) -> Comparison:
        """Whether a target is better than the baseline; with anytime=True one may ask every day.

        Where nothing is promised about rewards that is "not yet known" before the start: see `estimate`.
        """
        if of is None and len(self.problem.targets) == 1:
            (of,) = self.problem.targets
        found = self.estimate(of, against=BASELINE, level=level, anytime=anytime)
        return answers.comparison(found, self._state.sums.episodes)

    @reading
    def uncertainty(self, of: Any = None, *, against: Any = None) -> list[Uncertain]:
        """Which pairs the variance that is left comes from, the largest share first."""
        asked = answers.wanted(self.problem, of, against)
        return answers.uncertainty(self._setup, self._state, asked)

    @reading
    def why(self, trial: Trial | int | None = None) -> Why:
        """Why a trial that is out is what it is, or, without one, what the next would be, as known now.

        Which guardrail holds up what would be played, what is known of it, what would have to be known, and
        about how many baseline episodes that takes.
        """
        found = None if trial is None else admit.find(self._state, trial)
        if found is None:
            admit.may_ask(self._setup, self._state)
        return reasons.why(self._setup, self._state, found)

    @property
    @reading
    def done(self) -> bool:
        """Whether no more trials can be asked for: all were, or the answer is as precise as was wanted."""
        return self.answered or self._state.left(self._setup.episodes) <= 0

    @property
    @reading
    def ended(self) -> str:
        """Why no more trials can be asked for; empty while they can."""
        until, asked = self._setup.until, self.episodes
        if self.answered:
            return f"after {self._state.spent:,} of {asked:,} episodes the answer has {until}"
        if not self.done:
            return ""
        said = f"all {asked:,} episodes have been asked for"
        if until is None:
            return said
        return f"{said}, and the half-width is {self._half_width:.4g}, not {until.half_width:g}: extend it"

    @property
    @reading
    def answered(self) -> bool:
        """Whether the answer is as precise as `until` wants."""
        return self._setup.until is not None and self._half_width <= self._setup.until.half_width

    @property
    def _half_width(self) -> float:
        """What `until` looks at; made anew when something was told or lost."""
        state = self._state
        key = sum(state.told.values()), len(state.out), len(state.abandoned), len(state.cancelled)
        if self._width[0] != key:
            self._width = key, answers.half_width(self._setup, state)
        return self._width[1]

    @property
    @reading
    def outstanding(self) -> dict[Trial, int]:
        """The trials that are out, in order of asking, each with its age: how many were asked since."""
        return {trial: self._state.asked - trial.number for trial in self._state.out.values()}

    # -- tables, pictures, pages -------------------------------------------------------------------------

    @reading
    def to_frame(self) -> Any:
        """A pandas table: every told step with `keep="episodes"`, else what is known of each pair."""
        if self._events is not None:
            return reports.frame(reports.steps_table(self.problem, self._events))
        return reports.frame(reports.moments_table(self.problem, self._state))

    @reading
    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw the budget, the estimate with both intervals, and what was played, to a .png, .pdf or .svg."""
        looks = self._state.looks
        if sum(self._state.told.values()) > (looks[-1][0] if looks else 0):
            looks = [*looks, answers.look(self._setup, self._state)]
        return reports.plot(looks, self.problem, Path(path))

    @reading
    def report(self, folder: str | os.PathLike[str]) -> Path:
        """Write report.md, campaign.png, looks.csv and uncertainty.csv to a folder, which is made."""
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            raise InvalidData(
                f"cannot make {place}: {cause.strerror or cause}; give another folder"
            ) from None
        reports.write_all(self, place, self._state.looks)
        return place / "report.md"

    @reading
    def statistics(self) -> Statistics:
        """What the design is told now."""
        return deciding.statistics(self._setup, self._state)

    @property
    @reading
    def counts(self) -> Ints:
        """Reward samples of each pair so far, [S, A]."""
        return self._state.sums.rewards.counts.copy()

    @property
    @reading
    def budget(self) -> Budget:
        """What is known of safety."""
        setup, state, told = self._setup, self._state, self._state.told
        found, plugin = budgets(setup, state), budgets(setup, state, plugin=True)
        name = nearest(setup, state, found)
        if setup.used is None or not setup.used.certifies:
            found = dict.fromkeys(found, math.nan)
        return Budget(found[name], plugin[name], sum(told.values()), told["baseline"], found)

    @property
    @reading
    def believed(self) -> float:
        """The budget that the collector's own ledger believes; the plug-in one where it has none."""
        return believed(self._setup, self._state)

    @property
    @reading
    def believed_of(self) -> dict[str, float]:
        """The same of each guardrail, by name."""
        return budgets(self._setup, self._state)

    @reading
    def __repr__(self) -> str:
        state = self._state
        name = self.collector.design if isinstance(self.collector.design, str) else "a function"
        return (
            f"Campaign(design {name}, ledger {self.collector.ledger}: {sum(state.told.values())} told of "
            f"{self.episodes} episodes, {state.told['baseline']} of them baseline, {len(state.out)} out, "
            f"{len(state.abandoned)} abandoned, {len(state.cancelled)} cancelled)"
        )
