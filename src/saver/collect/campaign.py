"""Ask for an episode, run it wherever episodes happen, tell what came of it."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from saver.collect import record
from saver.collect.belief import believed_variance
from saver.collect.collectors import Collector, find_collector
from saver.collect.knowledge import Knowledge, Statistics
from saver.collect.planning import Drawing, next_plan
from saver.collect.tracker import follow_design
from saver.collect.trial import Trial
from saver.design import coverage
from saver.errors import CampaignEnded, InvalidData
from saver.estimate import Estimate, Log
from saver.problem import checks
from saver.problem.checks import Bools, Floats, Ints
from saver.problem.moments import Moments
from saver.problem.seeds import child_seed
from saver.problem.statement import Bounded, Problem
from saver.safety import GATES, Certified, Episode, Latest, Ledger, Paper, Play, Plugin, Stage

F = TypeVar("F", bound=Callable[..., Any])
FAR = 1e4  # scales from the range of the means: further away no sub-Gaussian observation ever is


@dataclass(frozen=True)
class Budget:
    """What is known of safety after the told episodes.

    Attributes:
        certified: the true budget is at least this, at all times at once, with probability 1 - delta; NaN for
            collectors without the certified ledger.
        plugin: the sample means' word for it; promises nothing.
        episodes: told so far.
        baseline_episodes: how many of these were the baseline's.
    """

    certified: float
    plugin: float
    episodes: int
    baseline_episodes: int


def alone(method: F) -> F:
    """One call at a time: other threads wait, and a design that calls back is refused."""

    @functools.wraps(method)
    def guarded(self: Campaign, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            if self._busy:
                raise InvalidData(f"{method.__name__} was called from inside a design; it must not be")
            self._busy = True
            try:
                return method(self, *arguments, **options)
            finally:
                self._busy = False

    return cast(F, guarded)


class Campaign:
    """Collects by one collector. Any number of trials may be out at once; they may come back in any order.

    Threads may share a campaign. A design of one's own must not use the campaign's random numbers.

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
        history: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]] | None = None,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        checks.kind("problem", problem, Problem)
        self._lock, self._busy = threading.RLock(), False
        self.problem, self.collector = problem, find_collector(collector)
        self.episodes = checks.whole("episodes", episodes, 1)
        if knowledge is not None:
            checks.kind("knowledge", knowledge, Knowledge)
        self._knowledge = (knowledge or Knowledge()).limited(problem, self.collector.knows)
        self._rng = np.random.Generator(np.random.PCG64(child_seed(seed, 0)))
        mdp = problem.mdp
        shape = (mdp.horizon, mdp.states, mdp.actions)
        self._stage = Stage(mdp)
        self._baseline = self._stage.play(problem.baseline)
        self._log = Log(mdp, problem.target)
        self._constraints = Moments.empty(shape[1:])
        self._drawing = Drawing(problem, self.collector, self.episodes)
        self._ledgers = self._open_ledgers()
        self._counts = {kind: np.zeros(shape) for kind in ("explore", "design", "baseline")}
        self._explore_design = self._exploration()
        self._design: Floats | None = None
        self._next_plan = 1
        self._asked = self._explore_asked = 0
        self._told = {"explore": 0, "design": 0, "baseline": 0}
        self._out: dict[int, Trial] = {}
        self._abandoned: set[int] = set()
        if history is not None and not isinstance(history, Iterable):
            raise InvalidData(f"history is {history!r}; it must hold (states, actions, rewards, constraints)")
        for number, episode in enumerate(() if history is None else history):
            self._learn_history(number, episode)

    # -- asking ------------------------------------------------------------------------------------------

    @alone
    def ask(self) -> Trial:
        """The next episode to run. Explores first, then follows the design, behind the gate."""
        if self._asked >= self.episodes:
            raise CampaignEnded(
                f"all {self.episodes} episodes have been asked for; start a campaign with more episodes"
            )
        number = self._asked + 1
        kind, policy = self._candidate(number)
        if not self._affordable(policy):
            kind, policy = "baseline", self.problem.baseline
        sure = np.all((policy == 0.0) | (policy == 1.0))
        draws = None if sure else self._rng.random(self.problem.mdp.horizon)
        trial = Trial(number, kind, policy, draws, self.problem.mdp.horizon)
        self._asked = number
        self._explore_asked += kind == "explore"
        for ledger in self._ledgers.values():
            ledger.ask(number, self._entry(ledger, trial))
        self._out[number] = trial
        return trial

    def _affordable(self, policy: Floats) -> bool:
        gate = GATES.get(self.collector.gate)
        if gate is None:
            return True
        used, play = self._ledgers["used"], self._stage.play(policy)
        return (isinstance(used, Certified) and self._is_baseline(play)) or gate(used, play)

    def _candidate(self, number: int) -> tuple[str, Floats]:
        design = self._explore_design
        explored = number - 1 if self.collector.explore_by_clock else self._explore_asked
        if design is not None and explored < math.isqrt(self.episodes):
            if not self._stage.deterministic or self.collector.track == "sample":
                return "explore", design
            nothing = np.zeros(design.shape[-2:], dtype=bool)
            return "explore", follow_design(design, self._visits(design, ("explore",)), nothing)
        design = self._planned(number)
        if self.collector.track == "sample":
            return "baseline" if self.collector.design == "baseline" else "design", design
        kinds = ("design",) if self.collector.track == "designed" else ("explore", "design", "baseline")
        return "design", follow_design(design, self._visits(design, kinds), self._first(number))

    def _planned(self, number: int) -> Floats:
        if self._design is None or (number >= self._next_plan and not self._drawing.fixed):
            variance = believed_variance(
                self.problem, self.collector, self._knowledge, self.episodes, self._log.rewards
            )
            self._design = self._drawing.draw(self.statistics(), variance, self._pace(number))
            self._next_plan = int(next_plan(number, float(self.collector.replan)))
        return self._design

    def _pace(self, number: int) -> float:
        """What the design should earn: as required, or as the ledger can afford."""
        used = self._ledgers.get("used")
        if self._drawing.paced and isinstance(used, Certified):
            designed = self._told["explore"] + self._told["design"]
            return used.pace(designed, self._told["baseline"], self.episodes - number + 1)
        return self.problem.required

    def statistics(self) -> Statistics:
        """What the design is told now."""
        return Statistics.of(
            self.problem, self._knowledge, self._asked + 1, self._log.rewards, self._constraints
        )

    def _visits(self, design: Floats, kinds: tuple[str, ...]) -> Floats:
        """Visits in trials of these kinds, shaped like `design`; trials that are out count as expected."""
        counts: Floats = np.sum([self._counts[kind] for kind in kinds], axis=0)
        for trial in self._out.values():
            if trial.kind in kinds:
                flow = self._stage.play(trial.policy).flow
                np.add.at(counts, (self._stage.nodes.step, self._stage.nodes.state), flow)
        result: Floats = counts if design.ndim == 3 else counts.sum(axis=0)
        return result

    def _first(self, number: int) -> Bools:
        """Pairs that come first: with weight, never sampled, and not expected by a trial that is out.

        From the middle of the campaign on also those with one sample, which says nothing of their variance:
        without a second one the estimate has no standard error.
        """
        enough = 1 if 2 * number <= self.episodes else 2
        first: Bools = (self._drawing.weights > 0) & (self._log.rewards.counts < enough)
        for trial in self._out.values():
            first &= self._stage.play(trial.policy).weights == 0
        return first

    def _exploration(self) -> Floats | None:
        mdp = self.problem.mdp
        if self.collector.explore == "none":
            return None
        if self.collector.explore == "coverage":
            return coverage(mdp).policy
        return mdp.uniform

    # -- telling -----------------------------------------------------------------------------------------

    @alone
    def tell(
        self,
        trial: Trial | int,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        constraints: ArrayLike,
    ) -> None:
        """What happened in a trial. An impossible episode is refused and changes nothing."""
        found = self._find(trial)
        s, a, (r, c) = checks.trajectory(
            self.problem.mdp, states, actions, ("rewards", rewards), ("constraints", constraints)
        )
        chances = np.array(
            [found.row(t, state)[action] for t, (state, action) in enumerate(zip(s, a, strict=True))]
        )
        self._check_told(found, s, a, c, chances)
        learned = found.kind != "baseline" or self.collector.learn_from_baseline
        if learned:
            weighted = self.collector.estimate == "importance" and found.kind != "baseline"
            self._log.take(s, a, r, chances if weighted else None)
            self._constraints.extend(s, a, c)
        np.add.at(self._counts[found.kind], (np.arange(len(s)), s, a), 1.0)
        self._told[found.kind] += 1
        del self._out[found.number]
        episode = Episode(s, a, c) if learned else Episode([], [], [])
        for ledger in self._ledgers.values():
            ledger.tell(found.number, self._entry(ledger, found), episode)

    @alone
    def abandon(self, trial: Trial | int) -> None:
        """Give a trial up: it may have run or not, and nothing will be told of it."""
        found = self._find(trial)
        del self._out[found.number]
        self._abandoned.add(found.number)
        for ledger in self._ledgers.values():
            ledger.abandon(found.number, self._entry(ledger, found))

    def _find(self, trial: Trial | int) -> Trial:
        number = trial.number if isinstance(trial, Trial) else checks.whole("trial", trial, 1)
        if number > self._asked or number < 1:
            raise InvalidData(f"trial {number} was never asked; {self._asked} were")
        if number in self._abandoned:
            raise InvalidData(f"trial {number} was abandoned; what came of it cannot be told any more")
        if number not in self._out:
            raise InvalidData(f"trial {number} was told already; tell each trial once")
        found = self._out[number]
        if isinstance(trial, Trial) and not trial.same_as(found):
            raise InvalidData(f"trial {number} is of another campaign; tell it there")
        return found

    def _check_told(self, trial: Trial, s: Any, a: Any, c: Floats, chances: Floats) -> None:
        mdp = self.problem.mdp
        if len(never := np.flatnonzero(chances == 0.0)):
            t = never[0]
            raise InvalidData(
                f"{mdp.action_label(a[t])} in {mdp.state_label(s[t])} at step {t} has probability 0 under "
                f"trial {trial.number}; tell the actions that trial.act gave"
            )
        self._check_bounds(c)

    def _check_bounds(self, c: Floats) -> None:
        """Refuse what the promise rules out: a slip of the unit would buy a budget that is not there."""
        promise = self.problem.constraint
        slack = 0.0 if isinstance(promise, Bounded) else FAR * promise.scale or math.inf
        low, high = promise.floor - slack, promise.ceiling + slack
        if len(outside := np.flatnonzero((c < low) | (c > high))):
            raise InvalidData(
                f"constraints[{outside[0]}] is {checks.show(c[outside[0]])}, outside the declared bounds "
                f"[{low:g}, {high:g}]; correct the value or declare wider bounds"
            )

    def _learn_history(self, number: int, episode: tuple[ArrayLike, ...]) -> None:
        """A logged baseline episode enters the statistics, not the budget."""
        try:
            states, actions, rewards, constraints = episode
        except (TypeError, ValueError):
            raise InvalidData(
                f"history[{number}] must be (states, actions, rewards, constraints), got {episode!r}"
            ) from None
        s, a, (r, c) = checks.trajectory(
            self.problem.mdp, states, actions, ("rewards", rewards), ("constraints", constraints)
        )
        self._check_bounds(c)
        self._log.take(s, a, r, None)
        self._constraints.extend(s, a, c)

    # -- answers -----------------------------------------------------------------------------------------

    def estimate(self, level: float = 0.95) -> Estimate:
        """The value of the target, from what was told."""
        return self._log.estimate(self.collector.estimate, level)

    @property
    def counts(self) -> Ints:
        """Reward samples of each pair so far, [S, A]."""
        result: Ints = self._log.rewards.counts.copy()
        return result

    @property
    def budget(self) -> Budget:
        """What is known of safety."""
        used = self._ledgers.get("used")
        certified = used.budget() if isinstance(used, Certified) else math.nan
        told = sum(self._told.values())
        return Budget(certified, self._ledgers["plugin"].budget(), told, self._told["baseline"])

    @property
    def believed(self) -> float:
        """The budget that the collector's own ledger believes; the plug-in one where it has none."""
        return self._ledgers.get("used", self._ledgers["plugin"]).budget()

    def _open_ledgers(self) -> dict[str, Ledger]:
        problem, episodes, constraints = self.problem, self.episodes, self._constraints
        ledgers: dict[str, Ledger] = {"plugin": Plugin(problem, episodes, constraints)}
        kind = self.collector.ledger
        if kind == "certified":
            sure = self._stage.deterministic and self.collector.track != "sample"
            ledgers["used"] = Certified(problem, episodes, self._stage, sure)
        elif kind != "none":
            kinds = {"paper": Paper, "latest": Latest, "plugin": Plugin}
            ledgers["used"] = kinds[kind](problem, episodes, constraints)
        return ledgers

    def _is_baseline(self, play: Play) -> bool:
        """Whether a policy goes exactly where the baseline goes: then it is worth exactly as much."""
        return np.array_equal(play.flow, self._baseline.flow)

    def _entry(self, ledger: Ledger, trial: Trial) -> Play | None:
        """What a ledger is shown: None for a trial that is worth exactly `baseline_value`."""
        play = self._stage.play(trial.policy)
        same = isinstance(ledger, Certified) and self._is_baseline(play)
        return None if trial.kind == "baseline" or same else play

    # -- plain data --------------------------------------------------------------------------------------

    @alone
    def state(self) -> dict[str, Any]:
        """The whole campaign as plain data (numbers, strings, lists, dicts): it can be written as JSON."""
        return record.dump(self)

    @classmethod
    def restore(cls, problem: Problem, collector: Collector | str, state: dict[str, Any]) -> Campaign:
        """A campaign that goes on exactly where `state` was taken, of the same problem and collector."""
        return record.load(cls, problem, find_collector(collector), state)
