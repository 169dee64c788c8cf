"""What happens to a campaign. Its state is a fold of these, in order; nothing else changes it.

An `Asked` holds the whole decision, so that replay applies it and never decides again: another machine's
rounding must not change history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from saver._types import Floats
from saver.errors import InvalidData
from saver.play.policy import Policy
from saver.problem import checks
from saver.problem.codec import portable
from saver.problem.episode import Episode
from saver.problem.history import History

BASELINE, EXPLORE, PLAN = "baseline", "explore", "plan"  # policies by name
SHOWN = "shown "  # and a number: one of which a log shows what it is worth


@portable("plan")
@dataclass(frozen=True, eq=False)
class Plan:
    """A design that was made.

    Attributes:
        by_step: rows are nodes (step, state), else states.
        rows: probabilities, [n, A].
        until: the episode at which it is replaced.
        since: the episode for which it was made.
        warm: where the next solve may start, or None.
        reach: where transitions are learned, the believed probability of each node, [nodes].
        needed: likewise, what comes first: see `needed_pairs`.
        foresight: likewise, what was believed of the world.
        shares: of the policies that a log shows, and at last of the baseline, how often to play each; None
            where there are none.
        sooner: whether these come before the design.
    """

    by_step: bool
    rows: Any
    until: int
    since: int = 1
    warm: Any = None
    reach: Any = None
    needed: Any = None
    foresight: Any = None
    shares: Any = None
    sooner: bool = False


@portable("asked")
@dataclass(frozen=True, eq=False)
class Asked:
    """A trial was decided."""

    number: int  # of the trial, from 1
    kind: str  # "explore", "design", "earn" or "baseline
    policy: Any  # BASELINE, EXPLORE, PLAN or SHOWN, or one action for each row, a small integer
    by_step: bool = False  # where `policy` holds actions: its rows are nodes (step, state), else states
    draws: Any = None  # one uniform number for each step, or None where nothing is left to chance
    plan: Plan | None = None  # a new one, if one was made
    exploration: Any = None  # the policy to explore by, when it is first used and had to be computed, [n, A]
    tickets: dict[str, Any] = field(default_factory=dict)  # what each ledger froze
    stream: tuple[int, ...] = ()  # the state of the random generator after it; empty if nothing was drawn


@portable("told")
@dataclass(frozen=True, eq=False)
class Told:
    """What came of a trial; of one that is not complete, until it was cut off."""

    number: int
    episode: Episode
    complete: bool = True


@portable("abandoned")
@dataclass(frozen=True, eq=False)
class Abandoned:
    """Nothing will be told of a trial, which may have run, or did."""

    number: int
    ran: bool = False


@portable("cancelled")
@dataclass(frozen=True, eq=False)
class Cancelled:
    """A trial has never started; `unseen`: so it was decided before anybody saw where it would."""

    number: int
    unseen: bool = False


@portable("learned")
@dataclass(frozen=True, eq=False)
class Recalled:
    """Logged baseline episodes, known before the first trial: they teach, and count for no budget."""

    history: History


@portable("extended")
@dataclass(frozen=True, eq=False)
class Extended:
    """So many trials more may be asked for."""

    episodes: int


Event = Asked | Told | Abandoned | Cancelled | Recalled | Extended


# -- what is handed out --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trial:
    """One episode to be run.

    Attributes:
        number: from 1, in order of asking.
        kind: "explore", "design", "earn" or "baseline".
        follows: what `act` follows, where some behaviour can be; `policy` is the same as a table.
        draws: one uniform number for each step, or None where the policy leaves nothing to chance.
        seen: not empty once `act` was called, on this object or a shallow copy of it: the one thing that
            changes.
    """

    number: int
    kind: str
    follows: Policy
    draws: Floats | None
    seen: list[bool] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.draws is not None:
            object.__setattr__(self, "draws", checks.frozen(self.draws))

    @property
    def policy(self) -> Floats:
        """What `act` follows, [S, A] or [L, S, A]."""
        return self.follows.table()

    @property
    def horizon(self) -> int:
        """The largest number of steps."""
        return int(self.follows.grid.mdp.horizon)

    def __repr__(self) -> str:
        return f"Trial(number={self.number}, kind={self.kind!r})"

    def row(self, step: int, state: int | str) -> Floats:
        """The probabilities of the actions at this step in this state, which may be said by its name."""
        if isinstance(state, str):
            state = int(self.follows.grid.mdp.state_labels.number("state", state))
        return self.follows.row(step, state)

    @overload
    def act(self, step: int, state: int) -> int: ...
    @overload
    def act(self, step: int, state: str) -> int | str: ...
    def act(self, step: int, state: int | str) -> int | str:
        """The action to take; asked again it answers the same.

        In a state that is said by its name the answer is the action's name, if actions have names.
        """
        if not isinstance(state, str):
            return self._act(step, state)
        mdp = self.follows.grid.mdp
        return mdp.action_labels.said(self._act(step, mdp.state_labels.number("state", state)))

    @property
    def looked(self) -> bool:
        """Whether somebody knows where it starts."""
        return bool(self.seen)

    def look(self) -> None:
        """Somebody does."""
        if not self.seen:
            self.seen.append(True)

    def _act(self, step: int, state: int) -> int:
        mdp = self.follows.grid.mdp
        for name, value, count in (("step", step, mdp.horizon), ("state", state, mdp.states)):
            if not isinstance(value, int | np.integer) or not 0 <= value < count:
                raise InvalidData(f"{name} is {value!r}; it must be from 0 to {count - 1}")
        self.look()
        if self.follows.chosen and (action := self.follows.action(step, state)) >= 0:
            return action
        row = self.follows.row(step, state)
        if self.draws is None:
            return int(np.argmax(row))
        reached = int(np.searchsorted(np.cumsum(row), self.draws[step], side="right"))
        if reached >= len(row) or row[reached] == 0.0:
            reached = int(np.flatnonzero(row)[-1])
        return reached

    def same_as(self, other: Trial) -> bool:
        """Whether both are the same trial, perhaps after a restart."""
        if self is other:
            return True
        mine, others = ((one.number, one.kind, one.follows.key) for one in (self, other))
        return mine == others and np.array_equal(self.draws, other.draws)  # type: ignore[arg-type]
