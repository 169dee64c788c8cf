"""What changes in a campaign, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saver.collect.events import Plan
from saver.collect.outstanding import Outstanding
from saver.collect.planned import following
from saver.collect.setup import Setup
from saver.collect.trial import Trial
from saver.problem.codec import portable
from saver.problem.moments import Moments
from saver.problem.seeds import child_seed
from saver.problem.statement import Problem
from saver.problem.sums import Sums

KINDS = ("explore", "design", "earn", "baseline")
DESIGNED = ("design", "earn")  # what the tracker counts


@portable("state")
@dataclass(eq=False)
class State:
    """One campaign between two events.

    Attributes:
        stream: the state of the random generator.
        sums: of the told episodes, for the estimate.
        constraints: of the told episodes, for the design, of the first guardrail, in the units of telling.
        others: the same of the other guardrails, by name.
        counts: visits of told trials by kind, [nodes, A] each.
        books: what each ledger wrote down, and the keeper of rewards.
        told: trials told, by kind.
        asked: trials asked.
        explored: of these, those that explore.
        plan: the design that is followed now.
        exploration: the policy to explore by, where it had to be computed, [n, A].
        out: the trials that are out.
        abandoned: the numbers of trials that were abandoned.
        cancelled: the numbers of trials that never started.
        more: trials that may be asked for beyond those planned.
        looks: the answers after some of the told trials, their numbers growing by a twentieth.
    """

    stream: tuple[int, ...]
    sums: Sums
    constraints: Moments
    counts: dict[str, Any]
    books: dict[str, Any]
    told: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    asked: int = 0
    explored: int = 0
    plan: Plan | None = None
    exploration: Any = None
    out: dict[int, Trial] = field(default_factory=dict)
    abandoned: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)
    more: int = 0
    looks: list[Any] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)
    outstanding: Any = field(default=None, init=False)  # sums over `out`: made by `settle`, never written
    following: Any = field(default=None, init=False)  # what `plan` comes to, likewise

    @property
    def spent(self) -> int:
        """How many of the campaign's episodes were given out."""
        return self.asked - len(self.cancelled)

    def left(self, planned: int) -> int:
        """How many trials may still be asked for, of so many planned."""
        return planned + self.more - self.spent

    def guarded(self, problem: Problem) -> list[Moments]:
        """The constraints seen of each guardrail."""
        return [self.constraints, *(self.others[rail.name] for rail in problem.rails[1:])]

    @classmethod
    def begin(cls, setup: Setup, seed: int | np.random.SeedSequence = 0) -> State:
        """Nothing has happened."""
        mdp = setup.problem.mdp
        shape = mdp.states, mdp.actions
        rows = (len(setup.stage.nodes.state), mdp.actions)
        made = cls(
            stream=words(np.random.PCG64(child_seed(seed, 0))),
            sums=Sums.empty(mdp),
            constraints=Moments.empty(shape),
            others={rail.name: Moments.empty(shape) for rail in setup.problem.rails[1:]},
            counts={kind: np.zeros(rows) for kind in KINDS},
            books={name: keeper.open() for name, keeper in setup.keepers.items()},
        )
        return settle(setup, made)


def settle(setup: Setup, state: State) -> State:
    """Make what follows from the rest and is not written: sums over the trials that are out, the plan's."""
    if state.plan is not None:
        state.following = following(setup, state.plan, state.more)
    state.outstanding = Outstanding(setup, None if state.plan is None else state.plan.reach)
    for trial in state.out.values():
        state.outstanding.add(trial.number, trial.kind, setup.stage.play(trial.follows))
    return state


def words(generator: Any) -> tuple[int, ...]:
    """The state of a PCG64 as four numbers."""
    kept = generator.state
    return kept["state"]["state"], kept["state"]["inc"], kept["has_uint32"], kept["uinteger"]


def generator_at(kept: tuple[int, ...]) -> Any:
    """A PCG64 where another was."""
    state, inc, has, rest = kept
    generator = np.random.PCG64(0)
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": inc},
        "has_uint32": has,
        "uinteger": rest,
    }
    return generator
