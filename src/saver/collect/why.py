"""Why a trial is what it is: which guardrail decides, what is known, and what would have to be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from saver.collect.decide import decide
from saver.collect.events import Asked, Trial
from saver.collect.setup import Setup
from saver.collect.state import State, policy_of, shown_of
from saver.play import Play
from saver.play.policy import Policy
from saver.safety import Ledger


@dataclass(frozen=True)
class Need:
    """What one guardrail says of a policy, in the units in which it is told.

    Attributes:
        name: the guardrail's.
        budget: what is certified now.
        worth: an episode of the policy is known to earn at least this, or to cost at most this.
        required: an episode must earn at least this on average, or cost at most this.
        short: by so much the budget might fall below 0; 0 where the policy can be afforded.
        episodes: about so many baseline episodes put that aside; infinite if these are not known to earn.
    """

    name: str
    budget: float
    worth: float
    required: float
    short: float
    episodes: float
    cost: bool = False

    def __str__(self) -> str:
        does, most = ("cost", "at most") if self.cost else ("earn", "at least")
        said = (
            f"{self.name}: an episode is known to {does} {most} {self.worth:.4g}; {most} {self.required:.4g}"
        )
        said += f" is required on average, and {max(self.budget, 0.0):.4g} is put aside"
        if self.short <= 0.0:
            return f"{said}: it can be afforded"
        said += f"; short by {self.short:.4g}, which must be known better or put aside"
        if not math.isfinite(self.episodes):
            return f"{said}: baseline episodes are not known to put anything aside"
        return f"{said} by about {self.episodes:,.0f} baseline episodes"


@dataclass(frozen=True)
class Why:
    """Why a trial is what it is.

    Attributes:
        number: of the trial.
        kind: "explore", "design", "earn" or "baseline".
        policy: what it plays, in words.
        wanted: what would be played if it could be afforded, in words; empty where that is played.
        binding: the guardrail that holds it up; empty where none does.
        needs: what each guardrail says of `wanted`, or else of what is played.
    """

    number: int
    kind: str
    policy: str
    wanted: str
    binding: str
    needs: tuple[Need, ...]

    def __str__(self) -> str:
        lines = [f"trial {self.number} plays {self.policy}"]
        if self.wanted:
            lines[0] += f"; {self.wanted} is held up by {self.binding}"
        return "\n".join([lines[0], *(f"  {need}" for need in self.needs)])


SAVING = "the baseline, whose share of the plan puts aside what other policies may cost"
PLAYED = {
    "explore": "an exploration",
    "design": "the design",
    "earn": "what surely earns more than the baseline",
    "baseline": "the baseline",
}


def why(setup: Setup, state: State, trial: Trial | None) -> Why:
    """Of a trial that is out, which has been paid for, or of the next one: by what is known now."""
    if trial is None:
        event = decide(setup, state)
        at, kind, number = shown_of(event), event.kind, event.number
        follows = policy_of(
            setup, event.policy, event.by_step, planned(setup, state, event), state.exploration
        )
    else:
        follows, kind, number = trial.follows, trial.kind, trial.number
        at = next((i for i, one in enumerate(setup.known) if one.key == follows.key), None)
    if kind == "baseline":
        return held_up(setup, state, number)
    named = PLAYED[kind] if at is None else str(setup.shown.names[at])
    needs = needs_of(setup, state, follows)
    if trial is not None:
        needs = tuple(replace(one, short=0.0, episodes=0.0) for one in needs)
    return Why(number, kind, named, "", "", needs)


def planned(setup: Setup, state: State, event: Asked) -> Policy | None:
    """The plan that a decision follows."""
    if event.plan is not None:
        return Policy(setup.stage.grid, event.plan.by_step, event.plan.rows)
    return None if state.following is None else state.following.policy


def held_up(setup: Setup, state: State, number: int) -> Why:
    """Of a baseline trial: what is the nearest to being afforded."""
    best, said, needs = math.inf, "", tuple[Need, ...]()
    for words, follows in candidates(setup, state):
        found = needs_of(setup, state, follows)
        far = max((one.short / _unit(setup, one.name) for one in found), default=0.0)
        if far < best:
            best, said, needs = far, words, found
    short = [one for one in needs if one.short > 0.0]
    if not short:
        saves = setup.known and setup.collector.design == "exact"
        return Why(number, "baseline", SAVING if saves else PLAYED["baseline"], "", "", needs)
    worst = max(short, key=lambda one: one.short / _unit(setup, one.name))
    return Why(number, "baseline", PLAYED["baseline"], said, worst.name, needs)


def candidates(setup: Setup, state: State) -> list[tuple[str, Policy]]:
    """What could be played: what a log shows, else the plan, else the first target."""
    if setup.known and setup.collector.design == "exact":
        return list(zip(setup.shown.names, setup.known, strict=True))
    if state.following is not None and setup.collector.design != "baseline":
        return [("the design", state.following.policy)]
    return [("the target", setup.stage.grid.policy(setup.problem.first))]


def needs_of(setup: Setup, state: State, follows: Policy) -> tuple[Need, ...]:
    """What the guardrails behind the gate say of a policy now."""
    play = setup.stage.play(follows)
    return tuple(need(used, state.books[book], play) for book, used in setup.behind_gate.items())


def need(ledger: Ledger, book: Any, play: Play) -> Need:
    """What one says."""
    rail, sign = ledger.rail, ledger.rail.sign
    budget, after, value = ledger.budget(book), ledger.next(book, play), ledger.value(book)
    credit = ledger.credit(book)
    short = (
        max(0.0, -after)
        if math.isfinite(after)
        else max(0.0, ledger.required(book) - ledger.lower(book, play))
    )
    episodes = math.ceil(short / credit) if credit > 0.0 else math.inf
    worth = ledger.lower(book, play)
    if (floor := ledger.shown(play)) is not None:  # a difference: if V0 is as believed
        worth = max(worth, floor + rail.required_at(value))
    return Need(rail.name, budget, sign * worth, sign * rail.required_at(value), short,
                episodes if short else 0.0, sign < 0.0)  # fmt: skip


def _unit(setup: Setup, name: str) -> float:
    return setup.problem.rail(name).unit or 1.0
