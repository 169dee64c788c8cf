"""Ask for an episode, run it wherever episodes happen, tell what came of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from saver._jit import plainly
from saver.collect import admit, answers, decide as deciding, snapshot
from saver.collect.apply import apply
from saver.collect.collectors import Collector
from saver.collect.events import Event, Told, Trial
from saver.collect.knowledge import Knowledge
from saver.collect.known import Known, alone
from saver.collect.setup import Precise, Setup, check_stopping
from saver.collect.showing import shown_by
from saver.collect.state import State
from saver.errors import AssumptionWarning, CampaignEnded
from saver.problem import checks
from saver.problem.episode import Episode
from saver.problem.history import History
from saver.problem.statement import Problem, is_small

KEEP = ("moments", "episodes")


def caution(number: int) -> None:
    """Warn before a trial that was looked at is given up, where chance is declared to choose."""
    warnings.warn(
        f"trial {number} was asked how to act and is given up, and losses are declared random: then "
        "what is lost or cancelled must have nothing to do with states and actions either, where a "
        'trial starts among them. If that is not sure, begin the campaign with losses="hostile"',
        AssumptionWarning,
        stacklevel=6,
    )


def happen(setup: Setup, state: State, event: Event) -> State:
    """The state after an event: the same object, changed. Now and then it keeps a look at the answer."""
    state = apply(setup, state, event)
    if isinstance(event, Told) and answers.look_due(state):
        state.looks.append(answers.look(setup, state))
    return state


class Campaign(Known):
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
        checks.kind("problem", problem, Problem)
        past = problem.history if history is None else history
        with plainly(is_small(problem)):
            event = None if past is None else admit.recalled(problem, past)
            shown = shown_by(problem, None if event is None else event.history)
            setup = Setup(problem, collector, episodes, knowledge, losses, order, until, shown)
            check_stopping(problem, setup.until)
            self._begin(setup, State.begin(setup, seed), [] if keep == "episodes" else None)
            if event is not None:
                self._take(event)

    @classmethod
    def of(cls, setup: Setup, state: State, events: list[Event] | None = None) -> Campaign:
        """The campaign of a state; what is applied to the state later has happened to the campaign too."""
        campaign = cls.__new__(cls)
        campaign._begin(setup, state, events)
        return campaign

    def _begin(self, setup: Setup, state: State, events: list[Event] | None) -> None:
        super().__init__(setup, state, events)
        self._warned = False

    def _take(self, event: Event) -> None:
        self._torn = True  # until all of it has happened
        self._state = happen(self._setup, self._state, event)
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
