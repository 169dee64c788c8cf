"""Ask for an episode, run it wherever episodes happen, tell what came of it."""

from __future__ import annotations

import functools
import math
import os
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from saver._jit import plainly
from saver._types import Ints
from saver.collect import admit, answers, decide as deciding, reports, snapshot
from saver.collect.answers import Comparison, Uncertain
from saver.collect.apply import apply
from saver.collect.collectors import Collector
from saver.collect.events import Event, Trial
from saver.collect.knowledge import Knowledge, Statistics
from saver.collect.planned import policies_of
from saver.collect.setup import Precise, Setup, check_stopping
from saver.collect.state import State, believed, budgets, nearest
from saver.errors import AssumptionWarning, CampaignEnded, InvalidData, InvalidProblem
from saver.estimate import Estimate
from saver.play.policy import Policy
from saver.problem import checks
from saver.problem.episode import Episode
from saver.problem.history import History
from saver.problem.statement import BASELINE, Problem, is_small

F = TypeVar("F", bound=Callable[..., Any])
KEEP = ("moments", "episodes")


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


def alone(method: F) -> F:
    """One call at a time: other threads wait, and a design that calls back is refused."""

    @functools.wraps(method)
    def guarded(self: Campaign, *arguments: Any, **options: Any) -> Any:
        with self._lock, plainly(self._setup.small):
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


def reading(method: F) -> F:
    """Not while another thread changes the campaign."""

    @functools.wraps(method)
    def guarded(self: Campaign, *arguments: Any, **options: Any) -> Any:
        with self._lock, plainly(self._setup.small):
            return method(self, *arguments, **options)

    return cast(F, guarded)


def caution(number: int) -> None:
    """Warn before a trial that was looked at is given up, where chance is declared to choose."""
    warnings.warn(
        f"trial {number} was asked how to act and is given up, and losses are declared random: then "
        "what is lost or cancelled must have nothing to do with states and actions either, where a "
        'trial starts among them. If that is not sure, begin the campaign with losses="hostile"',
        AssumptionWarning,
        stacklevel=6,
    )


class Campaign:
    """Collects by one collector. Any number of trials may be out at once; they may come back in any order.

    Threads may share a campaign. A design of one's own must not use the campaign's random numbers. With
    `keep="episodes"` everything that happened is kept, as `events`; by default only sums are.

    `losses` declares who chooses what is told, and when: "hostile", somebody who may know all outcomes, or
    "random", chance, given what was told before: it must have nothing to do with what was observed in
    trials that were not told, nor with their states and actions, where they started among these. `order`
    declares which trials can have run: "any" of those that are out, or with "asked" none without those that
    were asked before it.

    `until` ends the campaign before its last episode, as soon as the answer is precise enough; it needs a
    promise about rewards.

    For a bandit:

        campaign = Campaign(problem, "saver", episodes=1000)
        trial = campaign.ask()
        action = trial.act(step=0, state=0)
        campaign.tell(trial, states=[0], actions=[action], rewards=[0.4], constraints=[0.9])
    """

    def __init__(
        self,
        problem: Problem,
        collector: Collector | str,
        episodes: int,
        *,
        knowledge: Knowledge | None = None,
        history: History | Iterable[Episode] | None = None,
        seed: int | np.random.SeedSequence = 0,
        keep: str = "moments",
        losses: str = "hostile",
        order: str = "any",
        until: Precise | None = None,
    ) -> None:
        checks.choice("keep", keep, KEEP)
        setup = Setup(problem, collector, episodes, knowledge, losses, order, until)
        check_stopping(problem, setup.until)
        with plainly(setup.small):
            self._begin(setup, State.begin(setup, seed), [] if keep == "episodes" else None)
            if history is None:
                history = problem.history
            if history is not None:
                self._take(admit.learned(setup, history))

    @classmethod
    def of(cls, setup: Setup, state: State, events: list[Event] | None = None) -> Campaign:
        """The campaign of a state; what is applied to the state later has happened to the campaign too."""
        campaign = cls.__new__(cls)
        campaign._begin(setup, state, events)
        return campaign

    def _begin(self, setup: Setup, state: State, events: list[Event] | None) -> None:
        self._lock, self._busy, self._torn = threading.RLock(), False, False
        self._setup, self._state, self._events = setup, state, events
        self._width: tuple[Any, float] = (None, math.inf)
        self._warned = False

    def _take(self, event: Event) -> None:
        self._torn = True  # until all of it has happened
        self._state = apply(self._setup, self._state, event)
        if self._events is not None:
            self._events.append(event)
        self._torn = False

    @alone
    def ask(self) -> Trial:
        """The next episode to run. Explores first, then follows the design, behind the gate."""
        if self.answered:
            raise CampaignEnded(f"{self.ended}; nothing more needs to be asked for")
        admit.may_ask(self._setup, self._state)
        event = deciding.decide(self._setup, self._state)
        self._take(event)
        return self._state.out[event.number]

    @alone
    def extend(self, episodes: int) -> None:
        """So many episodes more may be asked for. Promises and intervals hold on; their tuning stays."""
        self._take(admit.extended(episodes))

    @alone
    def tell(
        self,
        trial: Trial | int,
        states: Any,
        actions: Any = None,
        rewards: Any = None,
        constraints: Any = None,
        *,
        final_state: int | str | None = None,
        complete: bool = True,
    ) -> None:
        """What happened in a trial: an `Episode`, or its sequences; complete=False: until it was cut off.

        States and actions are said by their numbers or by the names that the model gives them.

        Of several guardrails `constraints` is {name: sequence}, None for one that was not measured.
        `final_state` is where the last action led, `saver.END` if it ended the episode; where transitions are
        unknown, tell it at the horizon always or never. An impossible episode is refused and changes nothing.
        """
        said = complete, final_state, states, actions, rewards, constraints
        self._take(admit.told(self._setup, self._state, trial, *said))

    @alone
    def abandon(self, trial: Trial | int, ran: bool | None = None) -> None:
        """Nothing will be told of a trial. It may have run or not; ran=True: it did."""
        event = admit.abandoned(self._state, trial, ran)
        self._caution(event.number)
        self._take(event)

    def _caution(self, number: int) -> None:
        """`caution`, once."""
        if not self._warned and admit.cares(self._setup, self._state.out.get(number)):
            self._warned = True
            caution(number)

    @alone
    def cancel(self, trial: Trial | int, *, unseen: bool = False) -> None:
        """A trial has never started, and never will: another may be asked for in its place.

        `unseen=True` declares that this was decided before anybody saw where the trial would start, or what
        it would do; it costs little, and the newest trial nothing. Without it the trial may have been chosen
        by that: where paths are random the certificate then pays for what may have been chosen.
        """
        event = admit.cancelled(self._setup, self._state, trial, unseen)
        self._caution(event.number)
        self._take(event)

    # -- answers -----------------------------------------------------------------------------------------

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
        result: Ints = self._state.sums.rewards.counts.copy()
        return result

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

    # -- plain data --------------------------------------------------------------------------------------

    @alone
    def state(self) -> dict[str, Any]:
        """The whole campaign as plain data (numbers, strings, lists, dicts): it can be written as JSON."""
        return snapshot.dump(self._setup, self._state, self._events)

    @classmethod
    def restore(cls, problem: Problem, collector: Collector | str, state: dict[str, Any]) -> Campaign:
        """A campaign that goes on exactly where `state` was taken, of the same problem and collector.

        Trials that were out may have been looked at since: they cannot be cancelled with `unseen=True`.
        """
        checks.kind("problem", problem, Problem)
        with plainly(is_small(problem)):
            campaign = cls.of(*snapshot.load(problem, collector, state))
        for trial in campaign._state.out.values():
            trial.look()
        return campaign
